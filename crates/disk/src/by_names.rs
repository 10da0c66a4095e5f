//! The entries of a copy that is restricted to a list of names.

use std::io;
use std::path::Path;
use std::sync::Arc;

use farhaul_session::{Component, Failure, Listed, NameList, RelPath, Shard, ShownPath};
use rustix::fs::FileType;

use super::directory::Directory;
use super::requested_entry::{Base, RequestedEntry, names_to_send};
use super::target::words;

/// A list of names, and the directory that they are in.
#[derive(Debug)]
pub(super) struct ByNames {
    base: Base,
    recursive: bool,
    /// `None` until the peer has sent it.
    names: Option<Arc<NameList>>,
    /// A parent directory of names that cannot be passed, why, and how many of these names are reported.
    impassable: Option<(RelPath, Failure, usize)>,
}

impl ByNames {
    /// Names in a directory of this machine's user, whose links are followed.
    pub(super) fn named(path: &Path, names: Arc<NameList>, recursive: bool) -> io::Result<Self> {
        Ok(Self { names: Some(names), ..Self::awaiting(Base::named(path)?, recursive) })
    }

    /// The same for names that are still to come.
    pub(super) fn named_later(path: &Path, recursive: bool) -> io::Result<Self> {
        Ok(Self::awaiting(Base::named(path)?, recursive))
    }

    /// The same below the root of a peer's request. No link is followed.
    pub(super) fn beneath_later(root: &Directory, path: &RelPath, recursive: bool) -> io::Result<Self> {
        Ok(Self::awaiting(Base::beneath(root, path)?, recursive))
    }

    const fn awaiting(base: Base, recursive: bool) -> Self {
        Self { base, recursive, names: None, impassable: None }
    }

    /// Takes the names of the peer.
    pub(super) fn restrict(&mut self, names: NameList) {
        self.names = Some(Arc::new(names));
    }

    /// The entries at the top of the copy, ascending by their names. Not all of them need to exist.
    ///
    /// # Errors
    /// The list names the whole content, which cannot be read.
    pub(super) fn top(&self) -> io::Result<Vec<RequestedEntry>> {
        let Some(names) = &self.names else { return Ok(Vec::new()) };
        let root = RelPath::root();
        let content = match names.place_of(&root, self.recursive) {
            Listed::Itself if self.recursive => self.base.content()?,
            _ => Vec::new(),
        };
        Ok(self.base.entries(merged(content, names.children(&root))))
    }

    /// What a path of the copy is to the list.
    pub(super) fn place_of(&self, path: &RelPath) -> Listed {
        self.names.as_ref().map_or(Listed::Outside, |names| names.place_of(path, self.recursive))
    }

    /// The names that are sent of a directory, ascending. Not all of them need to exist.
    pub(super) fn content(&self, path: &RelPath, directory: &Directory) -> io::Result<Vec<Component>> {
        let Some(names) = &self.names else { return Ok(Vec::new()) };
        let content = match names.place_of(path, self.recursive) {
            Listed::Itself | Listed::Within if self.recursive => names_to_send(directory)?,
            _ => Vec::new(),
        };
        Ok(merged(content, names.children(path)))
    }

    /// Nothing below this path can be sent. [`next_lacking`](Self::next_lacking) reports the names of the list that are there.
    pub(super) fn cannot_pass(&mut self, path: &RelPath, failure: Failure) {
        self.impassable = Some((path.clone(), failure, 0));
    }

    /// The next name of the list in this part that cannot be sent, because a parent directory of it cannot be passed.
    pub(super) fn next_lacking(&mut self, shard: Option<Shard>) -> Option<(ShownPath, Failure)> {
        let (path, failure, reported) = self.impassable.as_mut()?;
        while let Some(name) = self.names.as_ref().and_then(|names| names.name_within(path, *reported)) {
            *reported += 1;
            if shard.is_none_or(|shard| shard.has(&name)) {
                return Some((ShownPath::from(&name), failure.clone()));
            }
        }
        self.impassable = None;
        None
    }
}

/// Why names below an entry of this kind do not exist.
pub(super) fn why_impassable(path: &RelPath, kind: FileType) -> String {
    match kind {
        FileType::Symlink => format!("{path} is a symbolic link, and those below the source are not followed"),
        FileType::RegularFile => format!("{path} is a file"),
        kind => format!("{path} is {}", words(kind)),
    }
}

/// Both lists of names, each ascending and without duplicates, as one such list.
fn merged(mut content: Vec<Component>, listed: Vec<Component>) -> Vec<Component> {
    if content.is_empty() {
        return listed;
    }
    content.extend(listed);
    content.sort_unstable();
    content.dedup();
    content
}
