//! Every protocol of the registry inside secure connections, in virtual time, with keys that cost nothing.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use core::net::SocketAddr;

use farhaul_netem::{LossSpec, PathSpec, QueueSize, ReorderSpec};
use farhaul_proto::secure::Null;
use farhaul_proto::{Config, Endpoint, Entropy, Mode, Streams, controller_factory};
use farhaul_protocols::Protocol;
use farhaul_protocols::registry::protocols;
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, address};
use farhaul_sim::{Nat, Simulation, Workload};
use farhaul_units::{Duration, Instant, Rate};

type Run = Simulation<Endpoint>;

/// Longest virtual time of a transfer.
const LIMIT: Duration = Duration::from_secs(600);

fn config(protocol: &Protocol) -> Config {
    let default = Config::default();
    let controller = protocol.controller().map_or(default.controller, controller_factory);
    Config { controller, ..default }
}

fn entropy(seed: u64) -> Entropy {
    Entropy { cookie_key: [seed as u8; 16], seed }
}

fn inside_of(protocol: &Protocol, provider: fn(u64) -> Null) -> Pair<Endpoint> {
    let end = |seed| protocol.secure_endpoint(config(protocol), entropy(seed), Box::new(provider(seed)));
    let mut listener = end(2);
    listener.listen(Mode::Stream).expect("UDT has the mode");
    Pair::new(end(1), listener).seed(7)
}

fn inside(protocol: &Protocol) -> Pair<Endpoint> {
    inside_of(protocol, Null::new)
}

fn in_plain(protocol: &Protocol) -> Pair<Endpoint> {
    let end = |seed| protocol.endpoint(config(protocol), entropy(seed));
    let mut listener = end(2);
    listener.listen(Mode::Stream).expect("UDT has the mode");
    Pair::new(end(1), listener).seed(7)
}

/// All protocols.
fn every() -> impl Iterator<Item = (&'static str, Protocol)> {
    protocols().iter().map(|entry| (entry.name, entry.name.parse().unwrap()))
}

