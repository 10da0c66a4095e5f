//! Everything that wraps: packet, acknowledgement and message numbers, and time stamps (attack B12).

use farhaul_netem::{LossSpec, PathSpec};
use farhaul_proto::udt::{ConnectOptions, Message, MessageOptions};
use farhaul_proto::{Config, ConnectionId, Endpoint, Entropy, Event, Mode, Streams, udt};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_sim::{Simulation, Workload};
use farhaul_units::{AckNo, Duration, MsgNo, Rate, SeqNo};
use farhaul_wire::udt4::{Ack, Control, Handshake, MessageField, Packet, Position, SocketType};

use crate::attack::bench::{Bench, Sent, address, call, drop_request, range, with};

/// A lossy path with 50 Mbit/s and an RTT of 20 ms.
fn lossy() -> PathSpec {
    PathSpec {
        rate: Some(Rate::from_megabits_per_second(50)),
        delay: Duration::from_millis(10),
        loss: Some(LossSpec::Bernoulli(0.01)),
        ..PathSpec::default()
    }
}

fn pair(initial_seq: SeqNo) -> Pair<Endpoint> {
    let end = |seed: u8| {
        let config = Config { initial_seq: Some(initial_seq), ..Config::default() };
        let mut end = udt::endpoint(config, Entropy { cookie_key: [seed; 16], seed: seed.into() });
        end.listen(Mode::Stream).expect("UDT has the mode");
        end
    };
    Pair::new(end(1), end(2)).path(lossy())
}

#[test]
fn b12_packet_numbers_wrap_in_both_directions_in_the_middle_of_losses() {
    for before in [0, 1, 15, 63, 1_000] {
        let workloads = Workload::exchange(4_000_000);
        let mut run = pair(SeqNo::MAX.minus(before)).caller(workloads).listener(workloads).seed(before.into()).start();
        let both = |run: &Simulation<Endpoint>| {
            [CALLER, LISTENER]
                .iter()
                .all(|&host| run.flows(host).first().is_some_and(|flow| flow.received().complete_at.is_some()))
        };
        assert!(run.run_until_true(run.now() + Duration::from_secs(120), both), "{before}");
        assert_eq!((run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)), (vec![], vec![]));
    }
}

#[test]
fn b12_false_claims_beyond_the_wrap_are_detected() {
    let mut bench = Bench::listening();
    let mut peer = bench.accept(address(1), &call(5, SeqNo::MAX.minus(7).value()));
    bench.write(&peer, 16 * 1456);
    bench.take_sent();
    for beyond in [17, 1 << 20, (1 << 30) - 1] {
        let ack = peer.ack(peer.isn().plus(beyond));
        bench.control(&peer, &ack);
    }
    assert_eq!(bench.stats(&peer).in_flight, 16);
    bench.nak(&peer, &[range(peer.isn().plus(4), peer.isn().plus(12))]);
    assert_eq!(bench.stats(&peer).totals.packets_lost_sending, 9);
    let ack = peer.ack(peer.isn().plus(16));
    bench.control(&peer, &ack);
    assert_eq!(bench.stats(&peer).in_flight, 0);
    // On the receiving side, a gap over the wrap is one gap.
    bench.full(&peer, peer.isn());
    bench.full(&peer, peer.isn().plus(20));
    assert_eq!(bench.stats(&peer).totals.packets_lost_receiving, 19);
}

#[test]
fn b12_acknowledgement_numbers_are_confirmed_across_their_wrap() {
    let (mut bench, mut peer) = crate::attack::acks::sending();
    peer.acks = AckNo::new(SeqNo::MAX.value() - 2);
    let mut confirmed = Vec::new();
    for packet in 1..=6 {
        let ack = peer.ack(peer.isn().plus(packet));
        bench.control(&peer, &ack);
        confirmed.extend(bench.take_sent().iter().filter_map(|sent| match sent.control() {
            Some(Control::Ack2(number)) => Some(number.value()),
            _ => None,
        }));
    }
    let max = SeqNo::MAX.value();
    assert_eq!(confirmed, [max - 2, max - 1, max, 0, 1, 2]);
    assert_eq!(bench.stats(&peer).in_flight, 10);
}

