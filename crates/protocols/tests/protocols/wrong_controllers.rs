//! Wrong controllers under UDT and the protocol of 2004, plain and encrypted: each ends its own connection, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use farhaul_cc::{
    AckEvent, Control, Controller, CustomMessage, DeliveryEvent, LossEvent, Path, ReceivedEvent, SentEvent,
    TimeoutEvent,
};
use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::secure::Null;
use farhaul_proto::{Config, ConnectionLost, ControllerFactory, Endpoint, Entropy, Event, Mode, Streams, Transport};
use farhaul_protocols::Protocol;
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, address};
use farhaul_sim::{Simulation, TapAction, Workload};
use farhaul_units::{Duration, Instant, Rate, SendPeriod};
use farhaul_wire::{udt4, udt2004};

/// What the controller under test does in one of its callbacks.
type Fault = fn(&mut Control);

const PANIC: Fault = |_| panic!("the panic of this test");
/// Bytes that each connection carries before its peer is cut off, and again after a silence.
const BYTES: u64 = 2_000_000;
/// One of so many full packets is lost.
const LOST: u64 = 50;

/// A constant window of 60 packets, and a fault in each call of one callback.
struct Faulty {
    callback: &'static str,
    fault: Fault,
}

impl Faulty {
    fn call(&self, callback: &str, control: &mut Control) {
        control.cwnd = Some(60.0);
        if self.callback == callback {
            (self.fault)(control);
        }
    }
}

impl Controller for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }

    fn on_connect(&mut self, _: &Path, control: &mut Control) {
        self.call("on_connect", control);
    }

    fn on_ack(&mut self, _: &Path, _: &AckEvent, control: &mut Control) {
        self.call("on_ack", control);
    }

    fn on_delivery(&mut self, _: &Path, _: &DeliveryEvent, control: &mut Control) {
        self.call("on_delivery", control);
    }

    fn on_restart(&mut self, _: &Path, control: &mut Control) {
        self.call("on_restart", control);
    }

    fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, control: &mut Control) {
        self.call("on_loss", control);
    }

    fn on_recovered(&mut self, _: &Path, _: bool, control: &mut Control) {
        self.call("on_recovered", control);
    }

    fn on_timeout(&mut self, _: &Path, _: &TimeoutEvent, control: &mut Control) {
        self.call("on_timeout", control);
    }

    fn on_warning(&mut self, _: &Path, control: &mut Control) -> bool {
        self.call("on_warning", control);
        true
    }

    fn on_syn(&mut self, _: &Path, control: &mut Control) {
        self.call("on_syn", control);
    }

    fn on_sent(&mut self, _: &Path, _: &SentEvent<'_>, control: &mut Control) {
        self.call("on_sent", control);
    }

    fn on_received(&mut self, _: &Path, _: &ReceivedEvent<'_>, control: &mut Control) {
        self.call("on_received", control);
    }

    fn on_custom_message(&mut self, _: &Path, _: u16, _: &[u8], control: &mut Control) {
        self.call("on_custom_message", control);
    }

    fn next_message(&mut self) -> Option<CustomMessage> {
        self.call("next_message", &mut Control::initial());
        None
    }

    fn on_close(&mut self) {
        self.call("on_close", &mut Control::initial());
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn wants_deliveries(&self) -> bool {
        true
    }

    fn wants_custom_messages(&self) -> bool {
        true
    }
}

/// A protocol, plain or encrypted.
#[derive(Clone, Copy, Debug)]
struct Carriage {
    protocol: &'static str,
    is_encrypted: bool,
}

const CARRIAGES: [Carriage; 4] = [
    Carriage { protocol: "udt", is_encrypted: false },
    Carriage { protocol: "udt", is_encrypted: true },
    Carriage { protocol: "udt-2004", is_encrypted: false },
    Carriage { protocol: "udt-2004", is_encrypted: true },
];

