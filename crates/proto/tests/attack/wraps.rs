//! Everything that wraps: packet, acknowledgement and message numbers, time stamps (attack B12).

use farhaul_netem::{LossSpec, PathSpec};
use farhaul_proto::udt::{Endpoint, Message};
use farhaul_proto::{Config, Entropy, Mode, Streams};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_sim::{Plan, Simulation};
use farhaul_units::{AckNo, Duration, MsgNo, Rate, SeqNo};
use farhaul_wire::udt4::{Ack, Control, Handshake, MessageField, Position, SocketType};

use crate::bench::{Bench, Sent, address, call, drop_request, range};

/// Lossy, 50 Mbit/s, 20 ms there and back.
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
        let mut end = Endpoint::new(config, Entropy { cookie_key: [seed; 16], seed: seed.into() });
        end.listen(Mode::Stream);
        end
    };
    Pair::new(end(1), end(2)).path(lossy())
}

#[test]
fn b12_packet_numbers_wrap_in_both_directions_in_the_middle_of_losses() {
    for before in [0, 1, 15, 63, 1_000] {
        let plans = Plan::exchange(4_000_000);
        let mut run = pair(SeqNo::MAX.minus(before)).caller(plans).listener(plans).seed(before.into()).start();
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
fn b12_lies_about_the_far_side_of_the_wrap_are_lies_all_the_same() {
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
    // The receiving half: a gap over the wrap is one gap.
    bench.full(&peer, peer.isn());
    bench.full(&peer, peer.isn().plus(20));
    assert_eq!(bench.stats(&peer).totals.packets_lost_receiving, 19);
}

#[test]
fn b12_acknowledgement_numbers_are_confirmed_across_their_wrap() {
    let (mut bench, mut peer) = crate::acks::sending();
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
    // One that never comes, dropped by its number.
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
