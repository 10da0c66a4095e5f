use farhaul_units::{SeqNo, SeqRange};

use super::*;
use crate::DeliverySample;

/// Packets/s of the scripted link.
const LINK: f64 = 10_000.0;
const RTT: Duration = Duration::from_millis(50);

/// A law on a path of 50 ms whose acknowledgements come each SYN interval.
struct Script {
    law: Two,
    control: Control,
    path: Path,
}

impl Script {
    /// Before anything was sent.
    fn new() -> Self {
        let path = Path {
            now: Instant::ZERO + Duration::from_secs(100),
            mss: 1_500,
            rtt: RTT,
            min_rtt: Some(RTT),
            max_window: 100_000,
            in_flight: 1_000,
            ..Path::default()
        };
        let (mut law, mut control) = (Two::new(), Control::initial());
        law.on_connect(&path, &mut control);
        Self { law, control, path }
    }

    /// In GROW at `rate` packets/s on a link that start-up has measured.
    fn growing(rate: f64) -> Self {
        let mut script = Self::new();
        let law = &mut script.law;
        (law.phase, law.rate, law.link, law.priced) = (Phase::Grow, rate, LINK, true);
        law.free_since = Some(script.path.now);
        law.arrivals.take(script.path.now, LINK);
        law.last_syn = script.path.now;
        law.losses.restart(&script.path);
        script.arrive(rate);
        script.law.apply(&script.path, &mut script.control);
        script
    }

    /// From now on this many packets/s arrive.
    fn arrive(&mut self, rate: f64) {
        let rate = Some(PacketRate::new(rate));
        (self.path.arrival_rate, self.path.delivery_rate) = (rate, rate);
    }

    /// SYN intervals with this queueing delay in ms.
    fn intervals(&mut self, count: u32, queue: f64) {
        for _ in 0..count {
            self.path.now += SYN_INTERVAL;
            self.path.packets_sent += (self.rate() / 100.0) as u64;
            let least = RTT + Duration::from_micros((queue * 1e3) as u64);
            let ack = AckEvent {
                newly_acked: 1,
                rtt_least: Some(least),
                arrives: self.path.arrival_rate,
                ..AckEvent::default()
            };
            self.law.on_ack(&self.path, &ack, &mut self.control);
        }
    }

    fn lose(&mut self, packets: u32) {
        let range = [SeqRange::new(SeqNo::new(0), SeqNo::new(packets - 1))];
        self.law.on_loss(&self.path, &LossEvent::new(&range, packets, SeqNo::new(packets)), &mut self.control);
    }

    /// The rate that leaves, packets/s.
    fn rate(&self) -> f64 {
        1e6 / self.control.send_period.as_micros()
    }

    fn state(&self) -> &'static str {
        match self.law.phase {
            Phase::Start(_) => "start",
            Phase::Grow => "grow",
            Phase::Drain(Drain { blind: true, .. }) => "blind drain",
            Phase::Drain(_) => "drain",
            Phase::Compete(_) => "compete",
        }
    }
}

fn close(left: f64, right: f64) -> bool {
    (left / right - 1.0).abs() < 1e-3
}

#[test]
fn a_small_share_grows_faster_and_a_free_link_is_filled_to_its_last_hundredth() {
    let grown = |rate| {
        let mut script = Script::growing(rate);
        script.arrive(LINK);
        script.intervals(50, 0.0);
        script.law.rate / rate
    };
    // The solution of (1): 1 + ln(K/x) falls by e^(−g·t).
    for share in [0.5, 0.1] {
        let distance = -libm::log(share);
        let left = (1.0 + distance) * libm::exp(-GROWTH * 0.5) - 1.0;
        assert!((grown(LINK * share) / libm::exp(distance - left) - 1.0).abs() < 0.01, "{}", grown(LINK * share));
    }
    let mut script = Script::growing(LINK * 0.9);
    script.intervals(100, 0.0);
    assert!(close(script.rate(), LINK * FULL), "{}", script.rate());
}

#[test]
fn a_link_without_a_queue_for_a_second_is_taken_to_have_grown() {
    let mut script = Script::growing(LINK * FULL);
    script.intervals(100, 0.0);
    assert!(close(script.law.link, LINK));
    script.intervals(100, 0.0);
    assert!(close(script.law.link, LINK * libm::exp(GROWTH * TAU * 1.0)), "{}", script.law.link);
}

