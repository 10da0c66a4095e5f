//! The receiver's tally of a blast: one bit per packet, after a byte that says whether all have arrived.
//!
//! The reader takes the bytes in any division and keeps none of them. So its memory does not depend on the blast.

use core::ops::Range;

use crate::field::clear_bits;

/// The first byte: packets are missing, or all have arrived.
const INCOMPLETE: u8 = 0;
const COMPLETE: u8 = 1;

/// The bytes of the bitmap of a blast with this many packets. One byte of ones ends it if the number divides by eight.
pub const fn bitmap_len(packets: u32) -> usize {
    packets as usize / 8 + 2
}

/// Appends the bitmap of a blast. `missing` gives the ranges of missing packets.
pub fn encode_bitmap(packets: u32, missing: impl Iterator<Item = Range<u32>>, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bitmap_len(packets), 0xFF);
    let (flag, bits) = out[start..].split_at_mut(1);
    flag[0] = COMPLETE;
    for range in missing {
        let range = range.start..range.end.min(packets);
        if range.is_empty() {
            continue;
        }
        flag[0] = INCOMPLETE;
        clear_bits(bits, range.start, range.end - 1);
    }
}

/// Reads the bitmap of one blast.
#[derive(Clone, Debug)]
pub struct BitmapReader {
    packets: u32,
    /// Bytes read so far.
    at: usize,
    complete: bool,
    missing: u32,
}

impl BitmapReader {
    /// Expects the bitmap of a blast with this many packets.
    pub const fn new(packets: u32) -> Self {
        Self { packets, at: 0, complete: false, missing: 0 }
    }

    /// Takes bytes up to the end of the bitmap and returns their number. Reports the ranges of missing packets in
    /// ascending order.
    ///
    /// # Errors
    /// The first byte is no flag, or it contradicts the bits. A contradiction shows in the last byte.
    pub fn read(&mut self, bytes: &[u8], mut missing: impl FnMut(Range<u32>)) -> Result<usize, BitmapError> {
        let take = bytes.len().min(bitmap_len(self.packets) - self.at);
        let mut open: Option<Range<u32>> = None;
        for &byte in &bytes[..take] {
            if self.at == 0 {
                self.complete = flag(byte)?;
            } else if byte != 0xFF {
                self.collect(byte, &mut open, &mut missing);
            }
            self.at += 1;
        }
        if let Some(range) = open {
            missing(range);
        }
        if self.is_done() && self.complete != (self.missing == 0) {
            return Err(BitmapError::Contradiction { missing: self.missing });
        }
        Ok(take)
    }

    /// Collects the zeros of one byte. Adjacent ones become one range.
    fn collect(&mut self, byte: u8, open: &mut Option<Range<u32>>, missing: &mut impl FnMut(Range<u32>)) {
        let first = u32::try_from((self.at - 1) * 8).unwrap_or(u32::MAX);
        for bit in (0..8).filter(|bit| byte >> bit & 1 == 0) {
            let packet = first.saturating_add(bit);
            if packet >= self.packets {
                return;
            }
            self.missing += 1;
            match open {
                Some(range) if range.end == packet => range.end += 1,
                _ => {
                    if let Some(range) = open.replace(packet..packet + 1) {
                        missing(range);
                    }
                }
            }
        }
    }

    /// Whether the whole bitmap was read.
    pub const fn is_done(&self) -> bool {
        self.at == bitmap_len(self.packets)
    }

    /// Bytes read so far.
    pub const fn bytes_read(&self) -> usize {
        self.at
    }

    /// Missing packets so far.
    pub const fn missing(&self) -> u32 {
        self.missing
    }
}

const fn flag(byte: u8) -> Result<bool, BitmapError> {
    match byte {
        INCOMPLETE => Ok(false),
        COMPLETE => Ok(true),
        _ => Err(BitmapError::Flag(byte)),
    }
}

/// Why a bitmap was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BitmapError {
    /// The first byte is neither 0 nor 1. The bitmap before this one may have had another length.
    #[error("a bitmap begins with 0 or 1, and not with {0}")]
    Flag(u8),
    /// The first byte says that all packets arrived although some are missing, or the reverse.
    #[error("the first byte of a bitmap contradicts its bits, of which {missing} are zero")]
    Contradiction {
        /// Packets missing by the bits.
        missing: u32,
    },
}