impl Carriage {
    /// The callbacks of a connection whose peer sends a little as well.
    fn callbacks(self) -> &'static [&'static str] {
        match (self.protocol, self.is_encrypted) {
            ("udt", false) => &[
                "on_connect",
                "on_ack",
                "on_delivery",
                "on_restart",
                "on_loss",
                "on_recovered",
                "on_timeout",
                "on_warning",
                "on_sent",
                "on_received",
                "on_custom_message",
                "next_message",
            ],
            // Nobody on the path can forge a warning.
            ("udt", true) => &[
                "on_connect",
                "on_ack",
                "on_delivery",
                "on_restart",
                "on_loss",
                "on_recovered",
                "on_timeout",
                "on_sent",
                "on_received",
                "on_custom_message",
                "next_message",
            ],
            (_, false) => {
                &["on_connect", "on_ack", "on_loss", "on_timeout", "on_warning", "on_syn", "on_sent", "on_received"]
            }
            (_, true) => &["on_connect", "on_ack", "on_loss", "on_timeout", "on_syn", "on_sent", "on_received"],
        }
    }

    fn endpoint(self, seed: u64, config: Config) -> Endpoint {
        let protocol: Protocol = self.protocol.parse().expect("it is registered");
        let entropy = Entropy { cookie_key: [seed as u8; 16], seed };
        match self.is_encrypted {
            true => protocol.secure_endpoint(config, entropy, Box::new(Null::new(seed))),
            false => protocol.endpoint(config, entropy),
        }
    }

    /// Ends of connections, of which the first has the faulty controller.
    fn pair(self, callback: &'static str, fault: Fault) -> Pair<Endpoint> {
        let is_made = Arc::new(AtomicBool::new(false));
        let make = move |seed| -> Box<dyn Controller> {
            // That of seed zero has no connection: it is asked whether it wants receipts.
            let is_first = seed != 0 && !is_made.swap(true, Ordering::Relaxed);
            Box::new(Faulty { callback: if is_first { callback } else { "none" }, fault })
        };
        let caller = self.endpoint(1, Config { controller: ControllerFactory::new(make), ..Config::default() });
        let mut listener = self.endpoint(2, Config::default());
        listener.listen(Mode::Stream).expect("both protocols have streams");
        let path = PathSpec {
            rate: Some(Rate::from_megabits_per_second(40)),
            delay: Duration::from_millis(5),
            queue: QueueSize::Packets(100),
            ..PathSpec::default()
        };
        let both = Workload::exchange(BYTES).kept_open();
        Pair::new(caller, listener).path(path).caller(both).listener(both).seed(3)
    }

    /// The congestion warning that anybody on the path can send, made of an acknowledgement.
    fn warning(self, datagram: &[u8]) -> Option<Vec<u8>> {
        let mut warning = Vec::new();
        if self.is_encrypted {
            return None;
        }
        if self.protocol == "udt-2004" {
            let is_ack = matches!(udt2004::Control::decode(datagram), Ok(udt2004::Control::Ack(_)));
            udt2004::Control::DelayWarning.encode(&mut warning);
            return is_ack.then_some(warning);
        }
        let Ok((stamp, to, udt4::Control::Ack { .. })) = udt4::Control::decode(datagram) else { return None };
        udt4::Control::CongestionWarning.encode(stamp, to, &mut warning);
        Some(warning)
    }

    /// Runs through all that causes callbacks: losses, a message, a warning, an outage of the return path, a silence.
    fn run(self, callback: &'static str, fault: Fault) -> Simulation<Endpoint> {
        // Two addresses have one plain connection of the protocol of 2004 at a time, so the other one follows.
        let other = if self.protocol == "udt-2004" && !self.is_encrypted { 5_000 } else { 20 };
        let calls = [0, other].map(|at| Instant::ZERO + Duration::from_millis(at));
        let mut run = self.pair(callback, fault).calls(calls).start();
        let mut full = 0_u64;
        run.set_tap(Some(Box::new(move |datagram| {
            full += u64::from(datagram.bytes.len() > 1_000);
            if datagram.bytes.len() > 1_000 && full.is_multiple_of(LOST) {
                return TapAction::Drop;
            }
            if datagram.from == address(LISTENER)
                && let Some(warning) = self.warning(datagram.bytes)
            {
                datagram.forged.push((datagram.from, datagram.to, warning));
            }
            TapAction::Pass
        })));
        run.run_for(Duration::from_millis(60));
        let accepted: Vec<_> = run.flows(LISTENER).iter().map(farhaul_sim::Flow::id).collect();
        for id in accepted {
            run.command(LISTENER, |_, endpoint, _| endpoint.send_custom(id, 7, b"a message"));
        }
        run.run_for(Duration::from_millis(140));
        let is_cut = |from| from == address(LISTENER);
        run.set_tap(Some(Box::new(move |datagram| match is_cut(datagram.from) {
            true => TapAction::Drop,
            false => TapAction::Pass,
        })));
        run.run_for(Duration::from_secs(3));
        run.set_tap(None);
        run.run_for(Duration::from_secs(20));
        let begun: Vec<_> = run.flows(CALLER).iter().map(farhaul_sim::Flow::id).collect();
        for id in begun {
            // The first connection is over by now, unless it waits for this.
            let _ = run.command(CALLER, |now, endpoint, _| endpoint.write(now, id, &[7; 10_000]));
        }
        run.run_for(Duration::from_secs(20));
        run
    }
}

