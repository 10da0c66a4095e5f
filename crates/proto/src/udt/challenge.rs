//! Verifies that the peer has left when a packet says so (attack B1).
//!
//! A shutdown contains nothing that only the peer knows. Later data and acknowledgements would disprove it, but an idle
//! connection has none. So this side asks the peer by a full acknowledgement. Every live UDT4 peer confirms it at once
//! (ACK2), even if it has no news and nothing was ever sent. A closed peer does not. A keep-alive would not do, because
//! nobody answers it.
//!
//! An abort is verified in the same way, because it also ends a connection.

use farhaul_units::{Duration, Instant};

use crate::consts::SYN_INTERVAL;
use crate::endpoint::closing::CloseKind;
use crate::transport::earliest;

/// Questions to the peer. On a path that loses one packet in ten, all of them or their answers are lost once in 150
/// times.
const QUESTIONS: u32 = 3;
/// Time between two questions. Some builds of libudt confirm at most one acknowledgement in this time (UDT4 wire, §7).
const SPACING: Duration = SYN_INTERVAL;
/// Shortest time for the answer to the last question, because the peer's host may be busy.
const MIN_SILENCE: Duration = Duration::from_millis(20);
/// The same while data is outstanding in either direction. Losses and a filling queue silence a live peer for long.
const SILENCE_WITH_DATA: Duration = Duration::from_millis(500);
/// Shortest time for an answer while data is outstanding, in RTTs. A peer that closed in order repeats its last
/// acknowledgement for two RTTs, in case the first was lost.
const ROUND_TRIPS_WITH_DATA: u32 = 3;
/// A shutdown is forged if the peer still sends after this many times for an answer.
const FORGED_AFTER: u32 = 2;

/// A received shutdown or abort, until it is confirmed or disproved.
#[derive(Debug, Default)]
pub(crate) struct Challenge {
    claim: Option<Claim>,
}

#[derive(Clone, Copy, Debug)]
struct Claim {
    /// The reported end. An abort takes precedence, so that incomplete data is not taken for complete.
    kind: CloseKind,
    /// When the shutdown or abort arrived.
    since: Instant,
    /// When it counts as confirmed.
    confirmed_at: Instant,
    questions: u32,
    next_question: Instant,
}

impl Challenge {
    /// A shutdown or abort arrived. `silence` is the longest time until an answer.
    pub(crate) fn on_close(&mut self, now: Instant, kind: CloseKind, silence: Duration) {
        // Repeated ones cause no more questions and change no time.
        let claim = self.claim.get_or_insert(Claim {
            kind,
            since: now,
            confirmed_at: now + SPACING * (QUESTIONS - 1) + silence,
            questions: QUESTIONS,
            next_question: now,
        });
        if kind == CloseKind::Aborted {
            claim.kind = CloseKind::Aborted;
        }
    }

    /// Whether to send an acknowledgement now that the peer must confirm.
    pub(crate) fn poll_question(&mut self, now: Instant) -> bool {
        let Some(claim) = self.claim.as_mut().filter(|claim| claim.questions > 0 && claim.next_question <= now) else {
            return false;
        };
        claim.questions -= 1;
        claim.next_question = now + SPACING;
        true
    }

    /// The peer confirmed an acknowledgement that was sent at `asked`. If that was after the shutdown arrived, the peer
    /// has not left.
    pub(crate) fn on_answer(&mut self, asked: Instant) {
        self.claim.take_if(|claim| asked >= claim.since);
    }

    /// Data or an acknowledgement came from the peer. Either it was overtaken by the shutdown, or the shutdown was
    /// forged.
    pub(crate) fn on_sign_of_life(&mut self, now: Instant, silence: Duration) {
        let Some(claim) = &mut self.claim else { return };
        if now - claim.since > silence * FORGED_AFTER {
            self.claim = None;
        } else {
            claim.confirmed_at = claim.confirmed_at.max(now + silence);
        }
    }

