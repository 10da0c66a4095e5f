use farhaul_units::MsgNo;
use farhaul_wire::udt4::Position;
use proptest::prelude::*;

use super::*;

const SIZE: usize = 50;

fn field(position: Position, message: u32, in_order: bool) -> MessageField {
    MessageField { position, in_order, message: MsgNo::new(message) }
}

fn stream() -> MessageField {
    field(Position::Only, 1, false)
}

#[test]
fn data_is_readable_in_order_only() {
    let mut buffer = RecvBuffer::new(SeqNo::MAX, SIZE, 100);
    assert_eq!(buffer.insert(SeqNo::new(0), stream(), &[2; SIZE]), Insert::New);
    assert_eq!(buffer.read(&mut [0; 200]), 0);
    assert_eq!(buffer.insert(SeqNo::MAX, stream(), &[1; 10]), Insert::New);
    let mut out = [0; 200];
    assert_eq!(buffer.read(&mut out), 60);
    assert_eq!((out[9], out[10]), (1, 2));
}

#[test]
fn a_packet_outside_the_window_or_too_large_is_rejected() {
    let mut buffer = RecvBuffer::new(SeqNo::new(0), SIZE, 100);
    assert_eq!(buffer.insert(SeqNo::new(100), stream(), &[1]), Insert::Rejected);
    assert_eq!(buffer.insert(SeqNo::new(1), stream(), &[1; SIZE + 1]), Insert::Rejected);
    assert_eq!(buffer.insert(SeqNo::new(0).minus(1), stream(), &[1]), Insert::Duplicate);
}

#[test]
fn one_packet_at_the_far_edge_takes_one_chunk() {
    let mut buffer = RecvBuffer::new(SeqNo::new(0), 1456, 8192);
    buffer.insert(SeqNo::new(8191), stream(), &[1; 1456]);
    assert!(buffer.memory() < 64 * 1024, "{}", buffer.memory());
}

#[test]
fn the_free_window_shrinks_by_what_is_not_read() {
    let mut buffer = RecvBuffer::new(SeqNo::new(0), SIZE, 10);
    for seq in 0..4 {
        buffer.insert(SeqNo::new(seq), stream(), &[0; SIZE]);
    }
    assert_eq!(buffer.free(), 6);
    buffer.read(&mut [0; 2 * SIZE]);
    assert_eq!(buffer.free(), 8);
}

fn message(buffer: &mut RecvBuffer, first: u32, number: u32, packets: usize, in_order: bool, but: Option<usize>) {
    for i in 0..packets {
        if Some(i) != but {
            let seq = SeqNo::new(first + i as u32);
            buffer.insert(seq, field(Position::of(i, packets), number, in_order), &[number as u8; SIZE]);
            buffer.note_unordered(seq);
        }
    }
}

#[test]
fn a_message_is_delivered_whole() {
    let mut buffer = RecvBuffer::new(SeqNo::new(0), SIZE, 100);
    message(&mut buffer, 0, 1, 3, true, Some(1));
    assert_eq!(buffer.next_message(), None);
    buffer.insert(SeqNo::new(1), field(Position::Middle, 1, true), &[1; SIZE]);
    assert_eq!(buffer.read_message(&mut [0; 500]), Some(150));
    assert_eq!(buffer.free(), 100);
}

#[test]
fn an_unordered_message_overtakes_an_incomplete_one_and_an_ordered_one_does_not() {
    let mut buffer = RecvBuffer::new(SeqNo::new(0), SIZE, 100);
    message(&mut buffer, 0, 1, 2, false, Some(1));
    message(&mut buffer, 2, 2, 2, true, None);
    assert_eq!(buffer.next_message(), None);
    message(&mut buffer, 4, 3, 2, false, None);
    let mut out = [0; 500];
    assert_eq!((buffer.read_message(&mut out), out[0]), (Some(100), 3));
    buffer.insert(SeqNo::new(1), field(Position::Last, 1, false), &[1; SIZE]);
    assert_eq!((buffer.read_message(&mut out), out[0]), (Some(100), 1));
    assert_eq!((buffer.read_message(&mut out), out[0]), (Some(100), 2));
    assert_eq!(buffer.read_message(&mut out), None, "message 3 is not delivered twice");
    assert_eq!(buffer.free(), 100);
}

#[test]
fn a_dropped_message_lets_the_acknowledgement_pass_and_is_not_delivered() {
    let mut buffer = RecvBuffer::new(SeqNo::new(0), SIZE, 100);
    message(&mut buffer, 0, 1, 3, true, Some(1));
    message(&mut buffer, 3, 2, 1, true, None);
    let dropped = MsgNo::new(1);
    buffer.skip(SeqRange::new(SeqNo::new(0), SeqNo::new(2)), dropped);
    assert_eq!(buffer.ack_point(), SeqNo::new(4));
    let mut out = [0; 100];
    assert_eq!((buffer.read_message(&mut out), out[0]), (Some(SIZE), 2));
}

#[test]
fn a_drop_request_that_reaches_one_packet_too_far_loses_nothing() {
    let mut buffer = RecvBuffer::new(SeqNo::new(0), SIZE, 100);
    message(&mut buffer, 0, 1, 2, true, Some(1));
    let dropped = MsgNo::new(1);
    buffer.skip(SeqRange::new(SeqNo::new(1), SeqNo::new(2)), dropped);
    message(&mut buffer, 2, 2, 1, true, None);
    let mut out = [0; 100];
    assert_eq!((buffer.read_message(&mut out), out[0]), (Some(SIZE), 2));
}

