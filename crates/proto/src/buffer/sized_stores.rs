//! Packet stores of different packet sizes, one after the other. Within a store packets are uniform, so that trains are.

use std::collections::VecDeque;

use bytes::Bytes;
use delegate::delegate;
use farhaul_units::{SeqNo, SeqRange};

use super::packet_store::PacketStore;

/// Most stores that still hold packets of earlier sizes. Beyond them the size stays until one is empty.
const MOST_OLDER: usize = 8;

/// Packets from the oldest not released to the newest written, whose size may change.
#[derive(Debug)]
pub(crate) struct SizedStores<const HEADER: usize> {
    /// Packets of earlier sizes, oldest first. Usually none.
    older: VecDeque<PacketStore<HEADER>>,
    current: PacketStore<HEADER>,
    margin: usize,
    /// The size of packets that are written from now on.
    wanted: usize,
}

impl<const HEADER: usize> SizedStores<HEADER> {
    /// An empty store whose first packet will be `first`, for packets with `payload_size` bytes after the header.
    pub(super) fn new(first: SeqNo, payload_size: usize) -> Self {
        Self { older: VecDeque::new(), current: PacketStore::new(first, payload_size), margin: 0, wanted: payload_size }
    }

    /// Packets become `margin` bytes longer before they leave. It must be empty.
    pub(crate) fn set_margin(&mut self, margin: usize) {
        self.margin = margin;
        self.current.set_margin(margin);
    }

    /// Stores no payload, but sends as many zeros. It must be empty.
    pub(crate) fn leave_blank(&mut self) {
        self.current.leave_blank();
    }

    /// Whether no payload is stored.
    pub(super) const fn is_blank(&self) -> bool {
        self.current.is_blank()
    }

    /// Packets that are written from now on have this size.
    pub(crate) fn set_payload_size(&mut self, size: usize) {
        self.wanted = size;
        self.change_size();
    }

    fn change_size(&mut self) {
        if self.wanted == self.current.payload_size() || self.older.len() >= MOST_OLDER {
            return;
        }
        let mut next = PacketStore::new(self.current.end(), self.wanted);
        next.set_margin(self.margin);
        if self.current.is_blank() {
            next.leave_blank();
        }
        let before = std::mem::replace(&mut self.current, next);
        if before.packets() > 0 {
            self.older.push_back(before);
        }
    }

    // ---- facts ----

    /// Oldest packet held. Equals [`end`](Self::end) if empty.
    pub(super) fn first(&self) -> SeqNo {
        self.older.front().unwrap_or(&self.current).first()
    }

    delegate! {
        to self.current {
            /// The sequence number of the next written packet.
            pub(super) fn end(&self) -> SeqNo;
            /// Payload bytes of a full packet that is written now.
            pub(super) fn payload_size(&self) -> usize;
            /// Stores stream data. See [`PacketStore::write`].
            pub(super) fn write(&mut self, data: &[u8], next_to_send: SeqNo, header: impl FnMut(SeqNo, &mut [u8; HEADER]));
            /// Stores a block of stream data. See [`PacketStore::write_block`].
            pub(super) fn write_block(&mut self, block: Bytes, next_to_send: SeqNo, header: impl FnMut(SeqNo, &mut [u8; HEADER]));
            /// Stores one packet. See [`PacketStore::push`].
            pub(crate) fn push(&mut self, payload: &[u8], header: impl FnOnce(SeqNo, &mut [u8; HEADER]));
            /// See [`PacketStore::whole_trains`].
            pub(super) fn whole_trains(&self, bytes: usize) -> usize;
            /// Frees memory that is kept for reuse only.
            pub(super) fn shrink(&mut self);
        }
        to self.store(seq) {
            /// The header of a held packet.
            pub(crate) fn header(&self, seq: SeqNo) -> Option<&[u8; HEADER]>;
            /// The payload of a held packet.
            pub(crate) fn payload(&self, seq: SeqNo) -> Option<&[u8]>;
        }
    }

    /// Payload bytes of a full packet in the store of `seq`.
    pub(crate) fn payload_size_at(&self, seq: SeqNo) -> usize {
        self.store(seq).payload_size()
    }

