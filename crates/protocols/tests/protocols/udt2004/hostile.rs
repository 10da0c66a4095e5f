//! Datagrams that no honest peer sends. Nothing panics, hangs or grows, and other connections continue. Attacks are named
//! by the letters of SECURITY.md.

use core::net::SocketAddr;

use farhaul_netem::PathSpec;
use farhaul_proto::{Batch, Config, Endpoint, Event, Streams, Transport};
use farhaul_protocols::udt2004::default_config;
use farhaul_sim::topology::path::{CALLER, LISTENER, address};
use farhaul_sim::{Simulation, TapAction, Workload};
use farhaul_units::{Duration, Instant, Rng};
use farhaul_wire::udt2004::{
    Ack, Control, HEADER_LEN, Handshake, LossList, LossRange, Packet, Request, SeqNo30, encode_data_header,
    encode_losses,
};
use proptest::prelude::*;

use crate::udt2004::scenario::{LENGTH, LIMIT, clean_path, listener, pair, small_buffers, some_path, stats};

fn encoded(control: &Control<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    control.encode(&mut bytes);
    bytes
}

/// A transfer that has run for a second.
fn with_data_in_flight(seed: u64) -> Simulation<Endpoint> {
    let mut run = pair(seed, small_buffers).path(clean_path()).caller(Workload::send_without_end()).start();
    run.run_for(Duration::from_secs(1));
    run
}

/// The caller's next new packet, as seen on the path.
fn next_number(run: &mut Simulation<Endpoint>) -> SeqNo30 {
    let seen = std::rc::Rc::new(std::cell::Cell::new(None));
    let last = std::rc::Rc::clone(&seen);
    run.set_tap(Some(Box::new(move |datagram| {
        if let Ok(Packet::Data { seq, .. }) = Packet::decode(datagram.bytes) {
            last.set(Some(seq));
        }
        TapAction::Pass
    })));
    run.run_for(Duration::from_millis(100));
    run.set_tap(None);
    seen.get().expect("data is in flight").plus(1)
}

fn received(run: &Simulation<Endpoint>) -> u64 {
    run.flows(LISTENER)[0].received().bytes
}

/// Checks that the transfer continues at no less than this share of the path.
fn goes_on(run: &mut Simulation<Endpoint>, share: f64) {
    let before = received(run);
    run.run_for(Duration::from_secs(2));
    let rate = (received(run) - before) as f64 * 8.0 / 2.0 / 1e8;
    assert!(rate > share, "{rate:.2} of the path");
}

#[test]
fn noise_and_mutated_copies_from_the_peer_and_from_strangers_do_not_stop_a_transfer() {
    for seed in 0..20 {
        let workload = Workload::exchange(LENGTH);
        let mut run = pair(seed, small_buffers).path(clean_path()).caller(workload).listener(workload).start();
        let mut rng = Rng::new(seed);
        run.set_tap(Some(Box::new(move |datagram| {
            let stranger: SocketAddr = "192.0.2.66:9000".parse().expect("an address");
            if rng.chance(0.05) {
                let noise = (0..rng.below(60)).map(|_| rng.next_u32() as u8).collect();
                datagram.forged.push((stranger, datagram.to, noise));
                let mut copy = datagram.bytes.clone();
                copy[rng.below(4) as usize] = rng.next_u32() as u8;
                copy.truncate(rng.below(2 * copy.len() as u64) as usize);
                datagram.forged.push((stranger, datagram.to, copy));
            }
            TapAction::Pass
        })));
        assert!(run.run_until_done(LIMIT), "seed {seed}");
        assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0], "seed {seed}");
        assert_eq!((run.flows(CALLER).len(), run.flows(LISTENER).len()), (1, 1), "seed {seed}");
    }
}

#[test]
fn damage_that_no_checksum_catches_neither_panics_nor_hangs() {
    for seed in 0..40 {
        let path = PathSpec { corrupt: 0.2, ..some_path(&mut Rng::new(seed)) };
        let workload = Workload::exchange(1 << 20);
        let mut run = pair(seed, small_buffers).path(path).caller(workload).listener(workload).start();
        run.deliver_damaged(true);
        let arrived = |run: &Simulation<Endpoint>, host: usize| -> u64 {
            run.flows(host).iter().map(|flow| flow.received().bytes).sum()
        };
        run.run_for(Duration::from_secs(20));
        let before = [CALLER, LISTENER].map(|host| arrived(&run, host));
        run.run_for(Duration::from_secs(90));
        for host in [CALLER, LISTENER] {
            let over = run.flows(host).iter().all(|flow| flow.is_done() || flow.closed.is_some());
            let goes_on = arrived(&run, host) > before[host];
            assert!(over || goes_on, "seed {seed}, host {host}: neither over nor going on");
        }
    }
}

