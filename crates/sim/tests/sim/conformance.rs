//! The built-in laws meet all requirements, and for each requirement there is a controller that fails it.

use std::sync::atomic::{AtomicU64, Ordering};

use farhaul_cc::registry::controllers;
use farhaul_cc::{AckEvent, Control, Controller, CustomMessage, DeliveryEvent, LossEvent, Path, Spec, TimeoutEvent};
use farhaul_sim::conformance::{Extent, check, check_some};
use farhaul_units::{Duration, SendPeriod, SeqNo};

/// Each law of the registry meets all requirements.
fn laws_conform(extent: Extent) {
    let mut reports = String::new();
    for entry in controllers() {
        let text = if entry.name == "fixed" { "fixed:rate=4mbit" } else { entry.name };
        let spec: Spec = text.parse().expect("it is registered");
        let report = check(extent, move |seed| spec.build(seed));
        if !report.is_met() {
            reports += &format!("{text}\n{report}");
        }
    }
    assert!(reports.is_empty(), "{reports}");
}

#[test]
fn all_laws_meet_all_requirements() {
    laws_conform(Extent::Short);
}

#[test]
#[ignore = "long: ten times the data, with eight seeds"]
fn all_laws_meet_all_requirements_in_the_long_form() {
    laws_conform(Extent::Long);
}

/// Additive increase and multiplicative decrease, with one thing that is wrong.
#[derive(Default)]
struct Wrong {
    window: f64,
    last: SeqNo,
    limited: u32,
    at: Wrongness,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Wrongness {
    #[default]
    Nothing,
    Crawls,
    NeverGrowsAfterLoss,
    StopsAfterTimeout,
    FearsReordering,
    FearsApplications,
    FearsSilence,
    FailsToTakeOver,
    FailsOnHugeWindows,
    FailsOnShortRoundTrips,
    FailsOnLongRoundTrips,
    ComparesRawNumbers,
    BelievesReports,
    Starves,
    DependsOnOthers,
    Babbles,
}

/// Counts what controllers of this process should not know of each other.
static MADE: AtomicU64 = AtomicU64::new(0);

impl Wrong {
    fn new(at: Wrongness) -> Self {
        let window = match at {
            Wrongness::DependsOnOthers => 4.0 + MADE.fetch_add(1, Ordering::Relaxed) as f64,
            _ => 32.0,
        };
        Self { window, at, ..Self::default() }
    }

    fn fail_if(&self, at: Wrongness, condition: bool) {
        assert!(self.at != at || !condition, "the panic of this test");
    }
}

impl Controller for Wrong {
    fn name(&self) -> &str {
        "wrong"
    }

    fn on_connect(&mut self, path: &Path, control: &mut Control) {
        self.last = path.next_seq;
        control.cwnd = Some(self.window);
        if self.at == Wrongness::Crawls {
            control.send_period = SendPeriod::from_micros(1e6);
        }
        if self.at == Wrongness::Starves && MADE.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            control.send_period = SendPeriod::from_micros(50_000.0);
        }
    }

    fn on_take_over(&mut self, path: &Path, control: &mut Control) {
        self.fail_if(Wrongness::FailsToTakeOver, true);
        self.on_connect(path, control);
    }

    fn on_delivery(&mut self, path: &Path, _: &DeliveryEvent, _: &mut Control) {
        self.fail_if(
            Wrongness::FailsOnShortRoundTrips,
            path.latest_rtt.is_some_and(|rtt| rtt < Duration::from_millis(1)),
        );
        self.fail_if(Wrongness::FailsOnLongRoundTrips, path.rtt > Duration::from_millis(500));
    }

    fn on_restart(&mut self, path: &Path, _: &mut Control) {
        let is_late = path.packets_sent > 60;
        self.fail_if(Wrongness::FearsSilence, is_late);
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        self.limited += u32::from(path.sampling_application);
        self.fail_if(Wrongness::FearsApplications, self.limited > 20);
        self.fail_if(Wrongness::ComparesRawNumbers, ack.seq.value() < self.last.value());
        self.last = ack.seq;
        let claims = |rate: Option<farhaul_units::PacketRate>| rate.is_some_and(|rate| rate.packets_per_second() > 1e8);
        self.fail_if(Wrongness::BelievesReports, claims(path.capacity));
        self.window += f64::from(ack.newly_acked) / self.window;
        self.fail_if(Wrongness::FailsOnHugeWindows, self.window > 33.0);
        control.cwnd = Some(self.window);
    }

    fn on_loss(&mut self, _: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        if loss.newly_lost > 0 {
            self.window = (self.window / 2.0).max(2.0);
        }
        if self.at == Wrongness::NeverGrowsAfterLoss {
            control.send_period = SendPeriod::from_micros(2e7);
        }
        control.cwnd = Some(self.window);
    }

    fn on_recovered(&mut self, _: &Path, spurious: bool, _: &mut Control) {
        self.fail_if(Wrongness::FearsReordering, spurious);
    }

    fn on_timeout(&mut self, _: &Path, _: &TimeoutEvent, control: &mut Control) {
        if self.at == Wrongness::StopsAfterTimeout {
            control.send_period = SendPeriod::from_micros(3e7);
        }
    }

    fn next_message(&mut self) -> Option<CustomMessage> {
        (self.at == Wrongness::Babbles).then(|| CustomMessage { kind: 1, body: Vec::new() })
    }

    fn wants_deliveries(&self) -> bool {
        true
    }

    fn wants_custom_messages(&self) -> bool {
        true
    }
}

#[test]
fn a_wrong_controller_fails_the_requirement_that_it_violates() {
    let expected = [
        (Wrongness::Crawls, "start-up"),
        (Wrongness::NeverGrowsAfterLoss, "loss"),
        (Wrongness::StopsAfterTimeout, "outage"),
        (Wrongness::FearsReordering, "reordering"),
        (Wrongness::FearsApplications, "application-limited"),
        (Wrongness::FearsSilence, "silence"),
        (Wrongness::FailsToTakeOver, "switch in"),
        (Wrongness::FailsOnHugeWindows, "switch out"),
        (Wrongness::FailsOnShortRoundTrips, "fast path"),
        (Wrongness::FailsOnLongRoundTrips, "slow path"),
        (Wrongness::ComparesRawNumbers, "wrap"),
        (Wrongness::BelievesReports, "hostile reports"),
        (Wrongness::Starves, "sharing"),
        (Wrongness::DependsOnOthers, "determinism"),
        (Wrongness::Babbles, "messages"),
    ];
    let sound = check(Extent::Short, |_| Box::new(Wrong::new(Wrongness::Nothing)));
    assert!(sound.is_met(), "{sound}");
    let requirements: Vec<_> = sound.findings().iter().map(|finding| finding.requirement).collect();
    assert_eq!(requirements, expected.map(|(_, requirement)| requirement));
    for (wrongness, requirement) in expected {
        let is_it = |name: &str| name == requirement;
        let report = check_some(Extent::Short, is_it, move |_| Box::new(Wrong::new(wrongness)));
        assert!(!report.is_met(), "{wrongness:?}\n{report}");
    }
}
