//! The files and directories that a request names. Their parents are opened one at a time, when needed.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component as Part, Path, PathBuf};
use std::sync::Arc;

use farhaul_session::{Component, MAX_DEPTH, MAX_PATH, Pattern, RelPath, own_name};

use super::directory::{Directory, split_last};
use super::expansion::{Budget, Found, divided, expand, is_impassable};
use super::temporary::is_temporary;

/// An existing entry, by its name in a directory.
#[derive(Debug)]
pub(super) struct RequestedEntry {
    place: DirectoryLocation,
    pub(super) name: Component,
    /// The name under which it is sent.
    pub(super) sent_as: Component,
}

/// The location of a directory.
#[derive(Clone, Debug)]
enum DirectoryLocation {
    /// As this machine's user named it: links are followed. The names below it were found, and are no links.
    Named(Arc<Path>, Arc<RelPath>),
    /// As a peer named it, below a root: no link is followed.
    Beneath(Arc<Directory>, Arc<RelPath>),
}

/// A directory of whose content only listed names are sent.
#[derive(Debug)]
pub(super) struct Base(DirectoryLocation);

impl Base {
    /// A directory of this machine's user.
    pub(super) fn named(path: &Path) -> io::Result<Self> {
        Self::of(DirectoryLocation::named(path))
    }

    /// A directory of a peer, below `root`.
    pub(super) fn beneath(root: &Directory, path: &RelPath) -> io::Result<Self> {
        Self::of(DirectoryLocation::Beneath(Arc::new(root.duplicate()?), Arc::new(path.clone())))
    }

    fn of(place: DirectoryLocation) -> io::Result<Self> {
        place.open()?;
        Ok(Self(place))
    }

    /// Entries of it, which need not exist.
    pub(super) fn entries(&self, names: Vec<Component>) -> Vec<RequestedEntry> {
        let entry = |name: Component| RequestedEntry { place: self.0.clone(), name: name.clone(), sent_as: name };
        names.into_iter().map(entry).collect()
    }

    /// The names of its whole content.
    pub(super) fn content(&self) -> io::Result<Vec<Component>> {
        names_to_send(&self.0.open()?)
    }
}

impl RequestedEntry {
    /// Looks up a path of this machine's user: one entry, or the content of a directory without a name (`.`, `/`, `dir/.`).
    pub(super) fn named(path: &Path) -> io::Result<Vec<Self>> {
        let Some((parent, name)) = split_last(path)? else { return DirectoryLocation::named(path).content() };
        // A link that the user names is followed, but its target arrives under the link's name.
        // A slash behind the name changes nothing, as for directories.
        let plain: PathBuf = path.components().collect();
        if plain.is_symlink() {
            let target = path.canonicalize()?;
            let (parent, target) = split_last(&target)?.ok_or(io::ErrorKind::IsADirectory)?;
            return DirectoryLocation::named(parent).one(target, name);
        }
        DirectoryLocation::named(parent).one(name.clone(), name)
    }

    /// Looks up a path of a peer: one entry below `root`, or the content of the root.
    pub(super) fn beneath(root: &Arc<Directory>, path: &RelPath) -> io::Result<Vec<Self>> {
        let Some((name, parents)) = path.split_last() else {
            return DirectoryLocation::Beneath(Arc::clone(root), Arc::default()).content();
        };
        DirectoryLocation::Beneath(Arc::clone(root), Arc::new(joined(parents)?)).one(name.clone(), name.clone())
    }

    /// As [`named`](Self::named). A path that does not exist may be a pattern.
    pub(super) fn named_or_matching(path: &Path, budget: &mut Budget) -> io::Result<Vec<Self>> {
        let found = Self::named(path);
        if !matches!(&found, Err(error) if is_missing(error)) {
            return found;
        }
        let Some((start, patterns)) = divide(path)? else { return found };
        let directory = Directory::open(&start).map_err(|error| if is_missing(&error) { no_match() } else { error })?;
        let start: Arc<Path> = start.into();
        let matches = expand(&directory, &patterns, budget)?;
        let place = |below| DirectoryLocation::Named(Arc::clone(&start), below);
        match own_name(path.as_os_str().as_bytes()) {
            Some(_) => Self::those(matches, place),
            None => Self::content_of_those(matches, place),
        }
    }

