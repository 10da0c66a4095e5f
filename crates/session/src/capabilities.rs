//! Optional features of both sides.

/// Optional features that a side offers. A session uses those that both sides offer. Unknown bits are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// No optional feature.
    pub const NONE: Self = Self(0);
    /// Owners in answers of the file service.
    pub const OWNERS: Self = Self(1);
    /// Times of change there.
    pub const CHANGE_TIMES: Self = Self(8);
    /// As many puts at a time as [`MAX_PUTS`](crate::MAX_PUTS) says.
    pub const MANY_PUTS: Self = Self(16);
    /// In the answer of a sender: it cannot give way to other traffic, or cap its rate, as it was asked.
    pub(crate) const NO_BACKGROUND: Self = Self(2);
    pub(crate) const NO_RATE: Self = Self(4);

    /// These and `other`.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are among these.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
