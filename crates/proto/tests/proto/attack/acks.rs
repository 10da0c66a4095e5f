//! Acknowledgements that cannot be true, are duplicated, come in slices, or are cut short.

use farhaul_proto::Stats;
use farhaul_units::{AckNo, Duration, SeqNo};
use farhaul_wire::udt4::{Ack, Control};

use crate::attack::bench::{Bench, Peer, data_packets, encode, raw};

const FULL: usize = 1456;

/// A connection with sixteen packets in flight.
pub(crate) fn sending() -> (Bench, Peer) {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    bench.control(&peer, &Control::KeepAlive);
    bench.write(&peer, 16 * FULL);
    bench.run_millis(50);
    bench.take_sent();
    assert_eq!(bench.stats(&peer).in_flight, 16);
    (bench, peer)
}

/// The state that no false claim may change.
fn state(bench: &Bench, peer: &Peer) -> (u32, u32, u32, u64, u64, Duration) {
    let Stats { in_flight, flow_window, cwnd, memory, totals, rtt, .. } = bench.stats(peer);
    (in_flight, flow_window, cwnd, memory, totals.bytes_acked, rtt)
}

fn lies(seq: SeqNo) -> [Ack; 3] {
    let (number, rtt, rtt_var) = (AckNo::new(9), Duration::from_secs(1), Duration::ZERO);
    let free_buffer = 4;
    [
        Ack::Light { seq },
        Ack::Medium { number, seq, rtt, rtt_var, free_buffer },
        Ack::Full { number, seq, rtt, rtt_var, free_buffer, arrival_rate: 1, capacity: 1 },
    ]
}

#[test]
fn b2_b3_an_ack_beyond_what_was_sent_changes_nothing_whatever_its_length() {
    let (mut bench, peer) = sending();
    let (before, isn) = (state(&bench, &peer), peer.isn());
    let mut count = 0;
    for beyond in [17, 18, 100, 8192, 1 << 20, (1 << 30) - 1] {
        for ack in lies(isn.plus(beyond)) {
            bench.control(&peer, &Control::Ack(ack));
            count += 1;
        }
    }
    assert_eq!(state(&bench, &peer), before);
    assert_eq!((bench.closed(&peer), bench.stats(&peer).totals.packets_invalid), (None, count));
}

#[test]
fn b2_b3_an_ack_of_the_past_changes_nothing() {
    let (mut bench, mut peer) = sending();
    let isn = peer.isn();
    let ack = peer.ack(isn.plus(8));
    bench.control(&peer, &ack);
    let before = state(&bench, &peer);
    for back in [1, 8, 9, 1 << 20, 1 << 30] {
        for ack in lies(isn.plus(8).minus(back)) {
            bench.control(&peer, &Control::Ack(ack));
        }
    }
    assert_eq!((state(&bench, &peer), bench.closed(&peer)), (before, None));
}

#[test]
fn b2_only_silence_ends_a_connection_whose_peer_lies() {
    let (mut bench, peer) = sending();
    for _ in 0..300 {
        for ack in lies(peer.isn().plus(1000)) {
            bench.control(&peer, &Control::Ack(ack));
        }
        bench.run_millis(100);
    }
    assert_eq!(bench.closed(&peer), None);
    bench.run_millis(31_000);
    assert!(matches!(bench.closed(&peer), Some(farhaul_proto::ConnectionLost::PeerSilent(_))));
}

#[test]
fn b4_a_body_of_the_wrong_length_is_counted_and_has_no_effect() {
    let (mut bench, peer) = sending();
    let before = state(&bench, &peer);
    let legal = |kind: u16, length: usize| match kind {
        0 => length == 48,
        2 => matches!(length, 4 | 16 | 24),
        3 => length > 0 && length.is_multiple_of(4),
        7 => length == 8,
        _ => matches!(length, 0 | 4),
    };
    let mut wrong = 0;
    for kind in 0..=8 {
        for length in (0..=64).filter(|&length| !legal(kind, length)) {
            // Bytes that would have an effect if they were read: the packets in flight start at 1000.
            let body: Vec<u8> = (0..length).map(|at| [0, 0, 3, 0xEC][at % 4]).collect();
            bench.deliver(peer.address, &raw(kind, 1, peer.victim, &body));
            wrong += 1;
        }
    }
    assert_eq!(bench.take_sent().len(), 0);
    assert_eq!((state(&bench, &peer), bench.closed(&peer)), (before, None));
    // Only the endpoint counts handshakes.
    let handshakes = (0..=64).filter(|&length| !legal(0, length)).count() as u64;
    assert_eq!(bench.stats(&peer).totals.packets_invalid, wrong - handshakes);
    assert_eq!(bench.end.invalid_datagrams(), wrong);
}

#[test]
fn b4_a_datagram_without_a_whole_header_belongs_to_no_connection() {
    let (mut bench, peer) = sending();
    let shutdown = encode(peer.victim, &Control::Shutdown);
    for length in 0..16 {
        bench.deliver(peer.address, &shutdown[..length]);
    }
    bench.run_millis(3_000);
    assert_eq!(bench.closed(&peer), None);
    assert_eq!(bench.end.invalid_datagrams(), 15, "there is no datagram of no bytes");
}

