//! The blast protocols: data by datagrams, control by a reliable channel, a rate instead of a window.
//!
//! In plain the channel is TCP on the port of the same number. Inside a secure connection (`farhaul_proto::secure`) it is the
//! stream of that connection, which also carries the datagrams.
//!
//! ```text
//!                ┌──── Endpoint of UDP and TCP on one port, with Tags<P> ───────────────┐
//! datagrams ────▶│ by tag ─▶ Established ─▶ receiving engine ─▶ Incoming ─▶ read        │
//! channel bytes ▶│ FrameChannel ─▶ frames ─▶ inline bytes, control records, credit      │──▶ events, deadline
//! commands ─────▶│ write ─▶ Outgoing ─▶ inline frame, or sending engine                 │──▶ datagrams, channel bytes
//!                └──────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A protocol brings two [engines](engine), one for each end of one direction of data. The rest is common: a stream in
//! each direction, credit, proof that UDP gets through, the end. So every blast protocol carries the same copies and
//! measurements as UDT. Small writes travel on the control channel, and bulk by datagrams (departures D150 to D154).
//!
//! Programs that only speak an original protocol need no such connection. The crate `farhaul-originals` has their dialogues,
//! over the same engines.
//!
//! | part | owns |
//! | --- | --- |
//! | [`engine`] | the contract with a protocol; `setup`: what its engines begin with |
//! | `tags` | the connections by tag, and admission of callers |
//! | `opening` | a connection until the hello of the peer has come |
//! | `established` | an open connection for the endpoint: it joins `frame_channel` and `duplex` |
//! | `frame_channel` | an end of the channel, from the hello to the last frame |
//! | `duplex` | both streams: `outgoing`, `incoming`, with `path_validation` and `channel_liveness` |
//! | `path_validation` | proof that datagrams get through |
//! | `channel_liveness` | RTT and silence of the channel |
//! | `rate` | the search for a rate |
//! | `registered` | the row of a protocol in the registry, and what its options make |
//! | `receiving` | the part that all receivers share: packets in order, counts, the sender's records |
//! | `sending` | the part that all senders share: counts, the present limit, the receiver's records |
//! | `send_buffer` | the packets that a sender holds, for all but RBUDP |
//! | `numbered` | datagrams with a number, for Hurricane and FOBS |

mod channel_liveness;
mod duplex;
pub mod engine;
mod established;
mod frame_channel;
mod frames;
mod incoming;
pub(crate) mod numbered;
mod opening;
mod outgoing;
pub(crate) mod partial;
mod path_validation;
pub(crate) mod rate;
pub mod receiving;
mod registered;
pub(crate) mod send_buffer;
pub mod sending;
pub(crate) mod settings;
mod setup;
mod tags;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use registered::{Registered, row};

use farhaul_proto::{Config, Endpoint, Entropy};

/// The endpoint of a blast protocol on one port of UDP and TCP, without connections.
pub(crate) fn endpoint<P: engine::Protocol>(config: Config, options: P::Options, entropy: Entropy) -> Endpoint {
    let seed = entropy.seed;
    Endpoint::new(config, seed, tags::Tags::<P>::new(options, entropy))
}