#[test]
fn a_queue_is_drained_and_priced_by_its_peak() {
    let mut script = Script::growing(LINK * 0.8);
    script.intervals(10, 0.0);
    script.intervals(2, 22.0);
    assert_eq!(script.state(), "drain");
    let before = script.law.rate;
    let drained = before.min(LINK * 0.8 * (1.0 + CEILING));
    assert!((script.rate() / (drained * (1.0 - 22.0 / 60.0)) - 1.0).abs() < 0.01, "{}", script.rate());
    script.arrive(before);
    script.intervals(8, 22.0);
    script.intervals(1, 0.5);
    let priced = before * BETA / (1.0 + 0.02 / TAU);
    assert!(close(script.law.rate, priced * libm::exp(GROWTH * 0.01 * (1.0 + libm::log(LINK / priced)))));
    assert_eq!(script.state(), "grow");
}

#[test]
fn the_most_that_arrives_beside_a_queue_is_the_link() {
    let mut script = Script::growing(LINK * FULL);
    script.intervals(30, 0.0);
    let drained = |intervals| {
        let mut script = Script::growing(LINK * FULL);
        script.intervals(30, 0.0);
        for arrives in [0.7, 0.95, 0.93] {
            script.arrive(LINK * arrives);
            script.intervals(intervals, 5.0);
        }
        assert!(close(script.law.link, LINK), "{}", script.law.link);
        script.intervals(1, 0.0);
        script.law.link
    };
    assert!(close(drained(3), LINK * 0.95), "{}", drained(3));
    assert!(close(drained(1), LINK), "the drain has had no effect yet: {}", drained(1));
}

#[test]
fn the_first_pairs_do_not_hide_what_has_arrived() {
    let mut script = Script::growing(LINK * 0.5);
    script.law.link = 0.0;
    script.path.capacity = Some(PacketRate::new(LINK / 2.0));
    script.intervals(1, 0.0);
    assert!(close(script.law.link, LINK), "{}", script.law.link);
}

#[test]
fn a_train_refutes_pairs_that_hosts_have_merged() {
    let mut script = started();
    script.path.in_flight = 1_000;
    script.intervals(40, 0.0);
    script.path.capacity = Some(PacketRate::new(LINK * 5.0));
    script.intervals(1, 0.0);
    assert!(close(script.law.link, LINK));
    script.path.capacity = Some(PacketRate::new(LINK * 2.0));
    script.intervals(1, 0.0);
    assert!(close(script.law.link, LINK * 2.0));
}

#[test]
fn a_lossy_round_first_halves_bursts_and_then_leaves_what_arrives() {
    let mut script = Script::growing(LINK);
    // Bursts of 250 µs are two packets here; at ten times the rate they are 25.
    (script.law.rate, script.law.link) = (LINK * 10.0, LINK * 10.0);
    script.arrive(LINK * 10.0);
    script.intervals(1, 0.0);
    let mut bursts = Vec::new();
    for _ in 0..4 {
        script.lose(5_000);
        script.intervals(7, 0.0);
        bursts.push(script.control.burst);
        assert_eq!(script.state(), if bursts.len() < 4 { "grow" } else { "blind drain" });
    }
    assert_eq!(bursts, [Some(12), Some(6), Some(4), Some(4)]);
    assert!(script.law.rate <= LINK * 10.0 * BETA && script.law.rate > LINK * 5.0, "{}", script.law.rate);
    assert!(close(script.rate(), script.law.rate.min(LINK * 10.0) * HALF), "it looks for a queue");
}

#[test]
fn old_losses_do_not_cut_below_what_arrives() {
    let mut script = Script::growing(LINK * 0.9);
    script.arrive(LINK * 0.8);
    script.intervals(10, 0.0);
    script.lose(3_000);
    script.intervals(7, 0.0);
    assert!((LINK * 0.7..LINK * 0.8).contains(&script.law.rate), "{}", script.law.rate);
}

