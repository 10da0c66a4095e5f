//! Keys: this user's, and those of peers that a connection accepts.
//!
//! | part | owns |
//! | --- | --- |
//! | [`identity`] | the user's key, made on first use |
//! | [`Server`] | what a client expects of the server that it calls |
//! | [`Admission`] | which clients a listener admits |

mod admission;
mod files;
pub(crate) mod identity;
mod server;

pub(crate) use admission::{Admission, KeysFile, Rights};
pub(crate) use server::{HostKeyPolicy, Server};
