//! The state of BBR, and its model of the path: a bandwidth, and what fills the path.

use farhaul_units::{Instant, Rng, SeqNo};

use super::bounds::{Bounds, MIN_WINDOW};
use super::signals::{ExtraAcked, FullPipe, MaxBandwidth, MinRtt, Rounds};
use super::state::{BbrState, Cycle, ProbePhase};
use crate::controller::Control;

/// Window of start-up, packets. Source: [`Control::INITIAL_CWND`].
pub(super) const INITIAL_WINDOW: f64 = Control::INITIAL_CWND;
/// Packets that the acknowledgements of UDT hold back: those of a light one, or of one by timer if they are fewer.
const ACK_INTERVAL: f64 = 64.0;
const ACK_PERIOD: f64 = 10e-3;
/// Packets that the growing phase adds to its window.
const UP_EXTRA: f64 = 2.0;

/// What to restore if losses turn out to be none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    pub(super) state: Option<BbrState>,
    pub(super) bounds: Bounds,
}

/// The controller.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    pub(super) rng: Rng,
    pub(super) state: BbrState,
    pub(super) rounds: Rounds,
    pub(super) max_bandwidth: MaxBandwidth,
    pub(super) full_pipe: FullPipe,
    pub(super) min_rtt: MinRtt,
    pub(super) extra_acked: ExtraAcked,
    pub(super) bounds: Bounds,
    pub(super) cycle: Cycle,
    pub(super) undo: Option<Undo>,
    /// The round in which Drain began.
    pub(super) drain_round: u64,
    /// When ProbeRtt ends, once the window has fallen.
    pub(super) probe_rtt_ends: Option<Instant>,
    /// The last packet before the present recovery, and its round.
    pub(super) recovery: Option<(SeqNo, u64)>,
    pub(super) prior_cwnd: f64,
    pub(super) cwnd: f64,
    /// Pace, packets/s.
    pub(super) pace: f64,
    pub(super) delivered: f64,
    pub(super) idle_restart: bool,
}

impl Bbr {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            state: BbrState::Startup,
            rounds: Rounds::default(),
            max_bandwidth: MaxBandwidth::default(),
            full_pipe: FullPipe::default(),
            min_rtt: MinRtt::default(),
            extra_acked: ExtraAcked::default(),
            bounds: Bounds::new(),
            cycle: Cycle::new(),
            undo: None,
            drain_round: 0,
            probe_rtt_ends: None,
            recovery: None,
            prior_cwnd: 0.0,
            cwnd: INITIAL_WINDOW,
            pace: 0.0,
            delivered: 0.0,
            idle_restart: false,
        }
    }

    // ---- the model ----

    /// Packets/s.
    pub(super) fn bandwidth(&self) -> f64 {
        self.max_bandwidth.get().min(self.bounds.short_term.bandwidth)
    }

    /// `gain` times the bandwidth-delay product, packets.
    pub(super) fn product(&self, gain: f64, bandwidth: f64) -> f64 {
        self.min_rtt.get().map_or(INITIAL_WINDOW, |rtt| gain * bandwidth * rtt.as_secs_f64())
    }

    /// No less than the acknowledgements of this transport need.
    pub(super) fn quantized(&self, packets: f64) -> f64 {
        let aggregated = ACK_INTERVAL.min(ACK_PERIOD * self.max_bandwidth.get());
        let extra = if self.state == BbrState::Probe(ProbePhase::Up) { UP_EXTRA } else { 0.0 };
        packets.max(aggregated).max(MIN_WINDOW) + extra
    }

    pub(super) fn in_flight(&self, gain: f64) -> f64 {
        self.quantized(self.product(gain, self.bandwidth()))
    }

    pub(super) fn target_in_flight(&self) -> f64 {
        self.product(1.0, self.bandwidth()).min(self.cwnd)
    }
}
