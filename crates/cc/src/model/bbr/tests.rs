//! The state machine by scripted events. Numbers in brackets are examples of the draft's equations, worked out by hand.

use farhaul_units::{Instant, PacketRate, SeqNo, SeqRange};

use super::signals::{ExtraAcked, MaxBandwidth};
use super::*;
use crate::LostFlight;

const RTT: Duration = Duration::from_millis(40);

/// A flow whose samples are told.
struct Script {
    bbr: Bbr,
    control: Control,
    path: Path,
    delivered: f64,
}

impl Script {
    fn new(rtt: Option<Duration>) -> Self {
        let mut path = Path::default();
        (path.latest_rtt, path.max_window) = (rtt, 1 << 20);
        path.now = Instant::ZERO + Duration::from_secs(10);
        let (mut bbr, mut control) = (Bbr::new(1), Control::initial());
        bbr.on_connect(&path, &mut control);
        Self { bbr, control, path, delivered: 0.0 }
    }

    /// Packets/s.
    fn pace(&self) -> f64 {
        1e6 / self.control.send_period.as_micros()
    }

    fn cwnd(&self) -> f64 {
        self.control.cwnd.unwrap()
    }

    /// One acknowledgement per round, which delivers `packets` at `rate`.
    fn round(&mut self, rate: f64, packets: f64) {
        self.sampled(
            RateSample { rate: Some(PacketRate::new(rate)), in_flight: packets, ..RateSample::default() },
            packets,
        );
    }

    fn sampled(&mut self, sample: RateSample, packets: f64) {
        self.path.now += RTT;
        self.acknowledge(RateSample { prior_delivered: self.delivered, delivered: packets, ..sample }, packets, RTT);
    }

    fn acknowledge(&mut self, sample: RateSample, packets: f64, rtt: Duration) {
        self.delivered += packets;
        let delivery = DeliveryEvent {
            newly_delivered: packets,
            delivered: self.delivered,
            rtt: Some(rtt),
            sample: Some(sample),
            window_limited: true,
            ..DeliveryEvent::default()
        };
        self.bbr.on_delivery(&self.path, &delivery, &mut self.control);
    }

    fn lose(&mut self, ranges: u32, flights: &[LostFlight]) {
        let ranges: Vec<_> = (0..ranges).map(|at| SeqRange::new(SeqNo::new(2 * at), SeqNo::new(2 * at))).collect();
        let loss = LossEvent::new(&ranges, 1, SeqNo::new(1_000_000)).of_flights(flights);
        self.bbr.on_loss(&self.path, &loss, &mut self.control);
    }

    /// A flow at 10 000 packets/s with an empty queue, after start-up.
    fn in_down() -> Self {
        let mut script = Self::new(Some(RTT));
        for rate in [1_000.0, 2_000.0, 4_000.0, 8_000.0, 10_000.0, 10_000.0, 10_000.0] {
            script.path.outstanding = 2_000.0;
            script.round(rate, rate * 0.04);
        }
        script.path.outstanding = 2_000.0;
        script.round(10_000.0, 400.0);
        assert_eq!(script.bbr.state, BbrState::Drain);
        script.path.outstanding = 300.0;
        script.round(10_000.0, 400.0);
        assert_eq!(script.bbr.state, BbrState::Probe(ProbePhase::Cruise), "Down was over at once");
        script.bbr.enter_down(&script.path);
        script
    }

    /// The same, in a probe.
    fn in_up() -> Self {
        let mut script = Self::in_down();
        script.round_until(BbrState::Probe(ProbePhase::Up));
        script
    }

    fn round_until(&mut self, state: BbrState) {
        for _ in 0..200 {
            // No time for ProbeRtt.
            self.bbr.min_rtt = MinRtt::new(Some(RTT), self.path.now);
            if self.bbr.state == state {
                return;
            }
            self.round(10_000.0, 400.0);
        }
        panic!("{:?}", self.bbr.state);
    }
}

/// Sheet E1.
#[test]
fn the_first_pace_is_that_of_the_first_window() {
    assert!((Script::new(None).pace() - 44_320.0).abs() < 1.0);
    assert!((Script::new(Some(RTT)).pace() - 1_108.0).abs() < 1.0);
}

