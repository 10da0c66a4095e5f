//! Ranges in a peer's packets: loss reports, drop requests, and gaps.

use farhaul_proto::udt::Message;
use farhaul_proto::{Config, Mode, Read, Streams};
use farhaul_units::{Duration, SeqNo, SeqRange};
use farhaul_wire::udt4::{Ack, Control, Handshake, Position, SocketType};

use crate::attack::acks::sending;
use crate::attack::bench::{Bench, Peer, Sent, address, call, data_packets, drop_request, field, only, range, raw};

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

// ---- B5, B6: loss reports ----

#[test]
fn b5_a_report_that_is_wrong_in_one_place_has_no_effect_at_all() {
    let (mut bench, peer) = sending();
    let first = peer.isn().value();
    const RANGE: u32 = 1 << 31;
    let wrong: [&[u32]; 6] = [
        &[first, RANGE | (first + 5), first + 4],
        &[first, RANGE | (first + 5)],
        &[first, u32::MAX],
        &[first, RANGE | first, u32::MAX],
        &[u32::MAX, 0x3FFF_FFFF],
        &[RANGE | first, RANGE | (first + 5)],
    ];
    let period = bench.stats(&peer).send_period;
    for list in wrong {
        bench.deliver(peer.address, &raw(3, 0, peer.victim, &words(list)));
        assert_eq!(bench.take_sent().len(), 0, "{list:?}");
    }
    let stats = bench.stats(&peer);
    assert_eq!((stats.totals.packets_invalid, stats.totals.packets_lost_sending), (wrong.len() as u64, 0));
    assert_eq!((stats.send_period, bench.closed(&peer)), (period, None));
}

#[test]
fn b5_ranges_are_clipped_to_what_is_in_flight() {
    let (mut bench, mut peer) = sending();
    let isn = peer.isn();
    let ack = peer.ack(isn.plus(4));
    bench.control(&peer, &ack);
    bench.take_sent();
    for nothing in [range(isn, isn.plus(3)), range(isn.plus(16), isn.plus(5_000)), range(SeqNo::new(1), SeqNo::new(9))]
    {
        bench.nak(&peer, &[nothing]);
        assert_eq!(bench.take_sent().len(), 0, "{nothing:?}");
    }
    assert_eq!(bench.stats(&peer).totals.packets_lost_sending, 0);
    bench.nak(&peer, &[range(isn.minus(1 << 28), isn.plus(1 << 28))]);
    bench.run_millis(99);
    let again: Vec<SeqNo> = bench.take_sent().iter().filter_map(Sent::seq).collect();
    assert_eq!(again, (4..16).map(|packet| isn.plus(packet)).collect::<Vec<_>>());
}

#[test]
fn b5_a_range_on_the_far_side_of_the_number_space_is_ignored() {
    let (mut bench, peer) = sending();
    let before = bench.stats(&peer).memory;
    for (first, packets) in [(1 << 30, 1 << 29), ((1 << 30) - 5, 1 << 29), (3 << 29, 1 << 28), ((1 << 30) - 1, 1 << 30)]
    {
        let first = peer.isn().plus(first);
        bench.nak(&peer, &[range(first, first.plus(packets - 1))]);
    }
    let stats = bench.stats(&peer);
    assert_eq!((stats.totals.packets_lost_sending, stats.memory), (0, before));
}

#[test]
fn b5_thousands_of_overlapping_ranges_cost_no_memory_and_count_once() {
    let (mut bench, peer) = sending();
    let all = range(peer.isn(), peer.isn().plus(15));
    bench.nak(&peer, &[all]);
    let memory = bench.stats(&peer).memory;
    for _ in 0..100 {
        bench.nak(&peer, &[all; 182]);
    }
    let stats = bench.stats(&peer);
    assert_eq!(stats.memory, memory);
    assert!(stats.totals.packets_lost_sending <= 2 * 16, "{}", stats.totals.packets_lost_sending);
}

