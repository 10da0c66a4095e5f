//! Watches over a peer: its silence, the progress of this side's data, and the gaps in its own.

use farhaul_units::{Duration, Instant, Rng, SeqNo};

use super::expiry::{Expiry, SilenceAction};
use super::gap::Gap;
use super::progress::Progress;
use crate::config::Config;
use crate::error::ConnectionLost;
use crate::transport::earliest;

/// All limits after which the peer of an established connection is given up.
#[derive(Debug)]
pub struct Liveness {
    /// Silence of the peer.
    pub expiry: Expiry,
    /// Progress of the peer while data waits for it.
    pub progress: Progress,
    /// Suspensions of this computer.
    pub gap: Gap,
    keep_alive: bool,
}

impl Liveness {
    /// For a peer whose first packet is `first`.
    pub fn new(now: Instant, first: SeqNo, config: &Config, rng: Rng) -> Self {
        Self {
            expiry: Expiry::new(now, config.peer_timeout, config.keep_alive, rng),
            progress: Progress::new(now, config.stall_timeout, config.min_progress),
            gap: Gap::new(first, config.peer_timeout),
            // The first packet after the handshake shows the peer that the connection is established.
            keep_alive: true,
        }
    }

    /// Checks all limits. `is_flushed` is whether this side waits for no acknowledgement of data. `in_flight` is whether
    /// data may expire. The protocol carries out the action, except that a keep-alive is noted here.
    ///
    /// # Errors
    /// A limit has passed, so the peer is given up.
    pub fn check(
        &mut self,
        now: Instant,
        is_flushed: bool,
        in_flight: bool,
        round_trip: Duration,
    ) -> Result<SilenceAction, ConnectionLost> {
        if is_flushed {
            self.progress.restart(now);
        } else if let Some(reason) = self.progress.check(now) {
            return Err(reason);
        }
        if let Some(reason) = self.gap.check(now) {
            return Err(reason);
        }
        let action = self.expiry.handle_timeout(now, in_flight, round_trip);
        if let SilenceAction::Silent(time) = action {
            return Err(ConnectionLost::PeerSilent(time));
        }
        self.keep_alive |= action == SilenceAction::KeepAlive;
        Ok(action)
    }

    /// When to check next.
    pub fn deadline(&self, is_flushed: bool) -> Option<Instant> {
        let progress = self.progress.deadline().filter(|_| !is_flushed);
        [self.expiry.deadline(), self.gap.deadline(), progress].into_iter().fold(None, earliest)
    }

    /// This computer was suspended (attack B20). All time limits start again, and a keep-alive asks the peer.
    pub fn on_suspended(&mut self, now: Instant) {
        self.expiry.on_suspended(now);
        self.progress.restart(now);
        self.gap.restart(now);
        self.keep_alive = true;
    }

    /// Whether a keep-alive is due.
    pub const fn wants_keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// Whether a keep-alive is due. The caller sends it.
    pub fn take_keep_alive(&mut self) -> bool {
        std::mem::take(&mut self.keep_alive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn liveness(config: &Config) -> Liveness {
        Liveness::new(Instant::ZERO, SeqNo::new(0), config, Rng::new(1))
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn lack_of_progress_counts_only_while_data_is_outstanding() {
        let config = Config { stall_timeout: Some(Duration::from_secs(3)), ..Config::default() };
        let mut liveness = liveness(&config);
        assert!(liveness.check(at(2), true, false, RTT).is_ok());
        assert!(liveness.check(at(4), false, true, RTT).is_ok(), "two seconds since the last check without data");
        assert_eq!(liveness.deadline(false), Some(at(5)));
        assert_eq!(liveness.check(at(5), false, true, RTT), Err(ConnectionLost::NoProgress(Duration::from_secs(3))));
    }

    #[test]
    fn a_silent_peer_is_given_up_unless_this_computer_was_suspended() {
        let mut liveness = liveness(&Config::default());
        liveness.expiry.on_heard(at(0));
        liveness.on_suspended(at(29));
        assert!(liveness.check(at(31), true, false, RTT).is_ok());
        assert_eq!(liveness.check(at(59), true, false, RTT), Err(ConnectionLost::PeerSilent(Duration::from_secs(30))));
    }

    #[test]
    fn a_keep_alive_is_due_at_the_start_and_after_silence_of_this_side() {
        let mut liveness = liveness(&Config::default());
        assert!(liveness.take_keep_alive() && !liveness.wants_keep_alive());
        liveness.expiry.on_heard(at(13));
        assert_eq!(liveness.check(at(13), true, false, RTT), Ok(SilenceAction::KeepAlive));
        assert!(liveness.take_keep_alive() && !liveness.take_keep_alive());
    }
}
