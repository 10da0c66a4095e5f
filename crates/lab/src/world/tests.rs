//! Controllers that fail, in both worlds.

use farhaul_cc::{AckEvent, Control, Controller, LossEvent, Path, ReceivedEvent, Registration, Spec};
use farhaul_emu::EmulateError;

use super::Venue;
use super::emu::Choices;
use super::requirement::skip;
use crate::error::LabError;
use crate::run::run;
use crate::scenario::{Experiment, Overrides};

const LINK: &str = "title = 'x'\nduration = '2s'\nwarmup = '1s'\n[link]\nrate = '12mbit'\nrtt = '10ms'\n";

/// A controller that panics at its first acknowledgement.
struct PanicsAtSender;

impl Controller for PanicsAtSender {
    fn name(&self) -> &str {
        "panics"
    }

    fn on_ack(&mut self, _: &Path, _: &AckEvent, _: &mut Control) {
        panic!("the panic of this test");
    }

    fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {}
}

/// A controller that panics at the first packet that arrives.
struct PanicsAtReceiver;

impl Controller for PanicsAtReceiver {
    fn name(&self) -> &str {
        "panics-too"
    }

    fn on_ack(&mut self, _: &Path, _: &AckEvent, _: &mut Control) {}

    fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {}

    fn on_received(&mut self, _: &Path, _: &ReceivedEvent<'_>, _: &mut Control) {
        panic!("the panic of this test");
    }

    fn wants_packets(&self) -> bool {
        true
    }
}

/// Flows whose controllers fail, each with the error that it causes.
const FAILING: [(&str, &str); 4] = [
    (
        "[[flow]]\n[[flow]]\nname = 'mine'\ncontroller = 'panics'\n",
        "flow 'mine': the congestion controller 'panics' failed: it panicked in on_ack",
    ),
    (
        "[[flow]]\n[[flow]]\nname = 'mine'\ncontroller = 'panics-too'\n",
        "flow 'mine': the congestion controller 'panics-too' failed: it panicked in on_received",
    ),
    (
        "[[flow]]\nname = 'beside'\nprotocol = 'stable'\ntarget = '1mbit'\nbeside = 'mine'\n\
         [[flow]]\nname = 'mine'\ncontroller = 'panics-too'\n",
        "flow 'mine': the congestion controller 'panics-too' failed: it panicked in on_received",
    ),
    (
        "[[flow]]\nname = 'mine'\nprotocol = 'udt-2004'\ncontroller = 'panics'\n",
        "flow 'mine': the congestion controller 'panics' failed: it panicked in on_ack",
    ),
];

/// Flows of simulated TCP whose controllers fail, each with the error that it causes.
const FAILING_TCP: [(&str, &str); 3] = [
    (
        "protocol = 'tcp'\ncontroller = 'panics'\n",
        "flow 'mine': the congestion controller 'panics' failed: it panicked in on_ack",
    ),
    (
        "protocol = 'tcp'\ncontroller = 'panics'\nbytes = '2kB'\ntransfers = 9\n",
        "flow 'mine': the congestion controller 'panics' failed: it panicked in on_ack",
    ),
    (
        "protocol = 'tcp'\ncontroller = 'unmade'\nstop = '1s'\n",
        "flow 'mine': the congestion controller 'unnamed' failed: it panicked in its constructor",
    ),
];

/// The error of a scenario of one link and the flows.
fn failure_of(flows: &str, venue: &Venue) -> LabError {
    // Tests of one process share the registry, and the first one has filled it.
    let at_sender = Registration::new("panics", "for a test", |_, _| Ok(Box::new(PanicsAtSender)));
    let at_receiver = Registration::new("panics-too", "for a test", |_, _| Ok(Box::new(PanicsAtReceiver)));
    let _ = (at_sender.register(), at_receiver.register());
    let _ = Spec::made("unmade", |_| panic!("the panic of this test")).register();
    let experiment = Experiment::read("x", "x.toml", &format!("{LINK}{flows}"), &Overrides::default()).unwrap();
    let job = &experiment.jobs("").unwrap()[0];
    run("x", job, venue, None, &|| false).err().unwrap()
}

#[test]
fn a_controller_that_fails_is_the_error_of_its_flow_and_no_result() {
    for (flows, expected) in FAILING {
        let error = failure_of(flows, &Venue::Simulator);
        assert!(matches!(error, LabError::Controller { .. }), "{error}");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_controller_of_simulated_tcp_that_fails_is_the_error_of_its_flow() {
    for (keys, expected) in FAILING_TCP {
        let error = failure_of(&format!("[[flow]]\n[[flow]]\nname = 'mine'\n{keys}"), &Venue::Simulator);
        assert!(matches!(error, LabError::Controller { .. }), "{error}");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_controller_that_fails_between_real_sockets_is_the_error_of_its_flow_as_well() {
    for (flows, expected) in FAILING {
        match failure_of(flows, &Venue::Emulator(Choices::default())) {
            LabError::Emulate(error @ (EmulateError::NoPermission(_) | EmulateError::NoTun(_))) => {
                return skip(error).unwrap_or_default();
            }
            error => {
                assert!(matches!(error, LabError::Controller { .. }), "{error}");
                assert_eq!(error.to_string(), expected);
            }
        }
    }
}
