//! What losses say of the path: bounds of the volume in flight and of the bandwidth (draft-ietf-ccwg-bbr §5.5.10).
//!
//! | bound | lowered by | lifted by |
//! | --- | --- | --- |
//! | long-term, packets in flight | a probe that lost more than 2 % | probes without |
//! | short-term, bandwidth and packets | a round with losses between probes | the next probe |

use super::state::BbrState;
use crate::controller::{LostFlight, RateSample};

/// The largest share of a round that may be lost (`BBR.LossThresh`).
pub(super) const LOSS_THRESHOLD: f64 = 0.02;
/// What a loss leaves of a bound (`BBR.Beta`).
pub(super) const BETA: f64 = 0.7;
/// Share of the long-term bound that is left to others (`BBR.Headroom`).
const HEADROOM: f64 = 0.15;
/// The least window, packets (`BBR.MinPipeCwnd`).
pub(super) const MIN_WINDOW: f64 = 4.0;
/// The growth of a probe doubles for so many rounds at most.
const MOST_DOUBLINGS: u32 = 30;

/// The bounds, and what the present round says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Packets in flight beyond which probes lost too much.
    pub(super) long_term: f64,
    /// Bandwidth, packets/s, and packets in flight since the last probe.
    pub(super) short_term: Short,
    /// The largest rate and volume delivered in the present loss round.
    latest: Short,
    round_delivered: f64,
    /// Whether this acknowledgement ended a loss round.
    pub(super) round_began: bool,
    /// Whether something was lost in the present round.
    pub(super) is_lossy: bool,
    /// Separate ranges lost in it.
    pub(super) ranges: u32,
    growth: Growth,
}

/// A bandwidth, packets/s, and a volume, packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short {
    pub(super) bandwidth: f64,
    pub(super) in_flight: f64,
}

impl Short {
    const NONE: Self = Self { bandwidth: f64::INFINITY, in_flight: f64::INFINITY };
    const ZERO: Self = Self { bandwidth: 0.0, in_flight: 0.0 };
}

/// How a probe raises the long-term bound: by 1, 2, 4, … packets per round.
#[derive(Clone, Copy, Debug)]
struct Growth {
    rounds: u32,
    acked: f64,
    /// Packets acknowledged per packet of growth.
    per_packet: f64,
}

impl Bounds {
    pub(super) const fn new() -> Self {
        Self {
            long_term: f64::INFINITY,
            short_term: Short::NONE,
            latest: Short::ZERO,
            round_delivered: 0.0,
            round_began: false,
            is_lossy: false,
            ranges: 0,
            growth: Growth { rounds: 0, acked: 0.0, per_packet: f64::INFINITY },
        }
    }

    // ---- acknowledgements ----

    /// Step one of an acknowledgement.
    pub(super) fn take_sample(&mut self, sample: &RateSample, delivered: f64) {
        self.latest.bandwidth = self.latest.bandwidth.max(rate(sample));
        self.latest.in_flight = self.latest.in_flight.max(sample.delivered);
        self.round_began = sample.prior_delivered >= self.round_delivered;
        if self.round_began {
            self.round_delivered = delivered;
        }
    }

    /// A loss round has ended: what was lost between probes lowers the short-term bounds.
    pub(super) fn adapt_short_term(&mut self, state: BbrState, max_bandwidth: f64, cwnd: f64) {
        if !self.round_began {
            return;
        }
        if self.is_lossy && !state.grows() {
            let Short { bandwidth, in_flight } = self.short_term;
            let known = |bound: f64, else_: f64| if bound.is_finite() { bound } else { else_ };
            self.short_term = Short {
                bandwidth: self.latest.bandwidth.max(known(bandwidth, max_bandwidth) * BETA),
                in_flight: self.latest.in_flight.max(known(in_flight, cwnd) * BETA),
            };
        }
        self.is_lossy = false;
    }

    /// The last step of an acknowledgement.
    pub(super) fn end_sample(&mut self, sample: &RateSample) {
        if self.round_began {
            self.latest = Short { bandwidth: rate(sample), in_flight: sample.delivered };
            self.ranges = 0;
        }
    }

    /// The volume delivered in the present loss round.
    pub(super) const fn latest_in_flight(&self) -> f64 {
        self.latest.in_flight
    }

    /// A probe begins, or has ended: the present round says nothing.
    pub(super) const fn forget_round(&mut self) {
        (self.is_lossy, self.latest) = (false, Short::ZERO);
    }

    /// A probe begins.
    pub(super) const fn lift_short_term(&mut self) {
        self.short_term = Short::NONE;
    }

    // ---- losses ----

    /// Packets were lost.
    pub(super) fn on_loss(&mut self, delivered: f64, ranges: u32) {
        if !self.is_lossy {
            self.round_delivered = delivered;
        }
        self.is_lossy = true;
        self.ranges = self.ranges.saturating_add(ranges);
    }

    /// A probe lost too much: what it had in flight before it did.
    pub(super) fn lower_long_term(&mut self, flight: &LostFlight, target: f64) {
        if !flight.application_limited {
            self.long_term = level(flight).max(target * BETA);
        }
    }

    /// The long-term bound with room for others.
    pub(super) fn with_headroom(&self) -> f64 {
        if self.long_term.is_infinite() {
            return f64::INFINITY;
        }
        (self.long_term - (self.long_term * HEADROOM).max(1.0)).max(MIN_WINDOW)
    }

    // ---- growth of a probe ----

