//! The entries that a request selects, by name or by pattern.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use farhaul_session::{Component, FailCode, Failure, RelPath, ShownPath, own_name};

use super::directory::Directory;
use super::expansion::Budget;
use super::held::Place;
use super::requested_entry::RequestedEntry;

/// Files and directories that exist, for a [`DiskSource`](super::DiskSource). Each arrives under a name of its own.
#[derive(Debug)]
pub struct Selection {
    /// Whether directories are sent with their content.
    pub(super) recursive: bool,
    /// Directories without a name, whose content is not sent, and the reason.
    pub(super) refused: Vec<(ShownPath, Failure)>,
    /// In descending order of the names that they arrive under: the first one is last.
    pub(super) requested: Vec<RequestedEntry>,
}

/// The meaning of the paths of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Names.
    Literal,
    /// A path that does not exist is a [pattern](farhaul_session::Pattern), name by name. A pattern passes no symbolic
    /// link. At most 100 000 entries may match the patterns of one selection.
    Patterns,
}

impl Wording {
    fn named(self, path: &Path, recursive: bool, budget: &mut Budget) -> io::Result<Picked> {
        let bytes = path.as_os_str().as_bytes();
        if !recursive && own_name(bytes).is_none() {
            Directory::open(path)?;
            return Ok(Picked::Content(ShownPath::new(bytes)));
        }
        match self {
            Self::Literal => RequestedEntry::named(path),
            Self::Patterns => RequestedEntry::named_or_matching(path, budget),
        }
        .map(Picked::Entries)
    }

    fn beneath(self, place: &Place, recursive: bool, budget: &mut Budget) -> io::Result<Picked> {
        if !recursive && place.below.is_root() {
            return Ok(Picked::Content(ShownPath::new(b".")));
        }
        match self {
            Self::Literal => RequestedEntry::beneath(&place.start, &place.below),
            Self::Patterns => RequestedEntry::beneath_or_matching(&place.start, &place.below, budget),
        }
        .map(Picked::Entries)
    }
}

/// What one path of a request selects.
enum Picked {
    Entries(Vec<RequestedEntry>),
    /// The content of this directory, which only a recursive request brings.
    Content(ShownPath),
}

impl Selection {
    /// The given files and directories, each under its own name. Of a path without a name (`.`, `/`, `dir/.`), the
    /// content. Links in names are followed, since the caller knows them. A link that matches a pattern is selected
    /// itself. Without `recursive`, a directory is reported in place of being sent, and so is one without a name.
    ///
    /// # Errors
    /// The directory of a path cannot be opened, nothing matches a pattern, too much does, or two entries have the same
    /// name.
    pub fn named<P: AsRef<Path>>(paths: &[P], wording: Wording, recursive: bool) -> io::Result<Self> {
        let mut budget = Budget::new();
        Self::of(paths.iter().map(|path| wording.named(path.as_ref(), recursive, &mut budget)), recursive)
    }

    /// The paths that a peer requests below `root`, each under its last name. Of the root itself, the content. No link
    /// is followed. `recursive` as in [`named`](Self::named).
    ///
    /// # Errors
    /// A path does not exist or may not be read, nothing matches a pattern, too much does, or two entries have the same
    /// name.
    pub fn beneath(root: &Directory, paths: &[RelPath], wording: Wording, recursive: bool) -> io::Result<Self> {
        Self::at(&Place::each(root, paths)?, wording, recursive)
    }

    /// The same for places below several directories.
    pub fn at(places: &[Place], wording: Wording, recursive: bool) -> io::Result<Self> {
        let mut budget = Budget::new();
        Self::of(places.iter().map(|place| wording.beneath(place, recursive, &mut budget)), recursive)
    }

    /// A selection for each of the given paths alone, as [`named`](Self::named). All share the bounds of one selection.
    pub fn each_named<P: AsRef<Path>>(
        paths: &[P],
        wording: Wording,
        recursive: bool,
    ) -> impl Iterator<Item = io::Result<Self>> {
        let mut budget = Budget::new();
        paths
            .iter()
            .map(move |path| Self::of(std::iter::once(wording.named(path.as_ref(), recursive, &mut budget)), recursive))
    }

    /// A selection for each of the places alone, as [`at`](Self::at). All share the bounds of one selection.
    pub fn each_at(places: &[Place], wording: Wording, recursive: bool) -> impl Iterator<Item = io::Result<Self>> {
        let mut budget = Budget::new();
        places
            .iter()
            .map(move |place| Self::of(std::iter::once(wording.beneath(place, recursive, &mut budget)), recursive))
    }

    fn of(each: impl Iterator<Item = io::Result<Picked>>, recursive: bool) -> io::Result<Self> {
        let (mut requested, mut refused) = (Vec::new(), Vec::new());
        for picked in each {
            match picked? {
                Picked::Entries(some) => requested.extend(some),
                Picked::Content(path) => refused.push((path, FailCode::IsDirectory.into())),
            }
        }
        requested.sort_by(|a, b| b.sent_as.cmp(&a.sent_as));
        // Two patterns may match one entry.
        requested.dedup_by(|a, b| a.is_same(b));
        if let Some(pair) = requested.windows(2).find(|pair| pair[0].sent_as == pair[1].sent_as) {
            let message = format!("two sources have the name {}", pair[0].sent_as);
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        Ok(Self { recursive, refused, requested })
    }

    /// The number of entries that are sent, those within selected directories left out.
    pub fn len(&self) -> usize {
        self.requested.len()
    }

    /// Whether nothing is sent, as of an empty root.
    pub fn is_empty(&self) -> bool {
        self.requested.is_empty()
    }

    /// The names that they arrive under, in the order of the copy: ascending by their bytes.
    pub fn names(&self) -> impl Iterator<Item = &Component> {
        self.requested.iter().rev().map(|entry| &entry.sent_as)
    }
}