/// How connections of a host have ended.
fn ends(run: &Simulation<Endpoint>, host: usize) -> Vec<String> {
    let end = |(_, event): &(Instant, Event)| match event {
        Event::Closed(_, reason) => Some(reason.to_string()),
        _ => None,
    };
    run.application(host).log().iter().filter_map(end).collect()
}

fn ends_its_connection_alone(carriage: Carriage, callback: &'static str, fault: Fault, expected: &str) {
    let run = carriage.run(callback, fault);
    let expected = format!("the congestion controller 'faulty' failed: {expected}");
    let context = format!("{carriage:?} {callback}");
    assert_eq!(ends(&run, CALLER), [expected], "{context}");
    assert_eq!(ends(&run, LISTENER), [ConnectionLost::Aborted.to_string()], "{context}");
    for host in [CALLER, LISTENER] {
        let received = |flow: &farhaul_sim::Flow| flow.received().bytes;
        assert!(run.flows(host).iter().any(|flow| flow.closed.is_none() && received(flow) >= BYTES), "{context}");
    }
    assert_eq!(run.transport(CALLER).connections(), 2, "{context}: the application has released none");
}

#[test]
fn a_panic_in_any_callback_ends_its_connection_alone() {
    for carriage in CARRIAGES {
        for callback in carriage.callbacks() {
            ends_its_connection_alone(carriage, callback, PANIC, &format!("it panicked in {callback}"));
        }
    }
}

#[test]
fn an_answer_that_no_connection_can_use_ends_its_connection_alone() {
    let faults: [(Fault, &str); 5] = [
        (|control| control.cwnd = Some(f64::NAN), "on_ack set cwnd to NaN"),
        (|control| control.cwnd = Some(f64::INFINITY), "on_ack set cwnd to an infinite value"),
        (|control| control.cwnd = Some(0.0), "on_ack set cwnd to zero"),
        (|control| control.send_period = SendPeriod::from_micros(f64::NAN), "on_ack set send_period to NaN"),
        (|control| control.ack_interval = Some(0), "on_ack set ack_interval to zero"),
    ];
    for carriage in CARRIAGES {
        for (fault, expected) in faults {
            ends_its_connection_alone(carriage, "on_ack", fault, expected);
        }
    }
}

/// How a connection ends whose controller panics at that.
#[derive(Clone, Copy, Debug)]
enum End {
    Finished,
    Closed,
    Released,
    ByPeer,
    PeerSilent,
}

#[test]
fn a_panic_at_the_end_of_a_connection_changes_nothing_of_it() {
    for carriage in CARRIAGES {
        for end in [End::Finished, End::Closed, End::Released, End::ByPeer, End::PeerSilent] {
            let mut logs = ["none", "on_close"].map(|callback| {
                let mut run = carriage.pair(callback, PANIC).start();
                run.run_for(Duration::from_secs(2));
                let ids = [CALLER, LISTENER].map(|host| run.flows(host)[0].id());
                run.command(CALLER, |now, endpoint, _| match end {
                    End::Finished => endpoint.finish(now, ids[0]),
                    End::Closed => endpoint.close(now, ids[0]),
                    End::Released => endpoint.release(now, ids[0]),
                    End::ByPeer | End::PeerSilent => {}
                });
                match end {
                    End::ByPeer => run.command(LISTENER, |now, endpoint, _| endpoint.close(now, ids[1])),
                    End::PeerSilent => run.set_tap(Some(Box::new(|_| TapAction::Drop))),
                    _ => {}
                }
                run.run_for(Duration::from_secs(60));
                for host in [CALLER, LISTENER] {
                    let flows: Vec<_> = run.flows(host).iter().map(farhaul_sim::Flow::id).collect();
                    run.command(host, |now, endpoint, _| flows.into_iter().for_each(|id| endpoint.release(now, id)));
                }
                run.run_for(Duration::from_secs(60));
                for host in [CALLER, LISTENER] {
                    let left = (run.transport(host).connections(), run.transport(host).poll_timeout());
                    assert_eq!(left, (0, None), "{carriage:?} {end:?} {callback} host {host}");
                }
                [CALLER, LISTENER].map(|host| ends(&run, host))
            });
            logs.iter_mut().flatten().for_each(|ends| ends.sort());
            assert_eq!(logs[0], logs[1], "{carriage:?} {end:?}");
        }
    }
}
