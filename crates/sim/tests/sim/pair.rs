//! Two hosts with a toy transport: delivery, timing and determinism.

use std::cell::RefCell;
use std::rc::Rc;

use farhaul_netem::{LossSpec, PathSpec, QueueSize, ReorderSpec};
use farhaul_proto::{ConnectionLost, Event};
use farhaul_sim::measure::throughput::goodput;
use farhaul_sim::topology::path::{CALLER, DOWN, LISTENER, Pair, UP, address};
use farhaul_sim::{Integrity, Simulation, TapAction, TraceHash, Workload};
use farhaul_units::{Duration, Instant, Rate};

use crate::toy::Toy;

const LENGTH: u64 = 500_000;
const LIMIT: Duration = Duration::from_secs(600);

fn pair() -> Pair<Toy> {
    Pair::new(Toy::default(), Toy::default())
}

/// 100 Mbit/s, 20 ms RTT.
fn clean() -> PathSpec {
    PathSpec {
        rate: Some(Rate::from_megabits_per_second(100)),
        delay: Duration::from_millis(10),
        ..PathSpec::default()
    }
}

fn bad() -> PathSpec {
    PathSpec {
        loss: Some(LossSpec::Bernoulli(0.02)),
        duplicate: 0.02,
        corrupt: 0.02,
        reorder: Some(ReorderSpec { probability: 0.02, extra_delay: Duration::from_millis(3) }),
        ..clean()
    }
}

#[test]
fn a_transfer_takes_the_time_that_the_path_dictates() {
    let mut run = pair().path(clean()).caller(Workload::send(50_000)).start();
    assert!(run.run_until_done(LIMIT));
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
    // Handshake and data travel 10 ms each way, then 50 packets of 1037 bytes leave at 100 Mbit/s.
    let complete = run.flows(LISTENER)[0].received().complete_at.expect("it is complete");
    let opening = 2 * Duration::from_nanos(10_002_960);
    assert_eq!(complete, Instant::ZERO + opening + Duration::from_nanos(10_000_000 + 50 * 82_960));
}

#[test]
fn both_ways_at_once_arrive_whole_through_a_bad_path() {
    let mut run =
        pair().path(bad()).caller(Workload::exchange(LENGTH)).listener(Workload::exchange(LENGTH)).seed(3).start();
    let whole = |run: &Simulation<Toy>| {
        let flows = [CALLER, LISTENER].map(|host| run.flows(host).first());
        flows.iter().all(|flow| flow.is_some_and(|flow| flow.received().complete_at.is_some()))
    };
    assert!(run.run_until_true(Instant::ZERO + LIMIT, whole));
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
    assert_eq!(run.missing(LISTENER, CALLER), [""; 0]);
    for link in [UP, DOWN] {
        let counters = run.link_counters(link);
        assert!(counters.dropped_loss.packets > 0 && counters.duplicated.packets > 0, "{counters:?}");
        assert!(counters.reordered.packets > 0 && counters.corrupted.packets > 0, "{counters:?}");
    }
    assert!(run.network_counters().checksum_failures > 0);
}

fn hash_of(seed: u64, path: PathSpec) -> TraceHash {
    let mut run = pair().path(path).caller(Workload::send(LENGTH)).seed(seed).start();
    run.run_until_done(LIMIT);
    run.trace_hash()
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    assert_eq!(hash_of(1, bad()), hash_of(1, bad()));
    assert_ne!(hash_of(1, bad()), hash_of(2, bad()));
}

#[test]
fn the_trace_does_not_depend_on_where_a_run_is_interrupted() {
    let run_in_steps = |step: Duration| {
        let mut run = pair().path(bad()).caller(Workload::send(LENGTH)).seed(5).start();
        while run.now() < Instant::ZERO + Duration::from_secs(3) {
            run.run_for(step);
        }
        run.trace_hash()
    };
    assert_eq!(run_in_steps(Duration::from_secs(3)), run_in_steps(Duration::from_micros(125)));
}

#[test]
fn no_buffer_is_made_once_the_largest_flight_was_sent() {
    let mut run = pair().path(clean()).caller(Workload::send(1 << 21)).start();
    run.run_for(Duration::from_millis(100));
    let made = run.pool().made();
    assert!(run.run_until_done(LIMIT));
    assert_eq!(run.pool().made(), made);
    assert_eq!(run.pool().in_use(), 0, "everything that was sent went back");
}