/// Attack B1: an attacker without the connection id cannot end it, not even with the peer's address.
#[test]
fn a_close_packet_with_a_guessed_id_is_counted_and_changes_nothing() {
    let mut run = with_data_in_flight(1);
    let end = next_number(&mut run);
    for connection in 0..1_000 {
        let close = encoded(&Control::Close { connection, end, acked: end });
        run.inject(LISTENER, address(CALLER), &close);
    }
    assert!(stats(&run, LISTENER).totals.packets_invalid >= 1_000);
    goes_on(&mut run, 0.8);
}

/// Attacks B2, B5: reports and acknowledgements of packets that were never sent.
#[test]
fn packets_never_sent_are_neither_acknowledged_nor_retransmitted() {
    let mut run = with_data_in_flight(2);
    let next = next_number(&mut run);
    let before = stats(&run, CALLER).totals;
    for step in 1..1_000 {
        let seq = next.plus(1_000 * step);
        let ack = Ack { id: 1, seq, rtt: Duration::from_millis(20), arrival_speed: 8_000, capacity: 8_000 };
        run.inject(CALLER, address(LISTENER), &encoded(&Control::Ack(ack)));
        let mut body = Vec::new();
        let range = LossRange { first: seq, end: seq.plus(500) };
        let (_, count) = encode_losses(std::iter::once(range), 2, &mut body);
        let list = LossList::from_body(count, &body).expect("well formed");
        run.inject(CALLER, address(LISTENER), &encoded(&Control::Nak(list)));
    }
    let after = stats(&run, CALLER).totals;
    assert_eq!((after.acks_received, after.naks_received), (before.acks_received, before.naks_received));
    assert_eq!(after.packets_lost_sending, before.packets_lost_sending);
    goes_on(&mut run, 0.8);
}

/// Attack B6: a thousand requests of eight bytes for everything cost one retransmission of each packet per RTT.
#[test]
fn a_flood_of_loss_reports_is_no_amplifier() {
    let mut run = with_data_in_flight(3);
    let next = next_number(&mut run);
    let before = stats(&run, CALLER).totals;
    let range = LossRange { first: next.plus(0u32.wrapping_sub(400)), end: next };
    let mut body = Vec::new();
    let (_, count) = encode_losses(std::iter::once(range), 2, &mut body);
    for _ in 0..1_000 {
        let list = LossList::from_body(count, &body).expect("well formed");
        run.inject(CALLER, address(LISTENER), &encoded(&Control::Nak(list)));
    }
    run.run_for(Duration::from_millis(20));
    let resent = stats(&run, CALLER).totals.packets_retransmitted - before.packets_retransmitted;
    assert!(resent <= 800, "{resent} repairs");
}

/// Attack B11: a packet far ahead takes no memory and causes no report of a million losses.
#[test]
fn packets_far_ahead_take_no_memory() {
    let mut run = with_data_in_flight(4);
    let next = next_number(&mut run);
    let before = stats(&run, LISTENER);
    for step in 0..1_000u32 {
        let mut bytes = encode_data_header(next.plus(5_000 + step * 100_000)).to_vec();
        bytes.extend([0; 1_468]);
        run.inject(LISTENER, address(CALLER), &bytes);
    }
    let after = stats(&run, LISTENER);
    assert_eq!(after.totals.packets_invalid - before.totals.packets_invalid, 1_000);
    assert!(after.memory < before.memory + 100_000, "{} bytes", after.memory);
    goes_on(&mut run, 0.8);
}

/// A flood of warnings slows the sender once per RTT, not once per warning.
#[test]
fn a_thousand_warnings_at_once_count_as_one() {
    let mut run = with_data_in_flight(5);
    let period = |run: &Simulation<Endpoint>| stats(run, CALLER).send_period.as_micros();
    let before = period(&run);
    for _ in 0..1_000 {
        run.inject(CALLER, address(LISTENER), &encoded(&Control::DelayWarning));
    }
    assert!(period(&run) <= before * 1.126, "{before} {}", period(&run));
    run.run_for(Duration::from_millis(50));
    goes_on(&mut run, 0.7);
}

