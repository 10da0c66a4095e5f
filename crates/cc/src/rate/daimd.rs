//! When and by how much UDT changes its sending period: additive increase that decreases as the link fills,
//! multiplicative decrease spread at random (DAIMD, paper:udt-2007; constants of UDT4).
//!
//! ```text
//! Per SYN without loss:   A   = min(B − 1/P, B/9 while P > P_dec)                        (1)
//!                         inc = max(10^⌈log10(8·MSS·A)⌉ · β / MSS, 0.01)                  (2)
//!                         P   ← P·SYN / (P·inc + SYN)                                    (3)
//! First NAK of an event:  P_dec ← P,  P ← ⌈1.125·P⌉,  M ← ⌈0.875·M + 0.125·n⌉,  n ← 1     (4)
//!                         N ← max(1, ⌈M·u⌉),  u uniform in [0, 1)                        (5)
//! Each of the next four:  n ← n + 1,  P ← ⌈1.125·P⌉ if N divides n                       (6)
//! ```
//!
//! | paper | UDT4 | here | unit |
//! | --- | --- | --- | --- |
//! | L | bandwidth B | `Path::capacity` | packets/s |
//! | L − C | A | `spare_bandwidth` | packets/s |
//! | α | inc | `increase` | packets per SYN, per SYN |
//! | P | send period | `Control::send_period` | µs |
//! | P_dec | lastDecPeriod | `before_event` | µs |
//! | M | avgNAK | `average_naks` | reports per event |
//! | n | nakCount | `naks` | reports |
//! | N | decRandom | `spread` | reports |
//!
//! An *event* is everything lost among the packets that were sent before the rate was last cut: the cut could not have
//! prevented it. The worked form of (2), at 1500 bytes: 10 packets per SYN while more than 1 Gbit/s is spare, 1 above
//! 100 Mbit/s, 0.1 above 10 Mbit/s, 0.01 below.
//!
//! The generation of 2007 ([`Daimd::of_2007`]) differs in (6): all further reports count, and five of them may cut. What it does
//! with a first report stands in `udt_2007.rs`; the factors of the modification of 2011 in `udt_2011.rs`.
//!
//! Departures (docs/papers/departures.md): D3 no estimate is not a small estimate, D4 the ceiling of attack B9,
//! D5 bounds of the period, D6 an event ends when it is acknowledged, D7 seeded randomness.

use farhaul_units::{PacketRate, Rng, SendPeriod, SeqNo};

use super::flow_control::measured_rate;
use super::syn::SYN_INTERVAL;
use crate::Path;

/// β of (2), in bytes per SYN per bit/s. Source: UDT4; the 2007 paper writes it as 1500 bytes and τ = 9.
const BETA: f64 = 1.5e-6;
/// The least increase of (2), packets per SYN. Source: UDT4 since 2012, before that 1/MSS.
const MIN_INCREASE: f64 = 0.01;
/// While recovering, no more than this share of the capacity counts as spare. Source: UDT2 and later: what one cut frees.
const RECOVERY_SHARE: f64 = 1.0 / 9.0;
/// One cut makes the period this much longer, the rate a ninth smaller. Source: paper:udt-2004 eq. (4).
pub(super) const DECREASE: f64 = 1.125;
/// Weight of the latest event in the average number of reports per event. Source: UDT4.
const NAK_WEIGHT: f64 = 0.125;
/// Reports of one event that may cut, the first one included, so that an event at worst takes the rate to
/// 1.125^-5 = 0.55 of what it was. Source: UDT4.
const MAX_REPORTS: u32 = 5;
/// Cuts of one event in the generation of 2007, whose first report cuts nothing. Source: draft-gg-udt-03, DecCount.
const MAX_CUTS_2007: u32 = 5;
/// Most that the rate may be raised beyond what was acknowledged over about one round trip. Source: attack B9 of the
/// security design: a receiver may claim any capacity.
const MAX_RISE: f64 = 4.0;
/// The longest period, µs: one packet per second keeps acknowledgements coming, without which nothing ever recovers.
const MAX_PERIOD: f64 = 1e6;
/// The shortest period, µs: a billion packets per second, far beyond any host, and far from underflow.
const MIN_PERIOD: f64 = 1e-3;

