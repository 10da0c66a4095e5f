//! UDT's changes of the sending period (DAIMD, paper:udt-2007; constants of UDT4). The additive increase decreases as
//! the link fills. The multiplicative decrease is spread at random.
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
//! An *event* covers all losses among packets sent before the last decrease, which could not have prevented them.
//!
//! At 1500 bytes (2) gives 10 packets per SYN while more than 1 Gbit/s is spare. It gives 1 above 100 Mbit/s, 0.1 above
//! 10 Mbit/s, and 0.01 below.
//!
//! The generation of 2007 ([`Daimd::of_2007`]) differs in (6): all further reports count, and five of them may
//! decrease the rate. In release 3.3 M is one larger. Its reaction to a first report is in `udt_2007.rs`, and the factors of the modification of 2011 in
//! `udt_2011.rs`.
//!
//! Departures (docs/papers/departures.md): D3 no estimate is not a small estimate. D4 the ceiling of attack B9. D5
//! bounds of the period. D6 an event ends when it is acknowledged. D7 seeded randomness.

use farhaul_units::{PacketRate, Rng, SendPeriod, SeqNo};

use super::flow_control::measured_rate;
pub(super) use super::period::{bounded, longer, shorter};
use super::syn::SYN_INTERVAL;
use crate::controller::Path;

/// β of (2), in bytes per SYN per bit/s. Source: UDT4; the 2007 paper writes it as 1500 bytes and τ = 9.
const BETA: f64 = 1.5e-6;
/// The smallest increase of (2), packets per SYN. Source: UDT4 since 2012, before that 1/MSS.
const MIN_INCREASE: f64 = 0.01;
/// During recovery, at most this share of the capacity counts as spare: the part freed by one decrease. Source: UDT2
/// and later.
const RECOVERY_SHARE: f64 = 1.0 / 9.0;
/// Factor of the period for one decrease, which lowers the rate by a ninth. Source: paper:udt-2004 eq. (4).
pub(super) const DECREASE: f64 = 1.125;
/// Weight of the latest event in the average number of reports per event. Source: UDT4.
const NAK_WEIGHT: f64 = 0.125;
/// Reports of one event that may decrease the rate, including the first. One event thus lowers the rate to at least
/// 1.125^-5 = 0.55. Source: UDT4.
const MAX_REPORTS: u32 = 5;
/// Decreases per event in the generation of 2007, whose first report causes none. Source: draft-gg-udt-03, DecCount.
const MAX_CUTS_2007: u32 = 5;
/// The addition of release 3.3 to the average of (4). A lone report of an event then rarely follows another one that counts.
/// Source: release 3.3 of June 2007. UDT4 adds nothing.
const SURPLUS_OF_RELEASE: u32 = 1;
/// Cap on the rate after an increase, as a multiple of the rate acknowledged over about one RTT. Source: attack B9 of
/// the security design, because a receiver may claim any capacity.
const MAX_RISE: f64 = 4.0;

/// The meaning of a loss report for the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NakEffect {
    /// The first report of a new loss event.
    NewEvent,
    /// A further report of the same event that decreases the rate.
    FurtherCut,
    /// A further report of the same event that changes nothing.
    Spared,
}

/// Decides which loss reports decrease the rate, and the increase per SYN interval.
#[derive(Clone, Debug)]
pub(super) struct Daimd {
    /// The last packet sent before the latest decrease; `None` once everything up to it was acknowledged.
    event_end: Option<SeqNo>,
    /// The period at the start of the latest event. Unpaced before the first, so that a start counts as a recovery.
    before_event: SendPeriod,
    /// Reports of the current event that may have decreased the rate.
    naks: u32,
    /// Further reports of the current event that did decrease the rate.
    cuts: u32,
    /// The limit on the decreases of one event.
    bound: Bound,
    /// Added to the average of each event, reports.
    surplus: u32,
    /// Smoothed number of reports per event.
    average_naks: u32,
    /// One of this many reports of the current event decreases the rate.
    spread: u32,
    /// A report arrived in this interval, which therefore adds no increase.
    lossy_interval: bool,
    /// Draws `spread`.
    rng: Rng,
}

/// The limit on the decreases of one event.
#[derive(Clone, Copy, Debug)]
enum Bound {
    /// Only the first reports, of this number, may decrease the rate.
    Reports(u32),
    /// Any report may decrease the rate, up to this number of decreases.
    Cuts(u32),
}

