//! The payload of the peer's full packets. A shorter one ends a burst and is acknowledged at once.

/// Packets of one length in a row after which that is the size of full ones. A path that has become narrow makes them shorter.
const IN_A_ROW: u32 = 16;

/// The size of full packets, which a peer that probes may change.
#[derive(Debug)]
pub(super) struct FullSize {
    size: usize,
    /// Whether it may change.
    varies: bool,
    /// The latest length, and how many packets in a row have it.
    last: (usize, u32),
}

impl FullSize {
    pub(super) const fn new(size: usize, varies: bool) -> Self {
        Self { size, varies, last: (0, 0) }
    }

    /// The payload of a full packet.
    pub(super) const fn get(&self) -> usize {
        self.size
    }

    /// Whether a packet with this payload is not a full one.
    pub(super) fn is_short(&mut self, length: usize) -> bool {
        if length == self.size {
            self.last.1 = 0;
            return false;
        }
        if !self.varies {
            return true;
        }
        let in_a_row = if self.last.0 == length { self.last.1 + 1 } else { 1 };
        self.last = (length, in_a_row);
        if length > self.size || in_a_row >= IN_A_ROW {
            self.size = length;
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_size_never_changes() {
        let mut full = FullSize::new(1_456, false);
        assert!((0..100).all(|_| full.is_short(1_200)));
        assert!(!full.is_short(1_456));
    }

    #[test]
    fn a_larger_packet_is_full_at_once_and_a_smaller_one_after_a_while() {
        let mut full = FullSize::new(1_456, true);
        assert!(!full.is_short(8_956) && full.is_short(1_456));
        let short = (0..100).filter(|_| full.is_short(1_236)).count();
        assert_eq!(short, 15);
        assert!(full.is_short(700) && !full.is_short(1_236));
    }
}
