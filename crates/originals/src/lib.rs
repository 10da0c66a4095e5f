//! Sessions with the original programs of Tsunami, RBUDP and SABUL, unstable: it serves the program, and changes with it.
//!
//! | original program | its peer here | its dialogue |
//! | --- | --- | --- |
//! | `tsunamid` | [`TsunamiClient`] | [`tsunami`] |
//! | `tsunami` | [`OriginalServer::tsunami`] | |
//! | `sendfile` of QUANTA | [`RbudpReceiver`] | [`rbudp`] |
//! | `recvfile` of QUANTA | [`OriginalServer::rbudp`] | |
//! | a receiver of SABUL 2.1 | [`SabulSender`] | [`sabul`] |
//! | a sender of SABUL 2.1 | [`SabulReceiver`] | |
//!
//! ```text
//! host: sockets, files, threads
//!   drive: one loop for all ──▶ Line: one TCP connection, one UDP socket, one wait
//!     ├──▶ OriginalSession: a dialogue, which does no IO and reads no clock
//!     │      └──▶ the engines of farhaul_protocols
//!     └──▶ Application: files, streams and events of the dialogue
//! ```
//!
//! Calls block. A [`Stop`] ends them from another thread, and [`Progress`] shows how far they are: a [`SessionHandle`] has both. A
//! server has one thread for each session, and a bound on
//! sessions. Each dialogue documents its ports, its timers, and what a peer can forge.
//!
//! **No digest travels.** A file gets its name when every byte of the announced size has come, and UDP's checksum is all
//! that protects them. The originals have no encryption, and a secret of Tsunami protects little (attack C1).
#![forbid(unsafe_code)]

mod host;
pub mod rbudp;
pub mod sabul;
mod session;
pub mod tsunami;

pub use farhaul_disk::IncomingPlace;
pub use host::{
    Failure, Figures, Given, News, OriginalServer, Progress, RbudpReceiver, SabulReceiver, SabulSender, SessionHandle,
    Stop, StreamTerms, TsunamiClient, Watch,
};
pub use session::{DatagramOutcome, OriginalSession, Placed};
