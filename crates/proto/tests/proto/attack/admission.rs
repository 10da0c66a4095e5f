//! Large numbers of callers that prove their address, or do not, and then stay silent.

use farhaul_netem::PathSpec;
use farhaul_proto::{Config, ConnectionLost, Entropy, Event, Mode, Streams, Transport, udt};
use farhaul_sim::Workload;
use farhaul_sim::topology::path::{LISTENER, Pair};
use farhaul_units::{Duration, Instant};
use farhaul_wire::udt4::{Control, SocketId};

use crate::attack::bench::{Bench, address, call, handshake};
use crate::attack::handshake::{conclusion, requests};

#[test]
fn a6_before_the_cookie_nothing_is_remembered() {
    let mut bench = Bench::listening();
    for n in 0..20_000u16 {
        bench.deliver(address(n), &handshake(SocketId::NONE, &call(u32::from(n) + 1, 1)));
    }
    assert_eq!((bench.end.connections(), bench.events.len()), (0, 0));
    assert_eq!(bench.end.poll_timeout(), None, "no timer runs for any of them");
}

#[test]
fn a6_replies_that_wait_are_bounded() {
    let mut bench = Bench::listening();
    let mut train: Vec<u8> = Vec::new();
    for n in 0..20_000 {
        train.extend(handshake(SocketId::NONE, &call(n + 1, 1)));
    }
    bench.end.handle_datagrams(bench.now, bench.now, address(1), &mut train, 64);
    assert!(bench.take_sent().len() <= 256);
}

#[test]
fn a6_a_thousand_half_open_connections_at_most_and_ten_seconds_each() {
    let mut bench = Bench::new(Config { backlog: usize::MAX, ..Config::default() }, Mode::Stream);
    for n in 0..1_100u16 {
        let call = call(u32::from(n) + 1, 1);
        let cookie = bench.cookie(address(n), &call);
        bench.deliver(address(n), &conclusion(&call, cookie));
    }
    assert_eq!(bench.end.connections(), 1024);
    let accepted: Vec<_> = bench.events.iter().map(|event| event.connection()).collect();
    bench.run_millis(10_500);
    let silent = bench.events.iter().filter(|event| matches!(event, Event::Closed(_, ConnectionLost::PeerSilent(_))));
    assert_eq!(silent.count(), 1024);
    for id in accepted {
        bench.end.release(bench.now, id);
    }
    bench.run_millis(10);
    assert_eq!(bench.end.connections(), 0);
    bench.accept(address(3), &call(9, 1));
}

#[test]
fn a6_connections_that_spoke_are_not_half_open() {
    let mut bench = Bench::new(Config { backlog: usize::MAX, ..Config::default() }, Mode::Stream);
    for n in 0..1_100u16 {
        let peer = bench.accept(address(n), &call(u32::from(n) + 1, 1));
        bench.control(&peer, &Control::KeepAlive);
    }
    assert_eq!(bench.end.connections(), 1_100);
}

/// `count` callers of the network of `address(first)` that prove their address and then stay silent. Their socket ids
/// start at `ids`.
fn silent_callers(bench: &mut Bench, first: u16, ids: u32, count: u32) {
    for n in 0..count {
        let (from, call) = (address(first + n as u16 % 256), call(ids + n, 1));
        let cookie = bench.cookie(from, &call);
        bench.deliver(from, &conclusion(&call, cookie));
    }
}

#[test]
fn a6_silent_callers_of_one_network_leave_half_of_the_places_to_others() {
    let mut bench = Bench::new(Config { backlog: usize::MAX, ..Config::default() }, Mode::Stream);
    silent_callers(&mut bench, 0, 1, 2_000);
    assert_eq!(bench.end.connections(), 256);
    assert_eq!(requests(&bench.take_sent()), [], "the rest is not refused but left to call again");
    // They keep calling as long as the first ones are held.
    for second in 1..10 {
        bench.run_millis(1_000);
        silent_callers(&mut bench, 0, second * 10_000, 300);
    }
    let held = bench.end.connections();
    assert!((480..=512).contains(&held), "{held}");
    silent_callers(&mut bench, 256, 1, 256);
    assert_eq!(bench.end.connections(), held + 256, "another network is not held up");
}

#[test]
fn a6_callers_of_one_network_that_speak_are_not_counted_against_it() {
    let mut bench = Bench::new(Config { backlog: usize::MAX, ..Config::default() }, Mode::Stream);
    for n in 0..1_000u16 {
        let peer = bench.accept(address(n % 256), &call(u32::from(n) + 1, 1));
        bench.control(&peer, &Control::KeepAlive);
    }
    silent_callers(&mut bench, 0, 10_000, 2_000);
    assert_eq!(bench.end.connections(), 1_000 + 256, "and none is counted twice");
}

#[test]
fn a6_a_thousand_calls_from_one_host_at_once_all_connect_in_time() {
    for delay in [1, 100] {
        let end = |seed: u8| {
            let mut end = udt::endpoint(Config::default(), Entropy { cookie_key: [seed; 16], seed: seed.into() });
            end.listen(Mode::Stream).expect("UDT has the mode");
            end
        };
        let path = PathSpec { delay: Duration::from_millis(delay), ..PathSpec::default() };
        let calls = [Instant::ZERO; 1_000];
        let mut run = Pair::new(end(1), end(2)).path(path).calls(calls).caller(Workload::send(1_000)).start();
        // libudt retries at the same pace as this side's callers and has not given up by then.
        run.run_for(Duration::from_secs(3));
        let complete = run.flows(LISTENER).iter().filter(|flow| flow.received().complete_at.is_some()).count();
        assert_eq!(complete, 1_000, "{delay} ms");
    }
}