    /// As [`beneath`](Self::beneath). A path that does not exist may be a pattern.
    pub(super) fn beneath_or_matching(
        root: &Arc<Directory>,
        path: &RelPath,
        budget: &mut Budget,
    ) -> io::Result<Vec<Self>> {
        let found = Self::beneath(root, path);
        if !matches!(&found, Err(error) if is_missing(error)) {
            return found;
        }
        let Some((before, patterns)) = divided(path.components()) else { return found };
        let before = joined(before)?;
        let start = root.descend(&before).map_err(|error| if is_missing(&error) { no_match() } else { error })?;
        let mut all = Vec::new();
        for (below, mut names) in expand(&start, patterns, budget)? {
            // What is too long for a path is reached by no copy.
            let Ok(whole) = joined(before.components().iter().chain(below.components())) else { continue };
            let room = MAX_PATH.saturating_sub(whole.to_bytes().len() + 1);
            names.retain(|name| name.as_bytes().len() <= room && whole.components().len() < MAX_DEPTH);
            all.push((Arc::new(whole), names));
        }
        Self::those(all, |below| DirectoryLocation::Beneath(Arc::clone(root), below))
    }

    fn those(found: Vec<Found>, place: impl Fn(Arc<RelPath>) -> DirectoryLocation) -> io::Result<Vec<Self>> {
        let mut all = Vec::new();
        for (below, names) in found {
            let place = place(below);
            all.extend(names.into_iter().map(|name| Self { place: place.clone(), name: name.clone(), sent_as: name }));
        }
        if all.is_empty() { Err(no_match()) } else { Ok(all) }
    }

    /// The content of the directories among these matches. As in a shell, other matches are none.
    fn content_of_those(found: Vec<Found>, place: impl Fn(Arc<RelPath>) -> DirectoryLocation) -> io::Result<Vec<Self>> {
        let (mut all, mut is_any) = (Vec::new(), false);
        for (below, names) in found {
            for name in names {
                let Ok(path) = below.join(name) else { continue };
                match place(Arc::new(path)).content() {
                    Err(error) if is_impassable(&error) => {}
                    content => {
                        all.extend(content?);
                        is_any = true;
                    }
                }
            }
        }
        if is_any { Ok(all) } else { Err(no_match()) }
    }

    /// Opens its parent directory.
    pub(super) fn parent(&self) -> io::Result<Directory> {
        self.place.open()
    }

    /// Whether both are one entry.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
            && match (&self.place, &other.place) {
                (DirectoryLocation::Named(start, below), DirectoryLocation::Named(its, of_it)) => {
                    start == its && below == of_it
                }
                (DirectoryLocation::Beneath(start, below), DirectoryLocation::Beneath(its, of_it)) => {
                    start.is_same(its) && below == of_it
                }
                _ => false,
            }
    }
}

impl DirectoryLocation {
    fn named(path: &Path) -> Self {
        Self::Named(path.into(), Arc::default())
    }

    fn open(&self) -> io::Result<Directory> {
        match self {
            Self::Named(path, below) if below.is_root() => Directory::open(path),
            Self::Named(path, below) => Directory::open(path)?.descend(below),
            Self::Beneath(root, path) => root.descend(path),
        }
    }

    /// The entry with this name in it, if it exists.
    fn one(self, name: Component, sent_as: Component) -> io::Result<Vec<RequestedEntry>> {
        self.open()?.stat(&name)?;
        Ok(vec![RequestedEntry { place: self, name, sent_as }])
    }

    fn content(self) -> io::Result<Vec<RequestedEntry>> {
        let names = names_to_send(&self.open()?)?.into_iter();
        Ok(names.map(|name| RequestedEntry { place: self.clone(), name: name.clone(), sent_as: name }).collect())
    }
}

/// Divides a path into a directory that exists if anything matches, and the patterns below it. `None` without a pattern.
fn divide(path: &Path) -> io::Result<Option<(PathBuf, Vec<Component>)>> {
    let (mut start, mut patterns) = (PathBuf::new(), Vec::new());
    for part in path.components() {
        let name = match part {
            Part::Normal(name) => Component::new(name.as_bytes()),
            _ if patterns.is_empty() => {
                start.push(part);
                continue;
            }
            other => Component::new(other.as_os_str().as_bytes()),
        };
        let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        if patterns.is_empty() && !Pattern::is_in(&name) {
            start.push(part);
        } else {
            patterns.push(name);
        }
    }
    if start.as_os_str().is_empty() {
        start.push(".");
    }
    Ok(Some((start, patterns)).filter(|(_, patterns)| !patterns.is_empty()))
}

fn joined<'a>(names: impl IntoIterator<Item = &'a Component>) -> io::Result<RelPath> {
    let mut path = RelPath::root();
    let joined = names.into_iter().try_for_each(|name| path.push(name.clone()));
    joined.map(|()| path).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

/// Whether a path has no entry. A name in place of a directory, or one that is too long, may still be a pattern.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename)
}

fn no_match() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "nothing matches this pattern")
}

/// The names in a directory, without the temporary names of incomplete files.
pub(super) fn names_to_send(directory: &Directory) -> io::Result<Vec<Component>> {
    let mut names = directory.names()?;
    names.retain(|name| !is_temporary(name));
    Ok(names)
}
