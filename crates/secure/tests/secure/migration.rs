//! Changes of a peer's address with the keys of TLS, in virtual time. `farhaul-proto` has more of them without cryptography.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use core::net::SocketAddr;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, Streams, secure};
use farhaul_secure::{AcceptAll, Cipher, KeyPair, Tls};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, address};
use farhaul_sim::{Nat, Simulation, Workload};
use farhaul_units::{Duration, Rate};

type Run = Simulation<Endpoint>;

const LIMIT: Duration = Duration::from_secs(120);
const BYTES: u64 = 10_000_000;

fn endpoint(seed: u8) -> Endpoint {
    let tls = Tls::new(KeyPair::generate().unwrap(), Arc::new(AcceptAll), Cipher::Auto).unwrap();
    let entropy = Entropy { cookie_key: [seed; 16], seed: seed.into() };
    secure::endpoint(Config::default(), entropy, Box::new(tls))
}

fn outside(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, host], port))
}

fn start(workloads: [Workload; 2]) -> Run {
    let delay = Duration::from_millis(10);
    let rate = Some(Rate::from_megabits_per_second(100));
    let path = PathSpec { rate, delay, queue: QueueSize::Bdp(2 * delay), ..PathSpec::default() };
    let mut server = endpoint(2);
    server.listen(Mode::Stream).expect("UDT has the mode");
    let [caller, listener] = workloads;
    Pair::new(endpoint(1), server).path(path).caller(caller).listener(listener).seed(7).start()
}

fn peer(run: &Run, host: usize) -> SocketAddr {
    run.transport(host).peer(run.flows(host)[0].id()).unwrap()
}

#[test]
fn transfers_in_both_directions_survive_changes_of_port_and_host() {
    let workloads = [
        [Workload::send(BYTES), Workload::receive()],
        [Workload::receive(), Workload::send(BYTES)],
        [Workload::exchange(BYTES); 2],
    ];
    for workloads in workloads {
        let nat = Nat::new(address(CALLER), outside(1, 1_000));
        let mut run = start(workloads);
        run.set_tap(Some(nat.tap()));
        for (host, port) in [(1, 2_000), (2, 2_000)] {
            run.run_for(Duration::from_millis(400));
            nat.rebind(outside(host, port));
        }
        assert!(run.run_until_done(LIMIT));
        assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0]);
        assert_eq!(peer(&run, LISTENER), nat.outside());
    }
}

/// The attacker's copies arrive first, with his address as their source.
#[test]
fn b16_copied_packets_move_no_connection() {
    let thief = outside(66, 6);
    let to_thief = Rc::new(RefCell::new((0, 0)));
    let mut run = start([Workload::exchange(BYTES); 2]);
    run.run_for(Duration::from_millis(300));
    let counts = Rc::clone(&to_thief);
    run.set_tap(Some(Box::new(move |datagram| {
        let (came, left) = &mut *counts.borrow_mut();
        if datagram.from == address(CALLER) {
            *came += datagram.bytes.len();
            let genuine = (datagram.from, datagram.to, datagram.bytes.clone());
            datagram.forged.push((thief, datagram.to, datagram.bytes.clone()));
            datagram.forged.push(genuine);
            return farhaul_sim::TapAction::Drop;
        }
        *left += if datagram.to == thief { datagram.bytes.len() } else { 0 };
        farhaul_sim::TapAction::Pass
    })));
    assert!(run.run_until_done(LIMIT));
    assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0]);
    assert_eq!(peer(&run, LISTENER), address(CALLER));
    let (came, left) = *to_thief.borrow();
    assert!(left > 0 && left * 1_000 < came, "{left} bytes for {came}");
}
