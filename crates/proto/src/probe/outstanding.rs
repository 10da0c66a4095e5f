//! Datagrams whose acknowledgement has not come, so that a repeated one does not count.

use std::collections::VecDeque;

/// Datagrams that are remembered: 12 s at 1 Gbit/s and 1500 bytes. An acknowledgement that comes later does not count.
const MOST: usize = 1 << 20;

/// The latest datagrams of a stream, by consecutive numbers.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// The number of the oldest.
    first: u64,
    /// Whether each is acknowledged.
    acknowledged: VecDeque<bool>,
}

impl Outstanding {
    /// The next number leaves.
    pub(super) fn send(&mut self) {
        if self.acknowledged.len() == MOST {
            self.acknowledged.pop_front();
            self.first += 1;
        }
        self.acknowledged.push_back(false);
    }

    /// Takes an acknowledgement. Returns whether it is the first of a number that was sent.
    pub(super) fn acknowledge(&mut self, number: u64) -> bool {
        let place = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        let Some(acknowledged) = place.and_then(|place| self.acknowledged.get_mut(place)) else { return false };
        if std::mem::replace(acknowledged, true) {
            return false;
        }
        while self.acknowledged.front() == Some(&true) {
            self.acknowledged.pop_front();
            self.first += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_acknowledged_once_in_any_order() {
        let mut outstanding = Outstanding::default();
        assert!(!outstanding.acknowledge(0), "not sent yet");
        (0..4).for_each(|_| outstanding.send());
        let numbers = [2, 0, 2, 0, 1, 7, u64::MAX, 3, 3];
        let first = numbers.map(|number| outstanding.acknowledge(number));
        assert_eq!(first, [true, true, false, false, true, false, false, true, false]);
        assert!(outstanding.acknowledged.is_empty());
    }

    #[test]
    fn memory_is_bounded_when_nothing_is_acknowledged() {
        let mut outstanding = Outstanding::default();
        (0..MOST + 3).for_each(|_| outstanding.send());
        assert_eq!(outstanding.acknowledged.len(), MOST);
        assert!(!outstanding.acknowledge(2) && outstanding.acknowledge(3));
    }
}
