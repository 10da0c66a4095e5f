//! Secure connections whose peers change their addresses, as after NAT rebinding (attack B16), in virtual time.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use core::net::SocketAddr;
use std::cell::Cell;
use std::rc::Rc;

use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::secure::Null;
use farhaul_proto::{Config, Endpoint, Entropy, Mode, Stats, Streams, secure};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, address};
use farhaul_sim::{Nat, Simulation, TapAction, Workload};
use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::secure::inner::CHALLENGE_DATAGRAM;

type Run = Simulation<Endpoint>;

/// Longest virtual time of a transfer.
const LIMIT: Duration = Duration::from_secs(120);
const BYTES: u64 = 20_000_000;

fn endpoint_of(seed: u8, provider: Null) -> Endpoint {
    let entropy = Entropy { cookie_key: [seed; 16], seed: seed.into() };
    secure::endpoint(Config::default(), entropy, Box::new(provider))
}

fn endpoint(seed: u8) -> Endpoint {
    endpoint_of(seed, Null::new(seed.into()))
}

/// 100 Mbit/s and an RTT of 20 ms.
fn path() -> PathSpec {
    let delay = Duration::from_millis(10);
    let rate = Some(Rate::from_megabits_per_second(100));
    PathSpec { rate, delay, queue: QueueSize::Bdp(2 * delay), ..PathSpec::default() }
}

fn outside(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, host], port))
}

/// A caller behind a NAT.
fn behind(nat: &Nat, path: PathSpec, [caller, listener]: [Workload; 2]) -> Run {
    let mut server = endpoint(2);
    server.listen(Mode::Stream).expect("UDT has the mode");
    let mut run = Pair::new(endpoint(1), server).path(path).caller(caller).listener(listener).seed(7).start();
    run.set_tap(Some(nat.tap()));
    run
}

fn nat() -> Nat {
    Nat::new(address(CALLER), outside(1, 1_000))
}

fn peer(run: &Run, host: usize) -> SocketAddr {
    run.transport(host).peer(run.flows(host)[0].id()).unwrap()
}

fn stats(run: &Run, host: usize) -> Stats {
    run.transport(host).stats(run.now(), run.flows(host)[0].id()).unwrap()
}

fn assert_whole(run: &Run) {
    assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0]);
}

/// Bytes that have arrived at a host.
fn arrived(run: &Run, host: usize) -> u64 {
    run.flows(host).first().map_or(0, |flow| flow.received().bytes)
}

/// Longest time without a new byte at a host, until everything is complete.
fn longest_stall(run: &mut Run, host: usize) -> Duration {
    let (mut bytes, mut since, mut longest) = (0, run.now(), Duration::ZERO);
    let complete = |run: &Run| run.flows(host).first().is_some_and(|flow| flow.received().complete_at.is_some());
    while !complete(run) {
        run.run_for(Duration::from_millis(1));
        assert!(run.now() < Instant::ZERO + LIMIT, "{bytes} bytes arrived at {host}");
        let now = arrived(run, host);
        if now > bytes {
            (bytes, since) = (now, run.now());
        }
        longest = longest.max(run.now() - since);
    }
    longest
}

#[test]
fn an_upload_goes_on_after_the_clients_port_has_changed() {
    let nat = nat();
    let mut run = behind(&nat, path(), [Workload::send(BYTES), Workload::receive()]);
    run.run_for(Duration::from_secs(1));
    assert_eq!(peer(&run, LISTENER), outside(1, 1_000));
    nat.rebind(outside(1, 2_000));
    let stall = longest_stall(&mut run, LISTENER);
    assert_eq!(peer(&run, LISTENER), outside(1, 2_000), "the server follows");
    assert_eq!(peer(&run, CALLER), address(LISTENER));
    assert!(stall < Duration::from_millis(200), "{stall:?}");
    assert!(run.run_until_done(LIMIT));
    assert_whole(&run);
}

#[test]
fn a_download_goes_on_after_the_clients_port_has_changed() {
    let nat = nat();
    let mut run = behind(&nat, path(), [Workload::receive(), Workload::send(BYTES)]);
    run.run_for(Duration::from_secs(1));
    nat.rebind(outside(1, 2_000));
    let stall = longest_stall(&mut run, CALLER);
    assert_eq!(peer(&run, LISTENER), outside(1, 2_000));
    assert!(stall < Duration::from_secs(1), "{stall:?}");
    assert!(run.run_until_done(LIMIT));
    assert_whole(&run);
}

#[test]
fn both_directions_go_on_over_a_lossy_path_after_each_of_many_changes() {
    let lossy = PathSpec { loss: Some(LossSpec::Bernoulli(0.01)), ..path() };
    let nat = nat();
    let mut run = behind(&nat, lossy, [Workload::exchange(2 * BYTES); 2]);
    for change in 0..6 {
        run.run_for(Duration::from_millis(400));
        nat.rebind(outside(1 + change / 2, 2_000 + u16::from(change)));
    }
    assert!(run.run_until_done(LIMIT));
    assert_whole(&run);
    assert_eq!(peer(&run, LISTENER), nat.outside());
}

/// The second change comes before the first address is proved.
#[test]
fn two_changes_in_a_row_are_one_move() {
    let nat = nat();
    let mut run = behind(&nat, path(), [Workload::send(BYTES), Workload::receive()]);
    run.run_for(Duration::from_secs(1));
    nat.rebind(outside(1, 2_000));
    run.run_for(Duration::from_millis(12));
    nat.rebind(outside(1, 3_000));
    let stall = longest_stall(&mut run, LISTENER);
    assert!(stall < Duration::from_millis(300), "{stall:?}");
    assert_eq!(peer(&run, LISTENER), outside(1, 3_000));
    assert!(run.run_until_done(LIMIT));
    assert_whole(&run);
}