#[test]
fn b13_numbers_with_the_top_bit_are_rejected() {
    let (mut bench, peer) = sending();
    let before = state(&bench, &peer);
    let word = 0x8000_0000 | peer.isn().value();
    let body = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_be_bytes()).collect() };
    let good = peer.isn().value();
    let lies = [
        raw(2, 1, peer.victim, &body(&[word + 16])),
        raw(2, 1, peer.victim, &body(&[word + 16, 1, 1, 1])),
        raw(2, 0x8000_0001, peer.victim, &body(&[good + 16, 1, 1, 1, 1, 1])),
        raw(3, 0, peer.victim, &body(&[word, word + 5])),
        raw(6, 0x8000_0001, peer.victim, &[]),
        raw(7, 1, peer.victim, &body(&[word, good])),
        raw(7, 1, peer.victim, &body(&[good, word])),
    ];
    for lie in &lies {
        bench.deliver(peer.address, lie);
    }
    assert_eq!(bench.stats(&peer).totals.packets_invalid, lies.len() as u64);
    assert_eq!((state(&bench, &peer), bench.take_sent().len()), (before, 0));
    let mut elsewhere = encode(peer.victim, &Control::Shutdown);
    elsewhere[12] |= 0x80;
    bench.deliver(peer.address, &elsewhere);
    bench.run_millis(1_000);
    assert_eq!(bench.closed(&peer), None);
}

#[test]
fn b9_acks_in_slices_copies_and_light_ones_earn_no_more_than_one_for_all() {
    // Packets sent in the next 100 ms, and the window.
    let grown = |acks: &mut dyn FnMut(&mut Bench, &mut Peer)| {
        let (mut bench, mut peer) = sending();
        acks(&mut bench, &mut peer);
        bench.run_millis(20);
        let last = peer.ack(peer.isn().plus(16));
        bench.control(&peer, &last);
        assert_eq!(bench.stats(&peer).totals.bytes_acked, 16 * FULL as u64);
        let stats = bench.stats(&peer);
        bench.write_some(&peer, 1 << 20);
        bench.run_millis(100);
        let after = bench.stats(&peer);
        assert!(after.send_buffer_packets > after.in_flight, "there was more to send");
        let (left, _) = data_packets(&bench.take_sent());
        (left, if stats.send_period.is_unpaced() { stats.cwnd } else { 0 })
    };
    let at_once = grown(&mut |_, _| {});
    let sliced = grown(&mut |bench, peer| {
        for packet in 1..=16 {
            let ack = peer.ack(peer.isn().plus(packet));
            bench.control(peer, &ack);
            bench.run_millis(10);
        }
    });
    let light = grown(&mut |bench, peer| {
        for packet in 1..=16 {
            bench.control(peer, &Control::Ack(Ack::Light { seq: peer.isn().plus(packet) }));
        }
    });
    let copied = grown(&mut |bench, peer| {
        for _ in 0..1_000 {
            let ack = peer.ack(peer.isn().plus(8));
            bench.control(peer, &ack);
            bench.run_millis(1);
        }
    });
    let replayed = grown(&mut |bench, peer| {
        let ack = peer.ack(peer.isn().plus(8));
        for _ in 0..1_000 {
            bench.control(peer, &ack);
            bench.run_millis(1);
        }
    });
    assert_eq!(at_once, (64, 64));
    for (how, other) in [("sliced", sliced), ("light", light), ("copied", copied), ("replayed", replayed)] {
        assert!(other.0 > 0 && other.0 <= at_once.0 && other.1 <= at_once.1, "{how}: {other:?}");
    }
}

#[test]
fn b9_each_ack_is_confirmed_once_and_floods_of_them_boundedly() {
    let (mut bench, mut peer) = sending();
    let mut train = Vec::new();
    for _ in 0..1_000 {
        let ack = peer.ack(peer.isn());
        train.extend(encode(peer.victim, &ack));
    }
    farhaul_proto::Transport::handle_datagrams(&mut bench.end, bench.now, bench.now, peer.address, &mut train, 40);
    let confirmations =
        bench.take_sent().iter().filter(|sent| matches!(sent.control(), Some(Control::Ack2(_)))).count();
    assert_eq!(confirmations, 16, "one turn confirms the newest ones");
}

#[test]
fn b9_a_forged_confirmation_is_no_round_trip_sample() {
    let (mut bench, peer) = sending();
    bench.full(&peer, peer.isn());
    bench.run_millis(10);
    let rtt = bench.stats(&peer).rtt;
    let number = bench.take_sent().iter().find_map(|sent| match sent.control() {
        Some(Control::Ack(ack)) => ack.number(),
        _ => None,
    });
    let number = number.expect("data is acknowledged").value();
    for other in (0..5_000).filter(|&other| other != number) {
        bench.control(&peer, &Control::Ack2(AckNo::new(other)));
    }
    assert_eq!(bench.stats(&peer).rtt, rtt);
}

#[test]
fn b9_a_round_trip_time_out_of_range_is_not_used() {
    let (mut bench, mut peer) = sending();
    let first = peer.full_ack(peer.isn().plus(1), Duration::from_millis(50), 8192, (0, 0));
    bench.control(&peer, &first);
    let before = bench.stats(&peer);
    for micros in [0, 60_000_001, u64::from(u32::MAX)] {
        let ack = peer.full_ack(peer.isn().plus(1), Duration::from_micros(micros), 8192, (0, 0));
        bench.control(&peer, &ack);
        // The sender's own measurement, fifty milliseconds, may count.
        let after = bench.stats(&peer);
        assert!(after.rtt >= Duration::from_millis(50) && after.rtt <= before.rtt, "{:?}", after.rtt);
    }
}
