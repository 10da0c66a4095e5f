//! Every protocol of the registry carries a stream over a bad path, in virtual time.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use farhaul_netem::{LossSpec, PathSpec};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, Streams, controller_factory};
use farhaul_protocols::Protocol;
use farhaul_protocols::registry::protocols;
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_sim::{OutgoingDatagram, TapAction, Workload};
use farhaul_units::{Duration, Rate};

/// Bytes from the caller to the listener.
const LENGTH: u64 = 2 << 20;
/// Longest virtual time of a transfer.
const LIMIT: Duration = Duration::from_secs(600);

fn endpoint(protocol: &Protocol, seed: u64) -> Endpoint {
    let default = Config::default();
    let controller = protocol.controller().map_or(default.controller, controller_factory);
    protocol.endpoint(Config { controller, ..default }, Entropy { cookie_key: [seed as u8; 16], seed })
}

/// 50 Mbit/s and an RTT of 20 ms; every hundredth packet is lost.
fn lossy() -> PathSpec {
    PathSpec {
        rate: Some(Rate::from_megabits_per_second(50)),
        delay: Duration::from_millis(10),
        loss: Some(LossSpec::Bernoulli(0.01)),
        ..PathSpec::default()
    }
}

fn pair(protocol: &Protocol) -> Pair<Endpoint> {
    let mut listener = endpoint(protocol, 2);
    listener.listen(Mode::Stream).unwrap();
    let pair = Pair::new(endpoint(protocol, 1), listener).path(lossy()).seed(7);
    pair.caller(Workload::send(LENGTH)).listener(Workload::receive())
}

#[test]
fn every_protocol_carries_a_stream_over_a_lossy_path() {
    for entry in protocols() {
        let mut run = pair(&entry.name.parse().unwrap()).start();
        run.run_until_done(LIMIT);
        assert_eq!(run.missing(CALLER, LISTENER), [""; 0], "{}", entry.name);
        let sender = run.transport(CALLER).stats(run.now(), run.flows(CALLER)[0].id()).unwrap();
        assert!(sender.totals.packets_retransmitted > 0, "{}: the path has lost packets", entry.name);
    }
}

#[test]
fn the_numbering_and_the_header_of_every_row_are_those_of_its_data_packets() {
    for entry in protocols() {
        let mut run = pair(&entry.name.parse().unwrap()).start();
        let seen: Rc<RefCell<BTreeMap<u32, usize>>> = Rc::default();
        let seen_by_tap = Rc::clone(&seen);
        run.set_tap(Some(Box::new(move |departing: &mut OutgoingDatagram<'_>| {
            if let Some(number) = entry.numbering.number(departing.bytes) {
                seen_by_tap.borrow_mut().insert(number, departing.bytes.len() - entry.header_len as usize);
            }
            TapAction::Pass
        })));
        run.run_until_done(LIMIT);
        let payload: usize = seen.borrow().values().sum();
        // Beside a control channel, the tail of a stream may travel there.
        let tail = if entry.needs_control_channel { 16 << 10 } else { 0 };
        let range = LENGTH - tail..=LENGTH;
        assert!(range.contains(&(payload as u64)), "{}: {payload}, each number stands for the same bytes", entry.name);
    }
}

#[test]
fn every_protocol_gets_going_on_a_long_path() {
    for entry in protocols() {
        let long = PathSpec {
            rate: Some(Rate::from_megabits_per_second(100)),
            delay: Duration::from_millis(100),
            ..PathSpec::default()
        };
        let protocol: Protocol = entry.name.parse().unwrap();
        let mut listener = endpoint(&protocol, 2);
        listener.listen(Mode::Stream).unwrap();
        let pair = Pair::new(endpoint(&protocol, 1), listener).path(long).seed(3);
        let mut run = pair.caller(Workload::send(10 * LENGTH)).listener(Workload::receive()).start();
        run.run_until_done(Duration::from_secs(60));
        assert_eq!(run.missing(CALLER, LISTENER), [""; 0], "{}", entry.name);
    }
}
