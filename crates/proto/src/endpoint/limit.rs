//! The time that each limit held the sender: the figures behind "limited by".

use farhaul_units::{Duration, Instant};

use crate::stats::Totals;

/// The reason why nothing leaves now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// Nothing to send and nothing outstanding.
    #[default]
    Idle,
    /// Window and pacing would permit a packet, but the application supplied none.
    Application,
    /// The receiver's flow window is full.
    FlowWindow,
    /// The congestion window is full, or the next packet is not due yet.
    Congestion,
    /// The next packet is not due yet under the user's cap on the rate, which is below the rate of congestion control.
    RateCap,
}

/// Time spent in each state.
#[derive(Clone, Copy, Debug, Default)]
pub struct LimitClock {
    state: Limit,
    since: Instant,
    /// Time in each state before the present period, by its place in [`Limit`].
    before: [Duration; 5],
}

impl LimitClock {
    /// Sets the present limit.
    pub fn set(&mut self, state: Limit, now: Instant) {
        if state != self.state {
            self.before[self.state as usize] = self.spent(self.state, now);
            self.state = state;
            self.since = now;
        }
    }

    /// The time for which congestion control held the sender, until it last changed its state.
    pub const fn by_congestion(&self) -> Duration {
        self.before[Limit::Congestion as usize]
    }

    /// Fills in the time under each limit, and their sum, which is the time with something to send.
    pub fn fill(&self, now: Instant, totals: &mut Totals) {
        totals.limited_by_application = self.spent(Limit::Application, now);
        totals.limited_by_flow_window = self.spent(Limit::FlowWindow, now);
        totals.limited_by_congestion = self.spent(Limit::Congestion, now);
        totals.limited_by_rate_cap = self.spent(Limit::RateCap, now);
        totals.send_duration = totals.limited_by_application
            + totals.limited_by_flow_window
            + totals.limited_by_congestion
            + totals.limited_by_rate_cap;
    }

    /// Time in `state`, the present period included.
    fn spent(&self, state: Limit, now: Instant) -> Duration {
        let before = self.before[state as usize];
        if state == self.state { before + (now - self.since) } else { before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_is_charged_its_own_time() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut clock = LimitClock::default();
        clock.set(Limit::Congestion, at(10));
        clock.set(Limit::FlowWindow, at(25));
        clock.set(Limit::Congestion, at(30));
        assert_eq!(clock.spent(Limit::Congestion, at(35)), Duration::from_millis(20));
        assert_eq!(clock.spent(Limit::FlowWindow, at(35)), Duration::from_millis(5));
        assert_eq!(clock.spent(Limit::Application, at(35)), Duration::ZERO);
    }
}