#[test]
fn a_law_that_filled_the_path_is_followed_by_drain_and_another_one_by_start_up() {
    // 1000 packets/s for 40 ms are 40 packets; a probe has 1.25 times as many in flight.
    for (outstanding, rtt, drains) in [(49.0, RTT, false), (51.0, RTT * 2, true), (51.0, RTT, true)] {
        let mut script = Script::new(Some(rtt));
        script.path.min_rtt = Some(RTT);
        (script.path.outstanding, script.path.delivery_rate) = (outstanding, Some(PacketRate::new(1_000.0)));
        let (mut bbr, mut control) = (Bbr::new(1), Control { cwnd: Some(60.0), ..Control::initial() });
        bbr.on_take_over(&script.path, &mut control);
        let pace = 1e6 / control.send_period.as_micros();
        // [drain: 0.5 · 1000 · 0.99; start-up: 2.77 · 60 / 0.04]
        let expected = if drains { 495.0 } else { 4_155.0 };
        assert!((pace / expected - 1.0).abs() < 0.01, "{outstanding} packets: {pace}");
        assert_eq!(control.cwnd, Some(60.0));
    }
}

#[test]
fn start_up_doubles_per_round_and_drains_half_as_fast() {
    let mut script = Script::new(Some(RTT));
    script.round(1_000.0, 40.0);
    assert!((script.pace() - 2.77 * 1_000.0 * 0.99).abs() < 1e-6);
    script.round(2_000.0, 80.0);
    assert!((script.pace() - 2.77 * 2_000.0 * 0.99).abs() < 1e-6);
    let mut script = Script::in_down();
    script.bbr.state = BbrState::Drain;
    script.bbr.update_pace();
    // Sheet E6.
    assert!((script.bbr.pace - 4_950.0).abs() < 1e-6);
}

/// Sheet E6: a drain that began in round 12 is over in round 16.
#[test]
fn a_drain_ends_after_three_rounds_in_any_case() {
    let mut script = Script::in_down();
    script.bbr.state = BbrState::Drain;
    script.bbr.drain_round = script.bbr.rounds.count;
    script.path.outstanding = 9_000.0;
    for round in 1..=4 {
        script.round(10_000.0, 400.0);
        assert_eq!(script.bbr.state == BbrState::Drain, round < 4, "round {round}");
    }
}

/// Sheet E5.
#[test]
fn start_up_ends_by_losses_after_a_round_of_recovery() {
    let ends = |lost: f64, ranges: u32| {
        let mut script = Script::new(Some(RTT));
        script.round(9_900.0, 396.0);
        script.lose(1, &[]);
        script.round(9_900.0, 396.0);
        script.lose(ranges, &[]);
        let sample =
            RateSample { rate: Some(PacketRate::new(9_900.0)), in_flight: 1_000.0, lost, ..RateSample::default() };
        script.sampled(sample, 410.0);
        (script.bbr.full_pipe.reached, script.bbr.bounds.long_term)
    };
    assert_eq!(ends(21.0, 6), (true, 410.0));
    assert!(!ends(20.0, 6).0 && !ends(21.0, 5).0);
}

/// Sheet E11.
#[test]
fn windows_and_paces_follow_the_state() {
    let mut script = Script::in_down();
    let mut seen = |state| {
        script.bbr.state = state;
        script.bbr.extra_acked = ExtraAcked::default();
        script.bbr.extra_acked.update(64.0, 10_000.0, 800.0, script.path.now, true);
        script.bbr.cwnd = 5_000.0;
        script.bbr.update_cwnd(0.0);
        script.bbr.update_pace();
        (script.bbr.cwnd, script.bbr.pace)
    };
    assert_eq!(seen(BbrState::Probe(ProbePhase::Cruise)), (864.0, 9_900.0));
    assert_eq!(seen(BbrState::Probe(ProbePhase::Up)), (966.0, 12_375.0));
    assert_eq!(seen(BbrState::Probe(ProbePhase::Down)).1, 8_910.0);
    assert_eq!(seen(BbrState::ProbeRtt).0, 200.0);
    script.bbr.bounds.long_term = 900.0;
    script.bbr.state = BbrState::Probe(ProbePhase::Cruise);
    script.bbr.bound_cwnd();
    assert!(script.bbr.cwnd <= 765.0);
}

#[test]
fn the_cycle_goes_through_its_phases() {
    let mut script = Script::in_down();
    script.round_until(BbrState::Probe(ProbePhase::Cruise));
    script.round_until(BbrState::Probe(ProbePhase::Refill));
    assert!(script.bbr.bounds.short_term.bandwidth.is_infinite());
    script.round_until(BbrState::Probe(ProbePhase::Up));
    script.round_until(BbrState::Probe(ProbePhase::Down));
}

/// Sheet E7: 24 to 25 rounds at a product of 25 packets, 63 at 400.
#[test]
fn probes_are_as_frequent_as_reno_would_need() {
    let rounds = |rate: f64| {
        let mut script = Script::in_down();
        script.bbr.max_bandwidth = MaxBandwidth::default();
        script.round(rate, 10.0);
        script.round(rate, 10.0);
        script.bbr.enter_down(&script.path);
        script.bbr.cycle.wait = Duration::from_secs(60);
        (1..100).find(|_| {
            script.round(rate, 10.0);
            script.bbr.state == BbrState::Probe(ProbePhase::Refill)
        })
    };
    assert!(matches!(rounds(625.0), Some(24 | 25)), "{:?}", rounds(625.0));
    assert!(matches!(rounds(10_000.0), Some(62 | 63)), "{:?}", rounds(10_000.0));
}

