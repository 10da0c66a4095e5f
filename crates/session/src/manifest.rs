//! Entries of a copy: their properties and their order.
//!
//! Entries come depth first, siblings in ascending order of their bytes. So the receiver knows when a directory is
//! complete and then sets its times. It detects duplicates, and needs memory only for open directories.

mod properties;

use std::fmt;

use crate::field::{Fields, Malformed, numbered, put_counted};
use crate::path_rules::{Component, PathError, RelPath, escape};

pub use properties::{Attribute, MAX_ATTRIBUTES, Owner, Properties};

#[cfg(test)]
mod tests;

/// Mode bits that are sent: permissions, set-user-id, set-group-id and sticky. A receiver takes the latter three only if
/// the rules of the copy say so.
const MODE_MASK: u32 = 0o7777;
/// Nanoseconds in a second.
const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// Number of an entry in a session, counted from zero on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u64);

/// The kind of an entry, with its number in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file. Its bytes and digest follow.
    File = 0,
    /// A directory. Its entries follow.
    Directory = 1,
    /// A symbolic link. Its [`Properties`] have the target.
    Symlink = 2,
    /// One more name of a file that came before. Its [`Properties`] tell which one.
    HardLink = 3,
}

/// A modification time since 1970 in UTC. Earlier times have negative seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mtime {
    /// Whole seconds, rounded down.
    pub seconds: i64,
    /// Additional nanoseconds, 0 to 999 999 999.
    pub nanos: u32,
}

impl Mtime {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.seconds.to_be_bytes());
        out.extend_from_slice(&self.nanos.to_be_bytes());
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let time = Self { seconds: fields.i64()?, nanos: fields.u32()? };
        if time.nanos < NANOS_PER_SECOND { Ok(time) } else { Err(Malformed::Value("nanoseconds")) }
    }
}

/// One entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path below the root of the copy, never the root itself.
    pub path: RelPath,
    /// File, directory or link.
    pub kind: EntryKind,
    /// Bytes of a file, or [`UNKNOWN_SIZE`](Self::UNKNOWN_SIZE) until it has ended. Zero for others.
    ///
    /// A receiver takes exactly a known size and compares the digest of the received bytes.
    pub size: u64,
    /// Permission bits of the source, at most `0o7777`. The receiving side applies its umask, unless the copy keeps
    /// permissions.
    pub mode: u32,
    /// When the content last changed.
    pub mtime: Mtime,
    /// What else the copy keeps of it.
    pub properties: Option<Box<Properties>>,
}

impl Entry {
    /// The size of a file whose end is unknown, because it comes from a pipe or the system generates it while it is
    /// read. Its digest ends it.
    pub const UNKNOWN_SIZE: u64 = u64::MAX;

    /// Whether the size is known.
    pub const fn has_size(&self) -> bool {
        self.size != Self::UNKNOWN_SIZE
    }

    /// An entry without further properties.
    pub const fn new(path: RelPath, kind: EntryKind, size: u64, mode: u32, mtime: Mtime) -> Self {
        Self { path, kind, size, mode, mtime, properties: None }
    }

    /// The values that reveal a change of the file during the copy.
    pub const fn stamp(&self) -> Stamp {
        Stamp { size: self.size, mtime: self.mtime }
    }

    /// Its own name.
    pub fn name(&self) -> &Component {
        self.path.components().last().expect("an entry has a name: decoded and admitted only so")
    }

