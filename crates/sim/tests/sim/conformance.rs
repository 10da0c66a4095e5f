//! The built-in laws meet all requirements, and for each requirement there is a controller that fails it.

use std::sync::atomic::{AtomicU64, Ordering};

use allocation_counter::measure;
use farhaul_cc::registry::controllers;
use farhaul_cc::{AckEvent, Control, Controller, CustomMessage, DeliveryEvent, LossEvent, Path, Spec, TimeoutEvent};
use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::{Config, ControllerFactory, Entropy, Mode, udt};
use farhaul_sim::Workload;
use farhaul_sim::conformance::{Extent, check, check_some};
use farhaul_sim::topology::path::{CALLER, Pair};
use farhaul_units::{Duration, Instant, Rate, SendPeriod, SeqNo};

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
#[ignore = "long: ten times the data with eight seeds take 40 s"]
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

/// Memory of a controller that does not depend on how long it runs: windows of samples, buckets of a filter.
const LEAST_GROWTH: i64 = 16 << 10;

/// The bytes that a controller holds after it has run for some time on a path with losses.
///
/// The requirements of the library cannot see memory. Here an allocator counts what goes when another controller takes over.
fn held(make: impl Fn(u64) -> Box<dyn Controller> + Send + 'static, time: Duration) -> i64 {
    let endpoint = |seed, config| udt::endpoint(config, Entropy { cookie_key: [seed as u8; 16], seed });
    let mut listener = endpoint(2, Config::default());
    listener.listen(Mode::Stream).expect("UDT has streams");
    let path = PathSpec {
        rate: Some(Rate::from_megabits_per_second(20)),
        delay: Duration::from_millis(10),
        queue: QueueSize::Packets(50),
        loss: Some(LossSpec::Bernoulli(0.001)),
        ..PathSpec::default()
    };
    let caller = endpoint(1, Config { controller: ControllerFactory::new(make), ..Config::default() });
    let mut run = Pair::new(caller, listener).path(path).caller(Workload::send_without_end()).start();
    run.run_until(Instant::ZERO + time);
    let id = run.flows(CALLER)[0].id();
    let next: Spec = "reno".parse().expect("it is built in");
    let next = next.build(1);
    let change = measure(|| {
        assert!(run.command(CALLER, |now, transport, _| transport.set_controller(now, id, next)));
    });
    -change.bytes_current
}

/// How much more a controller holds after 40 s than after 4 s.
fn growth(make: impl Fn(u64) -> Box<dyn Controller> + Clone + Send + 'static) -> i64 {
    held(make.clone(), Duration::from_secs(40)) - held(make, Duration::from_secs(4))
}

#[test]
fn the_memory_of_a_law_does_not_grow_with_its_packets() {
    for entry in controllers() {
        let text = if entry.name == "fixed" { "fixed:rate=4mbit" } else { entry.name };
        let spec: Spec = text.parse().expect("it is registered");
        let growth = growth(move |seed| spec.build(seed));
        assert!(growth <= LEAST_GROWTH, "{text}: {growth} bytes more after ten times the time");
    }
}

/// Keeps the time of each acknowledgement.
#[derive(Default)]
struct Hoarder {
    times: Vec<[Instant; 4]>,
}

impl Controller for Hoarder {
    fn name(&self) -> &str {
        "hoarder"
    }

    fn on_ack(&mut self, path: &Path, _: &AckEvent, _: &mut Control) {
        self.times.push([path.now; 4]);
    }

    fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {}
}

#[test]
fn a_controller_that_keeps_something_of_each_acknowledgement_is_seen_to_grow() {
    let growth = growth(|_| Box::new(Hoarder::default()));
    assert!(growth > 2 * LEAST_GROWTH, "{growth}");
}
