//! Path MTU discovery in virtual time, plain and under packet protection: the size that is found, and black holes.

use farhaul_netem::{Mtu, PathSpec, QueueSize};
use farhaul_proto::{Channels, Config, Endpoint, Entropy, Mode, Stats, Streams, secure, udt};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_sim::{Simulation, Workload};
use farhaul_units::{Duration, Instant, Rate};

const LIMIT: Duration = Duration::from_secs(120);
/// What a test waits for after a black hole.
const SURVIVED: Duration = Duration::from_secs(3);

fn config(largest_mss: Option<u32>) -> Config {
    Config { largest_mss, ..Config::default() }
}

fn entropy(seed: u64) -> Entropy {
    Entropy { cookie_key: [7; 16], seed }
}

fn plain(largest: [Option<u32>; 2]) -> Pair<Endpoint> {
    let [caller, mut listener] = [0, 1].map(|end| udt::endpoint(config(largest[end]), entropy(end as u64)));
    listener.listen(Mode::Stream).expect("UDT has the mode");
    Pair::new(caller, listener)
}

fn enclosed(largest: [Option<u32>; 2]) -> Pair<Endpoint> {
    let [caller, mut listener] = [0, 1].map(|end| {
        let provider = Box::new(secure::Null::new(end as u64));
        secure::endpoint(config(largest[end]), entropy(end as u64), provider)
    });
    listener.listen(Mode::Stream).expect("a secure endpoint listens");
    Pair::new(caller, listener)
}

const JUMBO: [Option<u32>; 2] = [Some(9_000); 2];

/// 200 Mbit/s, and packets of these sizes.
fn path(rtt_millis: u64, mtu: Mtu) -> PathSpec {
    PathSpec {
        rate: Some(Rate::from_megabits_per_second(200)),
        delay: Duration::from_millis(rtt_millis / 2),
        queue: QueueSize::Packets(10_000),
        mtu: Some(mtu),
        ..PathSpec::default()
    }
}

