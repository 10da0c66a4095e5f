//! Files on the real disk: the two ends of a copy, and the file service. Unstable: an internal crate of `farhaul-transfer`.
//!
//! A [`DiskSource`] reads a tree, a [`DiskStore`] builds one, and [`DiskFiles`] answers requests about single files. They are the
//! `Source`, the `Store` and the `Files` of the sessions of `farhaul-session`, and know neither networks nor keys. Whoever drives a
//! session gives them what they ask: `Ends` and [`Patience`] for waits, [`Caps`] and a [`Guard`] for the rights of the peer.
//!
//! Sessions run on a thread of the application, so disk access never delays the network. Each entry is reached by a
//! directory handle and a single name, never by a path that somebody could redirect: see [`Directory`].

mod acl;
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
mod requested_entry;
mod reservation;
mod scratch;
mod seen_names;
mod selection;
mod single;
mod small_file;
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

pub use caps::{Caps, ScratchClaim};
pub use clean::{Cleaned, clean};
pub use descriptors::copies_at_a_time;
pub use directory::Directory;
pub use files::{DiskFiles, FileChange, Guard, NewFile, OpenFile, Reach, Right, Unguarded, Work};
pub use filters::Filters;
pub use held::{Held, HeldDirectories, Place};
pub use lock_wait::LockWait;
pub use patience::Patience;
pub use selection::{Selection, Wording};
pub use single::{IncomingFile, IncomingPlace, ServedFile, unix_seconds};
pub use source::DiskSource;
pub use store::DiskStore;
pub use temporary::MUNGED;
pub use umask::umask;
