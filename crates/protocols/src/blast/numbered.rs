//! Datagrams of a number and a payload, with a tag in front: those of Hurricane and FOBS.

mod stock;

use farhaul_units::SeqNo;
use farhaul_wire::blast::TAG_LEN;

pub(crate) use self::stock::Stock;
use super::engine::{Prefix, Setup};
use super::receiving::{ReceiverState, packets_in};
use farhaul_proto::buffer::{Insert, PacketStore};
use farhaul_proto::seq_set::SeqSet;

/// Bytes of the number.
pub(crate) const NUMBER_LEN: usize = 4;
/// The number of the first datagram.
pub(crate) const FIRST: SeqNo = SeqNo::new(0);

/// Bytes of a stored datagram before its payload.
const STORED_HEADER: usize = TAG_LEN + NUMBER_LEN;
/// Bytes of IPv4 and UDP headers.
const IP_UDP_HEADERS: usize = 28;

/// Most payload bytes of a datagram.
pub(crate) fn payload_size(setup: &Setup<'_>) -> usize {
    setup.datagram.saturating_sub(setup.prefix.len() + NUMBER_LEN).max(1)
}

/// A receiver without any datagram. The settings of the connection bound their number.
pub(crate) fn receiver_state(setup: &Setup<'_>) -> ReceiverState {
    let payload_size = payload_size(setup);
    let by_memory = packets_in(setup.config.recv_buffer, payload_size);
    ReceiverState::new(FIRST, payload_size, by_memory.clamp(2, farhaul_proto::seq_set::MAX_CAPACITY / 2), setup)
}

/// Stores a datagram that was split into number and payload. `None` if no sender sends it.
pub(crate) fn store<E>(state: &mut ReceiverState, datagram: Result<(SeqNo, &[u8]), E>) -> Option<(SeqNo, Insert)> {
    let Some((number, payload)) = datagram.ok().filter(|(_, payload)| payload.len() <= state.payload_size) else {
        state.counts.invalid += 1;
        return None;
    };
    Some((number, state.store(number, payload)))
}

/// The datagrams that a sender holds.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// The datagrams. Their numbers begin at [`FIRST`].
    pub(crate) store: PacketStore<STORED_HEADER>,
    prefix: Prefix,
}

impl Outgoing {
    /// None yet.
    pub(crate) fn new(setup: &Setup<'_>) -> Self {
        Self { store: PacketStore::new(FIRST, payload_size(setup)), prefix: setup.prefix }
    }

    /// Bytes of a full datagram.
    pub(crate) const fn size(&self) -> usize {
        self.prefix.len() + NUMBER_LEN + self.store.payload_size()
    }

    /// Bytes that a full datagram occupies on the link, headers of IP and UDP included.
    pub(crate) const fn size_on_link(&self) -> usize {
        self.size() + IP_UDP_HEADERS
    }

    /// Stores bytes of the stream. See [`PacketStore::write`].
    pub(crate) fn write(&mut self, data: &[u8], next_to_send: SeqNo) {
        let tag = self.prefix.bytes();
        self.store.write(data, next_to_send, |number, head| {
            head[..TAG_LEN].copy_from_slice(&tag);
            head[TAG_LEN..].copy_from_slice(&number.value().to_be_bytes());
        });
    }

