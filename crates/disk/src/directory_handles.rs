//! The handles of a walk from a root down to a directory. Only those of its two ends are held open.

use std::sync::Arc;

use farhaul_session::{Component, FailCode, Failure};
use rustix::io::Errno;

use super::directory::{Directory, Identity};
use super::failure::failure;

/// A directory below a root, at any depth, with three descriptors at most.
///
/// A directory in the middle is opened again when the walk returns to it. No link in its path is followed. If another
/// directory is in its place, the entries that belong there fail.
#[derive(Debug)]
pub(super) struct DirectoryHandles {
    root: Arc<Directory>,
    steps: Vec<(Component, Identity)>,
    /// The innermost directory, if it was opened since the walk reached it.
    here: Option<Arc<Directory>>,
}

/// The reason why a directory cannot be opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// Another entry is in its place, or none.
    Replaced,
    System(Errno),
}

impl DirectoryHandles {
    pub(super) fn new(root: Directory) -> Self {
        Self { root: Arc::new(root), steps: Vec::new(), here: None }
    }

    /// Enters the directory of this name in the innermost one.
    pub(super) fn enter(&mut self, name: Component, directory: Directory) {
        self.steps.push((name, directory.identity()));
        self.here = Some(Arc::new(directory));
    }

    /// Returns to `depth` directories below the root, if the walk is deeper.
    pub(super) fn leave_to(&mut self, depth: usize) {
        if self.steps.len() > depth {
            self.steps.truncate(depth);
            self.here = None;
        }
    }

    /// The innermost directory.
    pub(super) fn here(&mut self) -> Result<Arc<Directory>, Lost> {
        let here = self.at(self.steps.len())?;
        self.here = Some(Arc::clone(&here));
        Ok(here)
    }

    /// The directory of the path at `depth` below the root.
    pub(super) fn at(&self, depth: usize) -> Result<Arc<Directory>, Lost> {
        let steps = &self.steps[..depth];
        let Some((_, identity)) = steps.last() else { return Ok(Arc::clone(&self.root)) };
        if let Some(here) = self.here.as_ref().filter(|_| depth == self.steps.len()) {
            return Ok(Arc::clone(here));
        }
        let directory = self.root.descend_along(steps.iter().map(|(name, _)| name)).map_err(|error| match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => Lost::Replaced,
            error => Lost::System(error),
        })?;
        if directory.identity() == *identity { Ok(Arc::new(directory)) } else { Err(Lost::Replaced) }
    }
}

impl Lost {
    /// The failure of an entry that belongs in the directory.
    pub(super) fn failure(self, code: FailCode) -> Failure {
        match self {
            Self::Replaced => Failure::new(code, "its directory was moved, removed or replaced"),
            Self::System(error) => failure("open its directory", error),
        }
    }
}
