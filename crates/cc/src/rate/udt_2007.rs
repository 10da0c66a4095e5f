//! UDT as the Computer Networks paper describes it (paper:udt-2007, releases 3.x): DAIMD in which the first report of a loss
//! event only freezes sending for one SYN interval, so that a single loss by noise costs no rate.
//!
//! ```text
//! Full ACK, once per SYN that it stands for:
//!     in slow start:  W ← W + newly acknowledged;  over once 16 packets are acknowledged and R is known: P ← 1/R   (1)
//!     otherwise:      w ← 0.875·w + 0.125·R·(RTT + SYN),  W = w + 16                                               (2)
//!                     x ← x + α(x), unless this interval had a loss report
//!                     α(x) = 10^(⌈log10(L − C(x))⌉ − τ) · 1500/S · 1/SYN,  at least 0.01 packets per SYN           (3)
//! NAK:
//!     in slow start:  over: P ← 1/R or (RTT + SYN)/W, and the report is the first of an event
//!     first of an event:  no cut; nothing leaves for one SYN                                                       (4)
//!     further ones:   P ← 1.125·P for every N-th, five times at most; N and M as in `daimd.rs`                     (5)
//! EXP:
//!     in slow start:  over, as after a NAK; otherwise nothing
//! ```
//!
//! | paper | here | unit |
//! | --- | --- | --- |
//! | x | 1/`Control::send_period` | packets/s |
//! | C(x) | the same with the packet size, in (3) | bit/s |
//! | L | `Path::capacity` | bit/s in (3) |
//! | τ | 9: (3) is `daimd::increase`, whose β = 1.5e-6 is 1500·10^-9 | |
//! | S | `Path::mss` | bytes |
//! | AS, R | `Path::arrival_rate` | packets/s |
//! | D | `Path::delivery_rate` | packets/s |
//! | W, w | `Control::cwnd`, `smoothed` | packets |
//! | freeze | `Control::freeze_until` | |
//!
//! Worked example of (3): 1 Gbit/s of capacity, 400 Mbit/s in use, S = 1500: 10^(⌈log10(6e8)⌉ − 9) = 1, so that one more packet
//! fits into every SYN, 100 packets/s more. While the rate is below that of the event before, no more than L/9 counts as
//! spare: 10^(⌈log10(1.1e8)⌉ − 9) = 1 as well, but 0.1 on 500 Mbit/s.
//!
//! What the paper leaves open, and the reading: L − C(x) ≤ 0 has no logarithm, the least increase holds there, of 0.01 packets per
//! SYN as in UDT4 (D51); the average of (2) is the receiver's in releases 3.x and runs at the sender here, since the receiver
//! of UDT4 does not report it (D50); the 16 packets stand outside of it; a report that ends slow start is the first of an event
//! (D52). A start counts as a recovery, as in UDT4. A cut is not rounded to whole microseconds.
//!
//! Release 3.3 (`udt-2007:release-3.3`) differs twice. Its bursts arrive at the speed of the
//! bottleneck, and slow start ends with that speed (D340). Once L ≤ 4·D, P ← 1/L and w ← L·(RTT + SYN). After a NAK,
//! P ← 1/min(L, 4·D). M is one larger (D343).
//!
//! Departures (docs/papers/departures.md): D1 to D12, D26, D50 to D52, D340, D343.

use farhaul_units::{Duration, PacketRate};

use super::daimd::{DECREASE, Daimd, NakEffect, bounded};
use super::flow_control::{HEADROOM, SlowStart, cwnd, fill, measured_rate, set_cwnd, start_period, take_over};
use super::syn::{SYN_INTERVAL, SynClock};
use super::udt4::LONGEST_HOLD;
use crate::controller::{AckEvent, Control, Controller, LossEvent, Path, TimeoutEvent};

/// Acknowledged packets after which slow start ends as soon as a speed is known, (1). Source: releases 2 and 3; it takes 16
/// arrivals to have one.
const START_PACKETS: f64 = 16.0;
/// Largest start as a multiple of the delivery rate, in release 3.3. Source: attack B9 of the security design, because a receiver
/// may claim any capacity.
const MAX_START: f64 = 4.0;
/// Weight of the old window in (2). Source: paper:udt-2007, flow control.
const WINDOW_FILTER: f64 = 0.875;

/// The law of 2007, `udt-2007`.
#[derive(Clone, Debug)]
pub(crate) struct Udt2007 {
    /// Lets the law run once per SYN.
    clock: SynClock,
    phase: Udt2007Phase,
    /// What moves the period.
    daimd: Daimd,
    start: Udt2007Start,
}