    /// The sum over the packets before `end` of a weight of their full payload.
    pub(crate) fn weigh(&self, end: SeqNo, weight: impl Fn(usize) -> f64) -> f64 {
        let weigh = |store: &PacketStore<HEADER>| {
            let held = SeqRange::new(store.first(), store.end().earlier(end).minus(1)).len();
            if end.is_after(store.first()) { f64::from(held) * weight(store.payload_size()) } else { 0.0 }
        };
        self.older.iter().chain([&self.current]).map(weigh).sum()
    }

    /// Packets held.
    pub(super) fn packets(&self) -> u32 {
        self.older.iter().map(PacketStore::packets).sum::<u32>() + self.current.packets()
    }

    /// Bytes of memory held, spare chunks included.
    pub(super) fn memory(&self) -> usize {
        self.older.iter().map(PacketStore::memory).sum::<usize>() + self.current.memory()
    }

    // ---- reading ----

    /// The store of a packet.
    pub(super) fn store_mut(&mut self, seq: SeqNo) -> &mut PacketStore<HEADER> {
        let older = self.older.iter_mut().find(|store| seq.is_before(store.end()));
        older.unwrap_or(&mut self.current)
    }

    fn store(&self, seq: SeqNo) -> &PacketStore<HEADER> {
        self.older.iter().find(|store| seq.is_before(store.end())).unwrap_or(&self.current)
    }

    // ---- giving back ----

    /// Releases everything before `seq` and returns its payload bytes.
    pub(super) fn release(&mut self, seq: SeqNo) -> u64 {
        let mut released = 0;
        while let Some(oldest) = self.older.front_mut() {
            released += oldest.release(seq);
            if oldest.packets() > 0 {
                return released;
            }
            self.older.pop_front();
            self.change_size();
        }
        released + self.current.release(seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(seq: SeqNo, head: &mut [u8; 4]) {
        *head = seq.value().to_be_bytes();
    }

    fn seq(number: u32) -> SeqNo {
        SeqNo::new(number)
    }

    /// Packets 5 and 6 of 100 bytes, 7 and 8 of 600, and 9 of 300.
    fn three() -> SizedStores<4> {
        let mut stores = SizedStores::new(seq(5), 100);
        stores.write(&[1; 150], seq(5), number);
        stores.set_payload_size(600);
        stores.write(&[2; 1_200], seq(5), number);
        stores.set_payload_size(300);
        stores.write(&[3; 300], seq(5), number);
        stores
    }

    #[test]
    fn trains_are_uniform() {
        let mut stores = three();
        let runs = [5, 7, 9].map(|first| {
            let run = stores.store_mut(seq(first)).run(seq(first), 10).unwrap();
            (run.packets, run.segment_size, run.bytes.len())
        });
        assert_eq!(runs, [(2, 104, 158), (2, 604, 1_208), (1, 304, 304)]);
        assert!([4, 10].iter().all(|&at| stores.store_mut(seq(at)).run(seq(at), 1).is_none()));
        assert_eq!([5, 6, 7, 9, 10].map(|at| stores.payload_size_at(seq(at))), [100, 100, 600, 300, 300]);
    }

    #[test]
    fn everything_is_counted_and_released_once() {
        let mut stores = three();
        assert_eq!((stores.packets(), stores.first(), stores.end()), (5, seq(5), seq(10)));
        let weights = [5, 6, 8, 10].map(|end| stores.weigh(seq(end), |payload| payload as f64));
        assert_eq!(weights, [0.0, 100.0, 800.0, 1_700.0]);
        let released = [6, 8, 8, 20].map(|end| stores.release(seq(end)));
        assert_eq!(released, [100, 650, 0, 900]);
        assert_eq!((stores.packets(), stores.first(), stores.end()), (0, seq(10), seq(10)));
    }

    #[test]
    fn a_size_that_changes_all_the_time_takes_no_store_for_each() {
        let mut stores: SizedStores<4> = SizedStores::new(seq(0), 100);
        for size in 0..1_000 {
            stores.write(&[0; 300], seq(0), number);
            stores.set_payload_size(200 + size);
        }
        assert_eq!(stores.older.len(), MOST_OLDER);
        stores.release(stores.end());
        assert_eq!(stores.payload_size(), 1_199, "the last one");
    }

    #[test]
    fn an_empty_store_leaves_nothing_behind() {
        let mut stores: SizedStores<4> = SizedStores::new(seq(3), 100);
        stores.set_payload_size(200);
        assert!(stores.older.is_empty());
        assert_eq!((stores.first(), stores.end(), stores.payload_size()), (seq(3), seq(3), 200));
    }
}