fn after(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn stats<T: Streams + Channels>(run: &Simulation<T>) -> Stats {
    let id = run.flows(CALLER)[0].id();
    run.transport(CALLER).stats(run.now(), id).expect("the connection is held")
}

/// The size at this time.
fn size_at<T: Streams + Channels>(run: &mut Simulation<T>, millis: u64) -> u32 {
    run.run_until(after(millis));
    stats(run).packet_size
}

/// Bytes read by the listener.
fn arrived<T: Streams + Channels>(run: &Simulation<T>) -> u64 {
    run.flows(LISTENER).first().map_or(0, |flow| flow.received().bytes)
}

fn finds_jumbo<T: Streams + Channels>(pair: Pair<T>) {
    let mut run = pair.path(path(20, Mtu::new(9_000))).caller(Workload::send(80 << 20)).start();
    assert_eq!(size_at(&mut run, 120), 9_000, "within a few round trips");
    assert!(run.run_until_done(LIMIT), "{:?}", stats(&run));
    assert!(run.missing(CALLER, LISTENER).is_empty());
    let stats = stats(&run);
    assert_eq!(stats.totals.packets_retransmitted, 0);
    assert!(run.now() < after(4_200), "{}", run.now());
}

#[test]
fn a_jumbo_path_is_used_within_a_few_round_trips() {
    finds_jumbo(plain(JUMBO));
    finds_jumbo(enclosed(JUMBO));
}

fn keeps_ethernet<T: Streams + Channels>(pair: Pair<T>) {
    let mut run = pair.path(path(20, Mtu::new(1_500))).caller(Workload::send(80 << 20)).start();
    assert!(run.run_until_done(LIMIT), "{:?}", stats(&run));
    assert!(run.missing(CALLER, LISTENER).is_empty());
    let stats = stats(&run);
    assert_eq!((stats.packet_size, stats.totals.packets_retransmitted), (1_500, 0));
    assert!(run.now() < after(4_200), "{}", run.now());
}

#[test]
fn an_ethernet_path_behind_jumbo_interfaces_loses_no_data() {
    keeps_ethernet(plain(JUMBO));
    keeps_ethernet(enclosed(JUMBO));
}

/// The path carries `from` bytes at first and `to` from 2 s on. Progress resumes within three seconds, and the size becomes `found`.
fn survives<T: Streams + Channels>(pair: Pair<T>, rtt_millis: u64, [from, to, found]: [u32; 3]) {
    let hole = Duration::from_secs(2);
    let down = path(rtt_millis, Mtu::new(9_000));
    let up = path(rtt_millis, Mtu::new(from).then(hole, to));
    let mut run = pair.up(up).down(down).caller(Workload::send(80 << 20)).start();
    assert_eq!(size_at(&mut run, 2_000), from);
    // What was in flight before has arrived.
    run.run_until(after(2_000 + rtt_millis));
    let before = arrived(&run);
    run.run_until(Instant::ZERO + hole + SURVIVED);
    let after_hole = arrived(&run);
    assert!(after_hole > before + 1_000_000, "{from} to {to}, {rtt_millis} ms: {before} to {after_hole}");
    assert!(run.run_until_done(LIMIT), "{:?}", stats(&run));
    assert!(run.missing(CALLER, LISTENER).is_empty());
    assert_eq!(stats(&run).packet_size, found);
}

// Slow: eleven transfers of 80 MiB in virtual time, which have to outlast the 2 s until the path becomes narrow.
#[test]
fn a_black_hole_in_the_middle_is_survived_within_three_seconds() {
    for rtt_millis in [2, 20, 100, 300] {
        survives(plain(JUMBO), rtt_millis, [9_000, 1_500, 1_500]);
        survives(enclosed(JUMBO), rtt_millis, [9_000, 1_500, 1_500]);
    }
    survives(plain(JUMBO), 20, [1_500, 1_300, 1_280]);
    survives(enclosed([Some(1_500); 2]), 20, [1_500, 1_300, 1_280]);
    survives(enclosed(JUMBO), 20, [9_000, 1_420, 1_420]);
}

#[test]
fn a_size_that_is_found_costs_no_time() {
    let bytes_at_5_s = |largest, mtu| {
        let mut run = plain(largest).path(path(100, Mtu::new(mtu))).caller(Workload::send(512 << 20)).start();
        run.run_until(after(5_000));
        arrived(&run)
    };
    let fixed = bytes_at_5_s([None; 2], 1_500);
    let [same, jumbo] = [1_500, 9_000].map(|mtu| bytes_at_5_s(JUMBO, mtu));
    assert!(same * 1_000 > fixed * 995, "{fixed} {same}");
    // Headers of 44 bytes are 2.9 % of 1500 and 0.5 % of 9000.
    assert!(jumbo * 100 > fixed * 102, "{fixed} {jumbo}");
}

#[test]
fn a_path_that_is_narrow_from_the_start_is_used() {
    let mut run = plain(JUMBO).path(path(20, Mtu::new(1_400))).caller(Workload::send(50 << 20)).start();
    assert!(run.run_until_done(LIMIT), "{:?}", stats(&run));
    assert!(run.missing(CALLER, LISTENER).is_empty());
    assert_eq!(stats(&run).packet_size, 1_400);
}

/// All that the two ends send, on a path of 9000 bytes.
fn trace(largest: [Option<u32>; 2]) -> farhaul_sim::TraceHash {
    let mut run = plain(largest).path(path(20, Mtu::new(9_000))).caller(Workload::send(5 << 20)).start();
    assert!(run.run_until_done(LIMIT));
    assert_eq!(stats(&run).packet_size, 1_500);
    run.trace_hash()
}

#[test]
fn an_end_that_does_not_probe_gets_the_packets_that_it_knows() {
    let fixed = trace([None; 2]);
    assert_eq!(trace([None, Some(9_000)]), fixed, "not even a bit of the answer differs");
    // The caller's handshake says that it may probe, in a word that libudt ignores. That is all.
    trace([Some(9_000), None]);
}
