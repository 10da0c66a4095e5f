//! Copies of files and trees between hosts, verified and encrypted, and servers of directories.
//!
//! A [`CopyJob`] has two ends: paths of this host, `host:path` over SSH, `udt://host:port/path` below the root of a running server, or
//! a stream. It prints nothing, reads no arguments and ends no process. An [`Environment`] names who gets its
//! [events](Event), and has the [`Cancellation`] that ends it from another thread. It returns a [`Report`], or an [`Error`] with its
//! code, whose fault it is, and what to do about it.
//!
//! | part | owns |
//! | --- | --- |
//! | [`CopyJob`] | a copy between any two ends |
//! | [`RemoteFiles`] | files of another host: list, read ranges, write, rename, remove |
//! | [`DirectoryServer`] | a server of one directory, with the rights of its clients |
//! | [`Rsh`] | a command on a host that ssh reaches, with its standard streams |
//! | [`Location`] | the ends of copies in words |
//! | [`Settings`], [`Ssh`] | settings of connections, and of ssh |
//!
//! Settings, options and reports may get further fields. A program takes their defaults, and sets the fields or calls the methods of the
//! same names. The feature `internal` shows more to the command, C and Python, which also fill in whole settings and reports. It is
//! unstable.
#![cfg_attr(
    not(feature = "internal"),
    allow(dead_code, unused_imports, unnameable_types, unreachable_pub, reason = "the command, C and Python use it")
)]

mod admission;
mod bootstrap;
mod cancel;
mod connect;
mod control;
mod copy;
mod environment;
mod error;
mod event;
mod files;
#[cfg(feature = "internal")]
#[doc(hidden)]
pub mod internal;
mod limit;
mod location;
mod manifest_file;
mod processor;
mod quota;
mod remote;
mod report;
mod rsh;
mod serve;
mod session;
mod settings;
mod text;
mod throttle;

pub use admission::{Admission, Service};
pub use cancel::Cancellation;
pub use copy::CopyJob;
pub use environment::Environment;
pub use error::{Code, Error, Owner};
pub use event::{Event, Events, Observer};
pub use files::{
    AsyncRemoteWriter, Entries, PutOptions, RemoteFile, RemoteFiles, RemoteHost, RemotePlace, RemoteWriter,
    TreeEntries, TreeItem,
};
pub use location::Location;
pub use remote::Ssh;
pub use report::Report;
pub use rsh::{Rsh, Streams};
pub use serve::{DirectoryServer, PlainAccess, PlainRules};
pub use settings::{SecuritySettings, Settings};
pub use text::worded;
pub use throttle::Throttle;

// What a program sets in jobs, settings and options.
pub use farhaul_bond::Flows;
pub use farhaul_keys::{HostKeyPolicy, Question};
pub use farhaul_session::{
    Kept, ListTooLong, Mtime, NameList, NameListBuilder, NoShard, PathError, RelPath, Rules, Shard, Skip, SyncPolicy,
};

/// The example of the book's page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/book/library.md")]
struct BookPage;

/// The same of the page about files of another host.
#[cfg(doctest)]
mod remote_files {
    #[doc = include_str!("../../../docs/book/remote-files.md")]
    struct BookPage;
}
