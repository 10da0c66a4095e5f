//! Fields of frame bodies: big-endian numbers and counted bytes, read with bounds checks.

use crate::path_rules::{Component, MAX_PATH, PathError, RelPath};

/// The fault in a frame's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The body ends inside a field.
    #[error("too short")]
    Short,
    /// Bytes follow the last field.
    #[error("bytes after the last field")]
    Trailing,
    /// A field has an invalid value.
    #[error("invalid {0}")]
    Value(&'static str),
    /// A path that could leave the target directory, or that cannot be created.
    #[error("path refused: {0}")]
    Path(#[from] PathError),
}

/// The unread rest of a frame body.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) const fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// Bytes with their number in front, at most as many as a path has.
    pub(crate) fn counted(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::from(self.u16()?);
        if length > MAX_PATH {
            return Err(PathError::PathTooLong.into());
        }
        self.bytes(length)
    }

    /// A path: the number of its components, then length and bytes of each.
    pub(crate) fn path(&mut self) -> Result<RelPath, Malformed> {
        self.path_beside(&RelPath::root())
    }

    /// A path that shares the memory of equal components with another one.
    pub(crate) fn path_beside(&mut self, other: &RelPath) -> Result<RelPath, Malformed> {
        let mut path = RelPath::root();
        for index in 0..self.u16()? {
            let length = usize::from(self.u8()?);
            let name = self.bytes(length)?;
            let shared = other.components().get(usize::from(index)).filter(|its| its.as_bytes() == name);
            path.push(shared.map_or_else(|| Component::new(name), |its| Ok(its.clone()))?)?;
        }
        Ok(path)
    }

    /// The whole rest.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Checks that nothing is left. Frames of a version hold exactly the fields of that version.
    pub(crate) const fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed::Trailing) }
    }
}

/// The value with this number: `all` stand in the order of their numbers, from 0.
pub(crate) fn numbered<T: Copy>(all: &[T], number: u8, what: &'static str) -> Result<T, Malformed> {
    all.get(usize::from(number)).copied().ok_or(Malformed::Value(what))
}

/// Appends bytes with their number in front.
///
/// # Panics
/// They are more than a path has.
pub(crate) fn put_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).expect("paths, names and cursors are at most 4096 bytes");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}
