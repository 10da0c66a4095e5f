//! Fields of frame bodies: big-endian numbers and counted bytes, read with bounds checks.

use crate::error::{Malformed, Violation};
use crate::framing::FrameKind;

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

    /// The whole rest.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Checks that nothing is left. Frames of a version hold exactly the fields of that version.
    pub(crate) const fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed::Trailing) }
    }
}

/// Decodes the whole body of a frame.
pub(crate) fn decode_whole<T>(
    kind: FrameKind,
    body: &[u8],
    read: impl FnOnce(&mut Fields<'_>) -> Result<T, Malformed>,
) -> Result<T, Violation> {
    let mut fields = Fields::new(body);
    let value = read(&mut fields).map_err(|reason| reason.in_frame(kind))?;
    fields.end().map_err(|reason| reason.in_frame(kind))?;
    Ok(value)
}