    /// Adjacent datagrams from `first` on, at most `most`, and the length of each but the last. They are borrowed
    /// unless they have no tag.
    pub(crate) fn adjacent<'a>(
        &'a mut self,
        first: SeqNo,
        most: u32,
        scratch: &'a mut Vec<u8>,
    ) -> Option<(usize, &'a [u8])> {
        let run = self.store.run(first, most)?;
        if let Prefix::Tag(_) = self.prefix {
            return Some((run.segment_size, run.bytes));
        }
        scratch.clear();
        for datagram in run.bytes.chunks(run.segment_size) {
            scratch.extend_from_slice(&datagram[TAG_LEN..]);
        }
        Some((run.segment_size - TAG_LEN, scratch))
    }

    /// How many datagrams of `chosen` from `first` on, before `end`, make one train: all of one length but the last. At
    /// most `most`.
    pub(crate) fn train(&self, chosen: &SeqSet, first: SeqNo, end: SeqNo, most: u32) -> u32 {
        let (mut at, mut datagrams) = (Some(first), 0);
        while datagrams < most.min(self.store.train())
            && let Some(number) = at
        {
            datagrams += 1;
            if !self.store.is_full(number) {
                break;
            }
            at = chosen.next_present(number.next(), end);
        }
        datagrams
    }

    /// Appends a datagram to `out`.
    pub(crate) fn copy(&mut self, number: SeqNo, out: &mut Vec<u8>) {
        if let Some(run) = self.store.run(number, 1) {
            out.extend_from_slice(&run.bytes[TAG_LEN - self.prefix.len()..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::{Duration, Instant, Rng};
    use farhaul_wire::blast::Tag;

    use super::*;
    use farhaul_proto::config::Config;

    /// Datagrams of 20 bytes at most, with this prefix, that hold 24 bytes.
    fn outgoing(prefix: Prefix) -> Outgoing {
        let (round_trip, now, rng) = (Duration::from_millis(10), Instant::ZERO, Rng::new(1));
        let config = Config::default();
        let mut outgoing = Outgoing::new(&Setup { config: &config, datagram: 20, prefix, round_trip, now, rng });
        let data: Vec<u8> = (1..=24).collect();
        outgoing.write(&data, FIRST);
        outgoing
    }

    #[test]
    fn tag_and_number_stand_before_each_payload() {
        let (mut outgoing, mut scratch) = (outgoing(Prefix::Tag(Tag(9))), Vec::new());
        let expected = [&[0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0][..], &[1, 2, 3, 4, 5, 6, 7, 8]].concat();
        let (size, bytes) = outgoing.adjacent(FIRST, 1, &mut scratch).unwrap();
        assert_eq!((size, bytes), (20, &expected[..]));
        outgoing.copy(FIRST, &mut scratch);
        assert_eq!(scratch, expected);
    }

    #[test]
    fn without_a_tag_the_number_comes_first() {
        let (mut outgoing, mut scratch) = (outgoing(Prefix::None), Vec::new());
        let first: Vec<u8> = [0, 0, 0, 0].into_iter().chain(1..=16).collect();
        let second = [&[0, 0, 0, 1][..], &[17, 18, 19, 20, 21, 22, 23, 24]].concat();
        let (size, bytes) = outgoing.adjacent(FIRST, 5, &mut scratch).unwrap();
        assert_eq!((size, bytes), (20, &[&first[..], &second].concat()[..]));
        scratch.clear();
        outgoing.copy(FIRST.next(), &mut scratch);
        assert_eq!(scratch, second);
    }

    #[test]
    fn a_train_ends_after_a_datagram_that_is_not_full() {
        let mut outgoing = outgoing(Prefix::Tag(Tag(9)));
        outgoing.write(&[5; 80], SeqNo::new(3));
        let mut chosen = SeqSet::new(FIRST);
        for number in [0, 2, 3, 5, 11, 12] {
            chosen.insert(SeqNo::new(number));
        }
        let end = outgoing.store.end();
        // 24 bytes make three datagrams, and 80 make ten.
        assert_eq!(end, SeqNo::new(13));
        assert_eq!(outgoing.train(&chosen, FIRST, end, 44), 6);
        assert_eq!(outgoing.train(&chosen, FIRST, end, 2), 2);
        outgoing.write(&[6; 3], end);
        chosen.insert(SeqNo::new(13));
        chosen.insert(SeqNo::new(14));
        outgoing.write(&[7; 8], SeqNo::new(14));
        assert_eq!(outgoing.train(&chosen, SeqNo::new(12), outgoing.store.end(), 44), 2);
    }
}
