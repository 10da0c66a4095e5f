//! The law by scripted deliveries on a path of 40 ms: start-up, growth, and trains.

mod losses;
mod queues;
mod recall;

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};

use super::belief::Belief;
use super::losses::Losses;
use super::senses::{Extreme, Queue};
use super::state::Answer;
use super::*;
use crate::controller::*;
use crate::rate::flow_control::cwnd;
use crate::rate::syn::SYN_INTERVAL;

const RTT: Duration = Duration::from_millis(40);

struct Script {
    law: Union,
    control: Control,
    path: Path,
    delivered: f64,
}

impl Script {
    fn new() -> Self {
        let mut path = Path::default();
        (path.mss, path.max_window, path.rtt, path.min_rtt) = (1_500, 1 << 20, RTT, Some(RTT));
        path.now = Instant::ZERO + Duration::from_secs(10);
        let (mut law, mut control) = (Union::new(), Control::initial());
        law.on_connect(&path, &mut control);
        Self { law, control, path, delivered: 0.0 }
    }

    /// Packets/s.
    fn pace(&self) -> f64 {
        1e6 / self.control.send_period.as_micros()
    }

    /// 10 ms pass, in which packets come at `rate` with a queue of `delay` ms.
    fn deliver(&mut self, rate: f64, delay: f64, train: Option<f64>) {
        self.deliver_sampled(rate, delay, train, Some(PacketRate::new(rate)));
    }

    fn deliver_sampled(&mut self, rate: f64, delay: f64, train: Option<f64>, sampled: Option<PacketRate>) {
        self.path.now += SYN_INTERVAL;
        self.path.outstanding = rate * 0.04;
        self.path.packets_sent += (rate / 100.0) as u64;
        let train = train.map(|rate| DeliverySample {
            packets: 64,
            sent: PacketRate::new(2.0 * rate),
            delivered: PacketRate::new(rate),
        });
        self.delivered += rate / 100.0;
        let sample = RateSample { delivered: 400.0, rate: sampled, ..RateSample::default() };
        let delivery = DeliveryEvent {
            newly_delivered: rate / 100.0,
            delivered: self.delivered,
            rtt: Some(RTT + Duration::from_secs_f64(delay * 1e-3)),
            sample: Some(sample),
            train,
            ..DeliveryEvent::default()
        };
        self.law.on_delivery(&self.path, &delivery, &mut self.control);
    }

    /// What leaves arrives an RTT later without a queue, for as many intervals. Returns the paces.
    fn echo(&mut self, intervals: usize) -> Vec<f64> {
        let mut paces = vec![400.0; 4];
        for _ in 0..intervals {
            self.deliver(paces[paces.len() - 4], 0.0, None);
            paces.push(self.pace());
        }
        paces
    }

    fn lose(&mut self, packets: u32) {
        let range = [SeqRange::new(SeqNo::new(1), SeqNo::new(packets))];
        let loss = LossEvent::new(&range, packets, SeqNo::new(1_000_000));
        self.law.on_loss(&self.path, &loss, &mut self.control);
    }

    /// A sole flow on a link of 10 000 packets/s that trains have shown and a failure has confirmed.
    fn grown() -> Self {
        let mut script = Self::new();
        (0..100).for_each(|_| script.deliver(10_000.0, 0.0, Some(10_000.0)));
        assert!(matches!(script.law.phase, UnionPhase::Grow), "{:?}", script.law.phase);
        script.law.belief.fail(10_000.0, 10_000.0, script.path.now);
        script.deliver(10_000.0, 0.0, None);
        script
    }

    fn queue_until(&mut self, delay: f64, done: fn(&UnionPhase) -> bool) -> usize {
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
    while matches!(script.law.phase, UnionPhase::Start(_)) {
        script.deliver(10_000.0, 0.0, Some(10_000.0));
        most = most.max(cwnd(&script.control));
    }
    assert_eq!((script.law.rate, script.law.link.get()), (10_000.0, 10_000.0));
    assert!(most < 2_000.0, "{most} packets");
}

#[test]
fn a_sole_flow_takes_99_percent_of_the_link() {
    assert!((Script::grown().pace() - 9_900.0).abs() < 1.0);
}

#[test]
fn the_root_of_a_small_rate_grows_as_that_of_a_large_one() {
    let grown = |share: f64| {
        let mut script = Script::grown();
        script.law.rate = 10_000.0 * share;
        script.law.link.lower(0.0);
        script.law.growing.since = script.path.now;
        let before = script.law.rate;
        (0..20).for_each(|_| script.deliver(before, 0.0, None));
        script.law.rate.sqrt() - before.sqrt()
    };
    let [large, small] = [grown(0.5), grown(0.2)];
    assert!((large / small - 1.0).abs() < 0.05, "{large} and {small}");
}

#[test]
fn a_flow_sends_trains_while_a_host_merges_its_probe_pairs() {
    let mut script = Script::grown();
    assert_eq!(script.control.least_burst, None);
    script.path.capacity = Some(PacketRate::new(1e6));
    script.deliver(9_900.0, 0.0, None);
    assert_eq!((script.control.least_burst, script.law.link.get()), (Some(MAX_BURST), 10_000.0));
    // Trains have shown a faster link.
    script.path.capacity = Some(PacketRate::new(20_000.0));
    script.deliver(9_900.0, 0.0, None);
    assert_eq!((script.control.least_burst, script.law.link.get()), (None, 20_000.0));
}

#[test]
fn a_slow_flow_does_not_wait_for_trains() {
    let mut script = Script::grown();
    script.path.capacity = Some(PacketRate::new(1e6));
    script.law.rate = 400.0;
    script.deliver(400.0, 0.0, None);
    assert_eq!(script.control.least_burst, None);
}