#[test]
fn moves_in_the_middle_of_changes_of_keys_lose_nothing() {
    let [mut server, client] =
        [2, 1].map(|seed| endpoint_of(seed, Null::new(seed.into()).with_confidentiality_limit(512)));
    server.listen(Mode::Stream).expect("UDT has the mode");
    let lossy = PathSpec { loss: Some(LossSpec::Bernoulli(0.005)), ..path() };
    let workload = Workload::exchange(BYTES);
    let mut run = Pair::new(client, server).path(lossy).caller(workload).listener(workload).seed(3).start();
    let nat = nat();
    run.set_tap(Some(nat.tap()));
    for change in 0..5 {
        run.run_for(Duration::from_millis(300));
        nat.rebind(outside(1, 2_000 + change));
    }
    assert!(run.run_until_done(LIMIT));
    assert_whole(&run);
    assert_eq!(peer(&run, LISTENER), nat.outside());
}

/// The server, too, may be moved.
#[test]
fn a_download_goes_on_after_the_servers_address_has_changed() {
    let nat = Nat::new(address(LISTENER), address(LISTENER));
    let mut run = behind(&nat, path(), [Workload::receive(), Workload::send(BYTES)]);
    run.run_for(Duration::from_secs(1));
    nat.rebind(outside(5, 443));
    longest_stall(&mut run, CALLER);
    assert_eq!(peer(&run, CALLER), outside(5, 443));
    assert!(run.run_until_done(LIMIT));
    assert_whole(&run);
}

/// Passes everything through a NAT, but not the first `lost` datagrams of a host that are as long as a challenge or its
/// response.
fn losing(run: &mut Run, nat: &Nat, host: usize, lost: u32) -> Rc<Cell<u32>> {
    let (nat, left) = (nat.clone(), Rc::new(Cell::new(lost)));
    let shared = Rc::clone(&left);
    run.set_tap(Some(Box::new(move |datagram| {
        if datagram.from == address(host) && datagram.bytes.len() == CHALLENGE_DATAGRAM && left.get() > 0 {
            left.set(left.get() - 1);
            return TapAction::Drop;
        }
        nat.translate(datagram)
    })));
    shared
}

#[test]
fn a_move_whose_challenges_or_responses_are_lost_is_tried_again() {
    for host in [CALLER, LISTENER] {
        let nat = nat();
        let mut run = behind(&nat, path(), [Workload::exchange(BYTES); 2]);
        run.run_for(Duration::from_millis(500));
        nat.rebind(outside(1, 2_000));
        let left = losing(&mut run, &nat, host, 3);
        run.run_for(Duration::from_secs(3));
        assert_eq!(left.get(), 0, "three were lost");
        assert_eq!(peer(&run, LISTENER), outside(1, 2_000), "lost at {host}");
        assert!(run.run_until_done(LIMIT));
        assert_whole(&run);
    }
}

/// RFC 9000, section 9.4: another port of the same host is the same path.
#[test]
fn what_was_measured_stays_with_another_port_and_not_with_another_host() {
    for (host, stays) in [(1, true), (2, false)] {
        let nat = nat();
        let mut run = behind(&nat, path(), [Workload::receive(), Workload::send(10 * BYTES)]);
        run.run_for(Duration::from_secs(2));
        let before = stats(&run, LISTENER);
        nat.rebind(outside(host, 2_000));
        let end = run.now() + Duration::from_secs(5);
        assert!(run.run_until_true(end, |run| peer(run, LISTENER) == outside(host, 2_000)));
        let after = stats(&run, LISTENER);
        assert_eq!(after.rtt < Duration::from_millis(90), stays, "{:?}, {:?} before", after.rtt, before.rtt);
        let change = after.capacity.packets_per_second() / before.capacity.packets_per_second();
        assert_eq!((0.9..1.1).contains(&change), stays, "{:?}, {:?} before", after.capacity, before.capacity);
        run.run_for(Duration::from_secs(5));
        let found = stats(&run, LISTENER);
        assert!(found.rtt < Duration::from_millis(60), "{:?}", found.rtt);
        let rate = (arrived(&run, CALLER)) as f64 / (run.now() - Instant::ZERO).as_secs_f64();
        assert!(rate > 5e6, "{rate} bytes/s in all");
    }
}

/// A client may lose its address before it hears of its admission.
#[test]
fn a_client_whose_address_changes_at_the_end_of_the_handshake_is_found() {
    let nat = nat();
    let mut run = behind(&nat, path(), [Workload::receive(), Workload::send(100_000)]);
    // Its last words arrive at 30 ms, and the answer to them at 40 ms.
    run.run_for(Duration::from_millis(31));
    nat.rebind(outside(1, 2_000));
    assert!(run.run_until_done(LIMIT));
    assert_whole(&run);
    assert!(run.now() < Instant::ZERO + Duration::from_secs(3), "{}", run.now());
}

#[test]
fn an_idle_connection_is_found_again_by_its_keep_alives() {
    let nat = nat();
    let mut run = behind(&nat, path(), [Workload::default(); 2]);
    run.run_for(Duration::from_secs(60));
    nat.rebind(outside(2, 2_000));
    run.run_for(Duration::from_secs(60));
    assert_eq!(peer(&run, LISTENER), outside(2, 2_000));
    for host in [CALLER, LISTENER] {
        assert!(stats(&run, host).silence.unwrap() < Duration::from_secs(30));
    }
}
