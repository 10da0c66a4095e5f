//! Packets that the peer reported lost and that this side must retransmit.
//!
//! It is a bitmap over the flight window. Its memory is fixed, whatever a peer reports (attack B5). Each packet is
//! retransmitted at most once per RTT, however often it is reported (attack B6).

use delegate::delegate;
use farhaul_units::{SeqNo, SeqRange};

use crate::seq_set::SeqSet;

/// The sender's loss list.
#[derive(Debug)]
pub struct SendList {
    /// Reported and not retransmitted yet.
    lost: SeqSet,
    /// Retransmitted at least once. Another report within an RTT is an echo of the first.
    resent: SeqSet,
    /// Packets in both. It is kept, because each train asks for it and the sets are as wide as the flight.
    lost_again: u32,
}

impl SendList {
    /// Nothing is lost. The first packet of the connection is `first`.
    pub const fn new(first: SeqNo) -> Self {
        Self { lost: SeqSet::new(first), resent: SeqSet::new(first), lost_again: 0 }
    }

    delegate! {
        to self.lost {
            /// The first packet to retransmit.
            pub fn first(&mut self) -> Option<SeqNo>;
            /// The next packet in `from..end` to retransmit.
            #[call(next_present)]
            pub fn next_after(&self, from: SeqNo, end: SeqNo) -> Option<SeqNo>;
            /// Whether this packet is listed.
            pub fn contains(&self, seq: SeqNo) -> bool;
        }
        to self.resent {
            /// Whether this packet was retransmitted before.
            #[call(contains)]
            pub(crate) fn was_resent(&self, seq: SeqNo) -> bool;
            /// The next packet in `from..end` that was retransmitted before.
            #[call(next_present)]
            pub(crate) fn next_resent(&self, from: SeqNo, end: SeqNo) -> Option<SeqNo>;
        }
    }

    /// Lists a report and returns how many of its packets were not listed. The caller has clipped it to the packets in
    /// flight.
    pub fn report(&mut self, range: SeqRange) -> u32 {
        self.change(range, |lost| lost.insert_range(range))
    }

    /// Removes packets from the list without sending them.
    pub fn forget(&mut self, range: SeqRange) {
        self.change(range, |lost| lost.remove_range(range));
    }

    /// Changes packets of `range` only, and the count with them.
    fn change<R>(&mut self, range: SeqRange, change: impl FnOnce(&mut SeqSet) -> R) -> R {
        self.lost_again -= self.lost.common(&self.resent, range);
        let result = change(&mut self.lost);
        self.lost_again += self.lost.common(&self.resent, range);
        result
    }

    /// How many packets from `seq` on are listed without a break, at most `max`.
    pub fn run_length(&self, seq: SeqNo, max: u32) -> u32 {
        let end = self.lost.next_absent(seq, seq.plus(max));
        end.distance_from(seq).unsigned_abs()
    }

    /// `packets` packets from `first` on were retransmitted.
    pub fn served(&mut self, first: SeqNo, packets: u32) {
        let range = SeqRange::new(first, first.plus(packets - 1));
        self.forget(range);
        self.resent.insert_range(range);
    }

    /// Everything before `seq` has arrived.
    pub fn acknowledge(&mut self, seq: SeqNo) {
        let before = SeqRange::new(self.lost.base(), seq.minus(1));
        self.change(before, |lost| lost.advance(seq));
        self.resent.advance(seq);
    }

    /// Packets that wait for their first retransmission.
    pub(crate) fn unrepaired(&self) -> u32 {
        self.lost.len() - self.lost_again
    }

    /// Whether nothing is lost.
    pub const fn is_empty(&self) -> bool {
        self.lost.is_empty()
    }

    /// Whether no packet in flight is or was lost.
    pub(crate) const fn is_clean(&self) -> bool {
        self.lost.is_empty() && self.resent.is_empty()
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.lost.memory() + self.resent.memory()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn range(first: u32, last: u32) -> SeqRange {
        SeqRange::new(SeqNo::new(first), SeqNo::new(last))
    }

    #[test]
    fn losses_are_served_in_order_of_sequence_and_counted_once() {
        let mut list = SendList::new(SeqNo::new(0));
        assert_eq!(list.report(range(7, 9)), 3);
        assert_eq!(list.report(range(3, 8)), 4);
        assert_eq!(list.first(), Some(SeqNo::new(3)));
        assert_eq!(list.run_length(SeqNo::new(3), 5), 5);
        list.served(SeqNo::new(3), 5);
        assert_eq!((list.first(), list.lost.len()), (Some(SeqNo::new(8)), 2));
        assert!(list.was_resent(SeqNo::new(4)) && !list.was_resent(SeqNo::new(8)));
    }

    #[test]
    fn packets_of_a_repeated_report_may_be_in_flight() {
        let mut list = SendList::new(SeqNo::new(60));
        list.report(range(60, 69));
        assert_eq!(list.unrepaired(), 10);
        list.served(SeqNo::new(60), 5);
        list.report(range(60, 62));
        assert_eq!((list.unrepaired(), list.lost.len()), (5, 8));
        list.acknowledge(SeqNo::new(62));
        assert_eq!((list.unrepaired(), list.lost.len()), (5, 6));
    }

    #[test]
    fn an_acknowledgement_takes_packets_off_the_list() {
        let mut list = SendList::new(SeqNo::new(0));
        list.report(range(0, 100));
        list.acknowledge(SeqNo::new(100));
        assert_eq!((list.lost.len(), list.first()), (1, Some(SeqNo::new(100))));
    }

    proptest! {
        #[test]
        fn the_count_of_packets_without_repair_follows_every_change(
            steps in proptest::collection::vec((0u8..4, 0u32..300, 1u32..90), 1..60),
        ) {
            let mut list = SendList::new(SeqNo::new(0));
            let (mut lost, mut resent, mut base) = (BTreeSet::new(), BTreeSet::new(), 0);
            for (kind, from, count) in steps {
                let (from, to) = (base + from, base + from + count);
                let packets = range(from, to - 1);
                match kind {
                    0 => {
                        list.report(packets);
                        lost.extend(from..to);
                    }
                    1 => {
                        list.served(packets.first, count);
                        lost.retain(|seq| !(from..to).contains(seq));
                        resent.extend(from..to);
                    }
                    2 => {
                        list.forget(packets);
                        lost.retain(|seq| !(from..to).contains(seq));
                    }
                    _ => {
                        base += count;
                        list.acknowledge(SeqNo::new(base));
                        lost = lost.split_off(&base);
                        resent = resent.split_off(&base);
                    }
                }
                prop_assert_eq!(list.unrepaired() as usize, lost.difference(&resent).count());
            }
        }
    }
}
