//! The packets that a sender holds, with tag and header in front, and the account of its stream.
//!
//! RBUDP has a buffer of its own. It cuts the stream into blasts, takes as much data as the next ones need, and releases a
//! blast as a whole.

use farhaul_units::{SeqNo, SeqRange};
use farhaul_wire::blast::TAG_LEN;

use super::engine::{Prefix, Setup, Transmission};
use farhaul_proto::buffer::PacketStore;
use farhaul_proto::intake::{Intake, Load};
use farhaul_proto::pacer::Pacer;
use farhaul_proto::stats::Stats;

/// The packets from the first that the peer may miss to the last one written. `HEADER` is the room for a tag and the
/// protocol's own header.
#[derive(Debug)]
pub(crate) struct SendBuffer<const HEADER: usize> {
    pub(crate) store: PacketStore<HEADER>,
    /// The next packet to leave for the first time.
    pub(crate) next: SeqNo,
    prefix: Prefix,
    intake: Intake,
    /// Payload bytes written, and those that the peer has.
    pub(crate) written: u64,
    pub(crate) released: u64,
}

impl<const HEADER: usize> SendBuffer<HEADER> {
    /// No packet yet. `first` will be the first one, and each holds `payload_size` bytes of the stream.
    pub(crate) fn new(first: SeqNo, payload_size: usize, setup: &Setup<'_>) -> Self {
        Self {
            store: PacketStore::new(first, payload_size),
            next: first,
            prefix: setup.prefix,
            intake: Intake::new(setup.config.send_buffer),
            written: 0,
            released: 0,
        }
    }

    // ---- the application's side ----

    /// The packets held and in flight. `filling` are those that fill the path, if the engine holds less data then.
    fn load(&self, filling: Option<u32>) -> Load {
        let (payload_size, held) = (self.store.payload_size(), self.store.packets());
        Load { payload_size, held, in_flight: self.in_flight().len(), filling }
    }

    /// Bytes that the application may write now.
    pub(crate) fn room(&self, filling: Option<u32>, pacer: &Pacer) -> usize {
        usize::try_from(self.intake.room(self.load(filling), pacer)).unwrap_or(usize::MAX)
    }

    /// Stores bytes of the stream. `header` writes the protocol's own header of a packet. See [`PacketStore::write`].
    pub(crate) fn write(&mut self, data: &[u8], next_to_send: SeqNo, header: impl Fn(SeqNo, &mut [u8])) {
        let tag = self.prefix.bytes();
        self.store.write(data, next_to_send, |number, head| {
            let (room, own) = head.split_at_mut(TAG_LEN);
            room.copy_from_slice(&tag);
            header(number, own);
        });
        self.written += data.len() as u64;
    }

