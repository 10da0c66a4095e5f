//! The target directory of a copy, if the copy makes it.

use std::io;

use farhaul_session::Component;

use crate::directory::{Directory, no_modes_here};
use crate::temporary::refuse_reserved;
use crate::umask::umask;

/// A target directory that did not exist before.
#[derive(Debug)]
pub(super) struct MadeRoot {
    parent: Directory,
    name: Component,
}

impl MadeRoot {
    /// Makes a directory, unless it exists. Returns it, and what was made.
    pub(super) fn make(parent: Directory, name: Component) -> io::Result<(Directory, Option<Self>)> {
        refuse_reserved(&name).map_err(io::Error::other)?;
        let (directory, is_new) = parent.make_child(&name)?;
        if is_new {
            no_modes_here(directory.set_mode(0o777 & !umask()))?;
        }
        Ok((directory, is_new.then_some(Self { parent, name })))
    }

    /// Removes it if it is still empty.
    pub(super) fn remove(self) {
        // The system removes no directory with an entry.
        let _ = self.parent.remove_directory(&self.name);
    }
}
