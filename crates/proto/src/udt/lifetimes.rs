//! Expiry of messages (message mode with a time to live).

use std::collections::VecDeque;

use farhaul_units::{Instant, MsgNo, SeqNo, SeqRange};
use farhaul_wire::udt4::DropRequest;

/// Messages with a time to live in the send buffer, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Lifetimes {
    messages: VecDeque<Entry>,
    /// Packets of expired messages among them.
    given_up: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    range: SeqRange,
    message: MsgNo,
    expires: Instant,
    dropped: bool,
}

impl Lifetimes {
    /// Adds a message that expires at `expires`.
    pub(crate) fn add(&mut self, range: SeqRange, message: MsgNo, expires: Instant) {
        self.messages.push_back(Entry { range, message, expires, dropped: false });
    }

    /// Removes messages whose packets are all before `seq`.
    pub(crate) fn acknowledge(&mut self, seq: SeqNo) {
        while let Some(&entry) = self.messages.front().filter(|entry| entry.range.last.is_before(seq)) {
            self.given_up -= if entry.dropped { entry.range.len() } else { 0 };
            self.messages.pop_front();
        }
    }

    /// If the message of `seq` has expired: the drop request, and whether it expired just now.
    pub(crate) fn expired(&mut self, seq: SeqNo, now: Instant) -> Option<(DropRequest, bool)> {
        if self.messages.is_empty() {
            return None;
        }
        let at = self.messages.partition_point(|entry| entry.range.last.is_before(seq));
        let entry = self.messages.get_mut(at).filter(|entry| !entry.range.first.is_after(seq))?;
        if now < entry.expires {
            return None;
        }
        let news = !std::mem::replace(&mut entry.dropped, true);
        self.given_up += if news { entry.range.len() } else { 0 };
        // The exact range. libudt's own requests reach one packet too far.
        Some((DropRequest { message: entry.message, range: entry.range }, news))
    }

    /// Packets of expired messages that the receiver has not confirmed to skip.
    pub(crate) const fn given_up(&self) -> u32 {
        self.given_up
    }

    /// The packets of `range` that belong to expired messages, oldest first.
    pub(crate) fn dropped_in(&self, range: SeqRange) -> impl Iterator<Item = SeqRange> + '_ {
        let at = self.messages.partition_point(|entry| entry.range.last.is_before(range.first));
        let within = self.messages.range(at..).take_while(move |entry| !entry.range.first.is_after(range.last));
        within.filter(|entry| entry.dropped).filter_map(move |entry| entry.range.clip(range))
    }

    /// The packets of expired messages that the receiver has not confirmed to skip, oldest first.
    pub(crate) fn dropped(&self) -> impl Iterator<Item = SeqRange> + '_ {
        self.messages.iter().filter(|entry| entry.dropped).map(|entry| entry.range)
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::Duration;

    use super::*;

    #[test]
    fn a_message_expires_as_a_whole_and_only_its_own_packets() {
        let range = |a, b| SeqRange::new(SeqNo::new(a), SeqNo::new(b));
        let (soon, late) = (Instant::ZERO + Duration::from_millis(10), Instant::ZERO + Duration::from_millis(20));
        let mut lifetimes = Lifetimes::default();
        lifetimes.add(range(5, 7), MsgNo::new(1), soon);
        lifetimes.add(range(9, 9), MsgNo::new(3), late);
        assert_eq!(lifetimes.expired(SeqNo::new(6), Instant::ZERO), None);
        let (request, news) = lifetimes.expired(SeqNo::new(6), soon).unwrap();
        assert_eq!((request.range, request.message, news), (range(5, 7), MsgNo::new(1), true));
        assert!(!lifetimes.expired(SeqNo::new(7), late).unwrap().1);
        let dropped = |a, b| lifetimes.dropped_in(range(a, b)).collect::<Vec<_>>();
        assert_eq!((dropped(0, 6), dropped(6, 20)), (vec![range(5, 6)], vec![range(6, 7)]));
        assert_eq!((dropped(0, 4), dropped(8, 9)), (vec![], vec![]));
        assert_eq!(lifetimes.given_up(), 3);
        assert_eq!(lifetimes.expired(SeqNo::new(8), late), None);
        lifetimes.acknowledge(SeqNo::new(8));
        assert_eq!(lifetimes.given_up(), 0, "the receiver skips them");
        assert!(lifetimes.expired(SeqNo::new(9), late).is_some());
    }
}
