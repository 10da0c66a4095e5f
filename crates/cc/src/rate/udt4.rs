//! UDT4's congestion control (paper:udt-2007, descending from paper:udt-2004 §3.5): slow start to the first
//! loss, then a rate that grows with the spare bandwidth and loses a ninth per loss event.
//!
//! ```text
//! Full ACK, once per SYN that it stands for:
//!     in slow start:  W ← W + newly acknowledged;  over at the largest window: P ← 1/R
//!     otherwise:      W ← R·(RTT + SYN) + 16
//!                     P ← P·SYN / (P·inc + SYN), unless this interval had a loss report
//! NAK:
//!     in slow start:  over: P ← 1/R, no cut; or P ← (RTT + SYN)/W and a cut, if no R is known
//!     otherwise:      the first report of an event cuts, P ← ⌈1.125·P⌉; some of the next four cut again
//! EXP:
//!     in slow start:  over: P ← 1/R or (RTT + SYN)/W; otherwise nothing
//! ```
//!
//! The window's equations and their symbols stand in `flow_control.rs`, the period's (`inc`, which reports cut) in
//! `daimd.rs`, the interval in `syn.rs`. What is here is only when each of them applies, with the window after slow start and
//! the factor 1.125 as parameters, which the modification of 2011 replaces (`udt_2011.rs`).
//!
//! Departures from UDT4 (reasons in docs/papers/departures.md):
//! D1 R and B are unknown before the first sample, not 16 and 1 packets/s · D2 (RTT + SYN)/W, not its inverse ·
//! D3 an unknown capacity means the least increase · D4 the rate rises to 4 × the delivered rate at most ·
//! D5 the period stays in 1 ns..1 s · D6 a loss event ends when it is acknowledged · D7 the spread is drawn from the
//! connection's seed · D8 slow start counts packets exactly · D9 application-limited samples never lower ·
//! D10 the window stays in 2..max · D11 repeated reports are not news ·
//! D12 jitter of the acknowledgements costs no interval · D26 nor do acknowledgements that a lost packet holds back.
//! Kept on purpose: the whole microseconds of a cut, and no decrease on EXP.

use farhaul_units::Duration;

use super::daimd::{DECREASE, Daimd, NakEffect, decrease};
use super::flow_control::{SlowStart, cwnd, measured_rate, next_window, set_cwnd, start_period, take_over};
use super::syn::SynClock;
use crate::controller::{AckEvent, Control, Controller, LossEvent, Path, TimeoutEvent};

/// Round trips for which a lost packet holds the cumulative acknowledgements back at most, and for which the law therefore
/// catches up (departure D26): one for its repair, and one more if that is lost too.
pub(super) const LONGEST_HOLD: u32 = 2;

/// UDT4's own law, `udt`.
#[derive(Clone, Debug)]
pub(crate) struct Udt4 {
    /// Lets the law run once per SYN.
    clock: SynClock,
    /// `None` once slow start is over, which is for good.
    slow_start: Option<SlowStart>,
    /// What moves the period.
    daimd: Daimd,
}

impl Udt4 {
    /// The law of a new connection; all its randomness follows from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { clock: SynClock::default(), slow_start: Some(SlowStart::default()), daimd: Daimd::new(seed) }
    }

    /// Ends slow start and sets the first period. Whether there was anything to end.
    fn end_slow_start(&mut self, path: &Path, control: &mut Control) -> bool {
        let ended = self.slow_start.take().is_some();
        if ended {
            control.send_period = start_period(path, cwnd(control));
        }
        ended
    }

    /// An acknowledgement; after slow start, `next_window` makes the window out of the present one.
    pub(super) fn acknowledged(
        &mut self,
        path: &Path,
        ack: &AckEvent,
        control: &mut Control,
        next_window: impl FnOnce(&Path, f64) -> f64,
    ) {
        self.daimd.on_progress(ack.seq);
        if ack.light {
            return;
        }
        let hold = if path.application_limited { Duration::ZERO } else { path.rtt.saturating_mul(LONGEST_HOLD) };
        let intervals = self.clock.intervals(path.now, hold);
        if intervals == 0 {
            return;
        }
        if let Some(slow_start) = &mut self.slow_start {
            let grown = slow_start.grow(cwnd(control), ack.seq);
            set_cwnd(path, control, grown);
            if grown <= f64::from(path.max_window) {
                return;
            }
            self.end_slow_start(path, control);
        } else {
            set_cwnd(path, control, next_window(path, cwnd(control)));
        }
        for _ in 0..intervals {
            control.send_period = self.daimd.on_syn(control.send_period, path);
        }
    }

    /// A loss report, of which a cut makes the period `factor` times longer.
    pub(super) fn lost(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control, factor: f64) {
        let Some(first) = loss.ranges.first().filter(|_| loss.newly_lost > 0) else {
            return;
        };
        if self.end_slow_start(path, control) && measured_rate(path).is_some() {
            return;
        }
        match self.daimd.on_nak(first.first, loss.largest_sent, control.send_period) {
            NakEffect::NewEvent | NakEffect::FurtherCut => {
                control.send_period = decrease(control.send_period, factor);
            }
            NakEffect::Spared => {}
        }
    }
}

impl Controller for Udt4 {
    fn name(&self) -> &str {
        "udt"
    }

    fn on_connect(&mut self, path: &Path, _control: &mut Control) {
        self.slow_start = Some(SlowStart::new(path.next_seq));
    }

    fn on_take_over(&mut self, path: &Path, control: &mut Control) {
        self.clock = SynClock::starting(path.now);
        self.slow_start = None;
        take_over(path, control);
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        self.acknowledged(path, ack, control, next_window);
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        self.lost(path, loss, control, DECREASE);
    }

