//! The names that a copy of a directory is restricted to, as a user lists them.
//!
//! A list travels from a receiver to its sender in NAMES frames behind the opening. An empty frame ends it.

use crate::error::Violation;
use crate::field::Fields;
use crate::frame_kind::{FrameKind, MAX_CONTROL};
use crate::framing::put_frame;
use crate::path_rules::{Component, RelPath};

#[cfg(test)]
mod tests;

/// Most names of a list, so that a peer's list costs a few MB of memory.
pub const MAX_LISTED_NAMES: usize = 500_000;
/// Most bytes of all names of a list together, with one separator each.
pub const MAX_LISTED_BYTES: usize = 16 << 20;
/// Between the components of a stored path. No name contains it, and it sorts before all bytes of names.
const SEPARATOR: u8 = 0;

/// Names of files and directories below the source of a copy. Nothing else takes part, but for what is in these directories, and for
/// their parent directories.
///
/// It takes the bytes of its names, and 8 bytes for each.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct NameList {
    /// The names in the order of the user, one behind the other.
    text: Vec<u8>,
    /// Where each of them is in `text`, in the order of a copy: ascending by components. No two are equal.
    places: Vec<(u32, u32)>,
}

/// A list that is not complete.
#[derive(Clone, Debug, Default)]
pub struct NameListBuilder {
    list: NameList,
}

/// A list has more than [`MAX_LISTED_NAMES`] names or [`MAX_LISTED_BYTES`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a list has at most {MAX_LISTED_NAMES} names and {} MiB; divide it, and copy once for each part", MAX_LISTED_BYTES >> 20)]
pub struct ListTooLong;

/// What a path is to a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// A name of the list.
    Itself,
    /// It is within a directory that the list names.
    Within,
    /// A parent directory of names of the list.
    Above,
    /// It takes no part.
    Outside,
}

impl NameListBuilder {
    /// Adds a name. The root stands for everything.
    ///
    /// # Errors
    /// The list is full. It stays unchanged.
    pub fn push(&mut self, path: &RelPath) -> Result<(), ListTooLong> {
        let NameList { text, places } = &mut self.list;
        let key = key_of(path);
        if places.len() >= MAX_LISTED_NAMES || text.len() + key.len() >= MAX_LISTED_BYTES {
            return Err(ListTooLong);
        }
        let start = offset(text.len());
        text.extend_from_slice(&key);
        places.push((start, offset(text.len())));
        Ok(())
    }

    /// The complete list.
    pub fn build(self) -> NameList {
        let NameList { text, mut places } = self.list;
        places.sort_unstable_by(|a, b| at(&text, *a).cmp(at(&text, *b)));
        places.dedup_by(|a, b| at(&text, *a) == at(&text, *b));
        NameList { text, places }
    }

    /// Takes the body of a NAMES frame. Returns whether it was the last one.
    pub(crate) fn handle_frame(&mut self, body: &[u8]) -> Result<bool, Violation> {
        let mut fields = Fields::new(body);
        while fields.end().is_err() {
            let path = fields.path().map_err(|reason| reason.in_frame(FrameKind::Names))?;
            self.push(&path).map_err(|_| Violation::Limit("listed names"))?;
        }
        Ok(body.is_empty())
    }
}

impl NameList {
    /// The number of names, each counted once.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it has no name.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What `path` is to this list. Without `recursive`, a directory is named without its content.
    pub fn place_of(&self, path: &RelPath, recursive: bool) -> Listed {
        let key = key_of(path);
        if self.has(&key) {
            return Listed::Itself;
        }
        let ends = key.iter().enumerate().filter(|&(_, &byte)| byte == SEPARATOR).map(|(end, _)| end);
        if recursive && !path.is_root() && std::iter::once(0).chain(ends).any(|end| self.has(&key[..end])) {
            return Listed::Within;
        }
        if self.within(&key).is_empty() { Listed::Outside } else { Listed::Above }
    }

    /// The names in the directory `path` that the list names or that lead to such, ascending by their bytes.
    pub fn children(&self, path: &RelPath) -> Vec<Component> {
        let key = key_of(path);
        let mut children: Vec<Component> = Vec::new();
        for &place in self.within(&key) {
            let below = below(at(&self.text, place), &key);
            let end = below.iter().position(|&byte| byte == SEPARATOR).unwrap_or(below.len());
            if children.last().is_none_or(|last| last.as_bytes() != &below[..end]) {
                children.extend(Component::new(&below[..end]));
            }
        }
        children
    }

    /// The names of the list within the directory `path`, in the order of a copy.
    pub fn names_within(&self, path: &RelPath) -> impl Iterator<Item = RelPath> {
        self.within(&key_of(path)).iter().map(|&place| path_of(at(&self.text, place)))
    }

    /// The name with this index among them.
    pub fn name_within(&self, path: &RelPath, index: usize) -> Option<RelPath> {
        self.within(&key_of(path)).get(index).map(|&place| path_of(at(&self.text, place)))
    }

    /// Appends the frames that bring it to a sender.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let mut names = self.places.iter().map(|&place| path_of(at(&self.text, place))).peekable();
        while names.peek().is_some() {
            put_frame(out, FrameKind::Names, |out| {
                let start = out.len();
                let has_room = |len: usize, name: &RelPath| len - start + encoded_len(name) <= MAX_CONTROL;
                while let Some(name) = names.next_if(|name| has_room(out.len(), name)) {
                    name.encode(out);
                }
            });
        }
        put_frame(out, FrameKind::Names, |_| ());
    }

    fn has(&self, key: &[u8]) -> bool {
        self.places.binary_search_by(|place| at(&self.text, *place).cmp(key)).is_ok()
    }

    /// The places of names within a directory. They follow each other.
    fn within(&self, directory: &[u8]) -> &[(u32, u32)] {
        if directory.is_empty() {
            let root = usize::from(self.has(b""));
            return &self.places[root..];
        }
        let prefix = [directory, &[SEPARATOR]].concat();
        let start = self.places.partition_point(|&place| at(&self.text, place) < prefix.as_slice());
        let rest = &self.places[start..];
        &rest[..rest.partition_point(|&place| at(&self.text, place).starts_with(&prefix))]
    }
}

impl std::fmt::Debug for NameList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NameList({} names)", self.len())
    }
}

fn at(text: &[u8], (start, end): (u32, u32)) -> &[u8] {
    &text[start as usize..end as usize]
}

fn offset(len: usize) -> u32 {
    u32::try_from(len).expect("MAX_LISTED_BYTES is far below 4 GiB")
}

fn key_of(path: &RelPath) -> Vec<u8> {
    let mut key = path.to_bytes();
    key.iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = SEPARATOR);
    key
}

fn path_of(key: &[u8]) -> RelPath {
    let text: Vec<u8> = key.iter().map(|&byte| if byte == SEPARATOR { b'/' } else { byte }).collect();
    RelPath::parse(&text).expect("the key was made of a path")
}

/// The part of a key within a directory.
fn below<'a>(key: &'a [u8], directory: &[u8]) -> &'a [u8] {
    if directory.is_empty() { key } else { &key[directory.len() + 1..] }
}

/// Bytes of a path in a frame.
fn encoded_len(path: &RelPath) -> usize {
    2 + path.components().iter().map(|name| 1 + name.as_bytes().len()).sum::<usize>()
}
