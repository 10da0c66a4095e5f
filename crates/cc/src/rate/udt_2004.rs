//! The rate and flow control of the first UDT (paper:udt-2004 §3.5): an increase that depends on the link's capacity alone, a
//! decrease by a ninth on loss *or* on growing delay.
//!
//! ```text
//! Flow window:     slow start  W = packets acknowledged, at least 2                          (0)
//!                  later       W ← ⌈0.875·W + 0.125·(RTT + SYN)·AS⌉                          (1)
//! Every SYN:       p ← 0.125·p + 0.875·lost/sent;  if p < 1 %:
//!                              n ← n + max(10^⌈log10 B⌉·SYN/1000, 1/MTU),  I = SYN/n         (2)
//! Estimate:                    B ← 0.875·B + 0.125·NB                                        (3)
//! Congestion:                  I ← 1.125·I                                                   (4)
//! ```
//!
//! | paper | here | unit |
//! | --- | --- | --- |
//! | W | `Control::cwnd` | packets |
//! | I | `Control::send_period` | µs |
//! | n = SYN/I | | packets per SYN |
//! | AS | `Path::arrival_rate` | packets/s |
//! | B | `Path::capacity`, to which the transport has applied (3) | packets/s |
//! | p | `LossRate::average` | share of the packets sent |
//! | *last_dec_seq*, *dc*, *e* | `last_dec`, `reports`, `exponent` | |
//!
//! Congestion is a delay warning, or a loss report whose first packet lies beyond *last_dec_seq*. It applies (4), sets
//! *last_dec_seq* to the largest number sent, *dc* to 1, *e* to 4, and freezes sending for one SYN. Any other report adds one to
//! *dc*; (4) applies when *dc* = 2^e, and *e* grows by one, but *last_dec_seq* stays, so nothing freezes. The first congestion
//! ends slow start: I becomes 1/AS, and (4) applies to that. So does a time-out, without (4).
//!
//! Worked form of (2) at 1500 bytes: 0.01 packets per SYN at 10 Mbit/s, 0.1 at 100 Mbit/s, 1 at 622 Mbit/s and 1 Gbit/s; 1/MTU
//! governs below 10 packets/s.
//!
//! It runs on the 2004 protocol, whose SYN timer calls [`Controller::on_syn`], and by itself on UDT4's packets, where an
//! acknowledgement stands for the timer.
//!
//! Departures (docs/papers/departures.md): D2 the first period without an arrival speed · D5 bounds of the period · D6 a loss
//! event ends when it is acknowledged · D9 application-limited samples never lower, and such an interval adds nothing · D10
//! bounds of the window · D144 whole packets in (1) · D140 the weight of p · D141 the ceiling of attack B9 · D142 one warning in a round trip · D143 on
//! UDT4's packets acknowledgements are the timer · D147 a time-out ends slow start.

use farhaul_units::{Duration, Instant, Rng, SendPeriod, SeqNo};

use super::daimd::{DECREASE, bounded, shorter};
use super::flow_control::{cwnd, measured_rate, set_cwnd, start_period, take_over};
use super::syn::{SYN_INTERVAL, SynClock};
use crate::controller::{AckEvent, Control, Controller, LossEvent, Path, TimeoutEvent};

/// The window before anything was acknowledged, packets. Source: paper §3.5.1.
const FIRST_WINDOW: f64 = 2.0;
/// Weight of the old value in (1). Source: paper eq. (1).
const WINDOW_WEIGHT: f64 = 0.875;
/// Divisor of (2): the capacity's power of ten is to be reached in a thousand intervals. Source: paper eq. (2).
const INCREASE_DIVISOR: f64 = 1_000.0;
/// Weight of the old loss rate. The paper gives none; source: UDT 1.x.
const LOSS_WEIGHT: f64 = 0.125;
/// Losses above this share of the packets stop the increase. Source: paper §3.5.2.
const LOSS_THRESHOLD: f64 = 0.01;
/// First *e*: the report that cuts again within an event is the 2^4th. Source: paper §3.5.2.
const FIRST_EXPONENT: u32 = 4;
/// The rate rises no further than this multiple of what arrives. Source: attack B9; see D141.
const MAX_RISE: f64 = 4.0;
/// Packets acknowledged before a time-out ends slow start: an arrival speed is the median of as many intervals. Source: paper
/// §3.4.1; see D147.
const SPEED_WINDOW: f64 = 16.0;
/// False warnings of the option come no more often than true ones: once in this many round trips. Source: paper §3.5.2.
const WARNING_SPACING: u32 = 2;
/// Round trips for which an acknowledgement may have been held back, on UDT4's packets (as departure D26).
const LONGEST_HOLD: u32 = 2;

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Options {
    /// Whether delay warnings are obeyed.
    pub(crate) warnings: bool,
    /// The capacity estimate is multiplied by this.
    pub(crate) capacity_factor: f64,
    /// The chance that a warning is overlooked.
    pub(crate) missed_warnings: f64,
    /// The chance that an acknowledgement is taken for a warning.
    pub(crate) false_warnings: f64,
}

