//! The law by scripted deliveries on a path of 40 ms.

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
fn losses_in_start_up_without_a_queue_leave_the_capacity_of_its_trains() {
    let mut script = Script::new();
    (0..2).for_each(|_| script.deliver(1_000.0, 0.0, Some(10_000.0)));
    (0..8).for_each(|_| script.deliver(100.0, 0.0, Some(10_000.0)));
    assert!(matches!(script.law.phase, UnionPhase::Start(_)));
    script.lose(64);
    assert_eq!(script.law.rate, 10_000.0);
}

#[test]
fn a_queue_is_drained_and_costs_the_same_factor_for_all() {
    let left = |share: f64| {
        let mut script = Script::grown();
        (script.law.rate, script.law.priced) = (10_000.0 * share, true);
        script.queue_until(8.0, |phase| matches!(phase, UnionPhase::Drain(_)));
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
fn losses_without_a_queue_halve_bursts_before_they_cost_rate() {
    let mut script = Script::grown();
    script.law.rate = 100_000.0;
    script.law.link.lower(101_011.0);
    script.law.carried.take(script.path.now, MEMORY, 110_000.0);
    let mut changes = Vec::new();
    for _ in 0..60 {
        script.lose(6);
        script.deliver(10_000.0, 0.0, None);
        if script.control.burst.is_some() && changes.last().is_none_or(|(burst, _)| *burst != script.control.burst) {
            changes.push((script.control.burst, script.law.rate > 99_000.0));
        }
    }
    assert_eq!(changes, [12, 6, 4].map(|burst| (Some(burst), true)), "no rate is lost meanwhile");
    assert!(script.control.catch_up_pace.is_some());
    assert!(script.law.rate < 99_000.0, "bursts of four are the shortest");
}

#[test]
fn more_losses_than_bursts_explain_cost_rate_at_once() {
    let mut script = Script::grown();
    script.law.rate = 100_000.0;
    script.law.link.lower(101_011.0);
    while script.control.burst.is_none() {
        script.lose(90);
        script.deliver(10_000.0, 0.0, None);
    }
    assert_eq!(script.control.burst, Some(12));
    assert!(script.law.rate < 90_000.0, "{}", script.law.rate);
    assert!(script.control.catch_up_pace.is_some_and(|pace| pace < 1.011), "a late host does not exceed the link");
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

#[test]
fn the_round_after_a_cut_counts_no_losses() {
    let (mut losses, mut path) = (Losses::default(), Path { rtt: RTT, ..Path::default() });
    let mut round = |losses: &mut Losses| {
        losses.add(50);
        path.packets_sent += 100;
        path.now += RTT + SYN_INTERVAL;
        losses.end_of_round(&path, 0.0)
    };
    assert_eq!(round(&mut losses), Some(0.5));
    losses.cut(&Path { now: Instant::ZERO + RTT + SYN_INTERVAL, packets_sent: 100, rtt: RTT, ..Path::default() });
    assert_eq!([round(&mut losses), round(&mut losses)].map(|lost| lost.is_some()), [false, true]);
}

#[test]
fn a_policer_is_believed_once_growth_arrives_in_vain() {
    // Of 10 000 packets/s, or of all that leaves.
    let believes = |limit: f64| {
        let mut script = Script::grown();
        script.law.belief = Belief::default();
        script.law.link.lower(11_000.0);
        script.law.rate = 9_000.0;
        let mut paces = vec![9_000.0; 5];
        for _ in 0..150 {
            let left = paces[paces.len() - 5];
            let lost = if limit > 0.0 { (left - limit).max(0.0) } else { left * 0.1 };
            if lost > 0.0 {
                script.lose((lost / 100.0) as u32);
            }
            script.deliver(left - lost, 0.0, None);
            script.path.packets_sent += (lost / 100.0) as u64;
            paces.push(script.pace());
        }
        script.law.belief.is_sole()
    };
    assert!(believes(10_000.0));
    assert!(!believes(0.0), "a path that loses a tenth of whatever leaves");
}

#[test]
fn what_is_too_much_for_a_round_is_told_before_its_end() {
    let lossy = |lost| {
        let (mut losses, mut path) = (Losses::default(), Path { rtt: RTT, ..Path::default() });
        path.packets_sent = 1_000;
        path.now += SYN_INTERVAL;
        losses.add(lost);
        losses.end_of_round(&path, 60.0)
    };
    assert_eq!(lossy(40), None, "others of the round may all arrive");
    let share = lossy(60).unwrap();
    assert!((0.3..0.6).contains(&share), "half of those of which it is known: {share}");
}

#[test]
fn a_queue_that_answers_no_drain_is_others_and_cubic_competes_with_them() {
    let mut script = Script::grown();
    (script.law.rate, script.law.priced) = (5_000.0, true);
    script.queue_until(30.0, |phase| matches!(phase, UnionPhase::Compete(_)));
    let window = cwnd(&script.control);
    (0..200).for_each(|_| script.deliver(5_000.0, 30.0, None));
    assert!(cwnd(&script.control) > window, "the window grows");
    script.lose(1);
    script.deliver(5_000.0, 30.0, None);
    assert!(matches!(script.law.phase, UnionPhase::Drain(_)), "a loss cuts it");
}

#[test]
fn a_flow_with_the_whole_link_competes_with_nobody() {
    let mut script = Script::grown();
    script.law.priced = true;
    (0..300).for_each(|_| {
        let rate = script.pace().min(10_000.0);
        script.deliver(rate.max(9_000.0), 30.0, None);
        assert!(!matches!(script.law.phase, UnionPhase::Compete(_)));
    });
}

#[test]
fn a_delay_that_stands_while_less_is_sent_and_as_much_less_arrives_is_the_paths() {
    // Packets in the order of a path that delays them by up to 30 ms, or behind a queue of a link of 10 000 packets/s.
    let quiet = |of_the_path: bool| {
        let mut script = Script::grown();
        script.law.priced = true;
        let (mut paces, mut sent) = (vec![9_900.0; 5], script.path.packets_sent as f64);
        for _ in 0..150 {
            let came = if of_the_path { paces[paces.len() - 5] } else { 10_000.0 };
            sent += script.pace() / 100.0;
            // It counts what comes as sent.
            script.path.packets_sent = sent as u64 - (came / 100.0) as u64;
            script.deliver(came, 30.0, None);
            paces.push(script.pace());
            // It drains from the third interval on.
            if paces.len() > 20 && matches!(script.law.phase, UnionPhase::Grow) {
                break;
            }
        }
        (matches!(script.law.phase, UnionPhase::Grow), script.law.queue.delay(), script.law.rate)
    };
    let (grows, delay, rate) = quiet(true);
    assert!(grows && delay == 0.0 && rate > 9_000.0, "{delay} {rate}");
    assert!(!quiet(false).0, "a queue gives up what is not sent");
}

#[test]
fn a_competition_without_losses_costs_no_cut() {
    let mut script = Script::grown();
    (script.law.rate, script.law.priced) = (5_000.0, true);
    script.queue_until(30.0, |phase| matches!(phase, UnionPhase::Compete(_)));
    let window = script.law.rate * 0.07;
    (0..3).for_each(|_| script.deliver(5_000.0, 0.0, None));
    assert!(matches!(script.law.phase, UnionPhase::Grow));
    assert!(script.law.rate > 0.9 * window / 0.04, "the window, without the queue: {}", script.law.rate);
}

#[test]
fn a_loss_report_raises_nothing() {
    let mut script = Script::grown();
    let (pace, window) = (script.pace(), cwnd(&script.control));
    (0..50).for_each(|_| script.lose(10));
    assert!(script.pace() <= pace && cwnd(&script.control) <= window);
}

#[test]
fn a_queue_that_falls_to_zero_has_answered_in_full() {
    let mut answer = Answer::default();
    answer.add(0.006, 0.02, 0.005);
    assert!((answer.share() - 5.0 / 6.0).abs() < 1e-9, "it could not fall by 20 ms: {answer:?}");
    answer.add(0.1, 0.02, -0.01);
    assert!((answer.share() - 5.0 / 26.0).abs() < 1e-9, "a rise is no answer: {answer:?}");
}

#[test]
fn a_competing_flow_searches_once_per_second_and_forgets_evidence_when_the_queue_has_gone() {
    let mut script = Script::grown();
    (script.law.rate, script.law.priced) = (5_000.0, true);
    script.queue_until(30.0, |phase| matches!(phase, UnionPhase::Compete(_)));
    (0..10).for_each(|_| script.deliver(5_000.0, 30.0, None));
    script.lose(1);
    script.deliver(5_000.0, 30.0, None);
    assert!(matches!(script.law.phase, UnionPhase::Drain(_)));
    script.queue_until(30.0, |phase| matches!(phase, UnionPhase::Compete(_)));
    (0..10).for_each(|_| script.deliver(5_000.0, 30.0, None));
    let window = cwnd(&script.control);
    script.lose(1);
    script.deliver(5_000.0, 30.0, None);
    assert!(matches!(script.law.phase, UnionPhase::Compete(_)), "a second has not passed");
    assert!(cwnd(&script.control) < 0.75 * window, "but it is cut");
    assert!(script.law.answer.expected > 0.0);
    (0..3).for_each(|_| script.deliver(5_000.0, 0.0, None));
    assert!(matches!(script.law.phase, UnionPhase::Grow) && script.law.answer.expected == 0.0);
}

#[test]
fn packets_that_follow_each_other_differ_by_jitter_and_not_by_a_queue() {
    let jitter = |delays: [u64; 2]| {
        let (mut queue, mut path) = (Queue::new(), Path { now: Instant::ZERO, ..Path::default() });
        for millis in 1..200 {
            path.now = Instant::ZERO + Duration::from_millis(millis);
            queue.take(RTT + Duration::from_millis(delays[millis as usize % 2]), None, &path);
        }
        queue.jitter() * 1e3
    };
    assert!((jitter([2, 9]) - 7.0).abs() < 0.01, "{}", jitter([2, 9]));
    assert!(jitter([5, 5]) < 0.01, "{}", jitter([5, 5]));
}

#[test]
fn a_queue_on_the_return_path_is_none_of_this_flow() {
    // Clocks of which the peer's is 3 s ahead and loses 100 µs/s, queues of 20 ms there and back, and a peer that claims more.
    let delay = |there: u64, back: u64, claims: f64| {
        let (mut queue, mut path) = (Queue::new(), Path { now: Instant::ZERO, ..Path::default() });
        for millis in 1..400 {
            path.now = Instant::ZERO + Duration::from_millis(millis);
            let (there, back) = if millis > 100 { (there, back) } else { (0, 0) };
            let clocks = -3.0 + 1e-7 * millis as f64;
            let return_delay = 0.02 + back as f64 * 1e-3 + clocks - if millis > 100 { claims } else { 0.0 };
            queue.take(RTT + Duration::from_millis(there + back), Some(return_delay), &path);
        }
        queue.delay() * 1e3
    };
    let around = |value: f64, least: f64| (least..least + 0.1).contains(&(value + 0.05));
    assert!(around(delay(20, 0, 0.0), 20.0), "{}", delay(20, 0, 0.0));
    assert!(around(delay(0, 20, 0.0), 0.0), "{}", delay(0, 20, 0.0));
    assert!(around(delay(20, 0, 0.5), 20.0), "no more than the RTT has: {}", delay(20, 0, 0.5));
}

#[test]
fn delays_within_the_jitter_of_a_path_are_no_queue() {
    let drains = |delays: [f64; 4]| {
        let mut script = Script::grown();
        let mut drained = false;
        for step in 0..200 {
            script.deliver(5_000.0, delays[step % 4], None);
            drained |= step >= 100 && !matches!(script.law.phase, UnionPhase::Grow);
        }
        drained
    };
    assert!(!drains([3.0, 6.0, 9.0, 4.0]), "uniform in 9 ms");
    assert!(drains([3.0, 3.0, 3.0, 3.0]), "a queue");
}

#[test]
fn losses_that_turn_out_to_be_none_cost_nothing() {
    let rate_after = |lost, spurious| {
        let mut script = Script::grown();
        script.lose(lost);
        script.law.on_recovered(&script.path, spurious, &mut script.control);
        (0..12).for_each(|_| script.deliver(9_900.0, 0.0, None));
        script.law.rate
    };
    assert_eq!(rate_after(800, true), rate_after(0, false));
    assert!(rate_after(800, false) < 0.97 * rate_after(0, false), "{}", rate_after(800, false));
}

#[test]
fn losses_of_a_burst_are_compared_with_the_burst_and_not_with_what_follows_it() {
    let rate_after = |lost| {
        let mut script = Script::grown();
        script.path.application_limited = true;
        (0..6).for_each(|_| script.deliver(9_900.0, 0.0, None));
        // The burst is over when its losses are reported, and only their repairs leave.
        script.lose(lost);
        (0..12).for_each(|_| script.deliver(100.0, 0.0, None));
        script.law.rate
    };
    assert_eq!(rate_after(5), rate_after(0));
    assert!(rate_after(60) < 0.97 * rate_after(0), "{}", rate_after(60));
}

/// A connection that recalls 10 000 packets/s, after its first delivery with an RTT of `millis`.
fn recalling(millis: f64) -> Script {
    let mut script = Script::new();
    let rate = PacketRate::new(10_000.0).to_rate(script.path.mss);
    script.law.recall(KnownPath { rate, rtt: RTT });
    script.deliver(400.0, millis - 40.0, None);
    script
}

#[test]
fn a_recalled_path_is_tried_at_half_its_rate_and_doubled_as_that_arrives() {
    let mut script = recalling(40.5);
    assert!((script.pace() - 5_000.0).abs() < 1.0, "{}", script.pace());
    (0..5).for_each(|_| script.deliver(400.0, 0.0, None));
    assert!((script.pace() - 5_000.0).abs() < 1.0, "nothing of it has arrived: {}", script.pace());
    script.path.capacity = Some(PacketRate::new(10_000.0));
    // The search beyond it has begun.
    assert!((script.echo(10).last().unwrap() - 9_900.0).abs() < 100.0, "{}", script.pace());
}

#[test]
fn a_recalled_rate_that_arrives_without_a_queue_bounds_nothing() {
    // The first step beyond is a tenth, because what was recalled may hold.
    let paces = recalling(40.0).echo(150);
    assert!(paces.last().is_some_and(|pace| *pace > 500_000.0), "{:?}", paces.last());
    let beyond = paces.iter().position(|pace| *pace > 10_000.0).unwrap();
    assert!(paces[beyond + 3] < 11_500.0, "{:?}", &paces[..beyond + 4]);
}

#[test]
fn a_recalled_rate_grows_although_no_two_of_its_packets_are_in_flight_together() {
    let mut script = Script::new();
    let rate = PacketRate::new(700.0).to_rate(script.path.mss);
    script.law.recall(KnownPath { rate, rtt: RTT });
    for _ in 0..200 {
        script.deliver_sampled(script.pace().min(100_000.0), 0.0, None, None);
    }
    assert!(script.pace() > 100_000.0, "{}", script.pace());
}

#[test]
fn a_path_with_another_round_trip_or_a_slower_train_is_not_the_recalled_one() {
    let mut script = Script::new();
    let rate = PacketRate::new(10_000.0).to_rate(script.path.mss);
    for millis in [20, 30, 50, 80] {
        let mut script = Script::new();
        script.law.recall(KnownPath { rate, rtt: Duration::from_millis(millis) });
        script.deliver(400.0, 0.0, None);
        assert!(matches!(script.law.phase, UnionPhase::Start(_)), "{millis} ms");
    }
    script.law.recall(KnownPath { rate, rtt: RTT });
    script.deliver(400.0, 0.0, Some(4_000.0));
    assert!(script.pace() > 7_000.0 && matches!(script.law.phase, UnionPhase::Start(_)), "{}", script.pace());
}

#[test]
fn a_recalled_rate_that_is_lost_yields_to_what_arrives() {
    let mut script = recalling(40.0);
    (0..12).for_each(|_| {
        script.lose(40);
        script.deliver(1_000.0, 0.0, None);
    });
    assert!(script.law.rate <= 1_000.0, "{}", script.law.rate);
}

#[test]
fn many_small_flows_halve_once() {
    let mut script = Script::grown();
    script.law.rate = 300.0;
    let lose = |script: &mut Script| {
        let (before, held) = (script.law.rate, script.law.losses.hold_until);
        for _ in 0..60 {
            script.lose(1);
            script.deliver(200.0, 0.0, None);
            if script.law.losses.hold_until > held {
                return script.law.rate / before;
            }
        }
        panic!("no round is lossy")
    };
    let left = lose(&mut script);
    assert!(left <= HALF, "{left}");
    // Losses go on at the lower rate: they are of chance.
    let left = lose(&mut script);
    assert!(left > HALF, "{left}");
}

#[test]
fn losses_of_the_flight_that_overran_the_path_at_the_start_count_once() {
    let mut script = Script::grown();
    script.law.first_flight = Some(SeqNo::new(500));
    let before = script.law.losses.lost();
    script.lose(500);
    assert_eq!(script.law.losses.lost(), before, "they left before start-up ended");
    script.lose(501);
    assert_eq!(script.law.losses.lost(), before + 501.0);
    script.lose(500);
    assert_eq!(script.law.losses.lost(), before + 1001.0, "the flight is over");
}

#[test]
fn a_timeout_ends_what_is_recalled() {
    let mut script = recalling(40.0);
    script.law.on_timeout(&script.path, &TimeoutEvent::default(), &mut script.control);
    assert!(script.pace() <= 400.0 && script.law.belief.limit().is_some(), "{}", script.pace());
}

#[test]
fn a_connection_that_has_carried_nothing_is_not_remembered() {
    let mut script = Script::grown();
    script.law.carried = Extreme::most();
    assert_eq!(script.law.remember(&script.path, true), None);
}

#[test]
fn the_next_connection_recalls_what_this_one_has_carried() {
    let script = Script::grown();
    let known = script.law.remember(&script.path, true).unwrap();
    assert_eq!((known.rtt, known.rate), (RTT, PacketRate::new(10_000.0).to_rate(1_500)));
    assert_eq!(Script::new().law.remember(&script.path, true), None, "it has learned nothing");
    let known = recalling(40.0).law.remember(&script.path, true).unwrap();
    assert_eq!(known.rate, PacketRate::new(10_000.0).to_rate(1_500), "it has not tried it");
}

#[test]
fn a_connection_that_the_path_did_not_limit_hands_on_what_it_recalled_and_has_not_refuted() {
    assert_eq!(Script::grown().law.remember(&Path::default(), false), None, "what it found does not count");
    let mut script = recalling(40.0);
    let known = script.law.known.unwrap();
    assert_eq!(script.law.remember(&script.path, false), Some(known));
    script.echo(4);
    (0..12).for_each(|_| {
        script.lose(40);
        script.deliver(1_000.0, 0.0, None);
    });
    assert_eq!(script.law.remember(&script.path, false), None);
}
