//! The path of a request.

use std::fmt;

use crate::field::{Fields, Malformed, put_counted};
use crate::path_rules::{MAX_PATH, PathError, escape};

/// The path of a request, as the client writes it. The [`Files`](super::Files) of the server give it a meaning: below their root, or as the
/// user there would write it. At most 4096 bytes, without NUL. Displayed escaped.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServicePath(Vec<u8>);

impl ServicePath {
    /// Checks a path.
    ///
    /// # Errors
    /// It is too long, or has a NUL.
    pub fn new(path: &[u8]) -> Result<Self, PathError> {
        match path {
            _ if path.len() > MAX_PATH => Err(PathError::PathTooLong),
            _ if path.contains(&0) => Err(PathError::Separator),
            _ => Ok(Self(path.to_vec())),
        }
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_counted(out, &self.0);
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self::new(fields.counted()?)?)
    }
}

impl fmt::Display for ServicePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str(".") } else { f.write_str(&escape(&self.0)) }
    }
}

impl fmt::Debug for ServicePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}