/// The law of the 2004 paper, `udt-2004`.
#[derive(Clone, Debug)]
pub(crate) struct Udt2004 {
    name: String,
    options: Options,
    rng: Rng,
    /// The number of the connection's first packet.
    first: SeqNo,
    slow_start: bool,
    /// The largest number sent when the latest congestion was seen; `None` when everything up to it was acknowledged.
    last_dec: Option<SeqNo>,
    /// Reports of the present event.
    reports: u32,
    exponent: u32,
    loss: LossRate,
    last_warning: Option<Instant>,
    /// The transport has a SYN timer.
    timed: bool,
    clock: SynClock,
}

/// p: the losses that reports list as a share of the packets sent, smoothed over intervals.
#[derive(Clone, Copy, Debug, Default)]
struct LossRate {
    average: f64,
    /// Packets listed since the last interval.
    lost: u64,
    /// Packets sent before the present interval.
    sent_before: u64,
}

impl LossRate {
    /// An interval is over, by which `sent` packets have left in all; whether any did in this one.
    fn on_interval(&mut self, sent: u64) -> bool {
        let in_interval = sent.saturating_sub(self.sent_before);
        if in_interval == 0 {
            return false;
        }
        let share = self.lost as f64 / in_interval as f64;
        self.average = self.average * LOSS_WEIGHT + share * (1.0 - LOSS_WEIGHT);
        self.lost = 0;
        self.sent_before = sent;
        true
    }
}

impl Udt2004 {
    /// The law of a new connection, which calls itself `name`; all its randomness follows from `seed`.
    pub(crate) fn new(options: Options, name: String, seed: u64) -> Self {
        Self {
            name,
            options,
            rng: Rng::new(seed),
            first: SeqNo::default(),
            slow_start: true,
            last_dec: None,
            reports: 1,
            exponent: FIRST_EXPONENT,
            loss: LossRate::default(),
            last_warning: None,
            timed: false,
            clock: SynClock::default(),
        }
    }

    /// The path is congested: (4), and a freeze of one SYN.
    fn on_congestion(&mut self, path: &Path, largest_sent: SeqNo, control: &mut Control) {
        if std::mem::take(&mut self.slow_start) {
            control.send_period = start_period(path, cwnd(control));
        }
        control.send_period = slower(control.send_period);
        self.last_dec = Some(largest_sent);
        self.reports = 1;
        self.exponent = FIRST_EXPONENT;
        control.freeze_until = Some(path.now + SYN_INTERVAL);
    }

    /// `intervals` SYN intervals are over: (2).
    fn on_intervals(&mut self, path: &Path, intervals: u32, control: &mut Control) {
        let sent_any = self.loss.on_interval(path.packets_sent);
        if !sent_any || self.slow_start || path.application_limited || self.loss.average >= LOSS_THRESHOLD {
            return;
        }
        let capacity = path.capacity.map_or(0.0, |rate| rate.packets_per_second()) * self.options.capacity_factor;
        let rate = measured_rate(path);
        let least = 1.0 / f64::from(path.mss.max(1));
        let step = if rate.is_some() { increase(capacity, path.mss) } else { least };
        let raised = faster(control.send_period, step * f64::from(intervals));
        let ceiling = rate.map_or(raised, |rate| bounded(1e6 / (rate.packets_per_second() * MAX_RISE)));
        // The ceiling stops a rise; it never lowers.
        control.send_period = shorter(control.send_period, if raised < ceiling { ceiling } else { raised });
    }

    fn is_news(&self, first: SeqNo) -> bool {
        self.last_dec.is_none_or(|last| first.is_after(last))
    }

    fn rested(&self, path: &Path, round_trips: u32) -> bool {
        self.last_warning.is_none_or(|at| path.now - at >= path.rtt.saturating_mul(round_trips))
    }
}

impl Controller for Udt2004 {
    fn name(&self) -> &str {
        &self.name
    }