    fn on_timeout(&mut self, path: &Path, _timeout: &TimeoutEvent, control: &mut Control) {
        self.end_slow_start(path, control);
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::{Duration, Instant, PacketRate, SeqNo, SeqRange};

    use super::*;

    fn path_at(millis: u64) -> Path {
        Path {
            now: Instant::ZERO + Duration::from_millis(millis),
            mss: 1_500,
            rtt: Duration::from_millis(90),
            max_window: 1_000,
            ..Path::default()
        }
    }

    fn ack(seq: u32) -> AckEvent {
        AckEvent { seq: SeqNo::new(seq), newly_acked: 1, ..AckEvent::default() }
    }

    fn lose(law: &mut Udt4, path: &Path, seq: u32, control: &mut Control) {
        let ranges = [SeqRange::new(SeqNo::new(seq), SeqNo::new(seq))];
        law.on_loss(path, &LossEvent::new(&ranges, 1, SeqNo::new(seq + 10)), control);
    }

    fn micros(control: &Control) -> f64 {
        control.send_period.as_micros()
    }

    #[test]
    fn slow_start_is_unpaced_and_grows_by_what_is_acknowledged() {
        let (mut law, mut control) = (Udt4::new(1), Control::initial());
        law.on_connect(&path_at(0), &mut control);
        law.on_ack(&path_at(0), &ack(16), &mut control);
        law.on_ack(&path_at(10), &ack(48), &mut control);
        assert_eq!(control.cwnd, Some(64.0));
        assert!(control.send_period.is_unpaced());
    }

    #[test]
    fn light_and_early_acknowledgements_are_counted_by_the_next_full_one() {
        let (mut law, mut control) = (Udt4::new(1), Control::initial());
        law.on_connect(&path_at(0), &mut control);
        law.on_ack(&path_at(0), &ack(16), &mut control);
        law.on_ack(&path_at(4), &ack(20), &mut control);
        law.on_ack(&path_at(10), &AckEvent { light: true, ..ack(30) }, &mut control);
        assert_eq!(control.cwnd, Some(32.0));
        law.on_ack(&path_at(10), &ack(48), &mut control);
        assert_eq!(control.cwnd, Some(64.0));
    }

    #[test]
    fn the_largest_window_ends_slow_start() {
        let (mut law, mut control) = (Udt4::new(1), Control::initial());
        law.on_connect(&path_at(0), &mut control);
        let path = Path { arrival_rate: Some(PacketRate::new(5_000.0)), ..path_at(0) };
        law.on_ack(&path, &ack(990), &mut control);
        assert_eq!(control.cwnd, Some(1_000.0));
        assert!(micros(&control) < 200.0 && micros(&control) > 199.0, "the first interval already adds");
    }

    #[test]
    fn a_loss_in_slow_start_sets_the_measured_rate_and_cuts_nothing() {
        let (mut law, mut control) = (Udt4::new(1), Control::initial());
        let path = Path { arrival_rate: Some(PacketRate::new(5_000.0)), ..path_at(0) };
        lose(&mut law, &path, 7, &mut control);
        assert!((micros(&control) - 200.0).abs() < 1e-9);
        lose(&mut law, &path, 8, &mut control);
        assert!((micros(&control) - 225.0).abs() < 1e-9, "the next report is the first of an event");
    }

    #[test]
    fn a_loss_before_any_sample_sets_the_windows_rate_and_cuts() {
        let (mut law, mut control) = (Udt4::new(1), Control::initial());
        lose(&mut law, &path_at(0), 7, &mut control);
        // 100 ms / 16 packets = 6250 us, cut to 7031.25, in whole microseconds; UDT4's seed of 16 packets/s gives 62500.
        assert!((micros(&control) - 7_032.0).abs() < 1e-9);
    }

    #[test]
    fn a_report_without_news_changes_nothing() {
        let (mut law, mut control) = (Udt4::new(1), Control::initial());
        let ranges = [SeqRange::new(SeqNo::new(1), SeqNo::new(1))];
        law.on_loss(&path_at(0), &LossEvent::new(&ranges, 0, SeqNo::new(9)), &mut control);
        assert_eq!(control, Control::initial());
    }

    #[test]
    fn a_held_acknowledgement_adds_what_its_intervals_would_have_added() {
        let full = Path {
            arrival_rate: Some(PacketRate::new(10_000.0)),
            delivery_rate: Some(PacketRate::new(10_000.0)),
            capacity: Some(PacketRate::new(80_000.0)),
            ..path_at(0)
        };
        let steady = |acks: &[u64]| {
            let (mut law, mut control) = (Udt4::new(1), Control::initial());
            lose(&mut law, &full, 7, &mut control);
            law.on_ack(&Path { now: path_at(10).now, ..full }, &ack(8), &mut control);
            for &millis in acks {
                law.on_ack(&Path { now: path_at(millis).now, ..full }, &ack(9), &mut control);
            }
            micros(&control)
        };
        let each = steady(&[20, 30, 40, 50, 60]);
        assert!((steady(&[60]) - each).abs() < 1e-9 && each < 99.0, "{} {each}", steady(&[60]));
    }

    #[test]
    fn an_expiration_ends_slow_start_and_later_does_nothing() {
        let (mut law, mut control) = (Udt4::new(1), Control::initial());
        law.on_timeout(&path_at(0), &TimeoutEvent::default(), &mut control);
        assert!((micros(&control) - 6_250.0).abs() < 1e-9);
        law.on_timeout(&path_at(500), &TimeoutEvent::default(), &mut control);
        assert!((micros(&control) - 6_250.0).abs() < 1e-9);
    }
}
