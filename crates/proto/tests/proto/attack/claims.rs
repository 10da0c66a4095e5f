//! False claims about the peer and the path: rates, capacity, windows. Also a peer that never makes progress.

use farhaul_proto::{Config, ConnectionLost, Event, Mode, Streams};
use farhaul_units::{Duration, SeqNo};
use farhaul_wire::udt4::{Ack, Control};

use crate::attack::acks::sending;
use crate::attack::bench::{Bench, Peer, Sent, address, call, only};

const RTT: Duration = Duration::from_millis(100);

// ---- B9: rates ----

#[test]
fn b9_an_arrival_speed_is_accepted_up_to_twice_what_was_sent() {
    let (mut bench, mut peer) = sending();
    let ack = peer.full_ack(peer.isn().plus(16), RTT, 8192, (u32::MAX, 0));
    bench.control(&peer, &ack);
    // Sixteen packets were sent within one interval of ten milliseconds.
    let accepted = bench.stats(&peer).arrival_rate.packets_per_second();
    assert!(accepted <= 2.0 * 1_600.0, "{accepted}");
}

#[test]
fn b9_an_honest_arrival_speed_after_a_pause_is_accepted() {
    let mut bench = Bench::listening();
    let mut peer = bench.accept_default();
    for _ in 0..20 {
        bench.control(&peer, &Control::KeepAlive);
        bench.run_millis(1_000);
    }
    bench.write(&peer, 16 * 1456);
    bench.run_millis(110);
    let ack = peer.full_ack(peer.isn().plus(16), RTT, 8192, (1_500, 0));
    bench.control(&peer, &ack);
    let accepted = bench.stats(&peer).arrival_rate.packets_per_second();
    assert!(accepted > 1_400.0, "{accepted}");
}

/// A receiver one RTT away that acknowledges arrivals every ten milliseconds. It takes at most `rate` packets per
/// second but claims any capacity. Returns the packets received in each tenth of a second.
fn greedy_receiver(rate: u64, seconds: u64) -> Vec<u64> {
    let mut bench = Bench::listening();
    let mut peer = bench.accept_default();
    let (mut counts, mut arrived, mut delivered) = (Vec::new(), 0u64, 0u64);
    let mut history = vec![0u64; 10];
    for tick in 0..seconds * 100 {
        let room = bench.end.writable(peer.id);
        bench.end.write(bench.now, peer.id, &vec![0; room]).expect("it is open");
        bench.run_millis(10);
        let sent = bench.take_sent();
        let news = sent.iter().filter_map(Sent::seq).map(|seq| u64::from(seq.distance_from(peer.isn()).unsigned_abs()));
        arrived = news.map(|at| at + 1).max().unwrap_or(0).max(arrived);
        delivered = arrived.min(delivered + rate / 100);
        history.push(delivered);
        let seen = peer.isn().plus(history[history.len() - 10] as u32);
        if tick == 100 {
            let first = seen;
            bench.nak(&peer, &[crate::attack::bench::range(first, first)]);
        }
        let ack = peer.full_ack(seen, RTT, 200_000, (rate as u32, u32::MAX));
        bench.control(&peer, &ack);
        if tick % 10 == 0 {
            counts.push(0);
        }
        *counts.last_mut().expect("pushed") += sent.iter().filter(|sent| sent.seq().is_some()).count() as u64;
    }
    counts
}

#[test]
fn b9_a_claimed_capacity_raises_the_rate_to_four_times_the_delivered_one_at_most() {
    let counts = greedy_receiver(2_000, 10);
    // 200 packets are delivered each tenth of a second; slow start is over after two seconds.
    let most = counts[20..].iter().max().expect("ten seconds");
    assert!(*most <= 4 * 200 + 60, "{counts:?}");
    assert!(counts[20..].iter().sum::<u64>() > 0);
}

// ---- B10: windows ----

/// The peer acknowledges everything it gets, which is nothing, with a window of `free` packets for `seconds`.
fn refuse(bench: &mut Bench, peer: &mut Peer, seq: SeqNo, free: u32, seconds: u64) -> Vec<Sent> {
    let mut all = Vec::new();
    for _ in 0..seconds * 20 {
        bench.run_millis(50);
        let sent = bench.take_sent();
        if sent.iter().any(|sent| sent.seq().is_some()) {
            let ack = peer.full_ack(seq, RTT, free, (0, 0));
            bench.control(peer, &ack);
        }
        bench.control(peer, &Control::KeepAlive);
        all.extend(sent.into_iter().filter(|sent| sent.seq().is_some()));
    }
    all
}

