//! What is on its way, and how much more may be.

/// Segments sent and not acknowledged: `first..high`.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Flight {
    /// The first segment not acknowledged.
    pub(in super::super) first: u64,
    /// One past the last segment ever sent.
    pub(in super::super) high: u64,
    /// One past the last segment that there is to send; [`u64::MAX`] without an end.
    pub(in super::super) end: u64,
    /// How many the receiver has room for.
    pub(in super::super) max: u64,
}

impl Flight {
    /// How many segments it has.
    pub(in super::super) fn len(&self) -> u64 {
        self.high - self.first
    }

    /// The first segment that was never sent, if there is one and the receiver has room for it.
    pub(in super::super) fn new_segment(&self) -> Option<u64> {
        (self.high < self.end && self.high - self.first < self.max).then_some(self.high)
    }
}

/// What an acknowledgement means for recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Outcome {
    /// Nothing for anybody else.
    Nothing,
    /// The window may grow: new data was acknowledged outside of a recovery.
    Progress,
    /// A loss is found, and the window is to be cut.
    Loss {
        /// Segments in flight that limited transmit has added.
        limited: u64,
    },
    /// Part of what was in flight when the recovery began has been acknowledged.
    Partial {
        /// Whether it is the first of this recovery.
        first: bool,
    },
    /// The recovery is over.
    Recovered,
}
