//! Segments in flight and their limits.

/// Segments sent and not acknowledged: `first..high`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// The first unacknowledged segment.
    pub(super) first: u64,
    /// One past the last segment ever sent.
    pub(super) high: u64,
    /// One past the last segment of the transfer; [`u64::MAX`] for an endless one.
    pub(super) end: u64,
    /// The receiver's window, segments.
    pub(super) max: u64,
}

impl Flight {
    /// Number of segments in flight.
    pub(super) fn len(&self) -> u64 {
        self.high - self.first
    }

    /// The first segment never sent, if the transfer has one and the receiver's window permits it.
    pub(super) fn new_segment(&self) -> Option<u64> {
        (self.high < self.end && self.high - self.first < self.max).then_some(self.high)
    }
}

/// The effect of an acknowledgement on window and timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckEffect {
    /// No effect.
    Nothing,
    /// New data was acknowledged outside of a recovery, so the window may grow.
    Progress,
    /// A loss was detected, so the window must shrink.
    Loss {
        /// Segments in flight that limited transmit added.
        limited: u64,
    },
    /// A partial acknowledgement: some of the data in flight at the start of the recovery.
    Partial {
        /// Whether it is the first of this recovery.
        first: bool,
    },
    /// The recovery has ended.
    Recovered,
}
