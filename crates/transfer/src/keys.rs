//! Keys: this user's, and those of peers that a connection accepts.
//!
//! | part | owns |
//! | --- | --- |
//! | [`identity`] | the user's key, made on first use |
//! | [`Server`] | what a client expects of the server that it calls |
//! | [`Admission`] | which clients a listener admits |
//! | [`Permit`] | the caps of a client's key, over all its sessions |
//! | [`Who`] | callers that a listener can tell apart |
//! | [`places`] | where the files of keys are |
//! | [`trusted_file`] | files that are trusted only if nobody else could have written them |

mod admission;
mod caps;
mod files;
pub mod identity;
pub mod places;
mod refusal;
mod rights;
mod server;
pub mod trusted_file;
mod who;

pub use admission::{Admission, KeysFile, Service};
pub use caps::{Claim, Exhausted, Permit, Usage, Usages};
pub use files::add_client;
pub use rights::Rights;
pub use server::{HostKeyPolicy, Question, Server};
pub use who::Who;
