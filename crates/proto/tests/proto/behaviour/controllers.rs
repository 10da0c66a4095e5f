//! Controllers that users write: switched in mid-transfer, and wrong ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use farhaul_cc::registry::controllers;
use farhaul_cc::{AckEvent, Control, Controller, LossEvent, Path, Spec};
use farhaul_netem::PathSpec;
use farhaul_proto::{Config, ConnectionLost, ControllerFactory, Endpoint, Event, Streams};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, address};
use farhaul_sim::{Simulation, Workload};
use farhaul_units::{Duration, Rate, SendPeriod};

use crate::behaviour::scenario::{clean_path, endpoint, listener, random_loss};

/// A spec of each law, with the options that it needs.
fn laws() -> Vec<Spec> {
    let written = |name: &str| if name == "fixed" { "fixed:rate=60mbit".to_owned() } else { name.to_owned() };
    controllers().iter().map(|entry| written(entry.name).parse().expect("it is registered")).collect()
}

fn under(make: impl Fn(u64) -> Box<dyn Controller> + Send + 'static) -> Endpoint {
    endpoint(1, Config { controller: ControllerFactory::new(make), ..Config::default() })
}

fn switch(run: &mut Simulation<Endpoint>, controller: Box<dyn Controller>) {
    let id = run.flows(CALLER)[0].id();
    assert!(run.command(CALLER, |now, transport, _| transport.set_controller(now, id, controller)));
}

fn acked(run: &Simulation<Endpoint>) -> u64 {
    run.transport(CALLER).stats(run.now(), run.flows(CALLER)[0].id()).map_or(0, |stats| stats.totals.bytes_acked)
}

/// 40 Mbit/s and 20 ms, with a queue of one bandwidth-delay product.
fn path() -> PathSpec {
    PathSpec { rate: Some(Rate::from_megabits_per_second(40)), ..clean_path() }
}

/// A transfer that has run for some time under the law `from`, over `path`.
fn begun(from: &Spec, path: PathSpec, bytes: u64, time: Duration) -> Simulation<Endpoint> {
    let from = from.clone();
    let pair = Pair::new(under(move |seed| from.build(seed)), listener(2, Config::default()));
    let mut run = pair.path(path).caller(Workload::send(bytes)).start();
    run.run_for(time);
    run
}

/// Bytes that are acknowledged in 200 ms.
fn progress(run: &mut Simulation<Endpoint>) -> u64 {
    let before = acked(run);
    run.run_for(Duration::from_millis(200));
    acked(run) - before
}

// Slow: a hundred transfers.
#[test]
fn a_switch_between_any_two_laws_loses_nothing_and_is_no_pause() {
    for from in laws() {
        for to in laws() {
            let lossy = PathSpec { loss: random_loss(0.001), ..path() };
            let mut run = begun(&from, lossy, 3_000_000, Duration::from_millis(200));
            let before = progress(&mut run);
            switch(&mut run, to.build(3));
            let after = progress(&mut run);
            assert!(after * 5 > before, "{from} to {to}: {before} and {after} bytes");
            run.run_until_done(Duration::from_secs(60));
            assert_eq!(run.missing(CALLER, LISTENER), [""; 0], "{from} to {to} at {}", run.now());
        }
    }
}

#[test]
fn after_a_switch_the_new_law_sends_as_fast_as_the_old_one_did() {
    // All that fill this path alone, at moments with a full queue and with a short one.
    let filling =
        ["union", "udt", "udt-2011", "bbr", "reno", "cubic"].map(|law| law.parse().expect("it is registered"));
    for from in &filling {
        for to in &filling {
            for moment in [800, 1_000, 1_200, 1_500, 2_000].map(Duration::from_millis) {
                let mut run = begun(from, path(), 1 << 30, moment);
                let before = progress(&mut run);
                switch(&mut run, to.build(3));
                let after = progress(&mut run);
                assert!(after * 10 > before * 8, "{from} to {to} after {moment:?}: {before} and {after} bytes");
            }
        }
    }
}

#[test]
fn a_controller_that_is_switched_off_is_told_once() {
    let ends = Arc::new(AtomicU32::new(0));
    let mut run = begun(&Spec::default(), path(), 3_000_000, Duration::from_millis(100));
    switch(&mut run, Box::new(Wrong { at: u32::MAX, acks: 0, sets: |_| {}, ends: ends.clone() }));
    run.run_for(Duration::from_millis(50));
    switch(&mut run, Spec::default().build(4));
    assert_eq!(ends.load(Ordering::Relaxed), 1);
    run.run_until_done(Duration::from_secs(60));
    assert_eq!((run.missing(CALLER, LISTENER), ends.load(Ordering::Relaxed)), (Vec::new(), 1));
}

