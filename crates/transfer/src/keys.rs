//! Keys: this user's, and those of peers that a connection accepts.
//!
//! | part | owns |
//! | --- | --- |
//! | [`identity`] | the user's key, made on first use |
//! | [`Server`] | what a client expects of the server that it calls |
//! | [`Permit`] | the caps of a client's key, over all its sessions |
//! | [`places`] | where the files of keys are |
//! | [`trusted_file`] | files that are trusted only if nobody else could have written them |

mod caps;
mod files;
pub mod identity;
pub mod places;
mod server;
pub mod trusted_file;

pub use caps::{Claim, Exhausted, Permit, Usage, Usages};
pub use files::add_client;
pub(crate) use files::read_trusted;
pub use server::{HostKeyPolicy, Question, Server};