/// Attacks A4 to A7, A11: an endpoint stores nothing before a valid cookie and answers with no more bytes than it received.
/// It refuses too small packet sizes.
#[test]
fn callers_without_a_cookie_cost_no_memory_and_get_no_more_than_they_sent() {
    let mut end = listener(1, default_config());
    let mut batch = Batch::new();
    let mut rng = Rng::new(7);
    let call = |request, mtu, connection, cookie| {
        encoded(&Control::Handshake(Handshake {
            version: Handshake::VERSION,
            request,
            isn: SeqNo30::new(5),
            mtu,
            flow_window: u32::MAX,
            connection,
            cookie,
        }))
    };
    let mut ask = |from: SocketAddr, mut bytes: Vec<u8>| {
        let length = bytes.len();
        end.handle_datagrams(Instant::ZERO, Instant::ZERO, from, &mut bytes, length);
        let answer = end.poll_transmit(Instant::ZERO, &mut batch).map(|transmit| transmit.bytes.to_vec());
        assert!(answer.as_ref().is_none_or(|answer| answer.len() <= length));
        (answer, end.connections())
    };
    let from = |n: u32| SocketAddr::from(([10, (n >> 16) as u8, (n >> 8) as u8, n as u8], 9_000));
    for n in 0..10_000 {
        let (answer, connections) = ask(from(n), call(Request::Cookie, 1_500, 9, 0));
        assert!(answer.is_some() && connections == 0);
        let (answer, connections) = ask(from(n), call(Request::Open, 1_500, 9, rng.next_u32()));
        assert!(answer.is_none() && connections == 0, "a guessed cookie");
    }
    // A network without guesses, because guesses would require a second cookie (attack A1).
    let honest = |n| SocketAddr::from(([192, 168, 5, n], 9_000));
    let (answer, _) = ask(honest(1), call(Request::Cookie, 1_500, 9, 0));
    let Ok(Packet::Control(Control::Handshake(Handshake { cookie, .. }))) = Packet::decode(answer.as_ref().unwrap())
    else {
        panic!("no cookie")
    };
    let (answer, connections) = ask(honest(1), call(Request::Open, 500, 9, cookie));
    let refused = Packet::decode(answer.as_ref().unwrap());
    assert!(matches!(refused, Ok(Packet::Control(Control::Handshake(Handshake { request: Request::Refused, .. })))));
    assert_eq!(connections, 0);
    assert_eq!(ask(honest(2), call(Request::Open, 1_500, 9, cookie)).1, 0, "the cookie of another");
    assert_eq!(ask(honest(1), call(Request::Open, 1_500, 9, cookie)).1, 1);
    assert_eq!(ask(honest(1), call(Request::Open, 1_500, 8, cookie)).1, 1, "one connection for one address");
}

/// Delivers byte strings in turn to both ends of a connection, in the name of the other.
fn feed(run: &mut Simulation<Endpoint>, datagrams: &[Vec<u8>]) {
    for bytes in datagrams {
        for (host, other) in [(CALLER, LISTENER), (LISTENER, CALLER)] {
            run.inject(host, address(other), bytes);
        }
        run.run_for(Duration::from_millis(1));
    }
}

/// Bytes that resemble packets: a first byte of each type, numbers near those in use.
fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let near = (any::<bool>(), 0u32..3_000, 0usize..1_500).prop_map(|(_, offset, length)| {
        let mut bytes = encode_data_header(SeqNo30::new(offset)).to_vec();
        bytes.resize(HEADER_LEN + length, 7);
        bytes
    });
    let control = (8u8..16, any::<u16>(), proptest::collection::vec(0u32..3_000, 0..8), any::<bool>()).prop_map(
        |(kind, number, words, marked)| {
            let mut bytes = vec![kind << 4, 0, (number >> 8) as u8, number as u8];
            for (index, word) in words.into_iter().enumerate() {
                let mark = u32::from(marked && index % 2 == 0) << 31;
                bytes.extend((word | mark).to_be_bytes());
            }
            bytes
        },
    );
    prop_oneof![near, control, proptest::collection::vec(any::<u8>(), 0..80)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The test knows the first numbers of the connection, so forgeries hit. They may damage data. Nothing may panic,
    /// and neither side may grow or loop.
    #[test]
    fn no_datagrams_panic_or_grow_an_endpoint(datagrams in proptest::collection::vec(datagram(), 1..120)) {
        let config = || Config { initial_seq: Some(farhaul_units::SeqNo::new(0)), ..small_buffers() };
        let workload = Workload::exchange(1 << 20);
        let mut run = pair(9, config).path(clean_path()).caller(workload).listener(workload).start();
        run.run_for(Duration::from_millis(90));
        feed(&mut run, &datagrams);
        run.run_for(Duration::from_secs(3));
        for host in [CALLER, LISTENER] {
            for flow in run.flows(host) {
                let memory = run.transport(host).stats(run.now(), flow.id()).map_or(0, |stats| stats.memory);
                prop_assert!(memory < 6 << 20, "{memory} bytes");
                let log = run.application(host).log();
                prop_assert!(log.iter().filter(|(_, event)| matches!(event, Event::Closed(..))).count() <= 1);
            }
        }
    }
}
