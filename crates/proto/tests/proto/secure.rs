//! Packet protection in virtual time: the state machine that ships, with keys that cost nothing.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use farhaul_netem::{LossSpec, Mtu, PathSpec, QueueSize, ReorderSpec};
use farhaul_proto::secure::Null;
use farhaul_proto::{Config, Endpoint, Entropy, Mode, Streams, secure};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_sim::{TapAction, Workload};
use farhaul_units::{Duration, Instant, Rate, Rng};

/// Longest virtual time of a transfer.
const LIMIT: Duration = Duration::from_secs(600);

fn endpoint(seed: u64, provider: Null) -> Endpoint {
    secure::endpoint(Config::default(), Entropy { cookie_key: [seed as u8; 16], seed }, Box::new(provider))
}

fn pair_of(seed: u64, provider: fn(u64) -> Null) -> Pair<Endpoint> {
    let mut listener = endpoint(2 * seed + 1, provider(2 * seed + 1));
    listener.listen(Mode::Stream).expect("UDT has the mode");
    Pair::new(endpoint(2 * seed, provider(2 * seed)), listener).seed(seed)
}

fn pair(seed: u64) -> Pair<Endpoint> {
    pair_of(seed, Null::new)
}

/// 100 Mbit/s and an RTT of 20 ms, with a queue of one bandwidth-delay product.
fn clean_path() -> PathSpec {
    let delay = Duration::from_millis(10);
    let rate = Some(Rate::from_megabits_per_second(100));
    PathSpec { rate, delay, queue: QueueSize::Bdp(2 * delay), ..PathSpec::default() }
}

#[test]
fn streams_in_both_directions_arrive_whole_over_bad_paths_of_many_shapes() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let mut share = |most: u64| rng.below(most) as f64 / 1_000.0;
        let (loss, corrupt, duplicate) = (share(30), share(30), share(50));
        let path = PathSpec {
            rate: Some(Rate::from_megabits_per_second(20 + rng.below(200))),
            delay: Duration::from_micros(1_000 + rng.below(39_000)),
            loss: Some(LossSpec::Bernoulli(loss)),
            corrupt,
            duplicate,
            reorder: Some(ReorderSpec { probability: 0.01, extra_delay: Duration::from_millis(3) }),
            ..PathSpec::default()
        };
        let both = Workload::exchange(1_500_000);
        let mut run = pair(seed).path(path).caller(both).listener(both).start();
        assert!(run.run_until_done(LIMIT), "seed {seed}");
        assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0], "seed {seed}");
    }
}

#[test]
fn a_stream_survives_a_hundred_changes_of_keys_on_a_lossy_path() {
    let often = |seed| Null::new(seed).with_confidentiality_limit(256);
    let path = PathSpec { loss: Some(LossSpec::Bernoulli(0.01)), ..clean_path() };
    let mut run = pair_of(3, often).path(path).caller(Workload::send(20 << 20)).listener(Workload::receive()).start();
    assert!(run.run_until_done(LIMIT));
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
}

/// The order of packet numbers tells late originals from repetitions, across changes of keys as well.
#[test]
fn few_packets_are_retransmitted_because_of_reordering() {
    let often = |seed| Null::new(seed).with_confidentiality_limit(8_192);
    for seed in 1..4 {
        // No queue overflows, so no packet is lost. Half of an RTT is a lateness for which the receiver waits.
        let delay = Duration::from_millis(20);
        let reorder = Some(ReorderSpec { probability: 0.1, extra_delay: delay });
        let path = PathSpec { delay, queue: QueueSize::Packets(100_000), reorder, duplicate: 0.05, ..clean_path() };
        let caller = Workload::send_without_end();
        let mut run = pair_of(seed, often).path(path).caller(caller).start();
        run.run_for(Duration::from_secs(10));
        let id = run.flows(CALLER)[0].id();
        let stats = run.transport(CALLER).stats(run.now(), id).unwrap();
        assert!(stats.totals.packets_sent > 30_000, "{:?}", stats.totals);
        let again = stats.retransmission_ratio();
        assert!(again < 0.02, "seed {seed}: {again} of the packets for nothing, {:?}", stats.totals);
    }
}

/// Full data packets, loss reports of hundreds of gaps, and probes.
#[test]
fn no_protected_packet_is_larger_than_the_packets_of_the_path() {
    for seed in 0..4 {
        let loss = Some(LossSpec::Bernoulli(0.3));
        let path = PathSpec { loss, mtu: Some(Mtu::new(1_280)), ..clean_path() };
        let config = || Config { mss: 1_280, ..Config::default() };
        let ends = [0, 1].map(|end| {
            let entropy = Entropy { cookie_key: [end; 16], seed: 2 * seed + u64::from(end) };
            secure::endpoint(config(), entropy, Box::new(Null::new(seed)))
        });
        let [caller, mut listener] = ends;
        listener.listen(Mode::Stream).expect("UDT has the mode");
        let workload = Workload::exchange(3_000_000);
        let mut run = Pair::new(caller, listener).seed(seed).path(path).caller(workload).listener(workload).start();
        let sizes = Rc::new(RefCell::new(BTreeMap::new()));
        let seen = Rc::clone(&sizes);
        run.set_tap(Some(Box::new(move |datagram| {
            *seen.borrow_mut().entry(datagram.bytes.len() + 28).or_insert(0_u32) += 1;
            TapAction::Pass
        })));
        assert!(run.run_until_done(LIMIT));
        let sizes = sizes.borrow();
        assert!(*sizes.get(&1_280).unwrap() > 4_000, "{sizes:?}");
        assert_eq!(sizes.range(1_281..).next(), None);
    }
}

/// Time until a megabyte is complete over a long path.
fn megabyte(pair: Pair<Endpoint>) -> Duration {
    let path = PathSpec {
        rate: Some(Rate::from_megabits_per_second(1_000)),
        delay: Duration::from_millis(50),
        queue: QueueSize::Packets(10_000),
        ..PathSpec::default()
    };
    let mut run = pair.path(path).caller(Workload::send(1_000_000)).start();
    assert!(run.run_until_done(LIMIT));
    run.flows(LISTENER)[0].received().complete_at.unwrap() - Instant::ZERO
}

/// UDT4's own handshake takes two round trips. That of a secure connection takes one, and carries its transport parameters.
#[test]
fn a_megabyte_over_a_long_path_is_complete_a_round_trip_earlier_than_in_plain() {
    let plain = |seed| -> Endpoint {
        farhaul_proto::udt::endpoint(Config::default(), Entropy { cookie_key: [seed; 16], seed: seed.into() })
    };
    let mut listener = plain(1);
    listener.listen(Mode::Stream).expect("UDT has the mode");
    let in_plain = megabyte(Pair::new(plain(2), listener).seed(3));
    let inside = megabyte(pair(3));
    let round_trip = Duration::from_millis(100);
    // Packet protection makes seven more packets of it, and adds 28 bytes to each.
    assert!(inside + round_trip < in_plain + Duration::from_millis(2), "{inside:?} inside, {in_plain:?} in plain");
}

#[test]
fn an_idle_connection_lives_on_under_packet_protection() {
    let mut run = pair(5).path(clean_path()).caller(Workload::default()).listener(Workload::default()).start();
    run.run_for(Duration::from_secs(300));
    let id = run.flows(CALLER)[0].id();
    let stats = run.transport(CALLER).stats(run.now(), id).unwrap();
    assert!(stats.silence.unwrap() < Duration::from_secs(30), "{:?}", stats.silence);
}
