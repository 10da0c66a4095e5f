//! Answers of the file service.

use crate::capabilities::Capabilities;
use crate::field::{Fields, Malformed, put_counted};
use crate::integrity::Digest;
use crate::manifest::{Mtime, Stamp};

use super::entry::{FileInfo, ListedEntry};
use super::tree::TreePage;

/// An answer to a request that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// To [`Stat`](super::FileRequest::Stat).
    Info(FileInfo),
    /// To [`List`](super::FileRequest::List).
    Page(ListPage),
    /// To [`Read`](super::FileRequest::Read).
    Range(FileRange),
    /// To [`Put`](super::FileRequest::Put), [`Copy`](super::FileRequest::Copy) and [`Digest`](super::FileRequest::Digest).
    Written(Written),
    /// To [`MakeDirectory`](super::FileRequest::MakeDirectory): whether the directory is new.
    Made(bool),
    /// To [`Remove`](super::FileRequest::Remove): the number of entries removed.
    Removed(u64),
    /// To [`Rename`](super::FileRequest::Rename).
    Renamed,
    /// To [`ListTree`](super::FileRequest::ListTree).
    Tree(TreePage),
}

/// A page of a directory. An entry that is there from the first page to the last one is on exactly one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// Entries in ascending order of their names.
    pub entries: Vec<ListedEntry>,
    /// The cursor of the next page; empty if this is the last one.
    pub next: Vec<u8>,
}

/// Bytes of a file. Their digest was compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The offset of the first one.
    pub offset: u64,
    /// Whether the file ends behind them.
    pub at_end: bool,
    /// The version of the file after they were read.
    pub version: FileVersion,
    /// Whether the file changed while they were read, or may have.
    pub changed: bool,
}

/// What tells the versions of a file apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// Its size and its time of modification, which programs can set.
    pub stamp: Stamp,
    /// When its content or its properties last changed, which programs cannot set. `None` from a server that does not tell.
    pub ctime: Option<Mtime>,
}

/// A file on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its bytes.
    pub size: u64,
    /// Their digest. A server that copies need not read the file, and may not know it.
    pub digest: Option<Digest>,
}

/// The end of a read: all of a [`FileRange`] but its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RangeEnd {
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) digest: Digest,
    pub(super) version: FileVersion,
    pub(super) at_end: bool,
    pub(super) changed: bool,
}

const AT_END: u8 = 1;
const CHANGED: u8 = 2;
/// The time of change follows.
const ENDS_WITH_CTIME: u8 = 4;

impl RangeEnd {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let FileVersion { stamp, ctime } = self.version;
        let flags = [(self.at_end, AT_END), (self.changed, CHANGED), (ctime.is_some(), ENDS_WITH_CTIME)];
        out.push(flags.iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag));
        out.extend_from_slice(&self.offset.to_be_bytes());
        out.extend_from_slice(&self.length.to_be_bytes());
        out.extend_from_slice(self.digest.as_bytes());
        out.extend_from_slice(&stamp.size.to_be_bytes());
        stamp.mtime.encode(out);
        ctime.into_iter().for_each(|ctime| ctime.encode(out));
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let (flags, offset, length) = (fields.u8()?, fields.u64()?, fields.u64()?);
        let digest = Digest::from_bytes(fields.array()?);
        let stamp = Stamp { size: fields.u64()?, mtime: Mtime::decode(fields)? };
        let ctime = (flags & ENDS_WITH_CTIME != 0).then(|| Mtime::decode(fields)).transpose()?;
        let version = FileVersion { stamp, ctime };
        Ok(Self { offset, length, digest, version, at_end: flags & AT_END != 0, changed: flags & CHANGED != 0 })
    }
}

impl ListPage {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_counted(out, &self.next);
        self.entries.iter().for_each(|entry| entry.encode(out));
    }

    /// A page whose names do not ascend would let a server send a client in circles.
    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let mut page = Self { entries: Vec::new(), next: fields.counted()?.to_vec() };
        while fields.end().is_err() {
            let entry = ListedEntry::decode(fields)?;
            if page.entries.last().is_some_and(|last| last.name >= entry.name) {
                return Err(Malformed::Value("order of names"));
            }
            page.entries.push(entry);
        }
        Ok(page)
    }
}

impl Answer {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Info(info) => info.encode(out),
            Self::Page(page) => page.encode(out),
            Self::Written(written) => written.encode(out),
            Self::Made(is_new) => out.push(u8::from(*is_new)),
            Self::Removed(count) => out.extend_from_slice(&count.to_be_bytes()),
            // Its records went before it.
            Self::Tree(page) => page.encode_end(out),
            // The bytes of a range went before it, and its end is encoded by itself.
            Self::Renamed | Self::Range(_) => {}
        }
    }

    /// The same without what clients of earlier versions cannot read.
    pub(super) fn for_client(mut self, offered: Capabilities) -> Self {
        match &mut self {
            Self::Info(info) => info.reduce_to(offered),
            Self::Page(page) => page.entries.iter_mut().for_each(|entry| entry.info.reduce_to(offered)),
            _ => {}
        }
        self
    }
}

impl Written {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.size.to_be_bytes());
        if let Some(digest) = &self.digest {
            out.extend_from_slice(digest.as_bytes());
        }
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let size = fields.u64()?;
        let digest = fields.end().is_err().then(|| fields.array().map(Digest::from_bytes)).transpose()?;
        Ok(Self { size, digest })
    }
}
