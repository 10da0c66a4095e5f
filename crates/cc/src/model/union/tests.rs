//! The law by scripted deliveries on a path of 40 ms.

use farhaul_units::SeqNo;
use farhaul_units::SeqRange;

use super::*;
use crate::{DeliverySample, RateSample};

const RTT: Duration = Duration::from_millis(40);

struct Script {
    law: Union,
    control: Control,
    path: Path,
}

impl Script {
    fn new() -> Self {
        let mut path = Path::default();
        (path.mss, path.max_window, path.rtt, path.min_rtt) = (1_500, 1 << 20, RTT, Some(RTT));
        path.now = Instant::ZERO + Duration::from_secs(10);
        let (mut law, mut control) = (Union::new(), Control::initial());
        law.on_connect(&path, &mut control);
        Self { law, control, path }
    }

    /// Packets/s.
    fn pace(&self) -> f64 {
        1e6 / self.control.send_period.as_micros()
    }

    /// 10 ms pass, in which packets come at `rate` with a queue of `delay` ms.
    fn deliver(&mut self, rate: f64, delay: f64, train: Option<f64>) {
        self.path.now += SYN_INTERVAL;
        self.path.outstanding = rate * 0.04;
        self.path.packets_sent += (rate / 100.0) as u64;
        let train = train.map(|rate| DeliverySample {
            packets: 64,
            sent: PacketRate::new(2.0 * rate),
            delivered: PacketRate::new(rate),
        });
        let sample = RateSample { delivered: 400.0, rate: Some(PacketRate::new(rate)), ..RateSample::default() };
        let delivery = DeliveryEvent {
            newly_delivered: rate / 100.0,
            rtt: Some(RTT + Duration::from_secs_f64(delay * 1e-3)),
            sample: Some(sample),
            train,
            ..DeliveryEvent::default()
        };
        self.law.on_delivery(&self.path, &delivery, &mut self.control);
    }

    fn lose(&mut self, packets: u32) {
        let range = [SeqRange::new(SeqNo::new(1), SeqNo::new(packets))];
        let loss = LossEvent::new(&range, packets, SeqNo::new(1_000_000));
        self.law.on_loss(&self.path, &loss, &mut self.control);
    }

    /// A sole flow on a link of 10 000 packets/s that trains have shown, after start-up.
    fn grown() -> Self {
        let mut script = Self::new();
        (0..100).for_each(|_| script.deliver(10_000.0, 0.0, Some(10_000.0)));
        assert!(matches!(script.law.phase, Phase::Grow), "{:?}", script.law.phase);
        script
    }

    fn queue_until(&mut self, delay: f64, done: fn(&Phase) -> bool) -> usize {
        (0..300)
            .find(|_| {
                let rate = self.pace().min(10_000.0);
                self.deliver(rate, delay, None);
                done(&self.law.phase)
            })
            .expect("the phase is reached")
    }
}

#[test]
fn start_up_ends_at_the_capacity_of_its_trains_before_the_window_has_reached_it() {
    let mut script = Script::new();
    script.deliver(1_000.0, 0.0, None);
    assert!(script.control.send_period.is_unpaced(), "nothing is known");
    let mut most: f64 = 0.0;
    while matches!(script.law.phase, Phase::Start(_)) {
        script.deliver(10_000.0, 0.0, Some(10_000.0));
        most = most.max(cwnd(&script.control));
    }
    assert_eq!((script.law.rate, script.law.link), (10_000.0, 10_000.0));
    assert!(most < 2_000.0, "{most} packets");
}

#[test]
fn a_sole_flow_takes_99_percent_of_the_link() {
    assert!((Script::grown().pace() - 9_900.0).abs() < 1.0);
}

#[test]
fn losses_in_start_up_leave_what_the_window_reached_only_if_a_queue_is_seen() {
    let rate_after = |delay: f64| {
        let mut script = Script::new();
        (0..2).for_each(|_| script.deliver(1_000.0, 0.0, Some(10_000.0)));
        (0..8).for_each(|_| script.deliver(100.0, delay, Some(10_000.0)));
        assert!(matches!(script.law.phase, Phase::Start(_)));
        script.lose(64);
        script.law.rate
    };
    assert_eq!(rate_after(0.0), 10_000.0);
    assert!(rate_after(15.0) < 5_000.0, "{}", rate_after(15.0));
}

#[test]
fn a_queue_is_drained_and_costs_the_same_factor_for_all() {
    let left = |share: f64| {
        let mut script = Script::grown();
        (script.law.rate, script.law.priced) = (10_000.0 * share, true);
        script.queue_until(8.0, |phase| matches!(phase, Phase::Drain(_)));
        let drained = script.pace() / script.law.rate;
        assert!((0.80..=0.96).contains(&drained), "{drained}");
        let before = script.law.rate;
        (0..3).for_each(|_| script.deliver(before, 8.0, None));
        script.deliver(before, 0.0, None);
        script.law.rate / before
    };
    let [large, small] = [left(0.6), left(0.2)];
    assert!((large / small - 1.0).abs() < 0.02, "{large} and {small}");
    assert!((0.85..0.97).contains(&large), "{large}");
}

#[test]
fn the_root_of_a_small_rate_grows_as_that_of_a_large_one() {
    let grown = |share: f64| {
        let mut script = Script::grown();
        (script.law.rate, script.law.link) = (10_000.0 * share, 0.0);
        script.law.free_since = script.path.now;
        let before = script.law.rate;
        (0..20).for_each(|_| script.deliver(before, 0.0, None));
        script.law.rate.sqrt() - before.sqrt()
    };
    let [large, small] = [grown(0.5), grown(0.2)];
    assert!((large / small - 1.0).abs() < 0.05, "{large} and {small}");
}

#[test]
fn losses_without_a_queue_halve_bursts_before_they_cost_rate() {
    let mut script = Script::grown();
    script.law.rate = 100_000.0;
    script.law.link = 101_011.0;
    let mut bursts = Vec::new();
    for _ in 0..60 {
        script.lose(90);
        script.deliver(10_000.0, 0.0, None);
        if bursts.last() != Some(&script.control.burst) {
            bursts.push(script.control.burst);
        }
    }
    assert_eq!(bursts, [12, 6, 4].map(Some));
    assert!(script.law.rate < 100_000.0);
}

#[test]
fn a_queue_that_answers_no_drain_is_others_and_cubic_competes_with_them() {
    let mut script = Script::grown();
    script.law.priced = true;
    script.queue_until(30.0, |phase| matches!(phase, Phase::Compete(_)));
    let window = cwnd(&script.control);
    (0..200).for_each(|_| script.deliver(5_000.0, 30.0, None));
    assert!(cwnd(&script.control) > window, "the window grows");
    script.lose(1);
    script.deliver(5_000.0, 30.0, None);
    assert!(matches!(script.law.phase, Phase::Drain(_)), "a loss cuts it");
}

#[test]
fn a_loss_report_raises_nothing() {
    let mut script = Script::grown();
    let (pace, window) = (script.pace(), cwnd(&script.control));
    (0..50).for_each(|_| script.lose(10));
    assert!(script.pace() <= pace && cwnd(&script.control) <= window);
}
