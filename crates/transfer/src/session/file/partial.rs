//! The path of the incomplete file after a broken copy.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use farhaul_disk::Place;
use farhaul_session::{Component, RelPath, escape};

use crate::error::Error;

/// The target of a copy.
pub(crate) struct Target {
    path: PathBuf,
    /// Entries are created in it. Otherwise it replaces the first name of their paths.
    is_directory: bool,
    /// Where it is held below the root of a server.
    held: Option<Place>,
}

impl Target {
    /// The target at `path`, as it is when the copy starts.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { is_directory: path.is_dir(), path, held: None }
    }

    /// The target at `path` below the root of a server, and where it is held. A client may have put a link at any name.
    pub(crate) fn beneath(root: &Path, path: &RelPath, place: &Place) -> Self {
        let is_directory = place.start.descend(&place.below).is_ok();
        Self { path: root.join(OsStr::from_bytes(&path.to_bytes())), is_directory, held: Some(place.clone()) }
    }

    /// `fault`, with the path of the incomplete file for the entry at `current`.
    pub(crate) fn named_in(&self, fault: Error, current: Option<&[u8]>) -> Error {
        match current.and_then(|path| self.find(path)) {
            Some(partial) => fault.and(&format!("the incomplete file is {}", escape(partial.as_os_str().as_bytes()))),
            None => fault,
        }
    }

    /// The newest temporary file for the entry at `path`.
    fn find(&self, path: &[u8]) -> Option<PathBuf> {
        let path = Path::new(OsStr::from_bytes(path));
        let whole = self.place(path);
        if let Some(Place { start, below }) = &self.held {
            let rest = path.components().skip(usize::from(!self.is_directory));
            let below = rest.map(|part| part.as_os_str().as_bytes()).try_fold(below.clone(), |mut path, name| {
                path.push(Component::new(name).ok()?).ok()?;
                Some(path)
            });
            let name = start.newest_partial(&below?)?;
            return Some(whole.with_file_name(OsStr::from_bytes(name.as_bytes())));
        }
        let directory = whole.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let start = [b".", whole.file_name()?.as_bytes(), b"."].concat();
        let is_partial = |name: &OsStr| name.as_bytes().starts_with(&start) && name.as_bytes().ends_with(b".fhpart");
        let found = fs::read_dir(directory).ok()?.flatten().filter(|entry| is_partial(&entry.file_name()));
        found
            .max_by_key(|entry| entry.metadata().and_then(|metadata| metadata.modified()).ok())
            .map(|entry| entry.path())
    }

    fn place(&self, path: &Path) -> PathBuf {
        let below: PathBuf = path.components().skip(usize::from(!self.is_directory)).collect();
        if below.as_os_str().is_empty() { self.path.clone() } else { self.path.join(below) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_tree_is_looked_for_under_its_new_name() {
        let mut target = Target { path: "new".into(), is_directory: false, held: None };
        assert_eq!(target.place(Path::new("old/a/b")), Path::new("new/a/b"));
        assert_eq!(target.place(Path::new("old")), Path::new("new"));
        target.is_directory = true;
        assert_eq!(target.place(Path::new("old")), Path::new("new/old"));
    }
}
