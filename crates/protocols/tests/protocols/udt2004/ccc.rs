//! What a controller written for CCC has under the protocol of the 2004 paper, and what that protocol has no place for.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use farhaul_cc::{
    AckEvent, Control, Controller, CustomMessage, LossEvent, Path, ReceivedEvent, SentEvent, TimeoutEvent,
};
use farhaul_netem::{LossSpec, PathSpec};
use farhaul_proto::{Config, ControllerFactory};
use farhaul_protocols::udt2004::default_config;
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_sim::{TapAction, Workload};
use farhaul_units::Duration;

use crate::udt2004::scenario::{LENGTH, LIMIT, clean_path, endpoint, listener, stats};

/// Names of the callbacks that were called.
type Called = Arc<Mutex<BTreeSet<&'static str>>>;

/// Keeps the names of its callbacks, with these settings. It wants packets and messages.
struct Subject {
    settings: fn(&mut Control),
    called: Called,
}

impl Subject {
    fn note(&self, callback: &'static str) {
        self.called.lock().expect("nobody panics with it").insert(callback);
    }
}

impl Controller for Subject {
    fn name(&self) -> &str {
        "subject"
    }

    fn on_connect(&mut self, _: &Path, control: &mut Control) {
        self.note("on_connect");
        control.cwnd = Some(100.0);
        (self.settings)(control);
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, _: &mut Control) {
        assert!(!ack.light, "the paper has no light acknowledgements");
        if path.capacity.is_some() && path.arrival_rate.is_some() {
            self.note("figures");
        }
        self.note("on_ack");
    }

    fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {
        self.note("on_loss");
    }

    fn on_timeout(&mut self, _: &Path, _: &TimeoutEvent, _: &mut Control) {
        self.note("on_timeout");
    }

    fn on_sent(&mut self, _: &Path, _: &SentEvent<'_>, _: &mut Control) {
        self.note("on_sent");
    }

    fn on_received(&mut self, _: &Path, _: &ReceivedEvent<'_>, _: &mut Control) {
        self.note("on_received");
    }

    fn on_custom_message(&mut self, _: &Path, _: u16, _: &[u8], _: &mut Control) {
        self.note("on_custom_message");
    }

    fn next_message(&mut self) -> Option<CustomMessage> {
        self.note("next_message");
        Some(CustomMessage { kind: 1, body: Vec::new() })
    }

    fn on_close(&mut self) {
        self.note("on_close");
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn wants_custom_messages(&self) -> bool {
        true
    }
}

/// The callbacks of both ends in an exchange, and the acknowledgements that the listener sent.
fn run(settings: fn(&mut Control)) -> (Vec<&'static str>, u64) {
    let called = Called::default();
    let config = || {
        let called = Arc::clone(&called);
        let make = move |seed| -> Box<dyn Controller> {
            let called = if seed == 0 { Called::default() } else { Arc::clone(&called) };
            Box::new(Subject { settings, called })
        };
        Config { controller: ControllerFactory::new(make), ..default_config() }
    };
    let lossy = PathSpec { loss: Some(LossSpec::Bernoulli(0.01)), ..clean_path() };
    let pair = Pair::new(endpoint(1, config()), listener(2, config())).path(lossy);
    let mut run = pair.caller(Workload::exchange(LENGTH)).listener(Workload::exchange(LENGTH)).start();
    run.run_for(Duration::from_millis(200));
    // Nobody hears of the other one for longer than the expiration time.
    run.set_tap(Some(Box::new(|_| TapAction::Drop)));
    run.run_for(Duration::from_secs(3));
    run.set_tap(None);
    run.run_until_done(LIMIT);
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
    let acks = stats(&run, LISTENER).totals.acks_sent;
    // A connection that is over waits for lost answers before it ends.
    run.run_for(Duration::from_secs(60));
    let called = called.lock().expect("nobody panics with it").iter().copied().collect();
    (called, acks)
}

#[test]
fn ccc_under_udt_2004() {
    let (called, acks) = run(|_| {});
    let all = ["figures", "on_ack", "on_close", "on_connect", "on_loss", "on_received", "on_sent", "on_timeout"];
    assert!(all.iter().all(|callback| called.contains(callback)), "{called:?}");
    // No packet of the protocol carries a message.
    assert!(!called.contains(&"on_custom_message") && !called.contains(&"next_message"), "{called:?}");
    // The paper acknowledges once a SYN interval, and has a formula for the expiration time.
    let (_, same) = run(|control| {
        (control.ack_period, control.full_ack_interval) = (Some(Duration::from_millis(1)), Some(2));
        control.rto = Some(Duration::from_millis(1));
    });
    assert_eq!(same, acks);
}
