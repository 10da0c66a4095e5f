//! Keys: this user's, and those of peers that a connection accepts.
//!
//! | part | owns |
//! | --- | --- |
//! | [`identity`] | the user's key, made on first use |
//! | [`Server`] | what a client expects of the server that it calls |
//! | [`Admission`] | which clients a listener admits |
//! | [`Permit`] | the caps of a client's key, over all its sessions |
//! | [`Who`] | callers that a listener can tell apart |

mod admission;
mod caps;
mod files;
pub(crate) mod identity;
mod refusal;
mod rights;
mod server;
mod who;

pub(crate) use admission::{Admission, KeysFile, Service};
pub(crate) use caps::{Claim, Exhausted, Permit, Usage, Usages};
pub(crate) use rights::Rights;
pub(crate) use server::{HostKeyPolicy, Server};
pub(crate) use who::Who;