    /// Whether no packet is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.store.first() == self.store.end()
    }

    // ---- transmissions ----

    /// Bytes of a full datagram.
    pub(crate) const fn size(&self) -> usize {
        self.prefix.length() + HEADER - TAG_LEN + self.store.payload_size()
    }

    /// The packets that left and that the peer is not known to have.
    pub(crate) fn in_flight(&self) -> SeqRange {
        SeqRange::new(self.store.first(), self.next.minus(1))
    }

    /// The next packets to leave for the first time, at most `most`.
    pub(crate) fn plan_new(&mut self, most: u32) -> Option<Transmission> {
        let packets = self.store.run(self.next, most)?.packets;
        Some(Transmission { first: self.next.value().into(), packets, again: false })
    }

    /// The datagrams of new packets, which have left then.
    pub(crate) fn emit_new<'a>(&'a mut self, packets: u32, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        let first = self.next;
        self.next = first.plus(packets);
        self.adjacent(first, packets, scratch)
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

    /// How many of the chosen packets from `first` on make one train: all of one length but the last. At most `most`.
    /// `next` is the first chosen packet from a number on.
    pub(crate) fn train(&self, first: SeqNo, most: u32, next: impl Fn(SeqNo) -> Option<SeqNo>) -> u32 {
        let (mut at, mut packets) = (Some(first), 0);
        while packets < most.min(self.store.train())
            && let Some(number) = at
        {
            packets += 1;
            if !self.store.is_full(number) {
                break;
            }
            at = next(number.next());
        }
        packets
    }

    /// The datagram of a held packet.
    pub(crate) fn datagram(&mut self, number: SeqNo) -> Option<&[u8]> {
        let run = self.store.run(number, 1)?;
        Some(&run.bytes[TAG_LEN - self.prefix.length()..])
    }

    // ---- the peer has them ----

    /// Whether the peer has everything written.
    pub(crate) const fn is_delivered(&self) -> bool {
        self.released == self.written
    }

    /// The first packet that the peer may miss once it has the stream up to `offset`. Nothing can have arrived that has
    /// not left.
    pub(crate) fn delivered_until(&self, offset: u64) -> SeqNo {
        self.store.after_bytes(offset.saturating_sub(self.released), self.next)
    }

    /// The peer has everything before `packet`.
    pub(crate) fn release(&mut self, packet: SeqNo) {
        self.released += self.store.release(packet);
    }

    /// Fills in the figures of the buffer.
    pub(crate) fn fill_stats(&self, filling: Option<u32>, pacer: &Pacer, stats: &mut Stats) {
        let load = self.load(filling);
        stats.totals.bytes_written = self.written;
        stats.totals.bytes_acked = self.released;
        stats.in_flight = load.in_flight;
        stats.send_buffer_packets = load.held;
        stats.send_buffer_free = self.room(filling, pacer) as u64;
        stats.payload_size = load.payload_size as u32;
        stats.memory += self.store.memory() as u64;
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::{Duration, Instant};
    use farhaul_wire::blast::Tag;

    use super::*;
    use farhaul_proto::config::Config;
    use farhaul_proto::seq_set::SeqSet;

    /// The number of the first packet, and the room for a tag and a number.
    const FIRST: SeqNo = SeqNo::new(0);
    const HEADER: usize = TAG_LEN + 4;

    /// Writes data behind headers that hold the number of the packet.
    fn write(buffer: &mut SendBuffer<HEADER>, data: &[u8], next_to_send: SeqNo) {
        buffer.write(data, next_to_send, |number, head| head.copy_from_slice(&number.value().to_be_bytes()));
    }

    /// Packets of 20 bytes at most, with this prefix, that hold 24 bytes.
    fn buffer(prefix: Prefix) -> SendBuffer<HEADER> {
        let (round_trip, now) = (Duration::from_millis(10), Instant::ZERO);
        let config = Config::default();
        let setup = Setup { config: &config, datagram: 20, prefix, round_trip, now };
        let mut buffer = SendBuffer::new(FIRST, 20 - prefix.length() - 4, &setup);
        let data: Vec<u8> = (1..=24).collect();
        write(&mut buffer, &data, FIRST);
        buffer
    }

    #[test]
    fn tag_and_header_stand_before_each_payload() {
        let (mut buffer, mut scratch) = (buffer(Prefix::Tag(Tag(9))), Vec::new());
        let expected = [&[0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0][..], &[1, 2, 3, 4, 5, 6, 7, 8]].concat();
        let (size, bytes) = buffer.adjacent(FIRST, 1, &mut scratch).unwrap();
        assert_eq!((size, bytes), (20, &expected[..]));
        assert_eq!(buffer.datagram(FIRST), Some(&expected[..]));
    }

    #[test]
    fn without_a_tag_the_header_comes_first() {
        let (mut buffer, mut scratch) = (buffer(Prefix::None), Vec::new());
        let first: Vec<u8> = [0, 0, 0, 0].into_iter().chain(1..=16).collect();
        let second = [&[0, 0, 0, 1][..], &[17, 18, 19, 20, 21, 22, 23, 24]].concat();
        let (size, bytes) = buffer.adjacent(FIRST, 5, &mut scratch).unwrap();
        assert_eq!((size, bytes), (20, &[&first[..], &second].concat()[..]));
        assert_eq!(buffer.datagram(FIRST.next()), Some(&second[..]));
    }

    #[test]
    fn a_train_ends_after_a_datagram_that_is_not_full() {
        let mut buffer = buffer(Prefix::Tag(Tag(9)));
        write(&mut buffer, &[5; 80], SeqNo::new(3));
        let mut chosen = SeqSet::new(FIRST);
        for number in [0, 2, 3, 5, 11, 12] {
            chosen.insert(SeqNo::new(number));
        }
        let end = buffer.store.end();
        let train = |buffer: &SendBuffer<HEADER>, chosen: &SeqSet, first, most| {
            buffer.train(first, most, |from| chosen.next_present(from, buffer.store.end()))
        };
        // 24 bytes make three datagrams, and 80 make ten.
        assert_eq!(end, SeqNo::new(13));
        assert_eq!(train(&buffer, &chosen, FIRST, 44), 6);
        assert_eq!(train(&buffer, &chosen, FIRST, 2), 2);
        write(&mut buffer, &[6; 3], end);
        chosen.insert(SeqNo::new(13));
        chosen.insert(SeqNo::new(14));
        write(&mut buffer, &[7; 8], SeqNo::new(14));
        assert_eq!(train(&buffer, &chosen, SeqNo::new(12), 44), 2);
    }
}
