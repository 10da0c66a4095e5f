//! The peer's address, and those to which it may have moved (attack B16). Each stands with the address of this side that the
//! peer's packets come to, which those to it leave from.
//!
//! ```text
//! newest packet from another address ─▶ candidate ── its response from there ──▶ the peer's address
//! newest packet from the peer's       ─▶ no candidate                             │
//!                                          ▲                                      ▼
//!                                          └── 3 probe times, and asked once ── the old address
//! ```
//!
//! An attacker who copies packets has no response, so he moves nothing. One who also forwards must win every race for a
//! round trip. The old address is asked too, so that a peer that never moved takes its connection back.

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant};
use farhaul_wire::secure::inner::{CHALLENGE_DATAGRAM, CHALLENGE_LEN, Message};

use crate::entropy::Secrets;
use crate::timer::Timer;
use crate::transport::{AddressPair, earliest};

/// Most addresses in question. A peer has one or two; forged ones replace each other.
const MOST: usize = 4;
/// Bytes that may go to an unvalidated address, as a multiple of those that came from there (RFC 9000, section 8.2).
const AMPLIFICATION: u64 = 3;
/// Shortest time until a challenge is repeated.
const LEAST_PROBE: Duration = Duration::from_millis(100);
/// Shortest time for a proof. The RTT of a new path is unknown. Source: three initial probe times of RFC 9002 (a third of
/// a second and its margin).
const LEAST_PATIENCE: Duration = Duration::from_secs(3);
/// An address is in question, or remembered after a move, for so many probe times.
const PROBES: u32 = 3;

/// The bytes of a challenge.
type Challenge = [u8; CHALLENGE_LEN];

/// A path that is being validated.
struct Candidate {
    path: AddressPair,
    challenge: Challenge,
    /// Bytes that came from there and went there; `None` for an address that was the peer's.
    budget: Option<(u64, u64)>,
    /// When to ask, and the time until the next question.
    asks: Timer,
    silence: Duration,
    until: Instant,
}

impl Candidate {
    fn may_send(&self) -> bool {
        self.budget.is_none_or(|(came, left)| left + CHALLENGE_DATAGRAM as u64 <= AMPLIFICATION * came)
    }

    const fn note_sent(&mut self) {
        if let Some((_, left)) = &mut self.budget {
            *left += CHALLENGE_DATAGRAM as u64;
        }
    }

    /// When something is due for it.
    fn deadline(&self) -> Option<Instant> {
        let asks = self.asks.deadline().filter(|_| self.may_send());
        earliest(asks, Some(self.until))
    }
}

/// All paths of one peer.
pub(super) struct Paths {
    present: AddressPair,
    candidates: Vec<Candidate>,
    /// Challenges of the peer that are not answered.
    owed: VecDeque<(AddressPair, Challenge)>,
    secrets: Secrets,
}

impl Paths {
    /// The paths of a peer with a validated address. Nobody guesses the challenges without the key.
    pub(super) const fn new(present: AddressPair, key: [u8; 16]) -> Self {
        Self { present, candidates: Vec::new(), owed: VecDeque::new(), secrets: Secrets::new(key) }
    }

    /// The path of the peer.
    pub(super) const fn present(&self) -> AddressPair {
        self.present
    }

    // ---- input ----

    /// The newest packet came from the peer's address, so it is there.
    #[inline]
    pub(super) fn on_newest_from_peer(&mut self) {
        if !self.candidates.is_empty() {
            self.candidates.retain(|candidate| candidate.budget.is_none());
        }
    }

    /// An authentic packet of `bytes` came from another address.
    pub(super) fn on_elsewhere(&mut self, from: AddressPair, bytes: usize) {
        if let Some(Candidate { budget: Some((came, _)), .. }) = self.find(from) {
            *came += bytes as u64;
        }
    }

    /// The newest packet, of `bytes`, came from another address. `probe` is the longest time until an answer.
    pub(super) fn question(&mut self, from: AddressPair, bytes: usize, now: Instant, probe: Duration) {
        if self.find(from).is_none() {
            let patience = (probe * PROBES).max(LEAST_PATIENCE);
            self.add(from, Some((bytes as u64, 0)), now, (probe, patience));
        }
    }

    /// The peer asks whether this side is at the address to which its packet came.
    pub(super) fn on_challenge(&mut self, from: AddressPair, challenge: Challenge) {
        if self.owed.len() == MOST {
            self.owed.pop_front();
        }
        self.owed.push_back((from, challenge));
    }

    /// A response came from another address. Returns whether the peer has moved there.
    pub(super) fn on_response(
        &mut self,
        from: AddressPair,
        response: Challenge,
        now: Instant,
        probe: Duration,
    ) -> bool {
        let is_answered = |candidate: &Candidate| candidate.path == from && candidate.challenge == response;
        let Some(at) = self.candidates.iter().position(is_answered) else { return false };
        self.candidates.remove(at);
        let old = std::mem::replace(&mut self.present, from);
        self.add(old, None, now, (probe, probe.max(LEAST_PROBE) * PROBES));
        true
    }

    fn add(
        &mut self,
        path: AddressPair,
        budget: Option<(u64, u64)>,
        now: Instant,
        (probe, patience): (Duration, Duration),
    ) {
        let challenge = self.secrets.draw_bytes();
        let silence = probe.max(LEAST_PROBE);
        let candidate = Candidate { path, challenge, budget, asks: Timer::at(now), silence, until: now + patience };
        if self.candidates.len() == MOST {
            let unvalidated = self.candidates.iter().position(|candidate| candidate.budget.is_some());
            self.candidates.remove(unvalidated.unwrap_or(0));
        }
        self.candidates.push(candidate);
    }

    fn find(&mut self, path: AddressPair) -> Option<&mut Candidate> {
        self.candidates.iter_mut().find(|candidate| candidate.path == path)
    }

    // ---- output and time ----

    /// The next message, and its path.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(AddressPair, Message<'static>)> {
        while let Some((to, challenge)) = self.owed.pop_front() {
            let candidate = self.find(to);
            if candidate.as_ref().is_some_and(|candidate| !candidate.may_send()) {
                continue;
            }
            if let Some(candidate) = candidate {
                candidate.note_sent();
            }
            return Some((to, Message::Response(challenge)));
        }
        let candidate = self.candidates.iter_mut().find(|candidate| {
            candidate.until > now && candidate.may_send() && candidate.asks.deadline().is_some_and(|at| at <= now)
        })?;
        candidate.note_sent();
        candidate.asks.set(now + candidate.silence);
        candidate.silence *= 2;
        Some((candidate.path, Message::Challenge(candidate.challenge)))
    }

    /// Forgets addresses without a proof.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.candidates.retain(|candidate| candidate.until > now);
    }

    /// This computer was suspended for `gap`, which does not count.
    pub(super) fn on_suspended(&mut self, gap: Duration) {
        self.candidates.iter_mut().for_each(|candidate| candidate.until += gap);
    }

    /// When to call next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.candidates.iter().map(Candidate::deadline).fold(None, earliest)
    }
}

#[cfg(test)]
mod tests;
