//! What travels about each file and directory, and in which order.
//!
//! Entries come depth first, siblings in ascending order of their bytes. So the receiver knows when a directory is
//! complete (its times are set last), finds duplicates, and needs memory only for the directories that are open.

use std::fmt;

use crate::error::Malformed;
use crate::field::Fields;
use crate::path_rules::{Component, PathError, RelPath, escape};

#[cfg(test)]
mod tests;

/// Permission bits that travel; set-user-id, set-group-id and sticky never do.
const MODE_MASK: u32 = 0o777;
/// Nanoseconds in a second.
const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// Numbers the entries of one session from zero; both sides count alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u64);

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file; its bytes and digest follow.
    File,
    /// A directory; the entries in it follow.
    Directory,
}

/// A time of modification, since 1970 in UTC; negative seconds lie before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mtime {
    /// Whole seconds, rounded down.
    pub seconds: i64,
    /// Nanoseconds on top, 0 to 999 999 999.
    pub nanos: u32,
}

/// One file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where, below the root of the copy; never the root itself.
    pub path: RelPath,
    /// What.
    pub kind: EntryKind,
    /// Bytes of a file, or [`UNKNOWN_SIZE`](Self::UNKNOWN_SIZE) until it has ended; zero for a directory. A known size
    /// bounds the content: a receiver takes no more and no less of it, and compares the digest of what came.
    pub size: u64,
    /// Permission bits of the source, `0o777` at most; the receiving host applies its umask.
    pub mode: u32,
    /// When the content last changed.
    pub mtime: Mtime,
}

impl Entry {
    /// Stands for the size of a file that is not known before its end: it comes out of a pipe, or the system makes it up
    /// while it is read. Its digest ends it.
    pub const UNKNOWN_SIZE: u64 = u64::MAX;

    /// Whether the size is known.
    pub const fn has_size(&self) -> bool {
        self.size != Self::UNKNOWN_SIZE
    }

    /// What tells whether a file was changed while it was copied.
    pub const fn stamp(&self) -> Stamp {
        Stamp { size: self.size, mtime: self.mtime }
    }

    /// Its own name.
    pub fn name(&self) -> &Component {
        self.path.components().last().expect("an entry has a name: decoded and admitted only so")
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self.kind {
            EntryKind::File => 0,
            EntryKind::Directory => 1,
        });
        out.extend_from_slice(&(self.mode & MODE_MASK).to_be_bytes());
        out.extend_from_slice(&self.size.to_be_bytes());
        out.extend_from_slice(&self.mtime.seconds.to_be_bytes());
        out.extend_from_slice(&self.mtime.nanos.to_be_bytes());
        self.path.encode(out);
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body);
        let kind = match fields.u8()? {
            0 => EntryKind::File,
            1 => EntryKind::Directory,
            _ => return Err(Malformed::Value("kind of entry")),
        };
        let mode = fields.u32()? & MODE_MASK;
        let size = fields.u64()?;
        if kind == EntryKind::Directory && size != 0 {
            return Err(Malformed::Value("size of a directory"));
        }
        let mtime = Mtime { seconds: fields.i64()?, nanos: fields.u32()? };
        if mtime.nanos >= NANOS_PER_SECOND {
            return Err(Malformed::Value("nanoseconds"));
        }
        let path = RelPath::decode(&mut fields)?;
        fields.end()?;
        if path.is_root() {
            return Err(Malformed::Path(PathError::Empty));
        }
        Ok(Self { path, kind, size, mode, mtime })
    }
}

/// Size and time of a file: equal before and after reading it, or the copy is not one of any moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Bytes.
    pub size: u64,
    /// When the content last changed.
    pub mtime: Mtime,
}

/// The bytes of a path for reports; displayed escaped. Unlike a [`RelPath`] it may be anything, so it opens nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownPath(Vec<u8>);

impl ShownPath {
    /// Longest that travels, in bytes; the rest is cut off.
    const MAX: usize = crate::path_rules::MAX_PATH;

    /// A path for reports; more than 4096 bytes are cut off.
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes[..bytes.len().min(Self::MAX)].to_vec())
    }

    /// The bytes, unescaped: for records that can carry any bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&u16::try_from(self.0.len()).expect("cut to MAX").to_be_bytes());
        out.extend_from_slice(&self.0);
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let length = usize::from(fields.u16()?);
        if length > Self::MAX {
            return Err(Malformed::Path(PathError::PathTooLong));
        }
        Ok(Self(fields.bytes(length)?.to_vec()))
    }
}

impl From<&RelPath> for ShownPath {
    fn from(path: &RelPath) -> Self {
        Self::new(&path.to_bytes())
    }
}

impl fmt::Display for ShownPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&self.0))
    }
}

/// The directories that are open at this point of a manifest, each with something of the caller's.
#[derive(Debug)]
pub(crate) struct OpenDirectories<T> {
    levels: Vec<Level<T>>,
    /// The last entry directly below the root.
    last_at_root: Option<Component>,
}

#[derive(Debug)]
struct Level<T> {
    name: Component,
    last_child: Option<Component>,
    value: T,
}

/// An entry came where it may not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfOrder;

impl<T> Default for OpenDirectories<T> {
    fn default() -> Self {
        Self { levels: Vec::new(), last_at_root: None }
    }
}

impl<T> OpenDirectories<T> {
    /// Places an entry. On success the caller closes the directories deeper than the returned depth with
    /// [`close_to`](Self::close_to), before it does anything about the entry.
    pub(crate) fn admit(&mut self, path: &RelPath) -> Result<usize, OutOfOrder> {
        let (name, parents) = path.split_last().ok_or(OutOfOrder)?;
        let depth = parents.len();
        let open = self.levels.get(..depth).ok_or(OutOfOrder)?;
        if !open.iter().zip(parents).all(|(level, parent)| level.name == *parent) {
            return Err(OutOfOrder);
        }
        let last = match depth {
            0 => &mut self.last_at_root,
            _ => &mut self.levels[depth - 1].last_child,
        };
        if last.as_ref().is_some_and(|last| last >= name) {
            return Err(OutOfOrder);
        }
        *last = Some(name.clone());
        Ok(depth)
    }

    /// The innermost directory that is open beyond `depth`, closed.
    pub(crate) fn close_to(&mut self, depth: usize) -> Option<T> {
        if self.levels.len() > depth { self.levels.pop().map(|level| level.value) } else { None }
    }

    /// Opens the directory that was admitted last.
    pub(crate) fn open(&mut self, name: Component, value: T) {
        self.levels.push(Level { name, last_child: None, value });
    }

    /// The directory that the entry admitted last belongs into; `None` for the root.
    pub(crate) fn innermost(&self) -> Option<&T> {
        self.levels.last().map(|level| &level.value)
    }

    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }
}
