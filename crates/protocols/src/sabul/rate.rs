//! The rate: a law of one of SABUL's generations, behind a bounded start.
//!
//! | part | owns |
//! | --- | --- |
//! | `march_2003` | the law of release 2.1, the last one |
//! | `may_2002` | the law of release 2.0 |
//! | `october_2002` | the law of the paper on rate control |
//! | `release_0_1` | the law of release 0.1 |
//! | `start` | ours: the first seconds of a transfer |
//!
//! Each law owns one number: the time between two packets, I, in microseconds. It depends on no RTT.

mod march_2003;
mod may_2002;
mod october_2002;
mod release_0_1;
mod start;

use core::fmt;

use farhaul_units::{Duration, Instant, Rate, SeqNo};

use self::march_2003::March2003;
use self::may_2002::May2002;
use self::october_2002::October2002;
use self::release_0_1::Release01;
use self::start::StartUp;
use super::{Generation, Options, Start};
use crate::blast::engine::Feedback;

/// I at the start of every generation, µs. At 1500 bytes a packet this is 1.2 Gbit/s, of which 1.17 are payload.
const FIRST_INTERVAL: f64 = 10.0;
/// Bits of a packet of 1500 bytes. `setRate` of the original turns Mbit/s into I by it.
const PACKET_BITS: f64 = 12_000.0;
/// Longest I with a bounded start, µs. The start itself may be slower than a law's slowest rate (departure D301).
const LONGEST_INTERVAL: f64 = 1e6;

/// A report of losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    /// The first packet of the report.
    pub(super) first: SeqNo,
    /// How many packets of it were not in the sender's list.
    pub(super) losses: u32,
    /// The first packet that is not acknowledged.
    pub(super) acked: SeqNo,
    /// The next new packet.
    pub(super) next: SeqNo,
}

/// Bounds of I in microseconds: the fastest and the slowest rate.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    shortest: f64,
    longest: f64,
}

impl Bounds {
    fn clamp(self, interval: f64) -> f64 {
        interval.clamp(self.shortest, self.longest)
    }
}

/// A law of rate control.
trait Law: fmt::Debug + Send {
    /// I, µs.
    fn interval(&self) -> f64;

    /// A start-up found this I. The losses of its packets, all before `next`, are no news to the law.
    fn resume(&mut self, interval: f64, next: SeqNo);

    /// How often [`on_tick`](Self::on_tick) is called while packets leave; `None` for never.
    fn clock(&self) -> Option<Duration> {
        None
    }

    /// The law's own clock ticks.
    fn on_tick(&mut self) {}

    /// These packets left, repeats included.
    fn on_sent(&mut self, packets: u32);

    /// The receiver reported losses. Returns how long nothing may leave.
    fn on_report(&mut self, report: Report) -> Duration;

    /// This many packets arrived since the last record of this type.
    fn on_syn(&mut self, _received: u32) {}

    /// An acknowledgement arrived.
    fn on_ack(&mut self) {}

    /// This many packets are unacknowledged.
    fn on_unacknowledged(&mut self, _packets: u32) {}
}

/// The rate of one sender.
#[derive(Debug)]
pub(super) struct RateControl {
    law: Box<dyn Law>,
    start: Option<StartUp>,
}

impl RateControl {
    pub(super) fn new(options: &Options, round_trip: Duration, now: Instant) -> Self {
        let first = options.first_rate.map_or(FIRST_INTERVAL, interval_of);
        let bounded = options.start == Start::Bounded && options.first_rate.is_none();
        let law = law(options, first);
        let shortest = bounds(options).shortest;
        Self { law, start: bounded.then(|| StartUp::new(round_trip, shortest, now)) }
    }

    /// I, µs.
    pub(super) fn interval(&self) -> f64 {
        self.start.as_ref().map_or_else(|| self.law.interval(), StartUp::interval)
    }

    pub(super) fn clock(&self) -> Option<Duration> {
        self.law.clock()
    }

    /// The law's own clock ticks.
    pub(super) fn on_tick(&mut self) {
        if self.start.is_none() {
            self.law.on_tick();
        }
    }

    pub(super) fn on_sent(&mut self, now: Instant, packets: u32) {
        match &mut self.start {
            Some(start) => start.on_sent(now, packets),
            None => self.law.on_sent(packets),
        }
    }

    /// The receiver reported losses. Returns how long nothing may leave.
    pub(super) fn on_report(&mut self, report: Report) -> Duration {
        match &mut self.start {
            Some(start) => {
                start.on_losses(report.losses);
                Duration::ZERO
            }
            None => self.law.on_report(report),
        }
    }

    pub(super) fn on_syn(&mut self, received: u32) {
        if self.start.is_none() {
            self.law.on_syn(received);
        }
    }

    pub(super) fn on_ack(&mut self) {
        self.law.on_ack();
    }

    pub(super) fn on_unacknowledged(&mut self, packets: u32) {
        if self.start.is_none() {
            self.law.on_unacknowledged(packets);
        }
    }

    /// Counts of arrivals from now on have another clock.
    pub(super) fn forget_arrivals(&mut self) {
        if let Some(start) = &mut self.start {
            start.forget_arrivals();
        }
    }

    /// The receiver counted arrivals. `busy` is whether the sender always had something to send since the last count.
    /// `next` is the next new packet.
    pub(super) fn on_arrivals(&mut self, now: Instant, arrivals: &Feedback, busy: bool, next: SeqNo) {
        if let Some(found) = self.start.as_mut().and_then(|start| start.on_arrivals(now, arrivals, busy)) {
            self.end_start(found, next);
        }
    }

    /// The receiver has said nothing for so long that everything counts as lost.
    pub(super) fn on_expiration(&mut self, next: SeqNo) {
        if let Some(slower) = self.start.as_ref().map(|start| 2.0 * start.interval()) {
            self.end_start(slower, next);
        }
    }

    pub(super) fn set_round_trip(&mut self, round_trip: Duration) {
        if let Some(start) = &mut self.start {
            start.set_round_trip(round_trip);
        }
    }

    fn end_start(&mut self, interval: f64, next: SeqNo) {
        self.start = None;
        self.law.resume(interval, next);
    }
}

/// The law of the chosen generation.
fn law(options: &Options, first: f64) -> Box<dyn Law> {
    let bounds = bounds(options);
    match options.generation {
        Generation::March2003 => Box::new(March2003::new(first, bounds)),
        Generation::May2002 => Box::new(May2002::new(first, bounds)),
        Generation::October2002 => Box::new(October2002::new(first, bounds)),
        Generation::Release01 => Box::new(Release01::new(first, bounds)),
    }
}

/// The generation's bounds, unless the options have others. A bounded start lifts the generation's longest I.
fn bounds(options: &Options) -> Bounds {
    let mut bounds = match options.generation {
        Generation::March2003 => march_2003::BOUNDS,
        Generation::May2002 => may_2002::BOUNDS,
        Generation::October2002 => october_2002::BOUNDS,
        Generation::Release01 => release_0_1::BOUNDS,
    };
    if options.start == Start::Bounded {
        bounds.longest = LONGEST_INTERVAL;
    }
    bounds.shortest = options.fastest_rate.map_or(bounds.shortest, interval_of);
    bounds.longest = options.slowest_rate.map_or(bounds.longest, interval_of).max(bounds.shortest);
    bounds
}

/// The interval of packets of 1500 bytes at this rate, µs.
fn interval_of(rate: Rate) -> f64 {
    (PACKET_BITS * 1e6 / rate.bits_per_second() as f64).clamp(1e-3, LONGEST_INTERVAL)
}