#[test]
fn a_probe_that_lost_too_much_lowers_the_long_term_bound_once_and_ends() {
    let mut script = Script::in_up();
    let flight = LostFlight { packets: 40.0, in_flight: 1_000.0, lost: 45.0, application_limited: false };
    script.lose(1, &[flight, LostFlight { in_flight: 500.0, ..flight }]);
    assert_eq!(script.bbr.state, BbrState::Probe(ProbePhase::Down));
    assert!((script.bbr.bounds.long_term - 974.49).abs() < 0.01);
    assert!(script.bbr.cycle.too_high);
}

/// Sheet E14.
#[test]
fn the_next_probe_stops_where_the_last_one_lost_and_goes_on_if_that_was_chance() {
    let probe = |lost: f64| {
        let mut script = Script::in_up();
        script.lose(1, &[LostFlight { packets: 40.0, in_flight: 1_000.0, lost: 45.0, application_limited: false }]);
        script.round_until(BbrState::Probe(ProbePhase::Up));
        script.bbr.min_rtt = MinRtt::new(Some(RTT), script.path.now);
        script.path.outstanding = 975.0;
        script.round(10_000.0, 400.0);
        assert_eq!(script.bbr.state, BbrState::Probe(ProbePhase::Down));
        assert!(script.bbr.cycle.precautionary);
        script.path.outstanding = 300.0;
        if lost > 0.0 {
            script.lose(1, &[LostFlight { packets: lost, in_flight: 900.0, lost, application_limited: false }]);
        }
        script.round(10_000.0, 400.0);
        script.bbr.state
    };
    assert_eq!(probe(0.0), BbrState::Probe(ProbePhase::Refill));
    assert!(matches!(probe(50.0), BbrState::Probe(ProbePhase::Down | ProbePhase::Cruise)));
}

/// Sheet E13.
#[test]
fn the_window_falls_for_the_rtt_every_five_seconds() {
    let mut script = Script::in_down();
    script.bbr.state = BbrState::Probe(ProbePhase::Cruise);
    script.bbr.min_rtt = MinRtt::new(Some(RTT), script.path.now);
    script.bbr.cycle.began = script.path.now + Duration::from_secs(20);
    script.bbr.cwnd = 800.0;
    script.path.outstanding = 400.0;
    script.path.now += Duration::from_millis(5_010);
    let sample = RateSample { rate: Some(PacketRate::new(10_000.0)), ..RateSample::default() };
    let before = RateSample { prior_delivered: -1.0, ..sample };
    script.acknowledge(before, 10.0, Duration::from_millis(44));
    assert_eq!((script.bbr.state, script.cwnd()), (BbrState::ProbeRtt, 200.0));
    script.path.outstanding = 200.0;
    script.path.now += Duration::from_millis(50);
    script.acknowledge(before, 10.0, RTT);
    script.path.now += Duration::from_millis(199);
    script.acknowledge(RateSample { prior_delivered: script.delivered, ..sample }, 10.0, RTT);
    assert_eq!(script.bbr.state, BbrState::ProbeRtt);
    script.path.now += Duration::from_millis(2);
    script.acknowledge(RateSample { prior_delivered: script.delivered, ..sample }, 10.0, RTT);
    assert_eq!(script.bbr.state, BbrState::Probe(ProbePhase::Cruise));
    assert!(script.cwnd() >= 800.0);
}

#[test]
fn losses_that_were_none_are_undone() {
    let mut script = Script::in_up();
    let long_term = script.bbr.bounds.long_term;
    script.lose(1, &[LostFlight { packets: 40.0, in_flight: 1_000.0, lost: 45.0, application_limited: false }]);
    script.bbr.on_recovered(&script.path, true, &mut script.control);
    assert_eq!((script.bbr.state, script.bbr.bounds.long_term), (BbrState::Probe(ProbePhase::Refill), long_term));
}

#[test]
fn a_recovery_ends_with_its_last_packet_and_restores_the_window() {
    let mut script = Script::in_down();
    let before = script.cwnd();
    script.lose(1, &[]);
    script.bbr.cwnd = 10.0;
    let mut ack = AckEvent { seq: SeqNo::new(1_000_000), ..AckEvent::default() };
    script.bbr.on_ack(&script.path, &ack, &mut script.control);
    assert!(script.bbr.recovery.is_some());
    ack.seq = SeqNo::new(1_000_001);
    script.bbr.on_ack(&script.path, &ack, &mut script.control);
    assert_eq!(script.cwnd(), before);
}
