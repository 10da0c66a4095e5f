//! Requests of the file service.

use crate::field::{Fields, Malformed, put_counted};
use crate::manifest::Mtime;

use super::service_path::ServicePath;
use super::tree::ListTree;

/// Permission bits that a client can set.
const MODE_MASK: u32 = 0o777;

/// Flags of requests that make an entry.
const REPLACE: u8 = 1;
const PARENTS: u8 = 2;
const HAS_TIME: u8 = 4;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileRequest {
    /// The properties of an entry. A symbolic link is not followed.
    Stat(ServicePath),
    /// A page of the entries of a directory, in ascending order of their names.
    List {
        /// The directory.
        place: ServicePath,
        /// The cursor of the page before; empty for the first page.
        cursor: Vec<u8>,
        /// Most entries of the page. The server may give fewer.
        most: u32,
    },
    /// Bytes of a file.
    Read(ReadRange),
    /// A new file, whose bytes follow.
    Put(Put),
    /// A new directory.
    MakeDirectory(MakeDirectory),
    /// An entry is removed.
    Remove(Remove),
    /// An entry gets another name.
    Rename(Move),
    /// A file is copied on the server.
    Copy(Move),
    /// The digest of a file.
    Digest(ServicePath),
    /// The entries of a directory and of those below it. Links are not followed.
    ListTree(ListTree),
}

/// Bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRange {
    /// The file.
    pub place: ServicePath,
    /// The first byte.
    pub from: ReadFrom,
    /// Most bytes; `u64::MAX` for all up to the end.
    pub length: u64,
}

/// Where a range begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// This many bytes from the beginning. Nothing is read beyond the end.
    Start(u64),
    /// This many bytes before the end, or at the beginning of a shorter file.
    End(u64),
}

/// What happens to an entry that has the name already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the request fails with [`Exists`](crate::FailCode::Exists).
    #[default]
    Keep,
    /// A regular file is replaced. Of a rename, also an empty directory by a directory. Anything else stays.
    Replace,
}

/// A new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// Its place.
    pub place: ServicePath,
    /// Its size in bytes, if the client knows it. Then it gets exactly that many.
    pub size: Option<u64>,
    /// What happens to a file of that name. Its permissions stay.
    pub existing: Existing,
    /// Whether missing parent directories are made.
    pub parents: bool,
    /// Permission bits of a new file, to which the server applies its umask.
    pub mode: u32,
    /// The time of its last change, if it is not that of the put.
    pub mtime: Option<Mtime>,
}

/// A new directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MakeDirectory {
    /// Its place.
    pub place: ServicePath,
    /// Whether missing parent directories are made, and one that exists is no failure.
    pub parents: bool,
}

/// An entry to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remove {
    /// Its place.
    pub place: ServicePath,
    /// What may be removed.
    pub removing: Removing,
}

/// What may be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removing {
    /// Anything but a directory. A symbolic link is removed itself.
    File,
    /// A directory without entries.
    EmptyDirectory,
    /// Either of them.
    Either,
    /// A directory with everything in it, but no more than this many entries. If there are more, the rest stays.
    Tree(u64),
}

/// Two places of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The entry.
    pub from: ServicePath,
    /// Its new place.
    pub to: ServicePath,
    /// What happens to an entry of that name.
    pub existing: Existing,
    /// Whether missing parent directories of the new place are made.
    pub parents: bool,
}

