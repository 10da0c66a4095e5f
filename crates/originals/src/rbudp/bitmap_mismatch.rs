//! A bitmap of another length than this side's packets make: the receiver was probably started with another payload size.
//!
//! Nothing in the dialogue names the size. The length of a bitmap tells the number of packets that the receiver expects,
//! up to seven, and so a range of payload sizes.

use farhaul_units::{Duration, Instant};
use farhaul_wire::rbudp::bitmap_len;

use super::Fault;
use farhaul_protocols::rbudp::sender::Bitmap;

/// Time to wait for the rest of the bitmap, so that its length is known.
const COLLECTION: Duration = Duration::from_secs(1);

/// A bitmap that does not fit, of which more may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BitmapMismatch {
    /// Payload bytes of this side's packets.
    payload: u16,
    /// Bytes of the blast.
    length: u64,
    /// Packets that the receiver expects at least.
    at_least: u64,
    /// Bytes of its bitmap so far.
    bytes: usize,
    /// The fault if the payload sizes may be the same.
    otherwise: Fault,
    pub(super) until: Instant,
}

impl BitmapMismatch {
    /// `more` bytes of the receiver follow those of `bitmap` that were read.
    pub(super) fn longer(now: Instant, payload: u16, bitmap: &Bitmap, more: usize, otherwise: Fault) -> Self {
        let at_least = u64::from(bitmap.packets) + 1;
        let bytes = bitmap.read + more;
        Self { payload, length: bitmap.length, at_least, bytes, otherwise, until: now + COLLECTION }
    }

    /// The receiver said no more than a part of `bitmap`, and nothing at all if none was read.
    pub(super) fn shorter(now: Instant, payload: u16, bitmap: &Bitmap, otherwise: Fault) -> Self {
        let is_part = bitmap.read > 0 && bitmap.read < bitmap_len(bitmap.packets);
        let bytes = if is_part { bitmap.read } else { 0 };
        Self { payload, length: bitmap.length, at_least: 1, bytes, otherwise, until: now }
    }

    pub(super) const fn add(&mut self, more: usize) {
        self.bytes = self.bytes.saturating_add(more);
    }

    /// The range of payload sizes that make a bitmap of this length.
    fn payloads(&self) -> Option<(u64, u64)> {
        let least_packets = 8 * (self.bytes as u64).checked_sub(2)?;
        let most_packets = (least_packets + 7).max(self.at_least);
        let least_packets = least_packets.max(self.at_least);
        let least = self.length.div_ceil(most_packets);
        // The largest size of which more than one packet less is needed.
        let most = if least_packets > 1 { self.length.div_ceil(least_packets - 1) - 1 } else { self.length };
        (least <= most).then_some((least, most))
    }

    pub(super) fn fault(&self) -> Fault {
        match self.payloads() {
            Some((least, most)) if !(least..=most).contains(&self.payload.into()) => {
                Fault::PayloadsDiffer { own: self.payload, least, most }
            }
            _ => self.otherwise,
        }
    }
}