/// The speed at which slow start ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Udt2007Start {
    /// That of all arrivals, as the paper says.
    Arrivals,
    /// That of the bottleneck, as in release 3.3.
    Bottleneck,
}

/// What the window follows.
#[derive(Clone, Debug)]
enum Udt2007Phase {
    /// Acknowledgements.
    SlowStart(SlowStart),
    /// The arrival speed: w of (2), packets.
    Steady { smoothed: f64 },
}

impl Udt2007 {
    /// The law of a new connection; all its randomness follows from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self::starting_at(Udt2007Start::Arrivals, Daimd::of_2007(seed))
    }

    /// The same of release 3.3 (June 2007).
    pub(crate) fn of_release(seed: u64) -> Self {
        Self::starting_at(Udt2007Start::Bottleneck, Daimd::of_release(seed))
    }

    fn starting_at(start: Udt2007Start, daimd: Daimd) -> Self {
        Self { clock: SynClock::default(), phase: Udt2007Phase::SlowStart(SlowStart::default()), daimd, start }
    }

    /// The speed at which slow start would end now.
    fn start_rate(&self, path: &Path) -> Option<PacketRate> {
        if self.start == Udt2007Start::Bottleneck { start_rate(path) } else { None }
    }

    /// Ends slow start, if it lasts, and sets the first period and window.
    fn end_slow_start(&mut self, path: &Path, control: &mut Control) {
        if !matches!(self.phase, Udt2007Phase::SlowStart(_)) {
            return;
        }
        match self.start_rate(path) {
            Some(rate) => {
                let smoothed = rate.packets_in(path.rtt.saturating_add(SYN_INTERVAL)).min(f64::from(path.max_window));
                control.send_period = bounded(1e6 / rate.packets_per_second());
                set_cwnd(path, control, smoothed + HEADROOM);
                self.phase = Udt2007Phase::Steady { smoothed };
            }
            None => {
                control.send_period = start_period(path, cwnd(control));
                self.phase = Udt2007Phase::Steady { smoothed: cwnd(control) };
            }
        }
    }
}

impl Controller for Udt2007 {
    fn name(&self) -> &str {
        if self.start == Udt2007Start::Bottleneck { "udt-2007:release-3.3" } else { "udt-2007" }
    }

    fn on_connect(&mut self, path: &Path, _control: &mut Control) {
        self.clock = SynClock::starting(path.now);
        self.phase = Udt2007Phase::SlowStart(SlowStart::new(path.next_seq));
    }

    fn on_take_over(&mut self, path: &Path, control: &mut Control) {
        self.clock = SynClock::starting(path.now);
        take_over(path, control);
        self.phase = Udt2007Phase::Steady { smoothed: cwnd(control) };
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        self.daimd.on_progress(ack.seq);
        if ack.light {
            return;
        }
        let hold = if path.application_limited { Duration::ZERO } else { path.rtt.saturating_mul(LONGEST_HOLD) };
        let intervals = self.clock.intervals(path.now, hold);
        if intervals == 0 {
            return;
        }
        match &mut self.phase {
            Udt2007Phase::SlowStart(slow_start) => {
                let grown = slow_start.grow(cwnd(control), ack.seq);
                set_cwnd(path, control, grown);
                let known = match self.start {
                    Udt2007Start::Arrivals => measured_rate(path).is_some(),
                    Udt2007Start::Bottleneck => is_capacity_near(path),
                };
                let measured = grown >= Control::INITIAL_CWND + START_PACKETS && known;
                if measured || grown > f64::from(path.max_window) {
                    self.end_slow_start(path, control);
                }
                return;
            }
            Udt2007Phase::Steady { smoothed } => {
                let target = fill(path).unwrap_or(*smoothed);
                if !(path.application_limited && target < *smoothed) {
                    *smoothed = average(*smoothed, target, intervals).min(f64::from(path.max_window));
                }
                let window = *smoothed + HEADROOM;
                set_cwnd(path, control, window);
            }
        }
        for _ in 0..intervals {
            control.send_period = self.daimd.on_syn(control.send_period, path);
        }
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        let Some(first) = loss.ranges.first().filter(|_| loss.newly_lost > 0) else {
            return;
        };
        self.end_slow_start(path, control);
        match self.daimd.on_nak(first.first, loss.largest_sent, control.send_period) {
            //= paper:udt-2007 one loss per event is taken for noise
            NakEffect::NewEvent => control.freeze_until = Some(path.now + SYN_INTERVAL),
            NakEffect::FurtherCut => control.send_period = bounded(control.send_period.as_micros() * DECREASE),
            NakEffect::Spared => {}
        }
    }

