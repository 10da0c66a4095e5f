//! Caps of a peer on what its copy stores beside the files that it sends.

use std::fmt;

use farhaul_session::Failure;

/// Caps of a peer. Files in the place of hard links and scratch files count against them.
pub trait Caps: fmt::Debug + Send + Sync {
    /// Counts the bytes of a file that this host copies by itself, and waits as long as the cap of the rate demands.
    ///
    /// # Errors
    /// The peer may store no more, or the session ends.
    fn charge_copy(&self, bytes: u64) -> Result<(), Failure>;

    /// The claim of a new scratch file, which has no bytes yet.
    fn scratch_claim(&self) -> Box<dyn ScratchClaim>;
}

/// The bytes of a scratch file. They count until the claim is dropped.
pub trait ScratchClaim: fmt::Debug + Send {
    /// Claims more bytes, before they are stored.
    ///
    /// # Errors
    /// The peer may store no more.
    fn grow(&mut self, bytes: u64) -> Result<(), Failure>;
}