impl FileRequest {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::Stat(_) => 1,
            Self::List { .. } => 2,
            Self::Read(_) => 3,
            Self::Put(_) => 4,
            Self::MakeDirectory(_) => 5,
            Self::Remove(_) => 6,
            Self::Rename(_) => 7,
            Self::Copy(_) => 8,
            Self::Digest(_) => 9,
            Self::ListTree(_) => 10,
        });
        match self {
            Self::Stat(place) | Self::Digest(place) => place.encode(out),
            Self::List { place, cursor, most } => {
                place.encode(out);
                put_counted(out, cursor);
                out.extend_from_slice(&most.to_be_bytes());
            }
            Self::Read(ReadRange { place, from, length }) => {
                place.encode(out);
                let (origin, offset) = match from {
                    ReadFrom::Start(offset) => (0, offset),
                    ReadFrom::End(offset) => (1, offset),
                };
                out.push(origin);
                out.extend_from_slice(&offset.to_be_bytes());
                out.extend_from_slice(&length.to_be_bytes());
            }
            Self::Put(put) => put.encode(out),
            Self::MakeDirectory(MakeDirectory { place, parents }) => {
                place.encode(out);
                out.push(flags(Existing::Keep, *parents));
            }
            Self::Remove(Remove { place, removing }) => {
                place.encode(out);
                let (what, most) = match removing {
                    Removing::File => (0, 0),
                    Removing::EmptyDirectory => (1, 0),
                    Removing::Either => (2, 0),
                    Removing::Tree(most) => (3, *most),
                };
                out.push(what);
                out.extend_from_slice(&most.to_be_bytes());
            }
            Self::Rename(places) | Self::Copy(places) => {
                places.from.encode(out);
                places.to.encode(out);
                out.push(flags(places.existing, places.parents));
            }
            Self::ListTree(tree) => tree.encode(out),
        }
    }

    /// The request of this kind; `None` for a kind of later versions.
    pub(super) fn decode(kind: u8, fields: &mut Fields<'_>) -> Result<Option<Self>, Malformed> {
        let request = match kind {
            1 => Self::Stat(ServicePath::decode(fields)?),
            2 => {
                let (place, cursor) = (ServicePath::decode(fields)?, fields.counted()?.to_vec());
                Self::List { place, cursor, most: fields.u32()? }
            }
            3 => {
                let (place, origin, offset) = (ServicePath::decode(fields)?, fields.u8()?, fields.u64()?);
                let from = match origin {
                    0 => ReadFrom::Start(offset),
                    1 => ReadFrom::End(offset),
                    _ => return Err(Malformed::Value("origin")),
                };
                Self::Read(ReadRange { place, from, length: fields.u64()? })
            }
            4 => Self::Put(Put::decode(fields)?),
            5 => {
                let (place, (_, parents)) = (ServicePath::decode(fields)?, read_flags(fields.u8()?)?);
                Self::MakeDirectory(MakeDirectory { place, parents })
            }
            6 => {
                let (place, what, most) = (ServicePath::decode(fields)?, fields.u8()?, fields.u64()?);
                let removing = match what {
                    0 => Removing::File,
                    1 => Removing::EmptyDirectory,
                    2 => Removing::Either,
                    3 => Removing::Tree(most),
                    _ => return Err(Malformed::Value("kind of removal")),
                };
                Self::Remove(Remove { place, removing })
            }
            7 => Self::Rename(Move::decode(fields)?),
            8 => Self::Copy(Move::decode(fields)?),
            9 => Self::Digest(ServicePath::decode(fields)?),
            10 => Self::ListTree(ListTree::decode(fields)?),
            _ => return Ok(None),
        };
        fields.end()?;
        Ok(Some(request))
    }
}

impl Put {
    /// The size of a file that its client does not know.
    const UNKNOWN: u64 = u64::MAX;

    fn encode(&self, out: &mut Vec<u8>) {
        self.place.encode(out);
        let has_time = if self.mtime.is_some() { HAS_TIME } else { 0 };
        out.push(flags(self.existing, self.parents) | has_time);
        out.extend_from_slice(&self.size.unwrap_or(Self::UNKNOWN).to_be_bytes());
        out.extend_from_slice(&(self.mode & MODE_MASK).to_be_bytes());
        self.mtime.unwrap_or_default().encode(out);
    }

    fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let (place, all) = (ServicePath::decode(fields)?, fields.u8()?);
        let (existing, parents) = read_flags(all & !HAS_TIME)?;
        let size = Some(fields.u64()?).filter(|&size| size != Self::UNKNOWN);
        let (mode, mtime) = (fields.u32()? & MODE_MASK, Mtime::decode(fields)?);
        let mtime = (all & HAS_TIME != 0).then_some(mtime);
        Ok(Self { place, size, existing, parents, mode, mtime })
    }
}

impl Move {
    fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let (from, to) = (ServicePath::decode(fields)?, ServicePath::decode(fields)?);
        let (existing, parents) = read_flags(fields.u8()?)?;
        Ok(Self { from, to, existing, parents })
    }
}

fn flags(existing: Existing, parents: bool) -> u8 {
    let replace = if existing == Existing::Replace { REPLACE } else { 0 };
    replace | if parents { PARENTS } else { 0 }
}

/// An unknown flag is no request of this version: it might ask for a caution that this side would not take.
const fn read_flags(flags: u8) -> Result<(Existing, bool), Malformed> {
    if flags & !(REPLACE | PARENTS) != 0 {
        return Err(Malformed::Value("flag"));
    }
    let existing = if flags & REPLACE != 0 { Existing::Replace } else { Existing::Keep };
    Ok((existing, flags & PARENTS != 0))
}
