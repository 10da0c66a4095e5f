//! Data that this side may still have to send: the packet store of UDT4, with message numbers, destination and time
//! stamps.
//!
//! The whole header except the time stamp is written when the application writes the data.

use bytes::Bytes;
use delegate::delegate;
use farhaul_cc::DataPacket;
use farhaul_units::{MsgNo, SeqNo, SeqRange};
use farhaul_wire::udt4::{DataHeader, HEADER_LEN, MessageField, Position, SocketId, Timestamp};

use super::packet_store::Run;
use super::sized_stores::SizedStores;

/// Memory for datagrams that cannot be borrowed from the buffer, and what encloses each packet on its way there, if anything does.
pub(crate) type Scratch<'a, 'e> = (&'a mut Vec<u8>, Option<Enclose<'e>>);

/// Appends the packet with this header and payload in another form, such as protected.
pub(crate) type Enclose<'e> = &'e mut dyn FnMut(&[u8; HEADER_LEN], &[u8], &mut Vec<u8>);

/// Packets from the oldest unacknowledged to the newest written.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    store: SizedStores<HEADER_LEN>,
    destination: SocketId,
    next_message: MsgNo,
    whole_writes: bool,
}

impl SendBuffer {
    /// An empty buffer whose first packet will be `first`, for packets of `payload_size` bytes to `destination`.
    pub(crate) fn new(first: SeqNo, payload_size: usize, destination: SocketId) -> Self {
        Self {
            store: SizedStores::new(first, payload_size),
            destination,
            next_message: MsgNo::FIRST,
            whole_writes: false,
        }
    }

    delegate! {
        to self.store {
            /// Packets become `margin` bytes longer before they leave. It must be empty.
            pub(crate) fn set_margin(&mut self, margin: usize);
            /// Stores no payload, but sends as many zeros. It must be empty.
            pub(crate) fn leave_blank(&mut self);
            /// Packets that are written from now on have this size.
            pub(crate) fn set_payload_size(&mut self, size: usize);
            /// See [`PacketStore::whole_trains`](super::packet_store::PacketStore::whole_trains).
            pub(crate) fn whole_trains(&self, bytes: usize) -> usize;
            /// Oldest packet held. Equals [`end`](Self::end) if empty.
            pub(crate) fn first(&self) -> SeqNo;
            /// The sequence number of the next written packet.
            pub(crate) fn end(&self) -> SeqNo;
            pub(crate) fn payload_size(&self) -> usize;
            /// Payload bytes of a full packet like `seq`.
            pub(crate) fn payload_size_at(&self, seq: SeqNo) -> usize;
            /// The sum over the packets before `end` of a weight of their full payload.
            pub(crate) fn weigh(&self, end: SeqNo, weight: impl Fn(usize) -> f64) -> f64;
            /// Packets held.
            pub(crate) fn packets(&self) -> u32;
            /// Bytes of memory held, spare chunks included.
            pub(crate) fn memory(&self) -> usize;
            /// Frees memory that is kept for reuse only.
            pub(crate) fn shrink(&mut self);
            /// Releases everything before `seq` and returns its payload bytes.
            pub(crate) fn release(&mut self, seq: SeqNo) -> u64;
        }
    }

    /// Cuts no stream data of one write that fits into a packet.
    pub(crate) fn keep_writes_whole(&mut self) {
        self.whole_writes = true;
    }

    pub(crate) const fn keeps_writes_whole(&self) -> bool {
        self.whole_writes
    }

    /// Stores stream data. Each packet is a message of its own. See
    /// [`PacketStore::write`](super::packet_store::PacketStore::write).
    pub(crate) fn write_stream(&mut self, data: &[u8], next_to_send: SeqNo) {
        let next_to_send = if self.would_cut(data) { self.end() } else { next_to_send };
        self.store.write(data, next_to_send, stream_header(self.destination, &mut self.next_message));
    }

    /// The same, but keeps the block itself. See [`PacketStore::write_block`](super::packet_store::PacketStore::write_block).
    pub(crate) fn write_block(&mut self, block: Bytes, next_to_send: SeqNo) {
        if self.whole_writes || self.store.is_blank() {
            return self.write_stream(&block, next_to_send);
        }
        self.store.write_block(block, next_to_send, stream_header(self.destination, &mut self.next_message));
    }

    /// Whether the newest packet has no room for all of `data`, which must not be cut.
    fn would_cut(&self, data: &[u8]) -> bool {
        let size = self.payload_size();
        let used = || self.store.payload(self.end().minus(1)).map_or(0, <[u8]>::len);
        self.whole_writes && data.len() <= size && used() + data.len() > size
    }

    /// Stores one message, cut into packets. Returns its packets and its number.
    pub(crate) fn write_message(&mut self, data: &[u8], in_order: bool) -> (SeqRange, MsgNo) {
        let message = take(&mut self.next_message);
        let (first, destination, size) = (self.end(), self.destination, self.payload_size());
        let count = self.packets_for(data.len()) as usize;
        for index in 0..count {
            let from = index * size;
            let field = MessageField { position: Position::of(index, count), in_order, message };
            self.store.push(&data[from..data.len().min(from + size)], |seq, head| {
                DataHeader { seq, field, timestamp: Timestamp::ZERO, destination }.encode(head);
            });
        }
        (SeqRange::new(first, self.end().minus(1)), message)
    }

