//! UDT's predecessor, the protocol of the 2004 paper (paper:udt-2004 §3): four bytes of header, four timers, delay
//! warnings.
//!
//! ```text
//!              ┌──────────────── Endpoint of one UDP port ────────────────────────────┐
//! datagrams ──▶│ Router ─▶ Connection ─▶ Opening ─▶ │ Established                     │──▶ datagrams
//!              │ address                 caller     │  ├ Sender ─ buffer, loss list,  │
//! commands  ──▶│                                    │  │          pacer               │──▶ events
//!              │                                    │  ├ Receiver ─ buffer, Acks,     │
//! time      ──▶│ Reception                          │  │   Naks, speed, pairs, trend  │──▶ deadline
//!              │ listener                           │  ├ Congestion ─ controller      │
//!              │                                    │  └ Liveness, Closing            │
//!              └──────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! | timer of the paper | period | where |
//! | --- | --- | --- |
//! | ACK | SYN, 10 ms | `ack.rs` |
//! | NAK | the larger of RTT and mean arrival interval | `nak.rs` |
//! | SYN | 10 ms | `established/contract.rs` |
//! | EXP | 2·RTT + SYN | `exp.rs` |
//!
//! All of them stop while they have nothing to do. The rate law is the controller `udt-2004`
//! (`cc/src/rate/udt_2004.rs`). Any other controller works as well.
//!
//! A packet does not name its connection, so two addresses have one connection at a time. Nothing is authenticated. An
//! attacker that forges an address and guesses a number in the window can put bytes into the stream.
//!
//! Departures (docs/papers/departures.md): D120 to D123 fill gaps in the paper's format. D130 to D139 serve hostile or
//! busy networks.

mod ack;
mod arrival_speed;
mod called;
mod congestion;
mod delay_trend;
mod established;
mod exp;
mod handshake;
mod nak;
mod opening;
mod packet_pair;
mod receiver;
mod router;
mod send_buffer;
mod sender;

use farhaul_cc::options::{OptionDoc, OptionForm};
use farhaul_proto::endpoint::protocol::Carried;
use farhaul_proto::{Config, Endpoint, Entropy, Mode, Numbering, controller_factory, secure};
use farhaul_wire::udt2004::HEADER_LEN;

use self::router::Router;
use crate::entry::{Configured, Entry};

const NAME: &str = "udt-2004";

/// The protocol's row in the registry.
pub(crate) const ROW: Entry = Entry {
    name: NAME,
    summary: "the protocol of the 2004 paper, for experiments; one connection between two ports",
    source: "udt-2004",
    modes: &[Mode::Stream],
    needs_control_channel: false,
    controller: Some("udt-2004"),
    header_len: HEADER_LEN as u32,
    numbering: Numbering::UDT_2004,
    options: &[OptionDoc {
        name: "delay-warnings",
        meaning: "whether the receiver warns the sender of a growing RTT: on or off",
        form: OptionForm::Optional { default: "on" },
    }],
    read: |settings| {
        let default = Options::default();
        Ok(Box::new(Options { delay_warnings: settings.switch("delay-warnings")?.unwrap_or(default.delay_warnings) }))
    },
};

/// Options of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether this side warns a sender of a growing RTT (type 4). Default true.
    pub delay_warnings: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { delay_warnings: true }
    }
}

impl Configured for Options {
    fn endpoint(&self, config: Config, entropy: Entropy) -> Endpoint {
        endpoint(*self, config, entropy)
    }

    /// Between two ports several connections are possible then.
    fn secure_endpoint(&self, config: Config, entropy: Entropy, provider: Box<dyn secure::Provider>) -> Endpoint {
        let carried = |entropy: Entropy| -> Box<dyn Carried> { Box::new(Router::new(entropy.cookie_key, *self)) };
        secure::endpoint_around((NAME, carried), config, entropy, provider)
    }
}

/// The endpoint of the 2004 protocol on one UDP port: one connection per address, at most one listener.
///
/// [`connect`](farhaul_proto::Streams::connect) also fails with
/// [`AlreadyConnected`](farhaul_proto::ConnectError::AlreadyConnected), because two addresses have one connection at a time.
/// [`default_config`] has the settings with the paper's controller. Settings without use in this protocol (messages,
/// rendezvous) are ignored.
pub fn endpoint(options: Options, config: Config, entropy: Entropy) -> Endpoint {
    Endpoint::new(config, entropy.seed, Router::new(entropy.cookie_key, options))
}

/// The default settings with the paper's controller `udt-2004`, which uses raw estimates and obeys warnings.
pub fn default_config() -> Config {
    let spec = "udt-2004".parse().expect("the registry has it");
    Config { controller: controller_factory(spec), ..Config::default() }
}
