//! Reliable bulk data transfer over UDP for long fat networks, encrypted or compatible with UDT4.
//!
//! Each port is one or the other. [`Endpoint::secure`] encrypts, and both sides know each other by their keys:
//!
//! ```
//! use std::io::{Read, Write};
//! use farhaul::security::{KeyPair, Pinned, Security};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (alice, bob) = (KeyPair::generate()?, KeyPair::generate()?);
//! let clients = Pinned { clients: vec![alice.public()], servers: vec![] };
//! let servers = Pinned { servers: vec![bob.public()], clients: vec![] };
//!
//! let listener = farhaul::Endpoint::secure("127.0.0.1:0", Security::new(bob, clients))?.listen()?;
//! let address = listener.local_addr();
//! let server = std::thread::spawn(move || -> std::io::Result<Vec<u8>> {
//!     let (mut stream, _peer) = listener.accept()?;
//!     let mut all = Vec::new();
//!     stream.read_to_end(&mut all)?;
//!     Ok(all)
//! });
//! let mut stream = farhaul::Endpoint::secure("0.0.0.0:0", Security::new(alice, servers))?.connect(address)?;
//! stream.write_all(&[7; 100_000])?;
//! stream.finish()?;
//! assert_eq!(server.join().expect("the server does not panic")?.len(), 100_000);
//! # Ok(())
//! # }
//! ```
//!
//! The module [`security`] says which keys a program may trust: pinned ones, known hosts as ssh has them, or any in a test.
//!
//! Programs that use libudt 4.11 can be at the other end of a plain port: [`Stream::connect_plain`] and
//! [`Listener::plain`] work like their namesakes for TCP. Anybody on the path can then read and change the data, and
//! anybody who knows the port can connect. `SECURITY.md` lists the forged packets that plain UDT4 withstands, and those
//! that it cannot withstand.
//!
//! [`Endpoint::builder`] offers settings: packet size, rate cap, time-outs, congestion controller, many connections on one
//! port, rendezvous. [`MessageSocket`] keeps message boundaries on plain ports.
//!
//! | example | shows |
//! | --- | --- |
//! | `hello` | two ends of a stream |
//! | `secure` | two sides that know each other's keys, and a third one that is not admitted |
//! | `send_file` | a file from host to host |
//! | `messages` | messages with boundaries: in order, or with a time to live |
//! | `rendezvous` | two hosts that both call; neither listens |
//! | `many` | several connections, in both directions, on one port |
//! | `tasks` | tokio tasks in place of threads (`--features tokio`) |
//! | `cancel` | ending calls that wait, time-outs, error messages |
//! | `controller` | a fixed rate, a rate cap, a custom congestion controller |
//! | `observe` | counters and estimates of a running transfer |
//! | `idle_connections` | a thousand idle connections |
//!
//! Each runs on one machine: `cargo run --release --example hello`.
//!
//! **Protocols.** UDT4 is always there. The feature `papers` adds those of the papers: `udt-2004`, `rbudp`, `tsunami`, `sabul`,
//! `fobs` and `hurricane`, by [`Builder::protocol`].
//!
//! **Threads.** Each UDP port has one driver thread that receives and keeps time. It sleeps when nothing happens, and a
//! thread that writes does its own sending. With the feature `tokio`, tasks can wait in place of threads. Use
//! `AsyncStream`, `AsyncMessageSocket`, and the methods of endpoints and listeners whose names end in `_async`.
//!
//! **Ends.** [`finish`](Connection::finish) is the proof of delivery. Dropping a stream without it
//! [aborts](Connection::abort) the connection, which the peer does not take for the end of the stream. No call waits
//! for ever on a dead peer, and a [`Canceller`] ends any call that waits. Dropping never waits. Call
//! [`wait_idle`] at the end of a program.

mod addresses;
mod builder;
mod canceller;
mod code;
mod connect_attempt;
mod connection;
mod control_stream;
mod driver;
mod endpoint;
mod error;
mod kind;
mod listener;
mod message;
mod other_clients;
pub mod path;
mod path_facts;
mod port;
pub mod probe;
mod randomness;
mod readiness;
mod recent_paths;
pub mod security;
mod stream;
#[cfg(feature = "tokio")]
mod tasks;

/// Congestion controllers: what a controller of a program hears and sets, and the names of those that exist.
pub mod cc {
    pub use farhaul_cc::{
        AckEvent, Control, Controller, ControllerFailure, ControllerFault, CustomMessage, DataPacket, DeliveryEvent,
        DeliverySample, KnownPath, LossEvent, LostFlight, Nonsense, NonsenseValue, Path, RateSample, ReceivedEvent,
        Registration, RegistrationError, SentEvent, ShortName, Spec, SpecError, TimeoutEvent, options, registry,
    };
}

/// Times, rates, sizes and numbers of packets.
pub mod units {
    pub use farhaul_units::{
        AckNo, ByteSize, Duration, Instant, MsgNo, Network, PacketRate, ParseNetworkError, ParseQuantityError, Rate,
        SendPeriod, SeqNo, SeqRange,
    };
}

pub use builder::{Builder, UDP_RECV_BUFFER};
pub use bytes::Bytes;
pub use canceller::Canceller;
pub use code::{Code, Owner};
pub use connection::Connection;
pub use control_stream::{CeilingFigures, ControlStream};
pub use driver::wait_idle;
pub use endpoint::{ConnectOptions, Endpoint, WeakEndpoint};
pub use error::{ControllerError, Error};
pub use farhaul_proto::{ConnectError, ConnectionLost, MinProgress, PathMemory, PeerIncompatible, Stats, Totals};
pub use farhaul_protocols::{Protocol, registry};
pub use farhaul_units::Rate;
pub use kind::ConnectionKind;
pub use listener::Listener;
pub use message::{MessageSocket, Received, SendOptions};
pub use other_clients::OtherClients;
pub use readiness::{Readiness, Watch};
pub use recent_paths::RecentPaths;
pub use stream::Stream;
#[cfg(feature = "tokio")]
pub use tasks::{AsyncMessageSocket, AsyncStream};
