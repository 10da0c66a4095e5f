//! Reliable bulk data transfer over UDP for long fat networks. It speaks UDT4 **without encryption or authentication**.
//!
//! Whoever is on the path can read and change what travels, and whoever knows the port can connect: use it inside a
//! network or tunnel that you trust, or protect and verify the content yourself. Encryption will come as a default with its own
//! names; what plain UDT4 does against forged packets, and what it cannot, is listed in `SECURITY.md`.
//!
//! Programs that use libudt 4.11 can be at the other end. Begin with [`Stream::connect`] and [`Listener::bind`], which work like their namesakes for TCP;
//! [`Endpoint::builder`] is for those who want to choose: packet size, rate cap, time-outs, congestion controller, many
//! connections on one port, rendezvous. [`MessageSocket`] keeps message boundaries.
//!
//! ```
//! use std::io::{Read, Write};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let listener = farhaul::Listener::bind("127.0.0.1:0")?;
//! let address = listener.local_addr();
//! let server = std::thread::spawn(move || -> std::io::Result<Vec<u8>> {
//!     let (mut stream, _peer) = listener.accept()?;
//!     let mut all = Vec::new();
//!     stream.read_to_end(&mut all)?;
//!     Ok(all)
//! });
//! let mut stream = farhaul::Stream::connect(address)?;
//! stream.write_all(&[7; 100_000])?;
//! stream.finish()?;
//! assert_eq!(server.join().expect("the server does not panic")?.len(), 100_000);
//! # Ok(())
//! # }
//! ```
//!
//! | example | shows |
//! | --- | --- |
//! | `hello` | two ends of a stream |
//! | `send_file` | a file from host to host |
//! | `messages` | messages with boundaries: in order, or with a time to live |
//! | `rendezvous` | two hosts that both call, and nobody listens |
//! | `many` | several connections, in both directions, on one port |
//! | `tasks` | tokio tasks in place of threads (`--features tokio`) |
//! | `cancel` | ending calls that wait, time-outs, and what the errors say |
//! | `controller` | a fixed rate, a rate cap, a congestion controller of one's own |
//! | `observe` | counters and estimates of a transfer under way |
//! | `idle_connections` | a thousand connections that do nothing |
//!
//! Each runs on one machine: `cargo run --release --example hello`.
//!
//! **Threads.** Each UDP port has one thread that receives and keeps time. It sleeps when nothing happens, and a thread
//! that writes does its own sending. With the feature `tokio`, tasks can wait in place of threads: `AsyncStream`,
//! `AsyncMessageSocket`, and the methods of endpoints and listeners whose names end in `_async` give them.
//!
//! **Ends.** [`finish`](Connection::finish) is the proof of delivery; dropping a stream without it
//! [aborts](Connection::abort) the connection, which the peer does not take for the end of the stream. No call waits for ever on a dead peer, and a [`Canceller`] ends any that waits. Dropping never waits: see [`wait_for_farewells`]
//! for the end of a program.

mod builder;
mod canceller;
mod clock;
mod connection;
mod driver;
mod endpoint;
mod error;
mod listener;
mod message;
mod protocol;
mod reach;
mod stream;
#[cfg(feature = "tokio")]
mod tasks;

pub use builder::Builder;
pub use canceller::Canceller;
pub use connection::Connection;
pub use driver::disk::{Directory, DiskSource, DiskStore, copies_at_a_time};
pub use driver::wait_for_farewells;
pub use endpoint::Endpoint;
pub use error::Error;
pub use farhaul_cc as cc;
pub use farhaul_proto::{ConnectError, ConnectionLost, MinProgress, Stats, Totals};
pub use farhaul_units as units;
pub use farhaul_units::Rate;
pub use listener::{Accept, Listener};
pub use message::{MessageSocket, Received, SendOptions};
pub use protocol::Protocol;
pub use stream::Stream;
#[cfg(feature = "tokio")]
pub use tasks::{AsyncMessageSocket, AsyncStream};
