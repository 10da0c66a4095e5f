//! The close packets of a side that closed or aborted.

use farhaul_units::{Duration, Instant};

/// Packets sent, one RTT apart. libudt sends one shutdown, and if that is lost the peer waits 53 s.
const REPEATS: u32 = 3;
/// Shortest time between two of them.
const MIN_SPACING: Duration = Duration::from_millis(20);
/// Longest time between two of them, so that a close does not take half a minute.
const MAX_SPACING: Duration = Duration::from_secs(1);

/// Longest time from the close of a connection to its last close packet, on any path. A driver that
/// [released](crate::Streams::release) its last connection needs to live at most this long.
pub const LONGEST_CLOSE: Duration = MAX_SPACING.saturating_mul(REPEATS - 1);

/// How this side closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseKind {
    /// This side closed, and the peer has acknowledged all data: sends a shutdown.
    Closed,
    /// This side aborted. Never a shutdown, which the peer would take for the end of the stream.
    Aborted,
}

/// The packets that tell the peer how this side closes.
#[derive(Clone, Copy, Debug, Default)]
pub enum Closing {
    /// This side does not close.
    #[default]
    None,
    /// This side closes, and sends packets that say so.
    Sending {
        /// How it closes.
        kind: CloseKind,
        /// Packets that follow.
        left: u32,
        /// When the next one does.
        next: Instant,
    },
    /// The last packet was sent.
    Sent,
}

impl Closing {
    /// Begins to close.
    pub fn begin(&mut self, now: Instant, kind: CloseKind) {
        *self = Self::Sending { kind, left: REPEATS, next: now };
    }

    /// The packet to send now.
    pub fn poll(&mut self, now: Instant, round_trip: Duration) -> Option<CloseKind> {
        match *self {
            Self::Sending { kind, left, next } if next <= now => {
                let next = now + round_trip.clamp(MIN_SPACING, MAX_SPACING);
                *self = if left == 1 { Self::Sent } else { Self::Sending { kind, left: left - 1, next } };
                Some(kind)
            }
            _ => None,
        }
    }

    /// Whether this side closes, or has closed.
    pub const fn has_begun(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether the last packet was sent. No time passes after it.
    pub const fn is_sent(&self) -> bool {
        matches!(self, Self::Sent)
    }

    /// When the next packet is sent.
    pub const fn deadline(&self) -> Option<Instant> {
        match *self {
            Self::Sending { next, .. } => Some(next),
            Self::None | Self::Sent => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_close_packet_on_any_path_leaves_within_the_longest_close() {
        for round_trip in [0, 1, 250, 999, 1_000, 60_000].map(Duration::from_millis) {
            let (mut closing, mut now) = (Closing::default(), Instant::ZERO);
            closing.begin(now, CloseKind::Closed);
            while let Some(next) = closing.deadline() {
                now = next;
                assert_eq!(closing.poll(now, round_trip), Some(CloseKind::Closed));
            }
            assert!(closing.is_sent() && now - Instant::ZERO <= LONGEST_CLOSE, "{round_trip:?}");
        }
    }

    #[test]
    fn a_close_is_sent_three_times_a_round_trip_apart() {
        for kind in [CloseKind::Closed, CloseKind::Aborted] {
            let mut closing = Closing::default();
            assert!(!closing.has_begun());
            closing.begin(Instant::ZERO, kind);
            let at = |millis| Instant::ZERO + Duration::from_millis(millis);
            let sent: Vec<(u64, CloseKind)> = (0..500)
                .filter_map(|millis| Some((millis, closing.poll(at(millis), Duration::from_millis(100))?)))
                .collect();
            assert_eq!(sent, [0, 100, 200].map(|millis| (millis, kind)));
            assert!(closing.is_sent() && closing.has_begun());
        }
    }
}
