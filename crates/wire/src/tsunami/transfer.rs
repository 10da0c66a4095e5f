//! The opening of the transfer of one file: its name, the client's parameters, the server's sizes.

use super::{HEADER_LEN, MessageError};

/// Most bytes of a name, its end not counted.
pub const MAX_NAME: usize = 1023;
/// Most bytes of a block: the largest payload of UDP over IPv4 without the header. The original permits 65 530, which
/// no datagram carries.
#[expect(clippy::cast_possible_truncation, reason = "the header has six bytes")]
pub const MAX_BLOCK: u32 = 65_507 - HEADER_LEN as u32;

/// Appends a name and its end.
pub fn encode_name(name: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.push(b'\n');
}

/// Reads a name from the front of `bytes`. Returns it with its length on the wire, or `None` if more bytes are needed.
/// A line feed ends it, or a zero.
///
/// # Errors
/// No end comes within [`MAX_NAME`] bytes.
pub fn read_name(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, MessageError> {
    let seen = &bytes[..bytes.len().min(MAX_NAME + 1)];
    match seen.iter().position(|byte| matches!(byte, b'\n' | 0)) {
        Some(end) => Ok(Some((&seen[..end], end + 1))),
        None if seen.len() > MAX_NAME => Err(MessageError::TooLong { field: "the file name", most: MAX_NAME }),
        None => Ok(None),
    }
}

/// A factor as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Above the line.
    pub numerator: u16,
    /// Below the line, never zero.
    pub denominator: u16,
}

impl Ratio {
    /// Its value.
    pub fn value(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }
}

/// How the client wants a file sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Bytes of a block.
    pub block_size: u32,
    /// Bits per second, blocks alone.
    pub target_rate: u32,
    /// The error rate above which the server slows down, in thousandths of a percent.
    pub error_threshold: u32,
    /// The delay between datagrams grows by this above the threshold.
    pub slower: Ratio,
    /// And shrinks by this otherwise.
    pub faster: Ratio,
}

impl Parameters {
    /// Bytes on the wire.
    pub const LEN: usize = 20;

    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for word in [self.block_size, self.target_rate, self.error_threshold] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        for ratio in [self.slower, self.faster] {
            out.extend_from_slice(&ratio.numerator.to_be_bytes());
            out.extend_from_slice(&ratio.denominator.to_be_bytes());
        }
    }

    /// Reads them from the front of `bytes`; `None` if more bytes are needed.
    ///
    /// # Errors
    /// A value that no server can obey. Blocks have 1 to [`MAX_BLOCK`] bytes. The rate and the denominators are not
    /// zero. The threshold is less than 100 %.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, MessageError> {
        let Some(bytes) = bytes.first_chunk::<{ Self::LEN }>() else { return Ok(None) };
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let (block_size, target_rate, error_threshold) = (word(0), word(4), word(8));
        let slower = Ratio { numerator: half(12), denominator: half(14) };
        let faster = Ratio { numerator: half(16), denominator: half(18) };
        check_block(block_size)?;
        let refuse = |field, value: u32, valid| MessageError::OutOfRange { field, value: u64::from(value), valid };
        if target_rate == 0 {
            return Err(refuse("the target rate", target_rate, "1 bit/s or more"));
        }
        if error_threshold >= 100_000 {
            return Err(refuse("the error threshold", error_threshold, "less than 100 000"));
        }
        if slower.denominator == 0 || faster.denominator == 0 {
            return Err(refuse("the denominator of a speed change", 0, "1 or more"));
        }
        Ok(Some(Self { block_size, target_rate, error_threshold, slower, faster }))
    }
}

/// The size of a file, and its division into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of the file.
    pub file: u64,
    /// Bytes of a block: those that the client asked for.
    pub block: u32,
    /// Blocks of the file.
    pub count: u32,
    /// Seconds since 1970 at the server.
    pub time: u32,
}

impl Sizes {
    /// Bytes on the wire.
    pub const LEN: usize = 20;

    /// A file of `file` bytes in blocks of `block` bytes; `None` for more than 2^32 - 1 blocks (attack C3), and
    /// for blocks without bytes.
    pub fn new(file: u64, block: u32, time: u32) -> Option<Self> {
        let count = u32::try_from(file.checked_add(u64::from(block))?.checked_sub(1)?.checked_div(u64::from(block))?);
        Some(Self { file, block, count: count.ok()?, time })
    }

    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.file.to_be_bytes());
        for word in [self.block, self.count, self.time] {
            out.extend_from_slice(&word.to_be_bytes());
        }
    }

    /// Reads them from the front of `bytes`; `None` if more bytes are needed.
    ///
    /// # Errors
    /// The number of blocks does not fit the sizes, or the size of a block is none.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, MessageError> {
        let Some(bytes) = bytes.first_chunk::<{ Self::LEN }>() else { return Ok(None) };
        let (file, words) = bytes.split_at(8);
        let file = u64::from_be_bytes(file.try_into().unwrap_or([0; 8]));
        let word = |at: usize| u32::from_be_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]]);
        let (block, count, time) = (word(0), word(4), word(8));
        check_block(block)?;
        Self::new(file, block, time).filter(|sizes| sizes.count == count).map(Some).ok_or(MessageError::OutOfRange {
            field: "the number of blocks",
            value: u64::from(count),
            valid: "the size of the file divided by that of a block, rounded up",
        })
    }

    /// Where a block begins in the file, and how many of its bytes belong to the file. `None` for a number that no
    /// block has. The first block has number 1.
    pub fn place(&self, block: u32) -> Option<(u64, usize)> {
        if block == 0 || block > self.count {
            return None;
        }
        let offset = u64::from(block - 1) * u64::from(self.block);
        let length = usize::try_from((self.file - offset).min(u64::from(self.block))).ok()?;
        Some((offset, length))
    }
}

fn check_block(block: u32) -> Result<(), MessageError> {
    if (1..=MAX_BLOCK).contains(&block) {
        return Ok(());
    }
    let value = u64::from(block);
    Err(MessageError::OutOfRange { field: "the block size", value, valid: "1 to 65 501 bytes" })
}