/// A connection with thousands of packets in flight.
fn in_full_flight() -> (Bench, Peer) {
    let mut bench = Bench::listening();
    let mut peer = bench.accept_default();
    let mut end = peer.isn();
    while end.distance_from(peer.isn()) < 4_000 {
        let room = bench.end.writable(peer.id);
        bench.end.write(bench.now, peer.id, &vec![0; room]).expect("it is open");
        bench.run_millis(20);
        end = bench.take_sent().iter().filter_map(Sent::seq).fold(end, |end, seq| end.later(seq.next()));
        let ack = peer.ack(end.minus(end.distance_from(peer.isn()).unsigned_abs() / 8));
        bench.control(&peer, &ack);
    }
    bench.take_sent();
    (bench, peer)
}

#[test]
fn b6_each_packet_is_sent_again_once_a_round_trip_however_often_it_is_asked_for() {
    let (mut bench, peer) = sending();
    let all = range(peer.isn(), peer.isn().plus(15));
    let mut again = 0;
    for _ in 0..1_000 {
        bench.nak(&peer, &[all]);
        bench.run_millis(1);
        again += data_packets(&bench.take_sent()).1;
    }
    // The RTT is 100 ms before the first sample.
    assert!((16..=16 * 11).contains(&again), "{again} packets in ten round trips");
}

#[test]
fn b6_a_peer_that_claims_no_round_trip_time_gets_no_more() {
    let (mut bench, mut peer) = sending();
    for _ in 0..100 {
        let ack = peer.full_ack(peer.isn(), Duration::from_micros(1), 8192, (0, 0));
        bench.control(&peer, &ack);
    }
    assert!(bench.stats(&peer).rtt < Duration::from_micros(10));
    bench.take_sent();
    let all = range(peer.isn(), peer.isn().plus(15));
    let mut again = 0;
    for _ in 0..1_000 {
        bench.nak(&peer, &[all]);
        bench.run_for(Duration::from_micros(100));
        again += data_packets(&bench.take_sent()).1;
    }
    assert!(again <= 16 * 21, "{again} packets in a tenth of a second");
}

#[test]
fn b6_a_flood_of_reports_stays_inside_pacing_and_never_raises_the_rate() {
    let (mut bench, peer) = in_full_flight();
    let stats = bench.stats(&peer);
    let all = range(peer.isn(), peer.isn().plus(100_000));
    bench.nak(&peer, &[all]);
    let mut period = bench.stats(&peer).send_period;
    assert!(!period.is_unpaced(), "a loss ends slow start");
    let (mut sent, mut budget) = (0, 0.0);
    for _ in 0..500 {
        bench.nak(&peer, &[all]);
        let now = bench.stats(&peer).send_period;
        assert!(now >= period, "a report made it faster: {now:?} after {period:?}");
        period = now;
        bench.run_millis(1);
        sent += data_packets(&bench.take_sent()).1;
        budget += 1e3 / period.as_micros();
    }
    // The pacer may catch up ten milliseconds at once.
    let most = budget + 10e3 / bench.stats(&peer).send_period.as_micros() + 60.0;
    assert!((sent as f64) <= most, "{sent} packets where {most} fit, {} in flight", stats.in_flight);
}

#[test]
fn b6_a_report_of_a_peer_without_proof_brings_no_more_packets() {
    let (mut bench, peer) = sending();
    bench.nak(&peer, &[range(peer.isn(), peer.isn().plus(1 << 20))]);
    bench.run_millis(50);
    let sent = bench.take_sent();
    assert!(data_packets(&sent).1 <= 16);
}

// ---- B7: drop requests ----

fn messages() -> (Bench, Peer) {
    let mut bench = Bench::new(Config::default(), Mode::Message);
    let peer = bench.accept(address(1), &Handshake { socket_type: SocketType::Dgram, ..call(5, 1000) });
    (bench, peer)
}

/// The packet before which the victim acknowledges everything.
fn acknowledged(bench: &mut Bench) -> Option<SeqNo> {
    bench.run_millis(50);
    let acks = bench.take_sent();
    acks.iter().rev().find_map(|sent| match sent.control() {
        Some(Control::Ack(ack @ (Ack::Full { .. } | Ack::Medium { .. }))) => Some(ack.seq()),
        _ => None,
    })
}

