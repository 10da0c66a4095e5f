//! The states of BBR, with their gains (draft-ietf-ccwg-bbr §5.1, table of gains).

use farhaul_units::{Duration, Instant};

/// 4·ln 2: the lowest gain that lets the delivery rate double per round.
pub(super) const STARTUP_PACING_GAIN: f64 = 2.77;
const DRAIN_PACING_GAIN: f64 = 0.5;
const DOWN_PACING_GAIN: f64 = 0.90;
pub(super) const UP_PACING_GAIN: f64 = 1.25;
const DEFAULT_CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
pub(super) const PROBE_RTT_CWND_GAIN: f64 = 0.5;

/// What the law does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BbrState {
    /// The rate doubles per round, in search of the bottleneck.
    Startup,
    /// The queue of start-up drains.
    Drain,
    /// A phase of the cycle that probes for bandwidth.
    Probe(ProbePhase),
    /// The window is small, so that the RTT shows the path without a queue.
    ProbeRtt,
}

/// A phase of the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbePhase {
    /// Drains the queue of a probe, and leaves room.
    Down,
    /// Keeps the rate, with room for others.
    Cruise,
    /// Fills the path for a round, so that the probe starts from a full one.
    Refill,
    /// Probes for more.
    Up,
}

impl BbrState {
    /// The pacing rate as a multiple of the bandwidth.
    pub(super) const fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => STARTUP_PACING_GAIN,
            Self::Drain => DRAIN_PACING_GAIN,
            Self::Probe(ProbePhase::Down) => DOWN_PACING_GAIN,
            Self::Probe(ProbePhase::Up) => UP_PACING_GAIN,
            Self::Probe(ProbePhase::Cruise | ProbePhase::Refill) | Self::ProbeRtt => 1.0,
        }
    }

    /// The window as a multiple of the bandwidth-delay product.
    pub(super) const fn cwnd_gain(self) -> f64 {
        match self {
            Self::Probe(ProbePhase::Up) => UP_CWND_GAIN,
            Self::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => DEFAULT_CWND_GAIN,
        }
    }

    /// Whether this is a phase of the cycle.
    pub(super) const fn is_probe(self) -> bool {
        matches!(self, Self::Probe(_))
    }

    /// Whether the rate grows on purpose. Losses then are the probe's, and lower no short-term bound.
    pub(super) const fn grows(self) -> bool {
        matches!(self, Self::Startup | Self::Probe(ProbePhase::Refill | ProbePhase::Up))
    }
}

/// Least time between probes for bandwidth.
pub(super) const PROBE_WAIT: Duration = Duration::from_secs(2);

/// Which phase of the present probe the arriving samples belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// The cycle of probes for bandwidth.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    pub(super) began: Instant,
    pub(super) wait: Duration,
    pub(super) rounds: u32,
    pub(super) acks: AckPhase,
    /// Losses of these samples are the probe's.
    pub(super) is_sample: bool,
    pub(super) too_high: bool,
    /// The last probe stopped where the one before had lost too much.
    pub(super) precautionary: bool,
}

impl Cycle {
    pub(super) const fn new() -> Self {
        Self {
            began: Instant::ZERO,
            wait: PROBE_WAIT,
            rounds: 0,
            acks: AckPhase::Init,
            is_sample: false,
            too_high: false,
            precautionary: false,
        }
    }
}