#[test]
fn b12_message_numbers_wrap_without_mixing_messages_up() {
    let mut bench = Bench::new(Config::default(), Mode::Message);
    let peer = bench.accept(address(1), &Handshake { socket_type: SocketType::Dgram, ..call(5, 1000) });
    let mut number = MsgNo::new(MsgNo::MASK - 3);
    let mut seq = peer.isn();
    let mut wrapped = false;
    for at in 0..6u8 {
        for position in [Position::First, Position::Last] {
            bench.data(&peer, seq, MessageField { position, in_order: true, message: number }, &[at; 10]);
            seq = seq.next();
        }
        wrapped |= number.next().value() < number.value();
        number = number.next();
    }
    // A message that never arrives, dropped by its number.
    bench.control(&peer, &drop_request(number.value(), seq, seq));
    assert!(wrapped);
    let mut out = [0; 100];
    for at in 0..6u8 {
        let got = bench.end.recv_message(bench.now, peer.id, &mut out);
        assert_eq!(got, Ok(Message::Received { len: 20, truncated: false }));
        assert_eq!(out[..20], [at; 20]);
    }
    bench.run_millis(50);
    let acknowledged = bench.take_sent().iter().rev().find_map(|sent: &Sent| match sent.control() {
        Some(Control::Ack(ack @ Ack::Full { .. })) => Some(ack.seq()),
        _ => None,
    });
    assert_eq!(acknowledged, Some(seq.next()));
}

#[test]
fn b12_our_own_acknowledgement_numbers_cross_their_wrap() {
    let max = SeqNo::MAX.value();
    let config = with(udt::Config { initial_ack: AckNo::new(max - 2), ..Default::default() });
    let mut bench = Bench::new(config, Mode::Stream);
    let peer = bench.accept_default();
    let mut numbers = Vec::new();
    for packet in 0..6 {
        bench.full(&peer, peer.isn().plus(packet));
        bench.run_millis(10);
        let sent = bench.take_sent();
        let [number] = acks(&sent)[..] else { panic!("not one acknowledgement") };
        numbers.push(number.value());
        bench.run_millis(40);
        bench.control(&peer, &Control::Ack2(number));
    }
    assert_eq!(numbers, [max - 2, max - 1, max, 0, 1, 2]);
    // Each gave a sample of 40 ms, and nothing remains unconfirmed.
    let rtt = bench.stats(&peer).rtt;
    assert!((40..80).contains(&rtt.as_millis()), "{rtt:?}");
    bench.run_millis(5_000);
    assert_eq!(acks(&bench.take_sent()), []);
}

/// Numbers of the full and medium acknowledgements.
fn acks(sent: &[Sent]) -> Vec<AckNo> {
    let number = |sent: &Sent| match sent.control() {
        Some(Control::Ack(ack)) => ack.number(),
        _ => None,
    };
    sent.iter().filter_map(number).collect()
}

#[test]
fn b12_a_lossy_transfer_over_the_wrap_of_its_acknowledgements_is_like_any_other() {
    let transfer_from = |initial_ack: AckNo| {
        let end = |seed: u8| {
            let config =
                Config { initial_seq: Some(SeqNo::new(1)), ..with(udt::Config { initial_ack, ..Default::default() }) };
            let mut end = udt::endpoint(config, Entropy { cookie_key: [seed; 16], seed: seed.into() });
            end.listen(Mode::Stream).expect("UDT has the mode");
            end
        };
        let workload = Workload::exchange(4_000_000);
        let mut run = Pair::new(end(1), end(2)).path(lossy()).caller(workload).listener(workload).seed(3).start();
        assert!(run.run_until_done(Duration::from_secs(120)));
        assert_eq!((run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)), (vec![], vec![]));
        let id = run.flows(CALLER)[0].id();
        let stats = run.transport(CALLER).stats(run.now(), id).expect("it was not released");
        (stats.rtt, stats.totals)
    };
    let (rtt, totals) = transfer_from(AckNo::FIRST);
    let before = 20;
    let (wrapped_rtt, wrapped) = transfer_from(AckNo::new(SeqNo::MAX.value() - before));
    assert!(wrapped.acks_sent > 2 * u64::from(before), "it does cross the wrap");
    // Nothing else depends on the number.
    assert_eq!((wrapped_rtt, wrapped), (rtt, totals));
}

/// Two endpoints in message mode, with the connections of both.
fn message_pair(initial_message: MsgNo) -> ([Bench; 2], [ConnectionId; 2]) {
    let end = || Bench::new(with(udt::Config { initial_message, ..Default::default() }), Mode::Message);
    let mut ends = [end(), end()];
    let options = ConnectOptions { mode: Mode::Message, rendezvous: false };
    let here = ends[0].now;
    let id = ends[0].end.connect_with(here, address(1), options).expect("there is room");
    converse(&mut ends, 100, |_| true);
    let there = ends[1].events.iter().find_map(|event| match *event {
        Event::Accepted(id) => Some(id),
        _ => None,
    });
    (ends, [id, there.expect("connected")])
}

/// Lets both exchange datagrams for `millis` over a path of a millisecond. `passes` decides about each datagram.
fn converse(ends: &mut [Bench; 2], millis: u64, mut passes: impl FnMut(&Sent) -> bool) {
    for _ in 0..millis {
        for to in [0, 1] {
            for sent in ends[1 - to].take_sent() {
                if passes(&sent) {
                    ends[to].deliver(address(1 - to as u16), &sent.bytes);
                }
            }
        }
        ends[0].run_millis(1);
        ends[1].run_millis(1);
    }
}

