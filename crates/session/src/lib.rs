//! The protocol between two Farhaul ends over a byte stream, sans-IO. Unstable: an internal crate of `farhaul-transfer`.
//!
//! Sessions are state machines. A driver gives them received bytes and takes bytes to write and events. They call a
//! [`Source`] or [`Store`] for files. They have no sockets, threads or clocks. The stream below may be UDT, TCP or a
//! pipe in memory.
//!
//! ```text
//! connecting side                        accepting side
//! FileSender::push(push)    ──OPEN──▶    Acceptor → Request::Push  → FileReceiver::answer
//! FileReceiver::pull(pull)  ──OPEN──▶    Acceptor → Request::Pull  → FileSender::answer
//! Bench::connect(spec)      ──OPEN──▶    Acceptor → Request::Bench → Bench::accept
//! CommandFrame::Open        ──OPEN──▶    Acceptor → Request::Command → CommandReader::accepting
//! FileClient::connect()     ──OPEN──▶    Acceptor → Request::Files → FileServer::answer
//! ```
//!
//! A driver moves bytes. Without sockets and disks, a copy looks like this:
//!
//! ```
//! use farhaul_session::{
//!     Acceptor, FileEvent, FileReceiver, FileSender, MemoryFile, MemorySource, MemoryStore, Push, ReceiveLimits, RelPath,
//! };
//!
//! let path = RelPath::parse(b"greeting")?;
//! let mut source = MemorySource::new([(path.clone(), MemoryFile::file(b"hello".to_vec()))].into());
//! let mut store = MemoryStore::default();
//!
//! // The connecting side: its first frame, and everything before the first answer.
//! let mut sender = FileSender::push(Push::default());
//! let (used, open) = Acceptor::new().handle_received(sender.first_frame())?;
//! sender.handle_written(used);
//!
//! // The accepting side: the request, then the session.
//! let mut receiver = FileReceiver::answer(&open.expect("the frame is complete"), ReceiveLimits::default());
//! while !(sender.is_over() && receiver.is_over()) {
//!     let used = receiver.handle_received(&mut store, sender.poll_write(&mut source))?;
//!     sender.handle_written(used);
//!     let used = sender.handle_received(receiver.poll_write())?;
//!     receiver.handle_written(used);
//! }
//! assert!(std::iter::from_fn(|| sender.poll_event()).any(|event| matches!(event, FileEvent::Done(totals) if totals.files == 1)));
//! assert_eq!(store.tree[&path].content, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | owns |
//! | --- | --- |
//! | `framing`, `frame_kind`, `field` | the frames of the stream, their types, the fields of their bodies |
//! | `handshake` | the first frame of each side: version, request |
//! | `request`, `refusal` | what the connecting side requests; the frame that refuses it or ends a session |
//! | `capabilities` | optional features of both sides |
//! | `file` | copying files and trees |
//! | `bench` | measurements |
//! | `bond` | one stream over several connections |
//! | `command` | a command on the accepting side, with its standard streams |
//! | `service` | numbered requests about files: list, read, put and others |
//! | `sender_request` | what a receiver asks of a running sender |
//! | `store` | the interface of file sessions to a disk |
//! | `scratch` | records that outgrow memory |
//! | `manifest`, `path_rules`, `integrity` | entries and their order, names, digests |
//! | `rules` | what a copy keeps, skips and removes |
//! | `name_list` | the names that a copy is restricted to |
//! | `pattern` | names with `*`, `?` and `[…]` |
//! | `pending_entries` | values of entries that wait |
//! | `course` | the phase or end of a session |
//! | `error`, `failure`, `wire_codes` | errors of a session, and of one file, and their codes |
#![forbid(unsafe_code)]

mod bench;
mod bond;
mod capabilities;
mod command;
mod course;
mod ends;
mod error;
mod failure;
mod field;
mod figures;
mod file;
mod frame_kind;
mod framing;
mod handshake;
mod integrity;
mod manifest;
mod name_list;
mod outbox;
mod path_rules;
mod pattern;
mod pending_entries;
mod refusal;
mod request;
mod rules;
mod scratch;
mod sender_request;
mod service;
mod shard;
mod store;
mod wire_codes;

pub use bench::{Bench, BenchEvent};
pub use bond::{BLOCK_HEADER, Beginning, Begun, Disorder, JoinAnswer, MAX_BLOCK, Reassembly, Record, join_accepted};
pub use capabilities::Capabilities;
pub use command::{
    COMMAND_VERSION, CommandEvent, CommandExit, CommandFrame, CommandReader, STREAM_HEADER, StandardStream,
};
pub use ends::Ends;
pub use error::{Abort, AbortCode, SessionError, Violation};
pub use failure::{FailCode, Failure};
pub use field::Malformed;
pub use figures::Figures;
pub use file::{FileEvent, FileReceiver, FileSender, Progress, ReceiveLimits, Side, Totals, WAITS_FOR_SPACE};
pub use frame_kind::FrameKind;
pub use handshake::{Acceptor, OLDEST_VERSION, Open, VERSION};
pub use integrity::{CHUNK_LEN, ChunkDigest, ChunkDigests, ChunkHasher, Digest, chunk_count, chunk_range};
pub use manifest::{Attribute, Entry, EntryId, EntryKind, MAX_ATTRIBUTES, Mtime, Owner, Properties, ShownPath, Stamp};
pub use name_list::{ListTooLong, Listed, MAX_LISTED_BYTES, MAX_LISTED_NAMES, NameList, NameListBuilder};
pub use path_rules::{Component, MAX_DEPTH, MAX_NAME, MAX_PATH, PathError, RelPath, escape, own_name};
pub use pattern::Pattern;
pub use pending_entries::PendingEntries;
pub use refusal::{MAX_REFUSAL, refusal, refusal_in, refusal_of};
pub use request::flows::{Bonding, Join, MAX_FLOWS, Token};
pub use request::measurement::{BenchSpec, Direction, Stop};
pub use request::{CommandRequest, CopyScope, Pull, Push, Request, RequestError};
pub use rules::{Kept, Rules, Skip, SyncPolicy};
pub use scratch::{Records, Scratch};
pub use sender_request::{SenderRequest, SenderRequests, SenderSettings, Unable};
pub use service::{
    Answer, Existing, FileClient, FileInfo, FileRange, FileRequest, FileServer, FileVersion, Files, Finished, ListPage,
    ListTree, ListedDirectory, ListedEntry, MAX_PUTS, MAX_REQUESTS, MakeDirectory, Move, NodeKind, Progressing, Put,
    ReadFrom, ReadRange, Remove, Removing, ReplyEvent, RequestId, ServicePath, ServiceTotals, TreeCursor, TreePage,
    Written,
};
#[cfg(any(test, feature = "testing"))]
pub use service::{MemoryFiles, MemoryReading, MemoryWork, MemoryWriting};
pub use shard::{NoShard, Shard};
pub use store::{Change, Chunk, Commit, Ending, KnownChunk, Leftover, Made, Next, Source, Store, Verdict};
#[cfg(any(test, feature = "testing"))]
pub use store::{MemoryFile, MemorySource, MemoryStore};