/// Checks that the intervals double, ±10 %, up to at most a minute less 10 %.
fn assert_doubling(probes: &[Sent]) {
    let gaps: Vec<f64> = probes.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64()).collect();
    assert!((15..=25).contains(&probes.len()), "{gaps:?}");
    let doubling = gaps.iter().take_while(|gap| **gap < 54.0).count();
    assert!(gaps[..doubling].windows(2).all(|pair| (1.8..=2.2).contains(&(pair[1] / pair[0]))), "{gaps:?}");
    assert!(gaps.len() > doubling && gaps[doubling..].iter().all(|gap| (54.0..=60.0).contains(gap)), "{gaps:?}");
}

#[test]
fn b10_a_closed_window_is_probed_with_one_packet_at_doubling_intervals_to_a_minute() {
    let (mut bench, mut peer) = sending();
    let seq = peer.isn().plus(16);
    let ack = peer.full_ack(seq, RTT, 0, (0, 0));
    bench.control(&peer, &ack);
    bench.write(&peer, 1 << 20);
    let probes = refuse(&mut bench, &mut peer, seq, 0, 600);
    assert!(probes.iter().all(|probe| probe.seq() == Some(seq)));
    assert_doubling(&probes);
    assert_eq!(bench.closed(&peer), None);

    let ack = peer.full_ack(seq, RTT, 1000, (0, 0));
    bench.control(&peer, &ack);
    bench.run_millis(0);
    assert!(bench.take_sent().iter().filter_map(Sent::seq).count() >= 2, "the open window is used at once");
}

#[test]
fn b10_a_window_that_closes_on_data_in_flight_is_probed_with_the_oldest_packet_and_used_when_it_opens() {
    let (mut bench, mut peer) = sending();
    let seq = peer.isn();
    let ack = peer.full_ack(seq, RTT, 0, (0, 0));
    bench.control(&peer, &ack);
    let probes = refuse(&mut bench, &mut peer, seq, 0, 600);
    assert!(probes.iter().all(|probe| probe.seq() == Some(seq)));
    assert_doubling(&probes);
    let ack = peer.full_ack(seq, RTT, 1000, (0, 0));
    bench.control(&peer, &ack);
    bench.run_millis(0);
    assert!(bench.take_sent().iter().any(|sent| sent.seq() == Some(seq)), "asked for as soon as it opened");
}

#[test]
fn b10_a_window_that_takes_one_packet_at_a_time_is_not_made_to_wait_longer_each_time() {
    let (mut bench, mut peer) = sending();
    let mut seq = peer.isn().plus(16);
    let ack = peer.full_ack(seq, RTT, 0, (0, 0));
    bench.control(&peer, &ack);
    bench.write(&peer, 1 << 20);
    let start = bench.now;
    for _ in 0..50 {
        let mut waited = 0;
        while !bench.take_sent().iter().any(|sent| sent.seq() == Some(seq)) {
            bench.run_millis(1);
            waited += 1;
            assert!(waited < 1_000, "{seq:?}");
        }
        seq = seq.next();
        let ack = peer.full_ack(seq, RTT, 0, (0, 0));
        bench.control(&peer, &ack);
    }
    assert!(bench.now - start < Duration::from_secs(10), "fifty questions took {:?}", bench.now - start);
}

#[test]
fn b10_a_peer_that_takes_nothing_is_given_up_where_the_policy_says_so() {
    let config = Config { stall_timeout: Some(Duration::from_secs(60)), ..Config::default() };
    let mut bench = Bench::new(config, Mode::Stream);
    let mut peer = bench.accept_default();
    bench.write(&peer, 16 * 1456);
    let seq = peer.isn();
    refuse(&mut bench, &mut peer, seq, 0, 59);
    assert_eq!(bench.closed(&peer), None);
    refuse(&mut bench, &mut peer, seq, 0, 2);
    assert!(matches!(bench.closed(&peer), Some(ConnectionLost::NoProgress(_))));
}

