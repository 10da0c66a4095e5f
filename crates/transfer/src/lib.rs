//! Copies of files and trees between hosts, verified and encrypted, and servers of directories.
//!
//! A [`Copy`](struct@Copy) has two ends: paths of this host, `host:path` over SSH, `udt://host:port/path` below the root of a running server, or
//! a stream. It prints nothing, reads no arguments and ends no process. An [`Environment`] has the way of its [events](Event) to
//! whoever shows them, and the [`Cancellation`] that ends it from another thread. It returns a [`Report`], or an [`Error`] with its
//! code, whose fault it is, and what to do about it.
//!
//! | part | owns |
//! | --- | --- |
//! | [`Copy`](struct@Copy) | a copy between any two ends |
//! | [`RemoteFiles`] | files of another host: list, read ranges, write, rename, remove |
//! | [`serve`] | a server of one directory, with the rights of its clients |
//! | [`rsh`] | a command on a host that ssh reaches, with its standard streams |
//! | [`Location`] | the ends of copies in words |
//! | [`Settings`], [`Ssh`] | settings of connections, the way to hosts that ssh reaches |
//! | [`admission`] | the clients of a listener, and what each may do |
//! | [`keys`] | this user's key, known servers, the caps of keys |
//! | [`remote`] | the way to a program on a remote host, which ssh starts for one copy or command |
//! | [`bootstrap`] | that program |
//! | [`bond`] | one stream over several connections |
//! | [`session`] | how a sans-IO session runs on a stream, and its measurements |
//! | [`lists`] | lists and settings that people write |
//! | [`limit`], [`report`] | what limited a transfer, amounts, times and rates |
//! | [`connect`], [`control`], [`quota`], [`text`] | connecting, the control stream beside a copy, lines that anybody can cause, words for people |

pub mod admission;
pub mod bootstrap;
mod cancel;
pub mod connect;
pub mod control;
mod copy;
mod environment;
mod error;
pub mod event;
mod files;
pub mod limit;
mod location;
pub mod manifest_file;
mod processor;
pub mod quota;
pub mod remote;
pub mod report;
pub mod rsh;
pub mod serve;
pub mod session;
pub mod settings;
pub mod text;
mod throttle;

pub use cancel::Cancellation;
pub use copy::Copy;
pub use environment::Environment;
pub use error::{Code, Error, Owner, Trouble, code_of};
pub use event::{Event, Events, Observer};
pub use farhaul_bond::{self as bond, Threads};
pub use farhaul_keys::{self as keys, lists};
pub use files::{
    AsyncRemoteWriter, Entries, PutOptions, RemoteFile, RemoteFiles, RemoteHost, RemotePlace, RemoteWriter,
    TreeEntries, TreeItem,
};
pub use limit::Limit;
pub use location::{HostPort, Location, OriginalPlace, Scheme, ServerPlace, SshPlace, What};
pub use remote::Ssh;
pub use report::Report;
pub use settings::Settings;
pub use throttle::{Capped, Throttle, ThrottleError};

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
