//! Files on the real disk, as file sessions need them: a [`DiskSource`] to read a tree, a [`DiskStore`] to build one.
//!
//! Sessions run on a thread of the application, so nothing here ever holds up the network. Everything is reached by
//! directory handle and a single name, never by a path that somebody could redirect: see [`Directory`].

mod asked;
mod commits;
mod descent;
mod descriptors;
mod directory;
mod failure;
mod partial;
mod source;
mod source_file;
mod store;
mod target;
#[cfg(test)]
mod tests;
mod trail;

pub use descriptors::copies_at_a_time;
pub use directory::Directory;
pub use source::DiskSource;
pub use store::DiskStore;
