//! The states by scripted eras. Numbers in brackets are the draft's equations, worked out by hand.

use farhaul_units::{Duration, PacketRate, SeqNo, SeqRange};

use super::eras::C4State::{Cruising, Initial, Probing, Pushing, Recovery};
use super::*;
use crate::controller::RateSample;

const RTT: Duration = Duration::from_millis(40);

/// A flow whose samples are told, one for each era, with packets of 1500 bytes.
struct Script {
    c4: C4,
    control: Control,
    path: Path,
    delivered: f64,
}

impl Script {
    fn new() -> Self {
        let mut path = Path::default();
        (path.mss, path.max_window) = (1_500, 1 << 20);
        let (mut c4, mut control) = (C4::new(), Control::initial());
        c4.on_connect(&path, &mut control);
        Self { c4, control, path, delivered: 0.0 }
    }

    /// A flow that found 10 000 packets/s, after an era of Cruising.
    fn cruising() -> Self {
        let mut script = Self::new();
        (0..6).for_each(|_| _ = script.era(10_000.0));
        assert_eq!(script.c4.state, Cruising);
        script
    }

    fn pace(&self) -> f64 {
        1e6 / self.control.send_period.as_micros()
    }

    fn deliver(&mut self, rate: f64, rtt: Duration, ends: bool) {
        self.path.now += RTT;
        let newly_delivered = rate * RTT.as_secs_f64();
        let prior_delivered = if ends { self.delivered } else { -1.0 };
        self.delivered += newly_delivered;
        let rate = Some(PacketRate::new(rate));
        let delivery = DeliveryEvent {
            newly_delivered,
            delivered: self.delivered,
            rtt: Some(rtt),
            sample: Some(RateSample { prior_delivered, rate, ..RateSample::default() }),
            ..DeliveryEvent::default()
        };
        self.c4.on_delivery(&self.path, &delivery, &mut self.control);
    }

    fn era(&mut self, rate: f64) -> C4State {
        self.deliver(rate, RTT, true);
        self.c4.state
    }

    fn lose(&mut self, packets: u32) {
        let range = [SeqRange::new(SeqNo::new(1), SeqNo::new(packets))];
        self.c4.on_loss(&self.path, &LossEvent::new(&range, packets, SeqNo::new(1_000)), &mut self.control);
    }
}

#[test]
fn initial_ends_after_three_eras_without_growth_and_drains_its_queue() {
    let mut script = Script::new();
    for rate in [1_000.0, 2_000.0, 4_000.0, 8_000.0, 10_000.0, 10_000.0, 10_100.0] {
        assert_eq!(script.era(rate), Initial);
    }
    assert!((script.pace() / 20_200.0 - 1.0).abs() < 1e-9);
    assert_eq!(script.era(10_000.0), Recovery);
    assert!((script.pace() / (10_100.0 * 7.0 / 8.0) - 1.0).abs() < 1e-9);
    assert_eq!(script.era(10_000.0), Cruising);
}

#[test]
fn the_window_covers_the_longest_round_trip_a_margin_and_acknowledgements() {
    let mut script = Script::cruising();
    (0..400).for_each(|_| _ = script.era(script.c4.rate));
    script.c4.apply(&script.path, &mut script.control);
    // 10 000 · (40 + 10 ms) in Cruising, and 64.
    let window = script.c4.alpha * 10_000.0 * 0.05 + 64.0;
    assert!((script.control.cwnd.unwrap() - window).abs() < 1.0, "{:?}", script.control.cwnd);
}

