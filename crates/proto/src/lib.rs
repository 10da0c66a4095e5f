//! Sans-IO transports. Bytes, time, randomness and commands go in. Bytes, a deadline and events come out.
//!
//! Start with [`Transport`], the trait that every driver calls. Then read [`Endpoint`], which implements it for every protocol.
//!
//! | module | owns |
//! | --- | --- |
//! | `transport` | the trait between protocols and drivers, with its contract |
//! | `channel` | reliable byte streams beside the datagrams, for protocols that need them |
//! | `udt` | the UDT4 endpoint and its connections |
//! | `udt2004` | the protocol of the 2004 paper |
//! | `rbudp` | RBUDP: options, model, and the dialogues of the original programs |
//! | `probe` | measured streams: stable control streams, throughput profiles |
//! | `tsunami` | Tsunami, between Farhaul ends and with programs of tsunami-udp |
//! | `hurricane`, `fobs` | the engines of two blast protocols |
//! | `sabul` | SABUL, between Farhaul ends and with programs of release 2.1 |
//! | `secure` | the envelope that encrypts the datagrams of a transport |
//! | `shell` | what all endpoints and connections share, and the traits that a protocol implements |
//! | `registry` | every protocol by name, for users who choose one |
//! | `path_memory` | what connections learn of paths for later ones |
//! | `event`, `error`, `stats`, `config` | inputs and outputs other than bytes |
#![forbid(unsafe_code)]

mod channel;
mod config;
mod consts;
mod error;
mod event;
mod numbering;
mod path_memory;
pub mod registry;
mod stats;
mod transport;

pub use blast::rate::RateChoice;
pub use channel::{ChannelEnd, ChannelOutput, Channels, begins_hello};
pub use config::{Config, ControllerFactory, Entropy, MinProgress, Mode, controller_factory};
pub use error::{ConnectError, ConnectionLost, ControlFault, PeerIncompatible, PeerMisbehaved, SecurityFault};
pub use event::{ConnectionId, Event};
pub use numbering::Numbering;
pub use path_memory::PathMemory;
pub use registry::Protocol;
pub use shared_channel::{CeilingFigures, ControlPath};
pub use shell::admission::Held;
pub use shell::connection::{Connection, Name};
pub use shell::endpoint::{Connections, Endpoint};
pub use shell::farewell::{LONGEST_FAREWELL, Parting};
pub use shell::line::Request;
pub use shell::protocol::{Carried, Demultiplexer, Effect, Established, Opening, Output, Setup, Step};
pub use stats::{Stats, Totals};
pub use transport::{
    Arrival, Batch, ConnectOptions, DatagramKind, Datagrams, Message, MessageOptions, Read, StreamError, Streams,
    Transmit, Transport, earliest, time_until,
};

mod blast;
mod buffer;
mod estimate;
pub mod fobs;
pub mod hurricane;
mod intake;
mod loss;
mod pacer;
pub mod probe;
pub mod sabul;
pub mod secure;
mod seq_set;
mod shared_channel;
mod shell;

pub mod rbudp;
mod timer;
pub mod tsunami;
pub mod udt;
pub mod udt2004;
