//! HyStart++ (paper:rfc9406): slow start ends before it fills the queue, told by the RTT of a round.
//!
//! ```text
//! RttThresh = clamp(lastRoundMinRTT/8, 4 ms, 16 ms)                                            (§4.3)
//! Slow start          → CSS         if currentRoundMinRTT ≥ lastRoundMinRTT + RttThresh, of N_RTT_SAMPLE samples each
//! CSS                 grows by a quarter as much                                               (CSS_GROWTH_DIVISOR)
//!                     → slow start  if currentRoundMinRTT < the one at which it began
//!                     → ssthresh ← cwnd after five rounds                                      (CSS_ROUNDS)
//! ```
//!
//! Departures (docs/papers/departures.md): D415, N_RTT_SAMPLE is four in place of eight, because UDT's receivers confirm many packets at
//! once. There is no limit L on the growth per acknowledgement, because the window is paced (§4.3 permits that).

use super::law::{Round, Window};

/// MIN_RTT_THRESH and MAX_RTT_THRESH, s. Source: RFC 9406 §4.3.
const LEAST_RISE: f64 = 4e-3;
const MOST_RISE: f64 = 16e-3;
/// MIN_RTT_DIVISOR. Source: RFC 9406 §4.3.
const DIVISOR: f64 = 8.0;
/// N_RTT_SAMPLE: fewest samples of a round. The RFC has 8 (D415).
const LEAST_SAMPLES: u32 = 4;
/// CSS_GROWTH_DIVISOR. Source: RFC 9406 §4.3.
const GROWTH_DIVISOR: f64 = 4.0;
/// CSS_ROUNDS. Source: RFC 9406 §4.3.
const ROUNDS: u32 = 5;

/// The state of the first slow start of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    /// lastRoundMinRTT, s.
    last: f64,
    /// The RTTs of this round.
    round: Round,
    /// Conservative slow start: the RTT at which it began (cssBaselineMinRtt), and its rounds.
    conservative: Option<(f64, u32)>,
}

impl HyStart {
    pub(super) const fn new() -> Self {
        Self { last: f64::INFINITY, round: Round::EMPTY, conservative: None }
    }

    /// Packets of growth for each acknowledged packet.
    pub(super) const fn growth(&self) -> f64 {
        if self.conservative.is_some() { 1.0 / GROWTH_DIVISOR } else { 1.0 }
    }

    /// An RTT was measured in slow start.
    pub(super) fn on_rtt(&mut self, rtt: f64) {
        self.round.note(rtt);
        if self.round.samples < LEAST_SAMPLES {
            return;
        }
        let least = self.round.least;
        match self.conservative {
            Some((baseline, _)) if least < baseline => self.conservative = None,
            None if self.last.is_finite() => {
                let rise = (self.last / DIVISOR).clamp(LEAST_RISE, MOST_RISE);
                self.conservative = (least >= self.last + rise).then_some((least, 0));
            }
            _ => {}
        }
    }

    /// A round of slow start is over.
    pub(super) fn on_round(&mut self, window: &mut Window) {
        self.last = std::mem::replace(&mut self.round, Round::EMPTY).least;
        if let Some((_, rounds)) = &mut self.conservative {
            *rounds += 1;
            if *rounds > ROUNDS {
                window.lower_to(window.cwnd);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The threshold after rounds with these RTTs at a window of 100 packets, and the growth per packet.
    fn after(rtts: &[f64]) -> (f64, f64) {
        let (mut start, mut window) = (HyStart::new(), Window { cwnd: 100.0, threshold: f64::INFINITY });
        for rtt in rtts {
            (0..LEAST_SAMPLES).for_each(|_| start.on_rtt(*rtt));
            start.on_round(&mut window);
        }
        (window.threshold, start.growth())
    }

    #[test]
    fn a_rise_by_an_eighth_slows_growth_and_five_rounds_of_it_end_slow_start() {
        assert_eq!(after(&[0.100, 0.111]), (f64::INFINITY, 1.0));
        assert_eq!(after(&[0.100, 0.113]), (f64::INFINITY, 0.25));
        assert_eq!(after(&[0.100, 0.113, 0.115, 0.115, 0.115, 0.115]).0, f64::INFINITY);
        assert_eq!(after(&[0.100, 0.113, 0.115, 0.115, 0.115, 0.115, 0.115]).0, 100.0);
    }

    #[test]
    fn slow_start_goes_on_if_the_rise_was_chance() {
        assert_eq!(after(&[0.100, 0.113, 0.101]), (f64::INFINITY, 1.0));
    }
}