/// A change of the settings.
type Change = fn(&mut Control);

/// Sets something at its acknowledgement number `at`.
struct Wrong {
    at: u32,
    acks: u32,
    sets: fn(&mut Control),
    ends: Arc<AtomicU32>,
}

impl Controller for Wrong {
    fn name(&self) -> &str {
        "wrong"
    }

    fn on_ack(&mut self, _: &Path, _: &AckEvent, control: &mut Control) {
        self.acks += 1;
        control.cwnd = Some(50.0);
        if self.acks == self.at {
            (self.sets)(control);
        }
    }

    fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {}

    fn on_close(&mut self) {
        self.ends.fetch_add(1, Ordering::Relaxed);
    }
}

/// The reasons for which the connections of both ends are over, of a caller whose first connection has a wrong controller.
fn ends_of(sets: fn(&mut Control), ends: &Arc<AtomicU32>) -> [Vec<String>; 2] {
    let (made, ends) = (AtomicU32::new(0), Arc::clone(ends));
    let caller = under(move |seed| {
        // That of seed zero has no connection: it is asked whether it wants receipts.
        let is_first = seed != 0 && made.fetch_add(1, Ordering::Relaxed) == 0;
        if is_first {
            Box::new(Wrong { at: 20, acks: 0, sets, ends: ends.clone() })
        } else {
            Spec::default().build(seed)
        }
    });
    let pair = Pair::new(caller, listener(2, Config::default())).path(clean_path());
    let mut run = pair.caller(Workload::send(3_000_000)).start();
    run.run_for(Duration::from_millis(30));
    // Another connection of the same port.
    run.command(CALLER, |now, transport, application| {
        let id = transport.connect(now, address(LISTENER)).expect("there is room");
        application.adopt(id);
    });
    run.run_until_done(Duration::from_secs(60));
    let flows = run.flows(CALLER);
    assert_eq!(flows.len(), 2);
    assert_eq!(flows[1].written(), 3_000_000, "the other connection lives on");
    [CALLER, LISTENER].map(|host| {
        let lost = |(_, event): &(_, Event)| match event {
            Event::Closed(_, ConnectionLost::ClosedByPeer | ConnectionLost::ClosedLocally) => None,
            Event::Closed(_, reason) => Some(reason.to_string()),
            _ => None,
        };
        run.application(host).log().iter().filter_map(lost).collect()
    })
}

#[test]
fn a_wrong_controller_ends_its_own_connection_with_its_name_and_the_peer_is_told() {
    let wrong: [(Change, &str); 8] = [
        (|_| panic!("the panic of this test"), "it panicked in on_ack"),
        (|control| control.cwnd = Some(f64::NAN), "on_ack set cwnd to NaN"),
        (|control| control.cwnd = Some(0.0), "on_ack set cwnd to zero"),
        (|control| control.cwnd = Some(-3.0), "on_ack set cwnd to a value below zero"),
        (|control| control.send_period = SendPeriod::from_micros(f64::NAN), "on_ack set send_period to NaN"),
        (|control| control.send_period = SendPeriod::from_micros(1e12), "on_ack set send_period to more than 60 s"),
        (|control| control.burst = Some(0), "on_ack set burst to zero"),
        (|control| control.rto = Some(Duration::ZERO), "on_ack set rto to zero"),
    ];
    for (sets, fault) in wrong {
        let ends = Arc::new(AtomicU32::new(0));
        let aborted = ConnectionLost::Aborted.to_string();
        let expected = format!("the congestion controller 'wrong' failed: {fault}");
        assert_eq!(ends_of(sets, &ends), [vec![expected], vec![aborted]]);
        let told = u32::from(!fault.contains("panicked"));
        assert_eq!(ends.load(Ordering::Relaxed), told, "{fault}");
    }
}

#[test]
fn a_controller_that_panics_while_it_is_made_fails_its_connection() {
    let caller = under(|_| panic!("the panic of this test"));
    let pair = Pair::new(caller, listener(2, Config::default())).path(clean_path());
    let mut run = pair.caller(Workload::send(1_000)).start();
    run.run_for(Duration::from_secs(1));
    let log = run.application(CALLER).log();
    let text = "the congestion controller 'unnamed' failed: it panicked in its constructor";
    assert!(log.iter().any(|(_, event)| matches!(event, Event::Closed(_, reason) if reason.to_string() == text)));
}