    fn on_connect(&mut self, path: &Path, control: &mut Control) {
        self.first = path.next_seq;
        set_cwnd(path, control, FIRST_WINDOW);
        control.send_period = SendPeriod::UNPACED;
    }

    fn on_take_over(&mut self, path: &Path, control: &mut Control) {
        self.slow_start = false;
        self.loss.sent_before = path.packets_sent;
        take_over(path, control);
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        if self.last_dec.is_some_and(|last| last.is_before(ack.seq)) {
            self.last_dec = None;
        }
        if ack.light {
            return;
        }
        if self.slow_start {
            //= paper:udt-2004 §3.5.1: the window is what was acknowledged so far
            let acked = ack.seq.distance_from(self.first).max(0);
            set_cwnd(path, control, f64::from(acked).max(cwnd(control)).max(FIRST_WINDOW));
        } else if let Some(rate) = measured_rate(path) {
            let next = next_window(cwnd(control), rate.packets_in(path.rtt.saturating_add(SYN_INTERVAL)));
            set_cwnd(path, control, if path.application_limited { next.max(cwnd(control)) } else { next });
        }
        if self.rng.chance(self.options.false_warnings) && self.rested(path, WARNING_SPACING) {
            self.last_warning = Some(path.now);
            self.on_congestion(path, path.next_seq.minus(1), control);
        }
        if !self.timed {
            let hold = if path.application_limited { Duration::ZERO } else { path.rtt.saturating_mul(LONGEST_HOLD) };
            let intervals = self.clock.intervals(path.now, hold);
            if intervals > 0 {
                self.on_intervals(path, intervals, control);
            }
        }
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        let Some(first) = loss.ranges.first() else { return };
        self.loss.lost += loss.ranges.iter().map(|range| u64::from(range.len())).sum::<u64>();
        if self.is_news(first.first) {
            self.on_congestion(path, loss.largest_sent, control);
            return;
        }
        self.reports = self.reports.saturating_add(1);
        if 1u32.checked_shl(self.exponent) == Some(self.reports) {
            control.send_period = slower(control.send_period);
            self.exponent += 1;
        }
    }

    fn on_timeout(&mut self, path: &Path, _timeout: &TimeoutEvent, control: &mut Control) {
        if self.slow_start && cwnd(control) >= SPEED_WINDOW {
            self.slow_start = false;
            control.send_period = start_period(path, cwnd(control));
        }
    }

    fn on_warning(&mut self, path: &Path, control: &mut Control) -> bool {
        let overlooked = !self.options.warnings || self.rng.chance(self.options.missed_warnings);
        if !overlooked && self.rested(path, 1) {
            self.last_warning = Some(path.now);
            self.on_congestion(path, path.next_seq.minus(1), control);
        }
        true
    }

    fn on_syn(&mut self, path: &Path, control: &mut Control) {
        self.timed = true;
        self.on_intervals(path, 1, control);
    }
}

/// Packets per SYN that one SYN adds, at a capacity of so many packets per second.
//= paper:udt-2004 §3.5.2 eq. (2)
fn increase(capacity: f64, mtu: u32) -> f64 {
    let least = 1.0 / f64::from(mtu.max(1));
    if capacity <= 0.0 {
        return least;
    }
    let power = libm::pow(10.0, libm::ceil(libm::log10(capacity)));
    (power * SYN_INTERVAL.as_secs_f64() / INCREASE_DIVISOR).max(least)
}

/// The window after an acknowledgement, where `filled` packets fill path and SYN at the speed of arrival. Whole packets, rounded
/// up (departure D144).
//= paper:udt-2004 §3.5.1 eq. (1)
fn next_window(window: f64, filled: f64) -> f64 {
    libm::ceil(window * WINDOW_WEIGHT + filled * (1.0 - WINDOW_WEIGHT))
}

/// The interval between packets after congestion.
//= paper:udt-2004 §3.5.2 eq. (4)
fn slower(period: SendPeriod) -> SendPeriod {
    if period.is_unpaced() { period } else { bounded(period.as_micros() * DECREASE) }
}

/// The interval between packets when `step` more of them are to fit into a SYN.
fn faster(period: SendPeriod, step: f64) -> SendPeriod {
    let syn = SYN_INTERVAL.as_secs_f64() * 1e6;
    if period.is_unpaced() { period } else { bounded(syn / (syn / period.as_micros() + step)) }
}

#[cfg(test)]
mod tests;