#[test]
fn damaged_data_is_noticed_when_no_checksum_stops_it() {
    let spec = PathSpec { corrupt: 0.1, ..clean() };
    let mut run = pair().up(spec).down(clean()).caller(Workload::send(LENGTH)).seed(1).start();
    run.deliver_damaged(true);
    run.run_for(Duration::from_secs(20));
    let received = run.flows(LISTENER)[0].received();
    assert!(matches!(received.integrity, Integrity::Damaged(_)), "{received:?}");
    assert_eq!(run.missing(CALLER, LISTENER).len(), 1);
}

#[test]
fn a_slow_reader_reads_at_its_rate() {
    let reader = Workload::receive().reading_at(Rate::from_megabits_per_second(1));
    let mut run = pair().path(clean()).caller(Workload::send(LENGTH)).listener(reader).start();
    run.sample_every(Duration::from_millis(100));
    let complete =
        |run: &Simulation<Toy>| run.flows(LISTENER).first().is_some_and(|flow| flow.received().complete_at.is_some());
    assert!(run.run_until_true(Instant::ZERO + LIMIT, complete));
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
    let flow = &run.flows(LISTENER)[0];
    let time = flow.received().complete_at.zip(flow.connected_at).map(|(end, begin)| end - begin);
    assert_eq!(time, Some(Duration::from_millis(4_020)), "nothing was there in the first round trip");
    let (from, to) = (Instant::ZERO + Duration::from_secs(1), Instant::ZERO + Duration::from_secs(3));
    let rate = goodput(run.samples().expect("they were asked for"), LISTENER, flow.id(), from, to);
    assert_eq!(rate, Some(Rate::from_megabits_per_second(1)));
}

#[test]
fn samples_show_the_queue_before_the_bottleneck() {
    let slow = PathSpec { rate: Some(Rate::from_megabits_per_second(5)), queue: QueueSize::Packets(20), ..clean() };
    let mut run = pair().up(slow).down(clean()).caller(Workload::send(LENGTH)).start();
    run.sample_every(Duration::from_millis(1));
    assert!(run.run_until_done(LIMIT));
    let samples = run.samples().expect("they were asked for");
    assert_eq!(samples.queue(UP).map(|(_, packets)| packets).max(), Some(20));
    assert_eq!(samples.queue(DOWN).map(|(_, packets)| packets).max(), Some(0));
    assert_eq!(samples.flow(CALLER, run.flows(CALLER)[0].id()).count(), samples.rows().len());
}

#[test]
fn a_tap_sees_drops_and_forges_datagrams() {
    let mut run = pair().path(clean()).caller(Workload::send(20_000)).start();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let record = Rc::clone(&seen);
    run.set_tap(Some(Box::new(move |datagram| {
        record.borrow_mut().push((datagram.from, datagram.bytes[0]));
        let first_data = datagram.bytes[0] == 2 && record.borrow().iter().filter(|seen| seen.1 == 2).count() == 1;
        if first_data {
            // A close of the connection, forged as the caller's.
            datagram.forged.push((datagram.from, datagram.to, [4; 9].to_vec()));
            return TapAction::Drop;
        }
        TapAction::Pass
    })));
    run.run_for(Duration::from_millis(100));
    assert_eq!(run.network_counters().tapped, 1);
    assert_eq!(seen.borrow()[..3], [(address(CALLER), 0), (address(LISTENER), 1), (address(CALLER), 2)]);
    let told = run.application(LISTENER).log().last().map(|&(_, event)| event);
    let id = run.flows(LISTENER)[0].id();
    assert_eq!(told, Some(Event::Closed(id, ConnectionLost::ClosedByPeer)));
    assert_eq!(run.flows(LISTENER)[0].received().bytes, 0, "the first packet was dropped");
}

#[test]
fn an_injected_datagram_arrives_from_anywhere() {
    let mut run = pair().path(clean()).calls([]).start();
    run.run_for(Duration::from_secs(1));
    let stranger = "192.0.2.7:4000".parse().expect("an address");
    run.inject(LISTENER, stranger, &[0; 9]);
    assert!(matches!(run.application(LISTENER).log(), [(_, Event::Accepted(_))]));
    assert_eq!(run.network_counters().unroutable, 1, "the answer goes to where nobody is");
}
