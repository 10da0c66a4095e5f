//! The files and directories that a request names. Their parents are opened one at a time, when needed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use farhaul_session::{Component, RelPath};

use super::directory::{Directory, split_last};
use super::partial::is_temporary;

/// An existing entry, by its name in a directory.
#[derive(Debug)]
pub(super) struct Asked {
    place: Place,
    pub(super) name: Component,
    /// The name under which it is sent.
    pub(super) sent_as: Component,
}

/// The location of a directory.
#[derive(Clone, Debug)]
enum Place {
    /// As this machine's user named it: links are followed.
    Named(PathBuf),
    /// As a peer named it, below a root: no link is followed.
    Beneath(Arc<Directory>, RelPath),
}

impl Asked {
    /// Looks up a path of this machine's user: one entry, or the content of a directory without a name (`.`, `/`).
    pub(super) fn named(path: &Path) -> io::Result<Vec<Self>> {
        let Some((parent, name)) = split_last(path)? else { return Place::Named(path.to_owned()).content() };
        // A link that the user names is followed, but its target arrives under the link's name.
        if path.is_symlink() {
            let target = path.canonicalize()?;
            let (parent, target) = split_last(&target)?.ok_or(io::ErrorKind::IsADirectory)?;
            return Place::Named(parent.to_owned()).one(target, name);
        }
        Place::Named(parent.to_owned()).one(name.clone(), name)
    }

    /// Looks up a path of a peer: one entry below `root`, or the content of the root.
    pub(super) fn beneath(root: &Arc<Directory>, path: &RelPath) -> io::Result<Vec<Self>> {
        let Some((name, parents)) = path.split_last() else {
            return Place::Beneath(Arc::clone(root), RelPath::root()).content();
        };
        let parent = parents.iter().try_fold(RelPath::root(), |path, name| path.join(name.clone()));
        let parent = parent.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Place::Beneath(Arc::clone(root), parent).one(name.clone(), name.clone())
    }

    /// Opens its parent directory.
    pub(super) fn parent(&self) -> io::Result<Directory> {
        self.place.open()
    }
}

impl Place {
    fn open(&self) -> io::Result<Directory> {
        match self {
            Self::Named(path) => Directory::open(path),
            Self::Beneath(root, path) => root.descend(path),
        }
    }

    /// The entry with this name in it, if it exists.
    fn one(self, name: Component, sent_as: Component) -> io::Result<Vec<Asked>> {
        self.open()?.stat(&name)?;
        Ok(vec![Asked { place: self, name, sent_as }])
    }

    fn content(self) -> io::Result<Vec<Asked>> {
        let names = names_to_send(&self.open()?)?.into_iter();
        Ok(names.map(|name| Asked { place: self.clone(), name: name.clone(), sent_as: name }).collect())
    }
}

/// The names in a directory, without the temporary names of incomplete files.
pub(super) fn names_to_send(directory: &Directory) -> io::Result<Vec<Component>> {
    let mut names = directory.names()?;
    names.retain(|name| !is_temporary(name));
    Ok(names)
}