fn received(bench: &mut Bench, peer: &Peer) -> Vec<Vec<u8>> {
    let (mut all, mut out) = (Vec::new(), vec![0; 100_000]);
    while let Ok(Message::Received { len, .. }) = bench.end.recv_message(bench.now, peer.id, &mut out) {
        all.push(out[..len].to_vec());
    }
    all
}

#[test]
fn b7_a_drop_request_is_ignored_in_a_stream() {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    bench.full(&peer, peer.isn().plus(1));
    bench.control(&peer, &drop_request(1, peer.isn(), peer.isn().plus(8_000)));
    assert_eq!(acknowledged(&mut bench).unwrap_or(peer.isn()), peer.isn());
    assert_eq!(bench.end.read(bench.now, peer.id, &mut [0; 10]), Ok(Read::Pending));
}

#[test]
fn b7_a_request_over_the_whole_window_drops_one_message_only() {
    let (mut bench, peer) = messages();
    let isn = peer.isn();
    bench.data(&peer, isn, only(1), b"one");
    bench.data(&peer, isn.plus(2), only(3), b"three");
    bench.control(&peer, &drop_request(2, isn, isn.plus(8_191)));
    bench.control(&peer, &drop_request(2, isn.plus(1), isn.plus(8_191)));
    assert_eq!(acknowledged(&mut bench), Some(isn.plus(3)));
    bench.data(&peer, isn.plus(3), only(4), b"four");
    assert_eq!(received(&mut bench, &peer), [&b"one"[..], b"three", b"four"]);
}

#[test]
fn b7_a_request_costs_no_memory_and_repeating_it_changes_nothing() {
    let (mut bench, peer) = messages();
    let isn = peer.isn();
    for _ in 0..10_000 {
        bench.control(&peer, &drop_request(1, isn, isn.plus((1 << 30) - 1)));
        bench.control(&peer, &drop_request(0, SeqNo::new(0), SeqNo::new(0x3FFF_FFFF)));
    }
    assert!(bench.stats(&peer).memory < 100_000, "{}", bench.stats(&peer).memory);
}

#[test]
fn b7_reversed_and_endless_ranges_are_rejected() {
    let (mut bench, peer) = messages();
    let isn = peer.isn().value();
    let wrong: [[u32; 2]; 4] =
        [[isn + 1, isn], [isn, isn + 0x4000_0000], [0x7FFF_FFFF, isn + 0x4000_0000], [0, u32::MAX]];
    for body in wrong {
        bench.deliver(peer.address, &raw(7, 1, peer.victim, &words(&body)));
    }
    assert_eq!(bench.stats(&peer).totals.packets_invalid, 4);
    assert_eq!(acknowledged(&mut bench), None);
}

#[test]
fn b7_a_message_that_was_complete_may_be_dropped_before_it_is_read() {
    let (mut bench, peer) = messages();
    let isn = peer.isn();
    // Complete beyond a gap, so it could be read out of order.
    bench.data(&peer, isn.plus(3), only(5), b"five");
    bench.control(&peer, &drop_request(5, isn.plus(3), isn.plus(3)));
    let got = received(&mut bench, &peer);
    assert!(got.is_empty() || got == [b"five"]);
    bench.data(&peer, isn, only(1), b"one");
    assert_eq!(received(&mut bench, &peer), [b"one"]);
}

#[test]
fn b7_a_message_may_be_dropped_after_half_of_it_was_examined() {
    for dropped in 0..4 {
        let (mut bench, peer) = messages();
        let isn = peer.isn();
        bench.data(&peer, isn, field(Position::First, 1), b"aa");
        bench.data(&peer, isn.plus(1), field(Position::Middle, 1), b"bb");
        assert!(received(&mut bench, &peer).is_empty());
        bench.control(&peer, &drop_request(1, isn.plus(dropped), isn.plus(dropped)));
        bench.data(&peer, isn.plus(2), field(Position::Middle, 1), b"cc");
        bench.data(&peer, isn.plus(3), field(Position::Last, 1), b"dd");
        bench.data(&peer, isn.plus(4), only(2), b"next");
        let got = received(&mut bench, &peer);
        assert!(got.last().is_some_and(|last| last == b"next"), "{dropped}: {got:?}");
    }
}