/// What a loss report means for the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The first report of a new loss event.
    NewEvent,
    /// A further report of the same event, whose turn it is to cut.
    FurtherCut,
    /// A further report of the same event that cuts nothing.
    Spared,
}

/// Which loss reports cut the rate, and what one SYN interval adds to it.
#[derive(Clone, Debug)]
pub(super) struct Daimd {
    /// The last packet sent before the latest cut; `None` when everything up to it was acknowledged.
    event_end: Option<SeqNo>,
    /// The period when the latest event began; unpaced before the first, so that a start counts as a recovery.
    before_event: SendPeriod,
    /// Reports of the current event that may have cut.
    naks: u32,
    /// Further reports of the current event that did cut.
    cuts: u32,
    /// What bounds the cuts of one event.
    bound: Bound,
    /// Smoothed number of such reports per event.
    average_naks: u32,
    /// Every how many-th report of the current event cuts.
    spread: u32,
    /// A report came since the last interval, which therefore adds nothing.
    lossy_interval: bool,
    /// Draws `spread`.
    rng: Rng,
}

/// What bounds the cuts of one event.
#[derive(Clone, Copy, Debug)]
enum Bound {
    /// Only the first so many reports may cut.
    Reports(u32),
    /// Any report may cut, until so many have.
    Cuts(u32),
}

impl Daimd {
    /// A law that has seen no loss.
    pub(super) fn new(seed: u64) -> Self {
        Self::bounded_by(Bound::Reports(MAX_REPORTS), seed)
    }

    /// The law of 2007: all reports of an event count, and so many cut at most.
    pub(super) fn of_2007(seed: u64) -> Self {
        Self::bounded_by(Bound::Cuts(MAX_CUTS_2007), seed)
    }

    fn bounded_by(bound: Bound, seed: u64) -> Self {
        Self {
            cuts: 0,
            bound,
            event_end: None,
            before_event: SendPeriod::UNPACED,
            naks: 0,
            average_naks: 0,
            spread: 1,
            lossy_interval: false,
            rng: Rng::new(seed),
        }
    }

    /// Everything before `acked` has arrived. An event that lies before it is over; remembering it any longer would
    /// make half of all later sequence numbers look older than it.
    pub(super) fn on_progress(&mut self, acked: SeqNo) {
        if self.event_end.is_some_and(|end| end.is_before(acked)) {
            self.event_end = None;
        }
    }

    /// A SYN interval is over: the period from now on, (1) to (3).
    pub(super) fn on_syn(&mut self, period: SendPeriod, path: &Path) -> SendPeriod {
        let increase = match path.capacity {
            Some(capacity) => increase(spare_bandwidth(capacity, period, self.before_event), path.mss.max(1)),
            None => MIN_INCREASE,
        };
        self.grow(period, path, increase)
    }

    /// A SYN interval is over, after which `increase` more packets are to fit into one: the period from now on, (3).
    pub(super) fn grow(&mut self, period: SendPeriod, path: &Path, increase: f64) -> SendPeriod {
        if std::mem::take(&mut self.lossy_interval) {
            return period;
        }
        let delivered = path.delivery_rate.filter(|rate| *rate > PacketRate::default()).or_else(|| measured_rate(path));
        match delivered {
            Some(delivered) => longer(raise(period, increase), shorter(period, rise_limit(delivered))),
            None => raise(period, MIN_INCREASE),
        }
    }

