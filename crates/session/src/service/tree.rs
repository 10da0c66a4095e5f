//! The listing of a tree: its request, and the records of its answer.
//!
//! Records are sent as blocks, directory by directory: each directory, then its entries in ascending order of their names, and then the
//! directories in it the same way. So the records of all answers ascend by path and name, and a client resumes behind any of them.

use crate::failure::Failure;
use crate::field::{Fields, Malformed, put_counted};
use crate::path_rules::RelPath;

use super::entry::ListedEntry;
use super::service_path::ServicePath;

/// The entries of a directory and of those below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListTree {
    /// The directory.
    pub place: ServicePath,
    /// Levels of directories that are listed: 1 for the directory alone, `u32::MAX` for all.
    pub depth: u32,
    /// The first record: that of the answer before, or the default.
    pub from: TreeCursor,
    /// Most bytes of the encoded records.
    pub most: u32,
}

/// A place in a listing: behind the entry `name` of the directory `path`, or before that directory if `name` is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TreeCursor {
    /// The directory, below the one that is listed.
    pub path: RelPath,
    /// The name of an entry.
    pub name: Vec<u8>,
}

/// A part of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreePage {
    /// Directories in ascending order of their paths. The first one may go on with the last one of the page before.
    pub directories: Vec<ListedDirectory>,
    /// Where the listing goes on; `None` at its end.
    pub next: Option<TreeCursor>,
}

/// A directory of a tree, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedDirectory {
    /// Its path below the directory that is listed.
    pub path: RelPath,
    /// Entries in ascending order of their names.
    pub entries: Vec<ListedEntry>,
    /// Why it could not be read, or not to its end.
    pub failure: Option<Failure>,
}

const DIRECTORY: u8 = 0;
const ENTRY: u8 = 1;
const FAILURE: u8 = 2;

impl ListTree {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        self.place.encode(out);
        out.extend_from_slice(&self.depth.to_be_bytes());
        self.from.encode(out);
        out.extend_from_slice(&self.most.to_be_bytes());
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let (place, depth) = (ServicePath::decode(fields)?, fields.u32()?);
        Ok(Self { place, depth, from: TreeCursor::decode(fields)?, most: fields.u32()? })
    }
}

impl TreeCursor {
    fn encode(&self, out: &mut Vec<u8>) {
        self.path.encode(out);
        put_counted(out, &self.name);
    }

    fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self { path: fields.path()?, name: fields.counted()?.to_vec() })
    }
}

impl TreePage {
    /// Encodes the end of the answer: all of it but the records.
    pub(super) fn encode_end(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.next.is_some()));
        if let Some(next) = &self.next {
            next.encode(out);
        }
    }

    /// Decodes the records, and the end behind them.
    pub(super) fn decode(records: &[u8], end: &mut Fields<'_>) -> Result<Self, Malformed> {
        let mut page = Self::default();
        let mut fields = Fields::new(records);
        while fields.end().is_err() {
            page.add(&mut fields)?;
        }
        page.next = match end.u8()? {
            0 => None,
            1 => Some(TreeCursor::decode(end)?),
            _ => return Err(Malformed::Value("end of a listing")),
        };
        Ok(page)
    }

    fn add(&mut self, fields: &mut Fields<'_>) -> Result<(), Malformed> {
        let kind = fields.u8()?;
        let last = self.directories.last_mut();
        match (kind, last) {
            (DIRECTORY, last) => {
                let path = fields.path()?;
                if last.is_some_and(|last| last.path >= path) {
                    return Err(Malformed::Value("order of directories"));
                }
                self.directories.push(ListedDirectory { path, entries: Vec::new(), failure: None });
            }
            (ENTRY, Some(last)) => {
                let entry = ListedEntry::decode(fields)?;
                if last.entries.last().is_some_and(|before| before.name >= entry.name) {
                    return Err(Malformed::Value("order of names"));
                }
                last.entries.push(entry);
            }
            (FAILURE, Some(last)) => {
                last.failure = Some(Failure::decode(&mut Fields::new(fields.counted()?))?);
            }
            _ => return Err(Malformed::Value("kind of record")),
        }
        Ok(())
    }
}

pub(super) fn put_directory(out: &mut Vec<u8>, path: &RelPath) {
    out.push(DIRECTORY);
    path.encode(out);
}

pub(super) fn put_entry(out: &mut Vec<u8>, entry: &ListedEntry) {
    out.push(ENTRY);
    entry.encode(out);
}

pub(super) fn put_failure(out: &mut Vec<u8>, failure: &Failure) {
    out.push(FAILURE);
    let mut encoded = Vec::new();
    failure.encode(&mut encoded);
    put_counted(out, &encoded);
}
