//! The two lists that a client may ask for in place of a file.
//!
//! ```text
//! "!#DIR??"   server  count "N\0", then per file name "\0" size "\0"
//!             client  one byte 0
//! "*"         server  Totals, 20 bytes
//!             client  "got size"
//!             server  names, each with "\0"
//!             client  "got list", then asks for each name
//! "*", of no  server  Totals
//! files       client  "got size"
//!             server  the byte 8, or nothing
//!             client  "got list", or nothing
//! ```

use super::{MAX_NAME, MessageError};

/// The name that asks for the names and sizes of all files.
pub const LIST_FILES: &[u8] = b"!#DIR??";
/// The name that asks for the names of all files, to get all of them.
pub const LIST_ALL: &[u8] = b"*";
/// The client's answer to [`Totals`].
pub const GOT_SIZE: &[u8; 8] = b"got size";
/// The client's answer to the names.
pub const GOT_LIST: &[u8; 8] = b"got list";
/// Most files of a list that is accepted.
pub const MAX_ENTRIES: u64 = 65_536;
/// Most bytes of all names of a list that is accepted.
pub const MAX_LISTING: u64 = 16 << 20;
/// Bytes of one number of [`Totals`].
pub const COUNT_LEN: usize = 10;
/// Most digits of a number that 64 bits hold.
const MAX_DIGITS: usize = 20;

/// Reads a text that a zero ends. Returns it with its length on the wire, or `None` if more bytes are needed.
///
/// # Errors
/// No zero comes within `most` bytes.
pub fn read_text<'a>(
    bytes: &'a [u8],
    field: &'static str,
    most: usize,
) -> Result<Option<(&'a [u8], usize)>, MessageError> {
    let seen = &bytes[..bytes.len().min(most + 1)];
    match seen.iter().position(|byte| *byte == 0) {
        Some(end) => Ok(Some((&seen[..end], end + 1))),
        None if seen.len() > most => Err(MessageError::TooLong { field, most }),
        None => Ok(None),
    }
}

/// Appends the number of files that begins the answer to [`LIST_FILES`].
pub fn encode_count(count: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(count.to_string().as_bytes());
    out.push(0);
}

/// Reads the number of files, with its length on the wire; `None` if more bytes are needed.
///
/// # Errors
/// It is no number, or more than [`MAX_ENTRIES`].
pub fn read_count(bytes: &[u8]) -> Result<Option<(u64, usize)>, MessageError> {
    const FIELD: &str = "the number of files";
    let Some((text, length)) = read_text(bytes, FIELD, MAX_DIGITS)? else { return Ok(None) };
    let count = decimal(text, FIELD)?;
    within(FIELD, count, MAX_ENTRIES, "65 536 or less")?;
    Ok(Some((count, length)))
}

/// One file of the answer to [`LIST_FILES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListingEntry<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its bytes.
    pub size: u64,
}

impl<'a> ListingEntry<'a> {
    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.name);
        out.push(0);
        encode_count(self.size, out);
    }

    /// Reads one from the front of `bytes`. Returns it with its length, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// A name beyond its limit, or a size that is no number.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, MessageError> {
        const FIELD: &str = "the size of a listed file";
        let Some((name, at)) = read_text(bytes, "the name of a listed file", MAX_NAME)? else { return Ok(None) };
        let Some((text, length)) = read_text(&bytes[at..], FIELD, MAX_DIGITS)? else { return Ok(None) };
        let size = decimal(text, FIELD)?;
        Ok(Some((Self { name, size }, at + length)))
    }
}

/// The beginning of the answer to [`LIST_ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Bytes of all names, the zero after each included.
    pub bytes: u64,
    /// Names.
    pub names: u64,
}

impl Totals {
    /// Bytes on the wire.
    pub const LEN: usize = 2 * COUNT_LEN;

    /// Appends its bytes. Numbers of more than nine digits do not fit, and no list that is accepted has them.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.bytes, self.names] {
            let mut field = [0; COUNT_LEN];
            let text = number.to_string();
            let digits = text.len().min(COUNT_LEN - 1);
            field[..digits].copy_from_slice(&text.as_bytes()[..digits]);
            out.extend_from_slice(&field);
        }
    }

    /// Reads them from the front of `bytes`; `None` if more bytes are needed.
    ///
    /// # Errors
    /// A field is no number, or beyond [`MAX_LISTING`] or [`MAX_ENTRIES`].
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, MessageError> {
        const BYTES: &str = "the length of all names";
        const NAMES: &str = "the number of names";
        let Some(fields) = bytes.first_chunk::<{ Self::LEN }>() else { return Ok(None) };
        let (one, two) = fields.split_at(COUNT_LEN);
        let number = |padded: &[u8], field| {
            let digits = padded.iter().position(|byte| *byte == 0).unwrap_or(padded.len());
            decimal(&padded[..digits], field)
        };
        let totals = Self { bytes: number(one, BYTES)?, names: number(two, NAMES)? };
        within(BYTES, totals.bytes, MAX_LISTING, "16 MiB or less")?;
        within(NAMES, totals.names, MAX_ENTRIES, "65 536 or less")?;
        Ok(Some(totals))
    }
}

fn decimal(text: &[u8], field: &'static str) -> Result<u64, MessageError> {
    // `parse` alone would take a sign.
    let digits = str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|text| text.parse().ok()).ok_or(MessageError::NoNumber(field))
}

fn within(field: &'static str, value: u64, most: u64, valid: &'static str) -> Result<(), MessageError> {
    if value <= most { Ok(()) } else { Err(MessageError::OutOfRange { field, value, valid }) }
}