proptest! {
    #[test]
    fn the_reader_gets_the_bytes_of_the_sender(
        order in Just((0u32..200).collect::<Vec<_>>()).prop_shuffle(),
        first in prop_oneof![Just(0x7FFF_FFC0u32), 0u32..0x7FFF_FFFF],
        reads in proptest::collection::vec(proptest::option::of(1usize..300), 20),
        (short, reach) in (1u32..70, 1u32..200),
    ) {
        let first = SeqNo::new(first);
        // Some are short, and most come as late as this.
        let packet = |i: u32| vec![i as u8; if i.is_multiple_of(short) { 1 + (i as usize * 7) % SIZE } else { SIZE }];
        let mut order: Vec<u32> = order;
        order.chunks_mut(reach as usize).for_each(<[u32]>::sort_unstable);
        let mut blocks = Vec::new();
        let mut buffer = RecvBuffer::new(first, SIZE, 200);
        let (mut got, mut reads) = (Vec::new(), reads.into_iter().cycle());
        for i in &order {
            prop_assert_eq!(buffer.insert(first.plus(*i), stream(), &packet(*i)), Insert::New);
            prop_assert_eq!(buffer.insert(first.plus(*i), stream(), &packet(*i)), Insert::Duplicate);
            match reads.next().unwrap() {
                Some(bytes) => {
                    let mut out = vec![0; bytes];
                    let n = buffer.read(&mut out);
                    got.extend_from_slice(&out[..n]);
                }
                None => {
                    let block = buffer.read_block();
                    got.extend_from_slice(&block);
                    // A reader may keep some of them.
                    blocks.extend((i % 3 == 0).then_some((got.len() - block.len(), block)));
                }
            }
        }
        let mut rest = vec![0; 20_000];
        let n = buffer.read(&mut rest);
        got.extend_from_slice(&rest[..n]);
        let sent: Vec<u8> = (0..200).flat_map(packet).collect();
        prop_assert_eq!(&got, &sent);
        prop_assert_eq!(buffer.available(), 0);
        prop_assert!(blocks.iter().all(|(at, block)| &sent[*at..at + block.len()] == block), "nobody writes into them");
    }
}

#[test]
fn a_complete_chunk_becomes_a_block_whose_memory_comes_back() {
    let mut buffer = RecvBuffer::new(SeqNo::new(0), SIZE, 1_000);
    let mut next = 0;
    let mut arrive = |buffer: &mut RecvBuffer, packets: u32| {
        for seq in next..next + packets {
            assert_eq!(buffer.insert(SeqNo::new(seq), stream(), &[seq as u8; SIZE]), Insert::New);
        }
        next += packets;
    };
    arrive(&mut buffer, CHUNK_PACKETS + 1);
    let first = buffer.read_block();
    assert_eq!((first.len(), buffer.available()), (SIZE * CHUNK_PACKETS as usize, SIZE as u64));
    let memory = first.as_ptr();
    drop(first);
    assert_eq!(buffer.read_block().len(), SIZE, "a copy: its chunk has room");
    arrive(&mut buffer, CHUNK_PACKETS);
    let rest = buffer.read_block();
    assert_eq!(rest.len(), SIZE * (CHUNK_PACKETS as usize - 1));
    assert_eq!(buffer.read_block().len(), SIZE);
    arrive(&mut buffer, CHUNK_PACKETS - 1);
    assert!(memory == buffer.read_block().as_ptr().wrapping_sub(SIZE), "the first memory again");
    assert!(buffer.read_block().is_empty());
}

#[test]
fn a_reader_that_keeps_all_blocks_leaves_the_buffer_a_bounded_record() {
    let mut buffer = RecvBuffer::new(SeqNo::new(0), SIZE, 100);
    let mut kept = Vec::new();
    for seq in 0..100 * CHUNK_PACKETS {
        buffer.insert(SeqNo::new(seq), stream(), &[7; SIZE]);
        if (seq + 1) % CHUNK_PACKETS == 0 {
            kept.push(buffer.read_block());
        }
    }
    assert!(kept.iter().all(|block| block.len() == SIZE * CHUNK_PACKETS as usize));
    assert_eq!(buffer.lent.len(), MOST_LENT);
}

#[test]
fn larger_packets_than_before_are_stored_between_smaller_ones() {
    let mut buffer = RecvBuffer::new(SeqNo::new(0), SIZE, 100);
    buffer.set_limit(6 * SIZE);
    let before = buffer.memory();
    let lengths: Vec<usize> = (0..70).map(|number| if number % 7 == 5 { 4 * SIZE + number } else { SIZE }).collect();
    let mut expected = Vec::new();
    for (seq, length) in (0..).zip(&lengths) {
        expected.extend(std::iter::repeat_n(seq as u8, *length));
        assert_eq!(buffer.insert(SeqNo::new(seq), stream(), &vec![seq as u8; *length]), Insert::New);
    }
    assert_eq!(buffer.insert(SeqNo::new(70), stream(), &[0; 6 * SIZE + 1]), Insert::Rejected);
    assert_eq!(buffer.stride(), 6 * SIZE);
    let (mut out, mut at) = (vec![0; expected.len()], 0);
    while at < out.len() {
        let to = out.len().min(at + 77);
        at += buffer.read(&mut out[at..to]);
    }
    assert!(out == expected && buffer.available() == 0);
    buffer.shrink();
    assert!(buffer.memory() < before + 3 * 32 * 6 * SIZE + 3_000, "{}", buffer.memory());
}