#[test]
fn b7_a_packet_that_a_request_named_by_one_too_many_is_still_accepted() {
    let (mut bench, peer) = messages();
    let isn = peer.isn();
    // libudt's range ends one packet after the message.
    bench.data(&peer, isn.plus(3), only(3), b"three");
    bench.control(&peer, &drop_request(1, isn, isn.plus(2)));
    bench.data(&peer, isn.plus(2), only(2), b"two");
    assert_eq!(received(&mut bench, &peer), [&b"two"[..], b"three"]);
}

// ---- B11: gaps ----

fn reports(bench: &mut Bench) -> Vec<SeqRange> {
    bench.run_millis(1);
    let sent = bench.take_sent();
    let list = |sent: &Sent| match sent.control() {
        Some(Control::Nak(list)) => list.iter().collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    sent.iter().flat_map(list).collect()
}

#[test]
fn b11_a_packet_far_ahead_costs_a_bitmap_and_one_report() {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    bench.full(&peer, peer.isn().plus(8_191));
    assert_eq!(reports(&mut bench), [range(peer.isn(), peer.isn().plus(8_190))]);
    assert!(bench.stats(&peer).memory < 100_000, "{} bytes", bench.stats(&peer).memory);
}

#[test]
fn b11_with_tolerance_a_gap_is_reported_after_so_many_packets() {
    let mut bench = Bench::new(Config { reorder_tolerance: 3, ..Config::default() }, Mode::Stream);
    let peer = bench.accept_default();
    let isn = peer.isn();
    for (packet, expected) in [(1, 0), (2, 0), (3, 1)] {
        bench.full(&peer, isn.plus(packet));
        assert_eq!(reports(&mut bench).len(), expected, "after packet {packet}");
    }
}

/// One full packet of a stream arrives that was sent `left` microseconds after the start.
fn full_at(bench: &mut Bench, peer: &Peer, packet: u32, left: u32) {
    let mut datagram = crate::attack::bench::data(peer.victim, peer.isn().plus(packet), only(1), &[0x33; 1456]);
    datagram[8..12].copy_from_slice(&left.to_be_bytes());
    bench.deliver(peer.address, &datagram);
}

#[test]
fn b11_gaps_are_reported_at_once_while_only_repairs_fill_them_and_later_once_originals_did() {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    let at = |packet| range(peer.isn().plus(packet), peer.isn().plus(packet));
    full_at(&mut bench, &peer, 0, 1_000);
    for packet in 1..=10 {
        // Lost, revealed by the next one, and retransmitted soon.
        let (lost, next) = (2 * packet - 1, 2 * packet);
        full_at(&mut bench, &peer, next, 100_000 * next);
        assert_eq!(reports(&mut bench), [at(lost)]);
        full_at(&mut bench, &peer, lost, 100_000 * next + 90_000);
    }
    full_at(&mut bench, &peer, 22, 5_000_000);
    assert_eq!(reports(&mut bench), [at(21)]);
    full_at(&mut bench, &peer, 21, 4_999_000);
    full_at(&mut bench, &peer, 24, 5_100_000);
    assert_eq!(reports(&mut bench), [], "an original was late: this one may be, too");
    bench.run_millis(100);
    assert_eq!(bench.stats(&peer).totals.packets_lost_receiving, 12, "it was not");
}

#[test]
fn b11_a_gap_at_every_second_packet_is_bounded_in_memory_and_in_reports() {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    for packet in 0..4_096 {
        bench.full(&peer, peer.isn().plus(2 * packet + 1));
    }
    bench.take_sent();
    assert!(bench.stats(&peer).memory < 14_000_000);
    bench.run_millis(3_000);
    let sent = bench.take_sent();
    let bytes: usize = sent.iter().map(|sent| sent.bytes.len()).sum();
    assert!(sent.iter().all(|sent| sent.bytes.len() <= 1472));
    assert!(bytes < 300_000, "{bytes} bytes of reports in three seconds");
    assert_eq!(bench.closed(&peer), None);
}
