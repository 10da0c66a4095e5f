//! The end of a connection on the wire: telling the peer, and believing the peer.

use farhaul_units::{Duration, Instant};

use super::consts::SYN_INTERVAL;
use crate::timer::Timer;
use crate::transport::earliest;

/// Shutdowns sent, one round trip apart: libudt sends one, and if it is lost the peer waits 53 s.
const REPEATS: u32 = 3;
/// Shortest time between two of them, and shortest time for which a shutdown of the peer must stand unchallenged.
const MIN_SPACING: Duration = Duration::from_millis(20);
/// Longest time between two shutdowns: nobody waits half a minute to be told good-bye.
const MAX_SPACING: Duration = Duration::from_secs(1);
/// A shutdown stands when nothing came for this many round trips and intervals: in slow start a live peer is silent for
/// one of each, waiting for an acknowledgement.
const SILENCE: u32 = 2;
/// The same while data is outstanding in either direction. Losses and a filling queue make a live peer silent for long,
/// and only a peer that aborts leaves then.
const SILENCE_WITH_DATA: Duration = Duration::from_millis(500);
/// A peer that still sends after this many such silences never sent that shutdown (attack B1).
const DISBELIEF: u32 = 2;

/// Shutdowns to send and a shutdown that was received.
#[derive(Debug, Default)]
pub(crate) struct Farewell {
    left_to_send: u32,
    send: Timer,
    /// When the peer's shutdown came, if one did.
    heard: Option<Instant>,
    /// When it is believed.
    believe: Timer,
}

impl Farewell {
    /// Begins to tell the peer.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.left_to_send = REPEATS;
        self.send.set(now);
    }

    /// Whether a shutdown is to be sent now.
    pub(crate) fn poll(&mut self, now: Instant, round_trip: Duration) -> bool {
        if self.left_to_send == 0 || !self.send.fires(now) {
            return false;
        }
        self.left_to_send -= 1;
        self.send.set(now + round_trip.clamp(MIN_SPACING, MAX_SPACING));
        true
    }

    /// Whether the peer has been told often enough. The time after the last shutdown is not waited for.
    pub(crate) const fn is_told(&self) -> bool {
        self.left_to_send == 0
    }

    /// A shutdown came. Anybody can forge one, so it is believed only after a while without data or acknowledgements.
    pub(crate) fn on_shutdown(&mut self, now: Instant, silence: Duration) {
        if self.heard.is_none() {
            self.heard = Some(now);
            self.believe.set(now + silence);
        }
    }

    /// Data or an acknowledgement came from the peer: either it overtook the shutdown, or that was forged.
    pub(crate) fn on_sign_of_life(&mut self, now: Instant, silence: Duration) {
        let Some(heard) = self.heard else { return };
        if now - heard > silence * DISBELIEF {
            self.heard = None;
            self.believe.stop();
        } else {
            self.believe.set(now + silence);
        }
    }

    /// Whether the peer's shutdown is to be believed now.
    pub(crate) fn is_believed(&mut self, now: Instant) -> bool {
        self.believe.fires(now)
    }

    /// Whether a shutdown was received and not yet disbelieved.
    pub(crate) const fn is_pending(&self) -> bool {
        self.heard.is_some()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let send = if self.left_to_send > 0 { self.send.deadline() } else { None };
        earliest(send, self.believe.deadline())
    }
}

/// How long nothing must come after a shutdown for it to be believed; `settled` says that all data has arrived.
pub(crate) fn silence(round_trip: Duration, settled: bool) -> Duration {
    let short = (round_trip + SYN_INTERVAL).max(MIN_SPACING) * SILENCE;
    if settled { short } else { short.max(SILENCE_WITH_DATA) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_shutdown_is_sent_three_times_a_round_trip_apart() {
        let mut farewell = Farewell::default();
        farewell.begin(at(0));
        let sent: Vec<u64> = (0..500).filter(|&millis| farewell.poll(at(millis), RTT)).collect();
        assert_eq!(sent, [0, 100, 200]);
        assert!(farewell.is_told());
    }

    #[test]
    fn a_shutdown_is_believed_after_two_round_trips_of_silence() {
        let mut farewell = Farewell::default();
        farewell.on_shutdown(at(0), silence(RTT, true));
        farewell.on_sign_of_life(at(60), silence(RTT, true));
        assert!(!farewell.is_believed(at(279)));
        assert!(farewell.is_believed(at(280)));
    }

    #[test]
    fn a_peer_that_goes_on_sending_never_sent_it() {
        let mut farewell = Farewell::default();
        farewell.on_shutdown(at(0), silence(RTT, true));
        for millis in (0..1_000).step_by(10) {
            farewell.on_sign_of_life(at(millis), silence(RTT, true));
            assert!(!farewell.is_believed(at(millis)));
        }
        assert!(!farewell.is_pending());
    }
}
