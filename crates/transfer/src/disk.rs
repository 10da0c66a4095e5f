//! Files on the real disk for file sessions: a [`DiskSource`] reads a tree, a [`DiskStore`] builds one.
//!
//! Sessions run on a thread of the application, so disk access never delays the network. Each entry is reached by a
//! directory handle and a single name, never by a path that somebody could redirect: see [`Directory`].

mod acl;
mod asked;
mod by_names;
mod caps;
mod claims;
mod clean;
mod commits;
mod compared;
mod descent;
mod descriptors;
mod directory;
mod directory_handles;
mod ends;
mod expansion;
mod failure;
mod files;
mod filters;
mod folded;
mod held;
mod journal;
mod known;
mod links;
mod lock_wait;
mod owners;
mod partial;
mod patience;
mod place;
mod place_stack;
mod properties;
mod remains;
mod replacement;
mod reservation;
mod scratch;
mod seen_names;
mod selection;
mod single;
mod source;
mod source_file;
mod store;
mod surplus;
mod target;
mod temporary;
#[cfg(test)]
mod tests;
mod time_steps;

mod umask;
mod unfinished;

pub(crate) use caps::{Caps, ScratchClaim};
pub use clean::{Cleaned, clean};
pub use descriptors::copies_at_a_time;
pub use directory::Directory;
pub(crate) use ends::Ends;
pub use files::FileChange;
pub(crate) use files::{DiskFiles, Guard, Reach, Right, Unguarded};
pub(crate) use filters::Filters;
pub(crate) use held::{Held, HeldDirectories, Place};
pub(crate) use lock_wait::LockWait;
pub(crate) use patience::Patience;
pub use selection::{Selection, Wording};
pub use single::IncomingPlace;
pub(crate) use single::unix_seconds;
pub(crate) use single::{IncomingFile, ServedFile};
pub use source::DiskSource;
pub use store::DiskStore;
pub(crate) use temporary::MUNGED;
pub use umask::umask;
