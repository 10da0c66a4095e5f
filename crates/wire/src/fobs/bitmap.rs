//! The packets of a range that have arrived, one bit each.

use farhaul_units::{SeqNo, SeqRange};

use crate::blast::RecordError;
use crate::field::clear_bits;

/// A bitmap whose length fits its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bitmap<'a> {
    bytes: &'a [u8],
}

impl<'a> Bitmap<'a> {
    /// Bytes for this many packets.
    pub(super) const fn bytes_for(packets: u32) -> usize {
        packets.div_ceil(8) as usize
    }

    /// Checks the bits behind the last packet. The caller has taken [`bytes_for`](Self::bytes_for) the packets.
    pub(super) fn new(bytes: &'a [u8], packets: u32) -> Result<Self, RecordError> {
        let used = packets % 8;
        match bytes.last() {
            Some(&last) if used > 0 && last >> used != 0 => {
                let field = "the bits behind the last packet of a bitmap";
                Err(RecordError::OutOfRange { field, value: (last >> used).into(), valid: "0" })
            }
            _ => Ok(Self { bytes }),
        }
    }

    /// The ranges of packets that have not arrived, where the bitmap belongs to `range`.
    pub fn missing(self, range: SeqRange) -> impl Iterator<Item = SeqRange> + use<'a> {
        let (bytes, packets) = (self.bytes, range.len());
        let arrived = move |at: u32| bytes.get((at / 8) as usize).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
        // Whole bytes are passed at once.
        let skip = move |at: u32, full: u8| at.is_multiple_of(8) && bytes.get((at / 8) as usize) == Some(&full);
        let next = move |mut at: u32, wanted: bool| {
            while at < packets && arrived(at) != wanted {
                at += if skip(at, if wanted { 0 } else { 0xFF }) { 8 } else { 1 };
            }
            at.min(packets)
        };
        let mut at = 0;
        core::iter::from_fn(move || {
            let from = next(at, false);
            if from == packets {
                return None;
            }
            at = next(from, true);
            Some(SeqRange::new(range.first.plus(from), range.first.plus(at - 1)))
        })
    }
}

/// Appends the bitmap of `range`. `missing` has the packets that have not arrived; parts outside of `range` are cut.
pub(super) fn encode(range: SeqRange, missing: impl Iterator<Item = SeqRange>, out: &mut Vec<u8>) {
    let (start, packets) = (out.len(), range.len());
    out.resize(start + Bitmap::bytes_for(packets), 0xFF);
    let bits = &mut out[start..];
    let offset = |packet: SeqNo| packet.distance_from(range.first).unsigned_abs();
    for missing in missing.filter_map(|missing| missing.clip(range)) {
        clear_bits(bits, offset(missing.first), offset(missing.last));
    }
    if !packets.is_multiple_of(8)
        && let Some(last) = bits.last_mut()
    {
        *last &= 0xFF >> (8 - packets % 8);
    }
}