    /// Bytes of memory that it takes, roughly.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>() + self.path.weight() + self.properties.as_deref().map_or(0, Properties::weight)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind as u8);
        out.extend_from_slice(&(self.mode & MODE_MASK).to_be_bytes());
        out.extend_from_slice(&self.size.to_be_bytes());
        self.mtime.encode(out);
        self.path.encode(out);
        if let Some(properties) = &self.properties {
            properties.encode(out);
        }
    }

    #[cfg(test)]
    pub(crate) fn decode(body: &[u8]) -> Result<Self, Malformed> {
        Self::decode_beside(body, &RelPath::root())
    }

    /// Decodes an entry whose path shares the memory of equal components with another one.
    pub(crate) fn decode_beside(body: &[u8], other: &RelPath) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body);
        let kinds = [EntryKind::File, EntryKind::Directory, EntryKind::Symlink, EntryKind::HardLink];
        let kind = numbered(&kinds, fields.u8()?, "kind of entry")?;
        let mode = fields.u32()? & MODE_MASK;
        let size = fields.u64()?;
        if kind != EntryKind::File && size != 0 {
            return Err(Malformed::Value("size of an entry without content"));
        }
        let mtime = Mtime::decode(&mut fields)?;
        let path = fields.path_beside(other)?;
        let properties = if fields.end().is_err() { Some(Box::new(Properties::decode(&mut fields)?)) } else { None };
        fields.end()?;
        if path.is_root() {
            return Err(Malformed::Path(PathError::Empty));
        }
        let entry = Self { path, kind, size, mode, mtime, properties };
        match kind {
            EntryKind::Symlink if entry.link_target().is_none() => Err(Malformed::Value("target of a link")),
            EntryKind::HardLink if entry.first_name().is_none() => Err(Malformed::Value("first name of a file")),
            _ => Ok(entry),
        }
    }

    /// The target of a symbolic link.
    pub fn link_target(&self) -> Option<&[u8]> {
        let target = &self.properties.as_ref()?.link_target;
        (!target.is_empty()).then_some(target)
    }

    /// The entry of which a hard link is one more name.
    pub fn first_name(&self) -> Option<EntryId> {
        self.properties.as_ref()?.first_name
    }

    /// Whether it needs less space than its size.
    pub fn is_sparse(&self) -> bool {
        self.properties.as_ref().is_some_and(|properties| properties.is_sparse)
    }

    /// Whether hard links to this file may follow.
    pub fn may_have_links(&self) -> bool {
        self.kind == EntryKind::File && self.properties.as_ref().is_some_and(|properties| properties.has_links)
    }
}

/// Size and time of a file. They must be equal before and after reading, or the copy may mix two states of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Bytes.
    pub size: u64,
    /// When the content last changed.
    pub mtime: Mtime,
}

/// The bytes of a path for reports, displayed escaped. Unlike a [`RelPath`] it may have any content, so it opens
/// nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownPath(Vec<u8>);

impl ShownPath {
    /// Longest that is sent, in bytes. The rest is cut off.
    const MAX: usize = crate::path_rules::MAX_PATH;

    /// A path for reports. Bytes beyond 4096 are cut off.
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes[..bytes.len().min(Self::MAX)].to_vec())
    }

    /// The unescaped bytes, for records that can hold any bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_counted(out, &self.0);
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self(fields.counted()?.to_vec()))
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

/// The open directories at a point of a manifest, each with a value of the caller.
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

/// An entry that is out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfOrder;

impl<T> Default for OpenDirectories<T> {
    fn default() -> Self {
        Self { levels: Vec::new(), last_at_root: None }
    }
}

impl<T> OpenDirectories<T> {
    /// Checks the place of an entry and returns its depth. Before the caller uses the entry, it closes deeper
    /// directories with [`close_to`](Self::close_to).
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

    /// Closes the innermost directory beyond `depth` and returns its value.
    pub(crate) fn close_to(&mut self, depth: usize) -> Option<T> {
        if self.levels.len() > depth { self.levels.pop().map(|level| level.value) } else { None }
    }

    /// Opens the directory that was admitted last.
    pub(crate) fn open(&mut self, name: Component, value: T) {
        self.levels.push(Level { name, last_child: None, value });
    }

    /// The directory of the entry admitted last; `None` for the root.
    pub(crate) fn innermost(&self) -> Option<&T> {
        self.levels.last().map(|level| &level.value)
    }
}
