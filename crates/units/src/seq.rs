//! Serial numbers that wrap: packets (31 bits), messages (29 bits), acknowledgements (31 bits).
//!
//! Comparing the raw values is always a mistake (attacks B12, B13 of the design), so none of these types is `Ord`.
//! Order has named functions, based on the signed distance.

use core::fmt;

/// A packet sequence number, 0..=2^31 - 1, wrapping to 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqNo(u32);

impl SeqNo {
    /// The largest number. Zero follows it.
    pub const MAX: Self = Self(0x7FFF_FFFF);

    /// The low 31 bits of `value`. The top bit is never part of a sequence number.
    pub const fn new(value: u32) -> Self {
        Self(value & Self::MAX.0)
    }

    /// The number as encoded on the wire.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number `packets` later.
    #[must_use]
    pub const fn plus(self, packets: u32) -> Self {
        Self::new(self.0.wrapping_add(packets))
    }

    /// The number `packets` earlier.
    #[must_use]
    pub const fn minus(self, packets: u32) -> Self {
        Self::new(self.0.wrapping_sub(packets))
    }

    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// Signed distance from `base` to this number, in -2^30..2^30. Positive if this one is later.
    pub const fn distance_from(self, base: Self) -> i32 {
        (self.0.wrapping_sub(base.0) << 1) as i32 >> 1
    }

    /// Whether this number comes before `other` in the shorter direction.
    pub const fn is_before(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// Whether this number comes after `other` in the shorter direction.
    pub const fn is_after(self, other: Self) -> bool {
        self.distance_from(other) > 0
    }

    /// The later of two.
    #[must_use]
    pub const fn later(self, other: Self) -> Self {
        if self.is_before(other) { other } else { self }
    }

    /// The earlier of two.
    #[must_use]
    pub const fn earlier(self, other: Self) -> Self {
        if self.is_after(other) { other } else { self }
    }
}

impl fmt::Display for SeqNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Packets `first` to `last`, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SeqRange {
    /// The first packet.
    pub first: SeqNo,
    /// The last packet, inclusive.
    pub last: SeqNo,
}

impl SeqRange {
    /// `first` to `last`, both inclusive.
    pub const fn new(first: SeqNo, last: SeqNo) -> Self {
        Self { first, last }
    }

    /// Number of packets; zero if `last` comes before `first`.
    pub const fn len(self) -> u32 {
        let distance = self.last.distance_from(self.first);
        if distance < 0 { 0 } else { distance as u32 + 1 }
    }

    /// Whether `last` comes before `first`.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The packets of this range that lie in `other`; `None` if there are none.
    ///
    /// Distances are taken from `other.first` alone, because before and after are not transitive. A range on the far
    /// side of the number space would seem to begin after `other.first` and to end before `other.last`.
    pub fn clip(self, other: Self) -> Option<Self> {
        let start = i64::from(self.first.distance_from(other.first));
        let end = start + i64::from(self.len());
        let (from, to) = (start.max(0), end.min(i64::from(other.len())));
        (from < to).then(|| Self::new(other.first.plus(from as u32), other.first.plus((to - 1) as u32)))
    }

    /// Whether this packet is in the range.
    pub fn contains(self, seq: SeqNo) -> bool {
        Self::new(seq, seq).clip(self).is_some()
    }
}

/// A message number, 1..=2^29 - 2. libudt skips zero and the largest value when it wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MsgNo(u32);

impl MsgNo {
    /// The bits that a message number occupies in word 1 of a data packet.
    pub const MASK: u32 = 0x1FFF_FFFF;
    /// The number of the first message of a connection.
    pub const FIRST: Self = Self(1);

    /// The low 29 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & Self::MASK)
    }

    /// The number as encoded on the wire.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number of the next message. Wraps to one instead of reaching 2^29 - 1.
    #[must_use]
    pub const fn next(self) -> Self {
        if self.0 + 1 >= Self::MASK { Self::FIRST } else { Self(self.0 + 1) }
    }
}

/// The number of an acknowledgement, 0..=2^31 - 1, wrapping to 0. A connection starts at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AckNo(u32);

impl Default for AckNo {
    fn default() -> Self {
        Self::FIRST
    }
}

impl AckNo {
    /// The number of the first full acknowledgement.
    pub const FIRST: Self = Self(1);

    /// The low 31 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & SeqNo::MAX.0)
    }

    /// The number as encoded on the wire.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self::new(self.0.wrapping_add(1))
    }
}

#[cfg(test)]
mod tests;
