//! Hosts of sessions with the original programs of Tsunami, RBUDP and SABUL: sockets, files, threads.
//!
//! | original program | its peer here |
//! | --- | --- |
//! | `tsunamid` | [`TsunamiClient`] |
//! | `tsunami` | [`TsunamiServer`] |
//! | `sendfile` of QUANTA | [`RbudpReceiver`] |
//! | `recvfile` of QUANTA | [`RbudpSender`] |
//! | a receiver of SABUL 2.1 | [`SabulSender`] |
//! | a sender of SABUL 2.1 | [`SabulReceiver`] |
//!
//! ```text
//! drive: one loop for all ──▶ Line: one TCP connection, one UDP socket, one wait
//!     ├──▶ OriginalSession: the dialogue, in farhaul_protocols
//!     └──▶ Application: files, streams and events of the dialogue
//! ```
//!
//! Calls block. A [`Stop`] ends them from another thread. A server has one thread for each session, and a bound on
//! sessions. `farhaul_protocols` documents each dialogue: ports, timers, and what a peer can forge.
//!
//! **No digest travels.** A file gets its name when every byte of the announced size has come, and UDP's checksum is all
//! that protects them. The originals have no encryption, and a secret of Tsunami protects little (attack C1).

mod drive;
mod failure;
mod line;
mod memory;
mod progress;
mod rbudp_receiver;
mod rbudp_sender;
mod sabul_receiver;
mod sabul_sender;
mod sabul_streams;
mod serve;
mod stop;
#[cfg(test)]
mod tests;
mod tsunami_client;
mod tsunami_server;

pub use failure::Failure;
pub use farhaul_disk::IncomingPlace;
pub use farhaul_protocols::{rbudp, sabul, tsunami};
pub use progress::Progress;
pub use rbudp_receiver::RbudpReceiver;
pub use rbudp_sender::RbudpSender;
pub use sabul_receiver::SabulReceiver;
pub use sabul_sender::SabulSender;
pub use sabul_streams::StreamTerms;
pub use serve::{Given, News, Port, Watch};
pub use stop::Stop;
pub use tsunami_client::TsunamiClient;
pub use tsunami_server::TsunamiServer;
