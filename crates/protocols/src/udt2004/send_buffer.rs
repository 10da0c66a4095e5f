//! Data that this side may still have to send: a packet store with headers that are complete once packets have numbers.

use farhaul_units::SeqNo;
use farhaul_wire::udt2004::{HEADER_LEN, SeqNo30, encode_data_header};

use farhaul_proto::buffer::PacketStore;

/// Packets from the oldest unacknowledged to the newest written.
pub(super) type SendBuffer = PacketStore<HEADER_LEN>;

/// Writes the header of packet `seq`.
pub(super) fn write_header(seq: SeqNo, head: &mut [u8; HEADER_LEN]) {
    *head = encode_data_header(SeqNo30::from(seq));
}

#[cfg(test)]
mod tests {
    use farhaul_wire::udt2004::split_data;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_hold_exactly_what_was_written_and_not_released(
            first in prop_oneof![Just(0x3FFF_FFF0u32), Just(0x7FFF_FFF0), 0u32..0x7FFF_FFFF],
            steps in proptest::collection::vec((1usize..5_000, 0u32..40), 1..40),
        ) {
            let mut buffer = SendBuffer::new(SeqNo::new(first), 97);
            let (mut written, mut released) = (Vec::new(), 0usize);
            for (i, (bytes, acked)) in steps.into_iter().enumerate() {
                let data: Vec<u8> = (0..bytes).map(|b| (b * 31 + i) as u8).collect();
                buffer.write(&data, buffer.first(), write_header);
                written.extend_from_slice(&data);
                let to = buffer.first().plus(acked.min(buffer.packets().saturating_sub(1)));
                released += buffer.release(to) as usize;
                let mut held = Vec::new();
                let mut at = buffer.first();
                while at != buffer.end() {
                    let run = buffer.run(at, 10).unwrap();
                    for packet in run.bytes.chunks(run.segment_size) {
                        let (seq, payload) = split_data(packet).unwrap();
                        prop_assert_eq!(seq, SeqNo30::from(at));
                        held.extend_from_slice(payload);
                        at = at.next();
                    }
                }
                prop_assert_eq!(&held[..], &written[released..]);
            }
            buffer.release(buffer.end());
            buffer.shrink();
            prop_assert_eq!(buffer.memory(), 0);
        }
    }
}
