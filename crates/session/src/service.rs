//! The file service: numbered requests of a [`FileClient`] about the files of a [`FileServer`], over one connection.
//!
//! ```text
//! client                                   server
//! OPEN (files), with the first credit  →
//!                                      ←   ACCEPT, with the first credit
//! REQUEST n                            →   list, stat, rename …
//!                                      ←   ANSWER n
//! REQUEST n (read)                     →
//!                                      ←   BLOCK n*  ANSWER n   with the digest of the blocks
//! REQUEST n (list a tree)              →
//!                                      ←   BLOCK n*  ANSWER n   with the place where the next request goes on
//! REQUEST n (put)  BLOCK n*  FINISH n  →   writes and hashes the blocks on arrival
//!                                      ←   ANSWER n   the file is safe under its name, or why it is not
//! CANCEL n                             →   n still gets its answer
//! GRANT                                ↔   bytes of blocks that the other side may send
//! END                                  →   no more requests
//!                                      ←   DONE   every request is answered
//! ABORT                                ↔   the session is over
//! ```
//!
//! **Order.** Requests are served at the same time, and an answer comes when it is complete. So a client that wants an order waits
//! for the first answer before its second request. A short request goes before all reads, and reads take turns block by block:
//! a question about one file waits for no more than the bytes of another one that are in flight.
//!
//! **Bounds.** A client has at most [`MAX_REQUESTS`] requests without an answer, and [`MAX_PUTS`] puts among them. A server works on a few of
//! the long ones at a time, so that a client holds few of its open files. Blocks of both directions stay within the credit of
//! their receiver. A server makes an answer only when the driver has written those before it. So neither a client that never reads
//! nor one that asks endlessly makes a server grow.

mod answer;
mod client;
mod entry;
mod files;
mod flow_control;
mod hasher;
mod limits;
#[cfg(any(test, feature = "testing"))]
mod memory;
mod request;
mod server;
mod service_path;
#[cfg(test)]
mod tests;
mod tree;

pub use answer::{Answer, FileRange, FileVersion, ListPage, Written};
pub use client::{FileClient, ReplyEvent, RequestId};
pub use entry::{FileInfo, ListedEntry, NodeKind};
pub use files::{Files, Finished, Progressing};
pub use limits::{MAX_PUTS, MAX_REQUESTS};
#[cfg(any(test, feature = "testing"))]
pub use memory::{MemoryFiles, MemoryReading, MemoryWork, MemoryWriting};
pub use request::{Existing, FileRequest, MakeDirectory, Move, Put, ReadFrom, ReadRange, Remove, Removing};
pub use server::{FileServer, ServiceTotals};
pub use service_path::ServicePath;
pub use tree::{ListTree, ListedDirectory, TreeCursor, TreePage};