    /// How the peer left, if that is confirmed now.
    pub(crate) fn poll_confirmed(&mut self, now: Instant) -> Option<CloseKind> {
        self.claim.take_if(|claim| claim.confirmed_at <= now).map(|claim| claim.kind)
    }

    /// Whether a shutdown or abort waits to be confirmed or disproved.
    pub(crate) const fn is_on(&self) -> bool {
        self.claim.is_some()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let claim = self.claim?;
        earliest((claim.questions > 0).then_some(claim.next_question), Some(claim.confirmed_at))
    }
}

/// The longest time until an answer. `is_quiet` is whether no data is outstanding in either direction.
pub(crate) fn silence(round_trip: Duration, is_quiet: bool) -> Duration {
    if is_quiet {
        (round_trip + SYN_INTERVAL).max(MIN_SILENCE)
    } else {
        (round_trip * ROUND_TRIPS_WITH_DATA + SYN_INTERVAL).max(SILENCE_WITH_DATA)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn challenged() -> Challenge {
        let mut challenge = Challenge::default();
        challenge.on_close(at(0), CloseKind::Closed, silence(RTT, true));
        challenge
    }

    #[test]
    fn three_questions_are_asked_however_many_shutdowns_come() {
        let mut challenge = Challenge::default();
        let asked: Vec<u64> = (0..100)
            .filter(|&millis| {
                challenge.on_close(at(millis), CloseKind::Closed, silence(RTT, true));
                challenge.poll_question(at(millis))
            })
            .collect();
        assert_eq!(asked, [0, 10, 20]);
    }

    #[test]
    fn without_an_answer_a_shutdown_is_accepted_after_a_round_trip_and_a_margin() {
        let mut challenge = challenged();
        assert_eq!(challenge.poll_confirmed(at(129)), None);
        assert_eq!(challenge.poll_confirmed(at(130)), Some(CloseKind::Closed));
    }

    #[test]
    fn of_a_shutdown_and_an_abort_the_abort_is_accepted() {
        for pair in [[CloseKind::Closed, CloseKind::Aborted], [CloseKind::Aborted, CloseKind::Closed]] {
            let mut challenge = Challenge::default();
            for (millis, kind) in [0, 5].into_iter().zip(pair) {
                challenge.on_close(at(millis), kind, silence(RTT, true));
            }
            assert_eq!(challenge.poll_confirmed(at(130)), Some(CloseKind::Aborted), "and the second gained no time");
        }
    }

    #[test]
    fn with_data_outstanding_the_confirmation_waits_until_a_leaving_peer_has_repeated_its_acknowledgement() {
        assert_eq!(silence(RTT, true), Duration::from_millis(110));
        assert_eq!(silence(RTT, false), SILENCE_WITH_DATA);
        assert_eq!(silence(RTT * 5, false), Duration::from_millis(1_510));
    }

    #[test]
    fn an_answer_to_a_question_revokes_it_and_an_answer_to_something_older_does_not() {
        let mut challenge = Challenge::default();
        challenge.on_close(at(50), CloseKind::Closed, silence(RTT, true));
        challenge.on_answer(at(49));
        assert!(challenge.is_on());
        challenge.on_answer(at(50));
        assert_eq!((challenge.is_on(), challenge.deadline()), (false, None));
    }

    #[test]
    fn what_overtook_the_shutdown_delays_the_confirmation() {
        let mut challenge = challenged();
        challenge.on_sign_of_life(at(60), silence(RTT, true));
        assert_eq!(challenge.poll_confirmed(at(169)), None);
        assert_eq!(challenge.poll_confirmed(at(170)), Some(CloseKind::Closed));
    }

    #[test]
    fn a_peer_that_goes_on_sending_never_sent_it() {
        let mut challenge = challenged();
        for millis in (0..1_000).step_by(10) {
            challenge.on_sign_of_life(at(millis), silence(RTT, true));
            assert_eq!(challenge.poll_confirmed(at(millis)), None);
        }
        assert!(!challenge.is_on());
    }
}
