//! Unstable: the sans-IO transports that `farhaul` drives.
//!
//! Bytes, time, randomness and commands go in. Bytes, a deadline and events come out.
//!
//! Start with [`Transport`], the trait that every driver calls. Then read [`Endpoint`], which implements it for every protocol.
//! UDT is here. `farhaul-protocols` has the other protocols, which are built from the same parts.
//!
//! | module | owns |
//! | --- | --- |
//! | [`transport`] | the trait between protocols and drivers, with its contract |
//! | [`channel`] | reliable byte streams beside the datagrams, for protocols that need them |
//! | [`endpoint`] | what all endpoints and connections share, and the traits that a protocol implements |
//! | [`udt`] | the UDT4 endpoint and its connections |
//! | [`secure`] | connections over authenticated and encrypted datagrams, of UDT or around another protocol |
//! | [`buffer`], [`loss`], [`pacer`], [`estimate`], … | the parts of connections |
//! | [`probe`] | measured streams: stable control streams, throughput profiles |
//! | `shared_channel` | a control stream beside the bulk of an endpoint |
//! | `path_memory` | what connections learn of paths for later ones |
//! | [`event`], [`error`], [`stats`], [`config`], [`entropy`] | inputs and outputs other than bytes |
#![forbid(unsafe_code)]

// Tests here and in other crates share a file that names this crate.
#[cfg(test)]
extern crate self as farhaul_proto;

pub mod buffer;
pub mod channel;
pub mod config;
pub mod consts;
pub mod endpoint;
pub mod entropy;
pub mod error;
pub mod estimate;
pub mod event;
pub mod intake;
pub mod loss;
pub mod numbering;
pub mod pacer;
mod path_memory;
pub mod probe;
pub mod secure;
pub mod sent_packets;
pub mod seq_set;
mod shared_channel;
pub mod stats;
pub mod timer;
pub mod transport;
pub mod udt;

pub use channel::{ChannelEnd, ChannelOutput, Channels, begins_hello};
pub use config::{Config, ControllerFactory, MinProgress, Mode, controller_factory};
pub use endpoint::closing::{CloseKind, LONGEST_CLOSE};
pub use endpoint::connection::{Connection, Name};
pub use endpoint::control_channel::Request;
pub use endpoint::handshake::admission::Held;
pub use endpoint::protocol::{Carried, Effect, Established, Opening, Output, Setup, Step};
pub use endpoint::{Connections, Demultiplexer, Endpoint};
pub use entropy::Entropy;
pub use error::{ConnectError, ConnectionLost, ControlFault, PeerIncompatible, PeerMisbehaved, SecurityFault};
pub use event::{ConnectionId, Event};
pub use numbering::Numbering;
pub use path_memory::PathMemory;
pub use shared_channel::{CeilingFigures, ControlPath};
pub use stats::{Stats, Totals};
pub use transport::{
    AddressPair, Batch, ConnectOptions, DatagramKind, Datagrams, Message, MessageOptions, Read, Readiness,
    ReceivedDatagrams, StreamError, Streams, Transmit, Transport, earliest,
};
