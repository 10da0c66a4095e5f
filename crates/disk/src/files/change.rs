//! What a request of the file service has changed.

use farhaul_session::Digest;

/// What a request of the file service has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileChange<'a> {
    /// A file was written or copied, with so many bytes. A copy may have no digest.
    Written(u64, Option<&'a Digest>),
    /// A directory was made.
    Made,
    /// An entry was removed, with everything in it.
    Removed,
    /// An entry got this name.
    Renamed,
}