#[test]
fn a_probe_that_finds_more_is_followed_by_a_push_and_one_that_does_not_by_cruising() {
    let mut script = Script::cruising();
    let mut seen = Vec::new();
    for rate in [10_000.0, 10_000.0, 10_000.0, 10_000.0, 10_000.0, 10_000.0, 10_625.0] {
        seen.push(script.era(rate));
    }
    assert_eq!(seen, [Probing, Recovery, Cruising, Cruising, Probing, Recovery, Pushing]);
    assert!((script.pace() / (10_625.0 * 1.25) - 1.0).abs() < 1e-9);
    let push = |script: &mut Script, rates: [f64; 4]| rates.map(|rate| script.era(rate));
    let grows = push(&mut script, [10_625.0, 13_000.0, 16_000.0, 20_000.0]);
    assert_eq!(grows, [Pushing, Pushing, Pushing, Initial]);
    let mut script = Script::cruising();
    script.c4.enter(Pushing);
    assert_eq!(push(&mut script, [10_000.0; 4]), [Pushing, Recovery, Cruising, Cruising]);
}

#[test]
fn a_delay_cuts_in_proportion_and_at_most_a_quarter() {
    // 15 MB/s: s is 1 and d a sixteenth of 40 ms.
    let after = |rtt: f64| {
        let mut script = Script::cruising();
        script.c4.longest = RTT.as_secs_f64();
        script.deliver(10_000.0, Duration::from_secs_f64(rtt), false);
        (script.c4.rate, script.c4.state)
    };
    assert_eq!(after(0.0425 - 1e-6), (10_000.0, Cruising));
    let (rate, state) = after(0.0425 + 0.00025);
    assert!((rate - 9_000.0).abs() < 1e-3 && state == Recovery, "{rate}");
    assert!((after(0.1).0 - 7_500.0).abs() < 1e-3);
}

#[test]
fn the_tolerated_loss_falls_with_the_rate() {
    let tolerance = |rate: f64| {
        let mut script = Script::cruising();
        (script.c4.rate, script.c4.loss_rate) = (rate, 0.0);
        (1..100).find(|_| {
            script.lose(1);
            script.c4.congested
        })
    };
    // p after n losses: 1 − (15/16)ⁿ. It must exceed 0.02 at 15 MB/s, and 0.52 at 45 kB/s.
    assert_eq!((tolerance(10_000.0), tolerance(30.0)), (Some(1), Some(12)));
    let mut script = Script::cruising();
    script.lose(1);
    assert!((script.c4.rate - 7_500.0).abs() < 1e-6);
    script.lose(1);
    assert!((script.c4.rate - 7_500.0).abs() < 1e-6, "once a recovery");
}

#[test]
fn the_second_congested_recovery_in_a_row_believes_the_samples() {
    let mut script = Script::cruising();
    script.lose(1);
    assert_eq!(script.era(4_000.0), Cruising);
    assert!((script.c4.rate - 7_500.0).abs() < 1e-6);
    script.deliver(4_000.0, RTT, false);
    script.lose(10);
    assert_eq!(script.era(4_100.0), Cruising);
    assert!((script.c4.rate - 4_100.0).abs() < 1e-6, "{}", script.c4.rate);
}

#[test]
fn a_cycle_without_growth_halves_what_the_rate_has_too_much() {
    let mut script = Script::cruising();
    script.c4.recent = 0.0;
    assert_eq!([(); 3].map(|()| script.era(9_000.0)), [Probing, Recovery, Cruising]);
    assert!((script.c4.rate - 9_500.0).abs() < 1e-6, "{}", script.c4.rate);
}

#[test]
fn acknowledgements_alone_make_one_sample_of_an_era() {
    let mut script = Script::new();
    let mut acked = 0;
    for (window, rate) in [(10, 250.0), (20, 500.0), (12, 500.0)] {
        script.path.next_seq = SeqNo::new(acked + window);
        script.path.now += RTT;
        acked += window;
        let mut ack = AckEvent::default();
        (ack.seq, ack.newly_acked, ack.rtt_sample) = (SeqNo::new(acked), window, Some(RTT));
        script.c4.on_ack(&script.path, &ack, &mut script.control);
        assert!((script.c4.rate - rate).abs() < 1e-6, "{}", script.c4.rate);
    }
    assert_eq!((script.c4.longest, script.c4.still_eras), (0.04, 1));
}