    fn on_timeout(&mut self, path: &Path, _timeout: &TimeoutEvent, control: &mut Control) {
        self.end_slow_start(path, control);
    }
}

/// L once slow start has seen a quarter of it, (1).
fn is_capacity_near(path: &Path) -> bool {
    matches!((path.capacity, start_rate(path)), (Some(capacity), Some(start)) if start >= capacity)
}

/// The first rate after slow start: min(L, 4·D). `None` as long as one of both is unknown.
fn start_rate(path: &Path) -> Option<PacketRate> {
    let known = |rate: Option<PacketRate>| rate.map(PacketRate::packets_per_second).filter(|rate| *rate > 0.0);
    let (capacity, delivered) = (known(path.capacity)?, known(path.delivery_rate)?);
    Some(PacketRate::new(capacity.min(MAX_START * delivered)))
}

/// w of (2) after `intervals` of them in which the path took `target` packets.
fn average(smoothed: f64, target: f64, intervals: u32) -> f64 {
    let kept = libm::pow(WINDOW_FILTER, f64::from(intervals));
    smoothed * kept + target * (1.0 - kept)
}

#[cfg(test)]
mod tests {
    use farhaul_units::{Instant, PacketRate, SeqNo, SeqRange};

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// 1 Gbit/s, of which 5000 packets/s arrive.
    fn path_at(millis: u64) -> Path {
        Path {
            now: at(millis),
            mss: 1_250,
            rtt: Duration::from_millis(90),
            max_window: 10_000,
            arrival_rate: Some(PacketRate::new(5_000.0)),
            delivery_rate: Some(PacketRate::new(5_000.0)),
            capacity: Some(PacketRate::new(100_000.0)),
            ..Path::default()
        }
    }

    fn ack(seq: u32) -> AckEvent {
        AckEvent { seq: SeqNo::new(seq), newly_acked: 1, ..AckEvent::default() }
    }

    fn lose(law: &mut Udt2007, path: &Path, seq: u32, control: &mut Control) {
        let ranges = [SeqRange::new(SeqNo::new(seq), SeqNo::new(seq))];
        law.on_loss(path, &LossEvent::new(&ranges, 1, SeqNo::new(seq + 10)), control);
    }

    /// A law past slow start, at 200 µs, whose first event has just begun.
    fn steady() -> (Udt2007, Control) {
        let (mut law, mut control) = (Udt2007::new(1), Control::initial());
        law.on_connect(&path_at(0), &mut control);
        lose(&mut law, &path_at(0), 7, &mut control);
        (law, control)
    }

    fn micros(control: &Control) -> f64 {
        control.send_period.as_micros()
    }

    #[test]
    fn slow_start_ends_at_sixteen_packets_with_a_speed() {
        let (mut law, mut control) = (Udt2007::new(1), Control::initial());
        let unknown = Path { arrival_rate: None, delivery_rate: None, ..path_at(0) };
        law.on_ack(&unknown, &ack(20), &mut control);
        assert_eq!((control.cwnd, micros(&control)), (Some(36.0), 0.0), "no speed yet");
        let (mut law, mut control) = (Udt2007::new(1), Control::initial());
        law.on_ack(&path_at(0), &ack(15), &mut control);
        assert_eq!((control.cwnd, micros(&control)), (Some(31.0), 0.0), "too few packets");
        law.on_ack(&path_at(10), &ack(16), &mut control);
        assert_eq!((control.cwnd, micros(&control)), (Some(32.0), 200.0));
    }

    #[test]
    fn slow_start_of_release_3_3_ends_once_a_quarter_of_the_capacity_is_delivered() {
        let delivering = |rate| Path { delivery_rate: Some(PacketRate::new(rate)), ..path_at(0) };
        let after = |path: &Path, acked| {
            let (mut law, mut control) = (Udt2007::of_release(1), Control::initial());
            law.on_connect(path, &mut control);
            law.on_ack(&Path { now: at(10), ..*path }, &ack(acked), &mut control);
            (control.cwnd, micros(&control))
        };
        assert_eq!(after(&delivering(24_999.0), 20), (Some(36.0), 0.0), "less than a quarter");
        assert_eq!(after(&delivering(25_000.0), 15), (Some(31.0), 0.0), "too few packets");
        assert_eq!(after(&Path { capacity: None, ..delivering(25_000.0) }, 20), (Some(36.0), 0.0), "no capacity");
        // 100 000 packets/s in 100 ms are more than the largest window.
        assert_eq!(after(&delivering(25_000.0), 16), (Some(10_000.0), 10.0));
    }

