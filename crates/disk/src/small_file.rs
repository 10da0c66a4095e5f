//! Small files, which stay in memory until they are complete.

use std::sync::Arc;

use farhaul_session::{Component, Failure};

use super::claims::Claims;
use super::directory::Directory;
use super::partial::Partial;

/// A file that is small enough to be kept in memory until it is complete.
#[derive(Debug)]
pub(super) struct SmallFile {
    pub(super) directory: Arc<Directory>,
    /// Its final name.
    pub(super) name: Component,
    pub(super) claims: Arc<Claims>,
    pub(super) content: Vec<u8>,
    /// Nothing had the final name when the copy looked.
    pub(super) is_new: bool,
}

impl SmallFile {
    /// Largest size in bytes. Below, to make and to name a file takes longer than its bytes.
    pub(super) const MOST: u64 = 64 << 10;

    /// Puts bytes at their place.
    ///
    /// # Panics
    /// If they end beyond [`MOST`](Self::MOST).
    pub(super) fn put(&mut self, offset: u64, bytes: &[u8]) {
        assert!(offset + bytes.len() as u64 <= Self::MOST, "the store moves longer files to the disk");
        let start = usize::try_from(offset).expect("at most MOST");
        self.content.resize(self.content.len().max(start + bytes.len()), 0);
        self.content[start..start + bytes.len()].copy_from_slice(bytes);
    }

    /// Creates the file under a temporary name, as a large one.
    pub(super) fn spill(&self) -> Result<Partial, Failure> {
        let Self { directory, name, claims, content, .. } = self;
        let size = (content.len() as u64, false);
        let partial = Partial::begin(Arc::clone(directory), name.clone(), size, Arc::clone(claims))?;
        partial.write_quietly(0, content)?;
        Ok(partial)
    }
}