fn missing(run: &Run) -> Vec<String> {
    [run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat()
}

fn clean(megabits: u64, delay: Duration) -> PathSpec {
    let rate = Some(Rate::from_megabits_per_second(megabits));
    PathSpec { rate, delay, queue: QueueSize::Bdp(2 * delay), ..PathSpec::default() }
}

/// 50 Mbit/s and an RTT of 20 ms. Packets are lost, damaged, late or doubled.
fn bad() -> PathSpec {
    PathSpec {
        rate: Some(Rate::from_megabits_per_second(50)),
        delay: Duration::from_millis(10),
        loss: Some(LossSpec::Bernoulli(0.01)),
        reorder: Some(ReorderSpec { probability: 0.01, extra_delay: Duration::from_millis(3) }),
        duplicate: 0.01,
        corrupt: 0.005,
        ..PathSpec::default()
    }
}

#[test]
fn every_protocol_carries_streams_both_ways_over_a_bad_path() {
    for (name, protocol) in every() {
        let both = Workload::exchange(2 << 20);
        let mut run = inside(&protocol).path(bad()).caller(both).listener(both).start();
        assert!(run.run_until_done(LIMIT), "{name}");
        assert_eq!(missing(&run), [""; 0], "{name}");
        for host in [CALLER, LISTENER] {
            let totals = run.transport(host).stats(run.now(), run.flows(host)[0].id()).unwrap().totals;
            assert!(totals.packets_retransmitted > 0, "{name}: the path has lost packets of {host}");
            assert!(totals.packets_sent > 1_400, "{name}: {} packets, not bytes of the channel", totals.packets_sent);
        }
    }
}

/// Packet protection adds 36 bytes to each packet, and UDT carries the channel instead of TCP.
// Slow: each of the seven protocols with 50 MB in plain and inside, in virtual time.
#[test]
fn a_stream_takes_about_as_long_as_in_plain() {
    for (name, protocol) in every() {
        let time = |pair: Pair<Endpoint>| {
            let path = clean(200, Duration::from_millis(25));
            let mut run = pair.path(path).caller(Workload::send(50_000_000)).start();
            assert!(run.run_until_done(LIMIT), "{name}");
            assert_eq!(missing(&run), [""; 0], "{name}");
            (run.now() - Instant::ZERO).as_secs_f64()
        };
        let (plain, secure) = (time(in_plain(&protocol)), time(inside(&protocol)));
        assert!(secure < 1.1 * plain + 0.1, "{name}: {secure} s, {plain} s in plain");
    }
}

#[test]
fn every_protocol_gets_going_inside_on_a_long_path() {
    for (name, protocol) in every() {
        let path = PathSpec { queue: QueueSize::Packets(1_000), ..clean(100, Duration::from_millis(100)) };
        let mut run = inside(&protocol).path(path).seed(3).caller(Workload::send(20 << 20)).start();
        assert!(run.run_until_done(Duration::from_secs(60)), "{name}");
        assert_eq!(missing(&run), [""; 0], "{name}");
    }
}

#[test]
fn several_connections_at_once_arrive_whole_over_a_bad_path() {
    for (name, protocol) in every() {
        let both = Workload::exchange(400_000);
        let calls = (0..4).map(|call| Instant::ZERO + Duration::from_millis(50 * call));
        let mut run = inside(&protocol).path(bad()).caller(both).listener(both).calls(calls).start();
        assert!(run.run_until_done(LIMIT), "{name}");
        assert_eq!((run.flows(LISTENER).len(), missing(&run).len()), (4, 0), "{name}: {:?}", missing(&run));
    }
}

#[test]
fn a_stream_survives_many_changes_of_keys_on_a_bad_path() {
    for (name, protocol) in every() {
        let often = |seed| Null::new(seed).with_confidentiality_limit(512);
        let mut run = inside_of(&protocol, often).path(bad()).caller(Workload::send(10 << 20)).start();
        assert!(run.run_until_done(LIMIT), "{name}");
        assert_eq!(missing(&run), [""; 0], "{name}");
    }
}

fn outside(port: u16) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 1], port))
}

/// The protocols inside know nothing of the move: their peer is still at the same address.
// Slow: each of the seven protocols with 30 MiB each way in virtual time, which have to outlast the last change after 1.2 s.
#[test]
fn a_transfer_goes_on_after_each_change_of_the_clients_port() {
    for (name, protocol) in every() {
        let both = Workload::exchange(30 << 20);
        let nat = Nat::new(address(CALLER), outside(1_000));
        let path = clean(100, Duration::from_millis(10));
        let mut run = inside(&protocol).path(path).caller(both).listener(both).start();
        run.set_tap(Some(nat.tap()));
        for port in 2_000..2_003 {
            run.run_for(Duration::from_millis(400));
            nat.rebind(outside(port));
        }
        assert!(run.run_until_done(LIMIT), "{name}");
        assert_eq!(missing(&run), [""; 0], "{name}");
        let peer = run.transport(LISTENER).peer(run.flows(LISTENER)[0].id());
        assert_eq!(peer, Some(outside(2_002)), "{name}: the server followed");
    }
}

#[test]
fn an_idle_connection_lives_on_inside() {
    for (name, protocol) in every() {
        let path = clean(100, Duration::from_millis(10));
        let mut run = inside(&protocol).path(path).caller(Workload::default()).listener(Workload::default()).start();
        run.run_for(Duration::from_secs(300));
        for host in [CALLER, LISTENER] {
            let id = run.flows(host)[0].id();
            let stats = run.transport(host).stats(run.now(), id).unwrap();
            let heard = stats.silence.is_none_or(|silence| silence < Duration::from_secs(30));
            assert!(heard && run.transport(host).writable(id) > 0, "{name} at {host}: {:?}", stats.silence);
        }
    }
}
