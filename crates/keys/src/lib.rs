//! Keys: this user's, those of known servers, and the caps of those of clients. Unstable: an internal crate of `farhaul-transfer`.
//!
//! | part | owns |
//! | --- | --- |
//! | [`identity`] | the user's key, made on first use |
//! | [`Server`] | what a client expects of the server that it calls |
//! | [`add_client`], [`read_trusted`] | files of the keys of clients |
//! | [`Permit`] | the caps of a client's key, over all its sessions |
//! | [`Who`] | callers that a listener can tell apart |
//! | [`places`] | where the files of keys are |
//! | [`trusted_file`] | files that are trusted only if nobody else could have written them |
//! | [`lists`] | the text of lists and settings that people write |

mod caps;
mod error;
mod files;
pub mod identity;
pub mod lists;
mod notices;
pub mod places;
mod server;
pub mod trusted_file;
mod who;

pub use caps::{Claim, Exhausted, Permit, Usage, Usages};
pub use error::Error;
pub use files::{add_client, read_trusted};
pub use notices::Notices;
pub use server::{HostKeyPolicy, Question, Server};
pub use who::Who;
