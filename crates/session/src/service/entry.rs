//! An entry of a directory, and its properties.

use crate::capabilities::Capabilities;
use crate::field::{Fields, Malformed, numbered, put_counted};
use crate::manifest::{Mtime, Owner};
use crate::path_rules::Component;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A regular file.
    File = 0,
    /// A directory.
    Directory = 1,
    /// A symbolic link.
    Link = 2,
    /// A device, pipe or socket.
    Other = 3,
}

/// The properties of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Its kind.
    pub kind: NodeKind,
    /// Bytes of a file, and zero for everything else.
    pub size: u64,
    /// Permission bits, with set-user-id, set-group-id and sticky: at most `0o7777`.
    pub mode: u32,
    /// When its content last changed.
    pub mtime: Mtime,
    /// The target of a symbolic link.
    pub target: Option<Vec<u8>>,
    /// When its content or its properties last changed; `None` from a server that does not tell.
    pub ctime: Option<Mtime>,
    /// Its user and group; `None` from a server that does not tell. A name is empty if the server does not know it.
    pub owner: Option<Owner>,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    /// Its name.
    pub name: Component,
    /// Its properties.
    pub info: FileInfo,
}

/// Permission bits in the mode of an entry.
const MODE: u32 = 0o7777;
/// Beside them: the owner follows. A server sends it to clients with [`Capabilities::OWNERS`](crate::Capabilities::OWNERS) alone.
const HAS_OWNER: u32 = 1 << 16;
/// The time of change follows, under [`Capabilities::CHANGE_TIMES`].
const HAS_CTIME: u32 = 1 << 17;

impl FileInfo {
    pub(super) fn reduce_to(&mut self, offered: Capabilities) {
        self.owner = self.owner.take().filter(|_| offered.has(Capabilities::OWNERS));
        self.ctime = self.ctime.filter(|_| offered.has(Capabilities::CHANGE_TIMES));
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind as u8);
        let has_owner = if self.owner.is_some() { HAS_OWNER } else { 0 };
        let has_ctime = if self.ctime.is_some() { HAS_CTIME } else { 0 };
        out.extend_from_slice(&(self.mode & MODE | has_owner | has_ctime).to_be_bytes());
        out.extend_from_slice(&self.size.to_be_bytes());
        self.mtime.encode(out);
        if self.kind == NodeKind::Link {
            put_counted(out, self.target.as_deref().unwrap_or_default());
        }
        if let Some(owner) = &self.owner {
            owner.encode(out);
        }
        self.ctime.into_iter().for_each(|ctime| ctime.encode(out));
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let kinds = [NodeKind::File, NodeKind::Directory, NodeKind::Link, NodeKind::Other];
        let kind = numbered(&kinds, fields.u8()?, "kind of entry")?;
        let (mode, size, mtime) = (fields.u32()?, fields.u64()?, Mtime::decode(fields)?);
        let target = (kind == NodeKind::Link).then(|| fields.counted().map(<[u8]>::to_vec)).transpose()?;
        let owner = (mode & HAS_OWNER != 0).then(|| Owner::decode(fields)).transpose()?;
        let ctime = (mode & HAS_CTIME != 0).then(|| Mtime::decode(fields)).transpose()?;
        Ok(Self { kind, size, mode: mode & MODE, mtime, ctime, target, owner })
    }
}

impl ListedEntry {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_counted(out, self.name.as_bytes());
        self.info.encode(out);
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let name = Component::new(fields.counted()?)?;
        Ok(Self { name, info: FileInfo::decode(fields)? })
    }
}
