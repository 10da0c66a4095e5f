//! What the client of a connection may do.

use farhaul::security::{Grant, PublicKey};
use farhaul_units::Rate;

/// What the client of a connection may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Everything that the listener offers.
    All,
    /// What the file grants.
    Granted(Grant),
    /// What a line without options grants: the key stands in no file, and the listener admits all keys. Nobody who makes a new
    /// key for each call can be told from another one.
    Unlisted,
    /// The rights of a plain client, who proved nothing. The daemon admits its network.
    Plain {
        /// Whether such clients may write.
        write: bool,
        /// Whether they may delete.
        delete: bool,
        /// Cap of the rate of all their sessions together.
        rate: Rate,
    },
    /// Nothing: the file has changed since the client connected.
    None,
}

impl Rights {
    /// Whether they are no less than others of the same key.
    pub(super) fn permits_all_of(&self, others: &Self, key: PublicKey) -> bool {
        match (self, others) {
            (Self::All, _) | (Self::Unlisted, Self::Unlisted) => true,
            (Self::Granted(now), Self::Granted(before)) => now.permits_all_of(before),
            (Self::Granted(now), Self::Unlisted) => now.permits_all_of(&Grant::of(key)),
            _ => false,
        }
    }
}