#[test]
fn a_queue_that_a_drain_does_not_remove_is_competed_with() {
    let mut script = Script::growing(LINK * 0.5);
    script.intervals(2, 20.0);
    for queue in 0..60 {
        script.intervals(2, 20.0 + f64::from(queue % 7));
    }
    assert_eq!(script.state(), "compete");
    let window = script.control.cwnd.unwrap();
    assert!((LINK * 0.5 * 0.07..LINK * 0.5 * 0.1).contains(&window), "{window}");
    script.intervals(10, 25.0);
    script.lose(1);
    script.intervals(1, 25.0);
    assert_eq!(script.state(), "drain", "a loss in COMPETE");
    script.intervals(25, 25.0);
    assert_eq!(script.state(), "compete", "others are known, so the patience is short");
    script.intervals(2, 0.0);
    assert_eq!(script.state(), "grow");
}

#[test]
fn a_delay_that_neither_falls_nor_rises_is_jitter() {
    let mut script = Script::growing(LINK * 0.5);
    script.intervals(2, 5.0);
    script.intervals(60, 5.0);
    for queue in [5.5, 5.5, 4.8, 4.8] {
        script.intervals(15, queue);
    }
    assert_eq!(script.state(), "grow");
    script.intervals(10, 5.0);
    assert_eq!(script.state(), "grow", "it is an offset now");
}

/// Start-up up to a train that shows the link, at a window of 200 packets.
fn started() -> Script {
    let mut script = Script::new();
    script.control.cwnd = Some(40.0);
    let rate = |rate| PacketRate::new(rate);
    let delivery = Some(DeliverySample { packets: 64, sent: rate(LINK * 10.0), delivered: rate(LINK) });
    let ack = AckEvent { newly_acked: 10, delivery, ..AckEvent::default() };
    script.law.on_ack(&script.path, &ack, &mut script.control);
    assert_eq!(script.state(), "start");
    (script.path.packets_sent, script.path.in_flight) = (200, 70);
    script.path.next_seq = SeqNo::new(200);
    script
}

#[test]
fn a_loss_in_start_up_without_a_queue_leaves_the_measured_link() {
    let mut script = started();
    script.lose(100);
    assert_eq!(script.state(), "drain");
    assert!(close(script.law.rate, LINK) && close(script.law.link, LINK));
    script.lose(150);
    assert!(script.law.losses.lost() < 1.0, "they are of start-up");
    script.path.next_seq = SeqNo::new(400);
    script.lose(300);
    assert!(close(script.law.losses.lost(), 300.0), "some of them are not");
}

#[test]
fn a_loss_in_start_up_in_a_queue_leaves_what_the_window_reached() {
    let mut script = started();
    script.intervals(1, 30.0);
    let window = script.control.cwnd.unwrap();
    script.lose(100);
    assert_eq!(script.state(), "drain");
    assert!(close(script.law.rate, window / RTT.as_secs_f64()), "{} at a window of {window}", script.law.rate);
    script.lose(150);
    assert!(close(script.law.losses.lost(), 150.0), "others fill the queue");
}

#[test]
fn start_up_ends_at_a_quarter_of_the_path() {
    let mut script = started();
    script.path.in_flight = 1_000;
    script.intervals(40, 0.0);
    assert!(close(script.law.link, LINK));
    assert_eq!(script.state(), "grow", "after its drain");
}

#[test]
fn a_loss_report_never_raises_rate_or_window() {
    let mut script = Script::growing(LINK * 0.5);
    script.intervals(5, 0.0);
    let before = script.control;
    script.path.now += SYN_INTERVAL * 5;
    script.lose(1);
    assert!(script.control.send_period >= before.send_period && script.control.cwnd <= before.cwnd);
    script.intervals(1, 0.0);
    assert!(script.control.send_period < before.send_period, "the next acknowledgement does");
}

#[test]
fn a_receiver_acknowledges_twice_per_interval() {
    let mut frequency = AckFrequency::default();
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    assert_eq!(frequency.on_received(at(100), 50), None);
    assert_eq!(frequency.on_received(at(200), 150), Some(5));
    assert_eq!(frequency.on_received(at(301), 1), Some(1));
    assert_eq!(frequency.on_received(at(402), 1_000_000), Some(64));
}