    #[test]
    fn a_loss_in_slow_start_of_release_3_3_sets_four_times_the_delivery_rate_at_most() {
        let first = |path: &Path| {
            let (mut law, mut control) = (Udt2007::of_release(1), Control::initial());
            law.on_connect(path, &mut control);
            lose(&mut law, path, 7, &mut control);
            micros(&control)
        };
        assert_eq!(first(&path_at(0)), 50.0);
        assert_eq!(first(&Path { capacity: Some(PacketRate::new(10_000.0)), ..path_at(0) }), 100.0);
        assert_eq!(first(&Path { capacity: None, ..path_at(0) }), 200.0, "no capacity: what arrives");
    }

    #[test]
    fn the_first_report_of_an_event_freezes_one_interval_and_cuts_nothing() {
        let (mut law, mut control) = steady();
        assert!((micros(&control) - 200.0).abs() < 1e-9);
        assert_eq!(control.freeze_until, Some(at(10)));
        lose(&mut law, &path_at(500), 18, &mut control);
        assert!(
            (micros(&control) - 200.0).abs() < 1e-9,
            "beyond what had been sent at the first one: an event of its own"
        );
        assert_eq!(control.freeze_until, Some(at(510)));
    }

    #[test]
    fn further_reports_of_an_event_cut_by_a_ninth_and_freeze_nothing() {
        let (mut law, mut control) = steady();
        for (report, expected) in (1..=7).zip([225.0, 253.125, 284.765_625, 320.361_328, 360.406_494, 360.406_494]) {
            lose(&mut law, &path_at(20), 7 + report, &mut control);
            assert!((micros(&control) - expected).abs() < 1e-6, "report {report}: {control:?}");
        }
        assert_eq!(control.freeze_until, Some(at(10)));
    }

    #[test]
    fn the_increase_is_that_of_the_decade_of_what_is_spare() {
        // 1250 bytes: 1500/S = 1.2; 1 Gbit/s less 50 Mbit/s is in the decade of 10^9.
        let (mut law, mut control) = steady();
        law.on_ack(&path_at(10), &ack(8), &mut control);
        assert!((micros(&control) - 200.0).abs() < 1e-9, "an interval with a loss adds nothing");
        law.on_ack(&path_at(20), &ack(9), &mut control);
        assert!((1e4 / micros(&control) - 51.2).abs() < 1e-9);
        let full = Path { capacity: Some(PacketRate::new(5_000.0)), ..path_at(30) };
        law.on_ack(&full, &ack(10), &mut control);
        assert!((1e4 / micros(&control) - 51.21).abs() < 1e-9, "nothing spare: the floor");
    }

    #[test]
    fn the_window_is_an_average_with_sixteen_packets_to_spare() {
        let (mut law, mut control) = steady();
        law.on_ack(&path_at(10), &ack(8), &mut control);
        // 5000 packets/s in 100 ms are 500: 16·0.875 + 500·0.125 = 76.5.
        assert_eq!(control.cwnd, Some(92.5));
        law.on_ack(&path_at(20), &ack(9), &mut control);
        assert_eq!(control.cwnd, Some(76.5 * 0.875 + 62.5 + 16.0));
        let limited = Path { application_limited: true, arrival_rate: Some(PacketRate::new(10.0)), ..path_at(30) };
        law.on_ack(&limited, &ack(10), &mut control);
        assert_eq!(control.cwnd, Some(76.5 * 0.875 + 62.5 + 16.0), "a pause of the application lowers nothing");
        assert!((average(16.0, 500.0, 2) - average(average(16.0, 500.0, 1), 500.0, 1)).abs() < 1e-9);
    }

    #[test]
    fn a_report_without_news_and_a_late_expiration_change_nothing() {
        let (mut law, mut control) = steady();
        let before = control;
        let ranges = [SeqRange::new(SeqNo::new(8), SeqNo::new(8))];
        law.on_loss(&path_at(5), &LossEvent::new(&ranges, 0, SeqNo::new(9)), &mut control);
        law.on_timeout(&path_at(5), &TimeoutEvent::default(), &mut control);
        assert_eq!(control, before);
    }
}