    /// Stores the end of a stream, a packet without payload. Nothing may be written after it.
    pub(crate) fn write_end(&mut self) {
        let _ = self.write_message(&[], false);
    }

    /// Packets of a message of `bytes` bytes. An empty message is one empty packet.
    pub(crate) fn packets_for(&self, bytes: usize) -> u32 {
        bytes.div_ceil(self.payload_size()).max(1) as u32
    }

    /// Adjacent packets from `seq` on, at most `max`, ending after one that is not full, each stamped with `now`.
    /// `None` for a packet that is not held. Those of a blank buffer, those of blocks, and those that are enclosed are appended to the scratch
    /// memory.
    pub(crate) fn run<'a>(
        &'a mut self,
        seq: SeqNo,
        max: u32,
        now: Timestamp,
        (scratch, enclose): Scratch<'a, '_>,
    ) -> Option<Run<'a>> {
        let store = self.store.store_mut(seq);
        if let Some(enclose) = enclose {
            return store.append_run((seq, max), scratch, |header, payload, out| {
                DataHeader::set_timestamp(header, now);
                enclose(header, payload, out);
            });
        }
        if !store.is_stored(seq) {
            return store.append_run((seq, max), scratch, |header, payload, out| {
                DataHeader::set_timestamp(header, now);
                out.extend_from_slice(header);
                out.extend_from_slice(payload);
            });
        }
        let run = store.run(seq, max)?;
        for packet in run.bytes.chunks_mut(run.segment_size) {
            DataHeader::set_timestamp(packet, now);
        }
        Some(run)
    }

    /// The time stamp of a held packet's last departure.
    pub(crate) fn stamped(&self, seq: SeqNo) -> Option<Timestamp> {
        self.store.header(seq).map(|header| DataHeader::timestamp_of(header))
    }

    /// A held packet, for a controller.
    pub(crate) fn describe(&self, seq: SeqNo) -> Option<DataPacket> {
        let message = DataHeader::field_of(self.store.header(seq)?).message;
        Some(DataPacket::new(seq, Some(message), self.store.payload(seq)?.len() as u32))
    }

    /// The payload of a held packet.
    pub(crate) fn payload(&self, seq: SeqNo) -> Option<&[u8]> {
        self.store.payload(seq)
    }

    /// Sets the number of the next message. For use before the first one only.
    pub(crate) fn number_messages_from(&mut self, number: MsgNo) {
        self.next_message = number;
    }
}

/// Writes the headers of packets that are a message each, numbered from `next` on, which advances.
fn stream_header(destination: SocketId, next: &mut MsgNo) -> impl FnMut(SeqNo, &mut [u8; HEADER_LEN]) {
    move |seq, head| {
        let field = MessageField { position: Position::Only, in_order: false, message: take(next) };
        DataHeader { seq, field, timestamp: Timestamp::ZERO, destination }.encode(head);
    }
}