#[test]
fn b10_an_application_that_never_reads_costs_no_more_than_the_first_window() {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    for packet in 0..100_000 {
        bench.full(&peer, peer.isn().plus(packet));
        if packet % 1_000 == 0 {
            bench.run_millis(5);
            bench.take_sent();
        }
    }
    let stats = bench.stats(&peer);
    assert_eq!(stats.recv_buffer_packets, 8192);
    assert!(stats.memory < 14_000_000, "{} bytes", stats.memory);
    bench.run_millis(100);
    let free = bench.take_sent().iter().rev().find_map(|sent| match sent.control() {
        Some(Control::Ack(Ack::Full { free_buffer, .. } | Ack::Medium { free_buffer, .. })) => Some(free_buffer),
        _ => None,
    });
    assert!(free.is_none_or(|free| free == 0));
}

#[test]
fn b10_an_application_that_never_reads_costs_no_more_behind_a_gap_that_stays_open() {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    for packet in 1..100_000 {
        bench.full(&peer, peer.isn().plus(packet));
        if packet % 1_000 == 0 {
            bench.run_millis(5);
            bench.take_sent();
        }
    }
    let stats = bench.stats(&peer);
    assert_eq!(stats.totals.bytes_received, 8191 * 1456);
    assert!(stats.memory < 14_000_000, "{} bytes", stats.memory);
}

#[test]
fn b10_a_reader_that_stops_behind_a_gap_costs_no_more_than_one_that_reads_at_that_rate() {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    let mut taken = vec![0; 1_456];
    for packet in (0..200_000).filter(|packet| *packet != 100) {
        bench.full(&peer, peer.isn().plus(packet));
        if packet < 100 {
            bench.end.read(bench.now, peer.id, &mut taken).expect("it is open");
        }
        if packet % 500 == 0 {
            bench.run_millis(5);
            bench.take_sent();
        }
    }
    // The RTT is 100 ms at first, in which 10 000 packets arrive. The window is four times that.
    let stats = bench.stats(&peer);
    let packets = stats.totals.bytes_received / 1_456;
    assert!((8_192..=4 * 10_500).contains(&packets), "{packets}");
    assert!(stats.memory < 66_000_000, "{} bytes", stats.memory);
}

#[test]
fn b10_a_peer_that_acknowledges_lightly_for_ever_cannot_hold_a_finished_connection() {
    let (mut bench, peer) = sending();
    bench.end.finish(bench.now, peer.id);
    bench.control(&peer, &Control::Ack(Ack::Light { seq: peer.isn().plus(16) }));
    for _ in 0..100 {
        bench.control(&peer, &Control::KeepAlive);
        bench.run_millis(1_000);
    }
    let over = bench.events.iter().any(|event| matches!(event, Event::Closed(..) | Event::Finished(_)));
    assert!(over, "{:?}", bench.events);
}

#[test]
fn b10_warnings_in_floods_slow_down_by_a_ninth_until_the_controller_decides() {
    let (mut bench, mut peer) = sending();
    // A loss ends slow start, which is not paced.
    bench.nak(&peer, &[crate::attack::bench::range(peer.isn(), peer.isn())]);
    let before = bench.stats(&peer).send_period.as_micros();
    for _ in 0..10_000 {
        bench.control(&peer, &Control::CongestionWarning);
    }
    let after = bench.stats(&peer).send_period.as_micros();
    assert!((before..=before * 1.2).contains(&after), "{before} became {after} µs");
    bench.write(&peer, 1 << 20);
    bench.run_millis(200);
    let ack = peer.ack(peer.isn().plus(16));
    bench.control(&peer, &ack);
    bench.take_sent();
    bench.run_millis(1_000);
    assert!(bench.take_sent().iter().filter_map(Sent::seq).count() > 5);
}

#[test]
fn b10_data_beyond_the_window_and_packets_too_large_are_not_stored() {
    let mut bench = Bench::listening();
    let peer = bench.accept(address(1), &call(5, 1000));
    let before = bench.stats(&peer).memory;
    for far in [8192, 8193, 1 << 20, 1 << 29, (1 << 30) - 1, 1 << 30, (1 << 31) - 1] {
        bench.full(&peer, peer.isn().plus(far));
    }
    bench.data(&peer, peer.isn(), only(1), &[0; 1457]);
    bench.data(&peer, peer.isn(), only(1), &[0; 60_000]);
    bench.run_millis(100);
    assert_eq!(bench.take_sent().len(), 1, "what is of no use is answered once");
    assert_eq!(bench.stats(&peer).memory, before, "nothing is remembered of it");
    assert_eq!(bench.stats(&peer).totals.bytes_received, 0);
}