/// The message number, if it is a packet of a message.
fn message_number(sent: &Sent) -> Option<u32> {
    match sent.packet() {
        Packet::Data { header, .. } => Some(header.field.message.value()),
        Packet::Control { .. } => None,
    }
}

#[test]
fn b12_our_own_message_numbers_cross_their_wrap_in_the_middle_of_losses() {
    // The last number is one less than the field's maximum. UDT4 sends neither that one nor zero.
    let last = MsgNo::MASK - 1;
    let (mut ends, [from, to]) = message_pair(MsgNo::new(last - 3));
    let now = ends[0].now;
    for n in 0..10u8 {
        let options = MessageOptions { in_order: n % 2 == 0, ..MessageOptions::default() };
        assert_eq!(ends[0].end.send_message(now, from, &[n; 4_000], options), Ok(true));
    }
    let (mut seen, mut packets) = (Vec::new(), 0);
    converse(&mut ends, 2_000, |sent| {
        let Some(number) = message_number(sent) else { return true };
        seen.push(number);
        packets += 1;
        packets % 4 != 0
    });
    seen.dedup();
    let distinct: std::collections::BTreeSet<u32> = seen.iter().copied().collect();
    let expected = [last - 3, last - 2, last - 1, last, 1, 2, 3, 4, 5, 6];
    assert_eq!(distinct, expected.into_iter().collect());
    let mut received: Vec<u8> = Vec::new();
    let mut out = [0; 5_000];
    while let Ok(Message::Received { len, truncated: false }) = ends[1].end.recv_message(now, to, &mut out) {
        assert_eq!(out[..len], [out[0]; 4_000]);
        received.push(out[0]);
    }
    let in_order: Vec<u8> = received.iter().copied().filter(|n| n % 2 == 0).collect();
    assert_eq!(in_order, [0, 2, 4, 6, 8]);
    received.sort_unstable();
    assert_eq!(received, (0..10).collect::<Vec<u8>>());
}

#[test]
fn b12_messages_on_both_sides_of_the_wrap_are_given_up_by_their_own_numbers() {
    let last = MsgNo::MASK - 1;
    let (mut ends, [from, to]) = message_pair(MsgNo::new(last - 1));
    let now = ends[0].now;
    for n in 0..4u8 {
        // The last before the wrap and the first after it live for 50 ms and never arrive whole.
        let ttl = [1, 2].contains(&n).then_some(Duration::from_millis(50));
        let options = MessageOptions { in_order: true, ttl };
        assert_eq!(ends[0].end.send_message(now, from, &[n; 4_000], options), Ok(true));
    }
    let mut dropped = Vec::new();
    converse(&mut ends, 3_000, |sent| {
        if let Some(Control::DropRequest(request)) = sent.control() {
            dropped.push(request.message.value());
        }
        !matches!(message_number(sent), Some(number) if number == last || number == 1)
    });
    dropped.sort_unstable();
    dropped.dedup();
    assert_eq!(dropped, [1, last]);
    let mut out = [0; 5_000];
    for n in [0, 3] {
        let got = ends[1].end.recv_message(now, to, &mut out);
        assert_eq!((got, out[0]), (Ok(Message::Received { len: 4_000, truncated: false }), n));
    }
    assert_eq!(ends[0].end.stats(now, from).map(|stats| stats.in_flight), Some(0));
}

#[test]
fn b12_a_transfer_over_the_wrap_of_the_time_stamp_is_like_any_other() {
    /// Microseconds in 32 bits.
    const WRAP: Duration = Duration::from_micros(1 << 32);
    let transfer_at = |start: Duration| {
        let mut run = pair(SeqNo::new(1)).seed(3).start();
        run.run_for(start);
        let id = run.flows(CALLER)[0].id();
        let mut left = 12_000_000usize;
        while left > 0 {
            let taken = run.command(CALLER, |now, end, _| end.write(now, id, &vec![0; left.min(1 << 20)]));
            left -= taken.expect("an idle connection lives");
            run.run_for(Duration::from_millis(5));
        }
        let over = |run: &Simulation<Endpoint>| run.flows(LISTENER)[0].received().bytes == 12_000_000;
        assert!(run.run_until_true(run.now() + Duration::from_secs(60), over));
        let stats = run.transport(CALLER).stats(run.now(), id).expect("it was not released");
        (stats.elapsed - start, stats.retransmission_ratio())
    };
    let (time, ratio) = transfer_at(Duration::from_secs(600));
    let (wrapped_time, wrapped_ratio) = transfer_at(WRAP - Duration::from_millis(500));
    assert!(time > Duration::from_secs(1), "it does cross the wrap");
    assert!(wrapped_time < time * 2 && time < wrapped_time * 2, "{time:?} {wrapped_time:?}");
    assert!(wrapped_ratio < 0.5 && ratio < 0.5, "{ratio} {wrapped_ratio}");
}