/// The number of a new message. Advances `next`.
fn take(next: &mut MsgNo) -> MsgNo {
    let number = *next;
    *next = number.next();
    number
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Packets of 100 bytes in a chunk.
    const TRAIN: usize = 64;

    fn buffer(first: u32, payload_size: usize) -> SendBuffer {
        SendBuffer::new(SeqNo::new(first), payload_size, SocketId::new(7))
    }

    #[test]
    fn every_packet_of_a_run_is_stamped() {
        let mut buffer = buffer(5, 100);
        buffer.write_stream(&[1; 250], SeqNo::new(5));
        buffer.write_stream(&[2; 100], SeqNo::new(8));
        let mut scratch = Vec::new();
        let run = buffer.run(SeqNo::new(5), 10, Timestamp::new(9), (&mut scratch, None)).unwrap();
        assert_eq!((run.packets, run.segment_size, run.bytes.len()), (3, 116, 2 * 116 + 66));
        assert_eq!(DataHeader::timestamp_of(&run.bytes[116..]), Timestamp::new(9));
    }

    #[test]
    fn a_write_that_fits_into_a_packet_is_not_cut_if_writes_stay_whole() {
        let lengths = |whole| {
            let mut buffer = buffer(0, 100);
            if whole {
                buffer.keep_writes_whole();
            }
            // The last one is longer than a packet, and so fills up the one before.
            for len in [60, 40, 70, 50, 120] {
                buffer.write_stream(&vec![1; len], SeqNo::new(0));
            }
            (0..buffer.packets()).map(|seq| buffer.payload(SeqNo::new(seq)).unwrap().len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(false), [100, 100, 100, 40]);
        assert_eq!(lengths(true), [100, 70, 100, 70]);
    }

    #[test]
    fn a_block_is_kept_but_for_what_shares_a_packet_with_other_data() {
        let mut buffer = buffer(0, 100);
        buffer.write_stream(&[1; 30], SeqNo::new(0));
        // The first chunk stores payloads until it is full.
        buffer.write_stream(&[1; 70 + 100 * (TRAIN - 1)], SeqNo::new(0));
        let blocks = [2, 3].map(|byte| Bytes::from(vec![byte; 250]));
        blocks.iter().for_each(|block| buffer.write_block(block.clone(), SeqNo::new(0)));
        let payload = |packet: usize| buffer.payload(SeqNo::new((TRAIN + packet) as u32)).unwrap();
        assert_eq!((0..5).map(|packet| payload(packet).len()).collect::<Vec<_>>(), [100; 5]);
        assert_eq!(payload(2), [[2; 50], [3; 50]].concat());
        let is_in = |packet: usize, block: &Bytes| block.as_ptr_range().contains(&payload(packet).as_ptr());
        assert_eq!([0, 1, 2].map(|packet| is_in(packet, &blocks[0])), [true, true, false]);
        assert_eq!([2, 3, 4].map(|packet| is_in(packet, &blocks[1])), [false, true, true]);
        buffer.release(buffer.end());
        assert!(blocks.iter().all(Bytes::is_unique), "acknowledged blocks are let go");
    }

    #[test]
    fn a_message_is_cut_into_first_middle_last() {
        let mut buffer = buffer(0, 100);
        let (range, message) = buffer.write_message(&[1; 250], true);
        assert_eq!((range.len(), message), (3, MsgNo::FIRST));
        let mut scratch = Vec::new();
        let run = buffer.run(SeqNo::new(0), 3, Timestamp::ZERO, (&mut scratch, None)).unwrap();
        let fields: Vec<_> =
            run.bytes.chunks(116).map(|packet| DataHeader::decode(packet).unwrap().0.field.position).collect();
        assert_eq!(fields, [Position::First, Position::Middle, Position::Last]);
    }

    #[test]
    fn a_blank_buffer_sends_as_if_zeros_had_been_written() {
        let datagrams = |blank, byte| {
            let mut buffer = buffer(5, 100);
            if blank {
                buffer.leave_blank();
            }
            buffer.write_stream(&[byte; 250], SeqNo::new(5));
            buffer.write_stream(&[byte; 20], SeqNo::new(5));
            let mut scratch = Vec::new();
            let run = buffer.run(SeqNo::new(6), 10, Timestamp::new(9), (&mut scratch, None)).unwrap();
            let sent = (run.packets, run.segment_size, run.bytes.to_vec());
            (
                sent,
                buffer.stamped(SeqNo::new(7)),
                buffer.payload(SeqNo::new(7)).map(<[u8]>::to_vec),
                buffer.release(SeqNo::new(8)),
            )
        };
        assert_eq!(datagrams(true, 1), datagrams(false, 0));
    }

    proptest! {
        #[test]
        fn holds_exactly_what_was_written_and_not_released(
            first in prop_oneof![Just(0x7FFF_FFF0u32), 0u32..0x7FFF_FFFF],
            steps in proptest::collection::vec((1usize..9_000, 0u32..80, any::<bool>(), any::<bool>()), 1..40),
        ) {
            let mut buffer = SendBuffer::new(SeqNo::new(first), 97, SocketId::new(7));
            let (mut written, mut released) = (Vec::new(), 0usize);
            for (i, (bytes, acked, is_block, is_sent)) in steps.into_iter().enumerate() {
                let data: Vec<u8> = (0..bytes).map(|b| (b * 31 + i) as u8).collect();
                let next_to_send = if is_sent { buffer.end() } else { buffer.first() };
                match is_block {
                    true => buffer.write_block(Bytes::copy_from_slice(&data), next_to_send),
                    false => buffer.write_stream(&data, next_to_send),
                }
                written.extend_from_slice(&data);
                let to = buffer.first().plus(acked.min(buffer.packets().saturating_sub(1)));
                released += buffer.release(to) as usize;
                let mut held = Vec::new();
                let mut at = buffer.first();
                while at != buffer.end() {
                    held.extend_from_slice(buffer.payload(at).unwrap());
                    let mut scratch = Vec::new();
                    let run = buffer.run(at, 10, Timestamp::ZERO, (&mut scratch, None)).unwrap();
                    let packet = DataHeader::decode(&run.bytes[..run.segment_size.min(run.bytes.len())]).unwrap().0;
                    prop_assert_eq!(packet.seq, at);
                    let payloads: Vec<u8> = run.bytes.chunks(run.segment_size).flat_map(|one| &one[HEADER_LEN..]).copied().collect();
                    let packets = run.packets;
                    let stored = (0..packets).flat_map(|index| buffer.payload(at.plus(index)).unwrap().to_vec());
                    prop_assert_eq!(payloads, stored.collect::<Vec<u8>>());
                    at = at.next();
                }
                prop_assert_eq!(&held[..], &written[released..]);
            }
        }
    }
}