    /// The peer reported losses, of which `first_lost` heads the report: what that means for the rate, (4) to (6).
    pub(super) fn on_nak(&mut self, first_lost: SeqNo, largest_sent: SeqNo, period: SendPeriod) -> Verdict {
        self.lossy_interval = true;
        if self.event_end.is_none_or(|end| first_lost.is_after(end)) {
            self.event_end = Some(largest_sent);
            self.before_event = period;
            self.average_naks = average_naks(self.average_naks, self.naks);
            self.spread = spread(self.average_naks, self.rng.unit());
            (self.naks, self.cuts) = (1, 0);
            return Verdict::NewEvent;
        }
        if matches!(self.bound, Bound::Reports(most) if self.naks >= most) {
            return Verdict::Spared;
        }
        self.naks = self.naks.saturating_add(1);
        if !self.naks.is_multiple_of(self.spread) || matches!(self.bound, Bound::Cuts(most) if self.cuts >= most) {
            return Verdict::Spared;
        }
        self.cuts += 1;
        self.event_end = Some(largest_sent);
        Verdict::FurtherCut
    }
}

/// Packets/s that nobody uses yet, (1); not positive when the link is full or the period is unpaced.
//= paper:udt-2007 L - C(x)
fn spare_bandwidth(capacity: PacketRate, period: SendPeriod, before_event: SendPeriod) -> f64 {
    let capacity = capacity.packets_per_second();
    let spare = capacity - 1e6 / period.as_micros();
    if period > before_event { spare.min(capacity * RECOVERY_SHARE) } else { spare }
}

/// Packets per SYN to add per SYN, (2), for `spare_bandwidth` in packets/s and `mss` in bytes.
//= paper:udt-2007 alpha(x)
pub(super) fn increase(spare_bandwidth: f64, mss: u32) -> f64 {
    if spare_bandwidth <= 0.0 {
        return MIN_INCREASE;
    }
    let mss = f64::from(mss);
    let magnitude = libm::exp10(libm::ceil(libm::log10(spare_bandwidth * mss * 8.0)));
    (magnitude * BETA / mss).max(MIN_INCREASE)
}

/// The period at which a SYN interval carries `increase` more packets, (3).
fn raise(period: SendPeriod, increase: f64) -> SendPeriod {
    let syn = SYN_INTERVAL.as_micros() as f64;
    let micros = period.as_micros();
    bounded(micros * syn / (micros * increase + syn))
}

/// The period after one cut by `factor`, in whole microseconds as UDT4 rounds it, (4) and (6).
//= paper:udt-2004 §3.5.2 eq. (4)
pub(super) fn decrease(period: SendPeriod, factor: f64) -> SendPeriod {
    bounded(libm::ceil(period.as_micros() * factor))
}

/// M of (4): the average number of reports per event, after one with `naks`.
fn average_naks(average: u32, naks: u32) -> u32 {
    libm::ceil(f64::from(average) * (1.0 - NAK_WEIGHT) + f64::from(naks) * NAK_WEIGHT) as u32
}

/// N of (5), for `uniform` in [0, 1).
fn spread(average_naks: u32, uniform: f64) -> u32 {
    (libm::ceil(f64::from(average_naks) * uniform) as u32).max(1)
}

/// The period that an increase may not go below, given what is `delivered`.
fn rise_limit(delivered: PacketRate) -> SendPeriod {
    bounded(1e6 / (delivered.packets_per_second() * MAX_RISE))
}

/// A period of `micros` that the law can work on: paced, and not so slow that nothing is left to be acknowledged.
pub(super) fn bounded(micros: f64) -> SendPeriod {
    SendPeriod::from_micros(micros.clamp(MIN_PERIOD, MAX_PERIOD))
}

/// The longer of two periods: the lower rate.
pub(super) fn longer(one: SendPeriod, other: SendPeriod) -> SendPeriod {
    if one < other { other } else { one }
}

/// The shorter of two periods: the higher rate.
pub(super) fn shorter(one: SendPeriod, other: SendPeriod) -> SendPeriod {
    if one < other { one } else { other }
}

#[cfg(test)]
mod tests;