    /// A probe begins to grow.
    pub(super) const fn begin_growth(&mut self) {
        self.growth = Growth { rounds: 0, acked: 0.0, per_packet: f64::INFINITY };
    }

    /// A round of a growing probe begins with this window.
    pub(super) fn double_growth(&mut self, cwnd: f64) {
        self.growth.per_packet = (cwnd / libm::ldexp(1.0, self.growth.rounds as i32)).max(1.0);
        self.growth.rounds = (self.growth.rounds + 1).min(MOST_DOUBLINGS);
    }

    /// A probe has grown beyond the bound without losing too much, or is limited by it.
    pub(super) fn raise_long_term(&mut self, sample: &RateSample, grows: bool, newly: f64) {
        if self.long_term.is_infinite() {
            return;
        }
        self.long_term = self.long_term.max(sample.in_flight);
        if grows {
            self.growth.acked += newly;
            if self.growth.acked >= self.growth.per_packet {
                let packets = libm::floor(self.growth.acked / self.growth.per_packet);
                self.growth.acked -= packets * self.growth.per_packet;
                self.long_term += packets;
            }
        }
    }
}

/// Whether the packets around a sample were lost beyond the threshold.
pub(super) fn lost_too_much(sample: &RateSample) -> bool {
    sample.lost > sample.in_flight * LOSS_THRESHOLD
}

/// Whether the packets around a loss were.
pub(super) fn is_too_much(flight: &LostFlight) -> bool {
    flight.lost > flight.in_flight * LOSS_THRESHOLD
}

/// The volume in flight at which the share of losses passed the threshold, within the lost packets (`BBRInflightAtLoss`).
fn level(flight: &LostFlight) -> f64 {
    let before = flight.in_flight - flight.packets;
    let lost_before = flight.lost - flight.packets;
    let within = (LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD);
    before + within.clamp(0.0, flight.packets)
}

fn rate(sample: &RateSample) -> f64 {
    sample.rate.map_or(0.0, |rate| rate.packets_per_second())
}

#[cfg(test)]
mod tests {
    use farhaul_units::PacketRate;

    use super::super::state::ProbePhase;
    use super::*;

    fn flight(packets: f64, in_flight: f64, lost: f64) -> LostFlight {
        LostFlight { packets, in_flight, lost, application_limited: false }
    }

    /// Sheet E9.
    #[test]
    fn the_level_of_loss_is_where_the_threshold_was_passed() {
        assert!((level(&flight(40.0, 1_000.0, 45.0)) - 974.49).abs() < 0.01);
        assert_eq!(level(&flight(1.0, 1_000.0, 21.0)), 999.0);
        assert!(is_too_much(&flight(1.0, 1_000.0, 21.0)) && !is_too_much(&flight(1.0, 1_000.0, 20.0)));
        let mut bounds = Bounds::new();
        bounds.lower_long_term(&flight(40.0, 1_000.0, 45.0), 900.0);
        assert!((bounds.long_term - 974.49).abs() < 0.01);
        bounds.lower_long_term(&flight(100.0, 200.0, 100.0), 900.0);
        assert_eq!(bounds.long_term, 630.0);
        bounds.lower_long_term(&LostFlight { application_limited: true, ..flight(50.0, 100.0, 50.0) }, 10.0);
        assert_eq!(bounds.long_term, 630.0);
    }

    /// Sheet E10.
    #[test]
    fn rounds_with_losses_lower_the_short_term_bounds_and_the_next_probe_lifts_them() {
        let cruise = BbrState::Probe(ProbePhase::Cruise);
        let mut bounds = Bounds::new();
        let mut round = |rate: f64, delivered: f64, lossy: bool| {
            if lossy {
                bounds.on_loss(0.0, 1);
            }
            let sample = RateSample { rate: Some(PacketRate::new(rate)), delivered, ..RateSample::default() };
            bounds.latest = Short::ZERO;
            bounds.take_sample(&RateSample { prior_delivered: f64::MAX, ..sample }, 0.0);
            bounds.adapt_short_term(cruise, 10_000.0, 800.0);
            bounds.end_sample(&sample);
            (bounds.short_term.bandwidth, bounds.short_term.in_flight)
        };
        assert_eq!(round(9_500.0, 380.0, true), (9_500.0, 560.0));
        assert_eq!(round(6_000.0, 240.0, true), (6_650.0, 392.0));
        assert_eq!(round(6_000.0, 240.0, false), (6_650.0, 392.0));
        bounds.lift_short_term();
        assert!(bounds.short_term.bandwidth.is_infinite());
    }

    /// Sheet E8.
    #[test]
    fn a_probe_grows_by_twice_as_many_packets_each_round() {
        let mut bounds = Bounds { long_term: 500.0, ..Bounds::new() };
        bounds.begin_growth();
        let mut seen = Vec::new();
        for _ in 0..5 {
            let cwnd = bounds.long_term;
            bounds.double_growth(cwnd);
            (0..libm::ceil(cwnd) as u32).for_each(|_| bounds.raise_long_term(&RateSample::default(), true, 1.0));
            seen.push(bounds.long_term);
        }
        assert_eq!(seen, [501.0, 503.0, 507.0, 515.0, 531.0]);
    }

    #[test]
    fn headroom_is_a_packet_at_least() {
        assert_eq!(Bounds { long_term: 900.0, ..Bounds::new() }.with_headroom(), 765.0);
        assert_eq!(Bounds { long_term: 5.5, ..Bounds::new() }.with_headroom(), 4.5);
        assert_eq!(Bounds { long_term: 4.5, ..Bounds::new() }.with_headroom(), 4.0);
    }
}