impl Daimd {
    /// A law without losses so far.
    pub(super) fn new(seed: u64) -> Self {
        Self::bounded_by(Bound::Reports(MAX_REPORTS), 0, seed)
    }

    /// The law of 2007: all reports of an event count, and a fixed number of them may decrease the rate.
    pub(super) fn of_2007(seed: u64) -> Self {
        Self::bounded_by(Bound::Cuts(MAX_CUTS_2007), 0, seed)
    }

    /// The same of release 3.3.
    pub(super) fn of_release(seed: u64) -> Self {
        Self::bounded_by(Bound::Cuts(MAX_CUTS_2007), SURPLUS_OF_RELEASE, seed)
    }

    fn bounded_by(bound: Bound, surplus: u32, seed: u64) -> Self {
        Self {
            cuts: 0,
            bound,
            surplus,
            event_end: None,
            before_event: SendPeriod::UNPACED,
            naks: 0,
            average_naks: 0,
            spread: 1,
            lossy_interval: false,
            rng: Rng::new(seed),
        }
    }

    /// Everything before `acked` has arrived. Ends an event that lies before it. If it were kept, half of all later
    /// sequence numbers would look older than the event.
    pub(super) fn on_progress(&mut self, acked: SeqNo) {
        if self.event_end.is_some_and(|end| end.is_before(acked)) {
            self.event_end = None;
        }
    }

    /// A SYN interval has ended. Returns the new period, (1) to (3).
    pub(super) fn on_syn(&mut self, period: SendPeriod, path: &Path) -> SendPeriod {
        let increase = match path.capacity {
            Some(capacity) => increase(spare_bandwidth(capacity, period, self.before_event), path.mss.max(1)),
            None => MIN_INCREASE,
        };
        self.grow(period, path, increase)
    }

    /// A SYN interval has ended and the next one shall carry `increase` more packets. Returns the new period, (3).
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

    /// The peer reported losses, beginning with `first_lost`. Returns the meaning for the rate, (4) to (6).
    pub(super) fn on_nak(&mut self, first_lost: SeqNo, largest_sent: SeqNo, period: SendPeriod) -> NakEffect {
        self.lossy_interval = true;
        if self.event_end.is_none_or(|end| first_lost.is_after(end)) {
            self.event_end = Some(largest_sent);
            self.before_event = period;
            self.average_naks = average_naks(self.average_naks, self.naks).saturating_add(self.surplus);
            self.spread = spread(self.average_naks, self.rng.unit());
            (self.naks, self.cuts) = (1, 0);
            return NakEffect::NewEvent;
        }
        if matches!(self.bound, Bound::Reports(most) if self.naks >= most) {
            return NakEffect::Spared;
        }
        self.naks = self.naks.saturating_add(1);
        if !self.naks.is_multiple_of(self.spread) || matches!(self.bound, Bound::Cuts(most) if self.cuts >= most) {
            return NakEffect::Spared;
        }
        self.cuts += 1;
        self.event_end = Some(largest_sent);
        NakEffect::FurtherCut
    }
}

/// Unused packets/s, (1). Not positive if the link is full or the period is unpaced.
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

/// The period after one decrease by `factor`, in whole microseconds as in UDT4, (4) and (6).
//= paper:udt-2004 §3.5.2 eq. (4)
pub(super) fn decrease(period: SendPeriod, factor: f64) -> SendPeriod {
    bounded(libm::ceil(period.as_micros() * factor))
}

/// M of (4): the average number of reports per event, after an event with `naks`.
fn average_naks(average: u32, naks: u32) -> u32 {
    libm::ceil(f64::from(average) * (1.0 - NAK_WEIGHT) + f64::from(naks) * NAK_WEIGHT) as u32
}

/// N of (5), for `uniform` in [0, 1).
fn spread(average_naks: u32, uniform: f64) -> u32 {
    (libm::ceil(f64::from(average_naks) * uniform) as u32).max(1)
}

/// The shortest period after an increase, for the rate `delivered`.
fn rise_limit(delivered: PacketRate) -> SendPeriod {
    bounded(1e6 / (delivered.packets_per_second() * MAX_RISE))
}

#[cfg(test)]
mod tests;
