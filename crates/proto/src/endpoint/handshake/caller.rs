//! The side that connects to a listener.

use farhaul_units::{Duration, Instant};
use farhaul_wire::udt4::{Handshake, Request};

use super::{Agreed, Offer, RETRY};
use crate::endpoint::protocol::Step;
use crate::error::{ConnectionLost, PeerMisbehaved};
use crate::timer::Timer;
use crate::transport::earliest;

/// Unanswered conclusions after which the caller requests a new cookie. libudt's listener forgets every cookie at its
/// minute boundary and then stays silent (attack A3).
const MAX_CONCLUSIONS: u32 = 2;

/// A connection attempt.
#[derive(Debug)]
pub struct Caller {
    offer: Offer,
    state: CallerState,
    /// Packets sent in the present state.
    asked: u32,
    /// Packets sent of each kind. An answer gives an RTT sample only if one packet of its kind was sent.
    inductions: u32,
    conclusions: u32,
    asked_at: Instant,
    retry: Timer,
    give_up: Instant,
    timeout: Duration,
    round_trip: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallerState {
    /// A cookie is asked for.
    Induction,
    /// The cookie is shown.
    Conclusion { cookie: u32 },
    /// It was shown in vain: a new one is asked for, and the old one shown, in turns. A listener that accepted this caller and
    /// closed gives no cookie any more, but the connection that it left repeats its answer.
    Renewal { cookie: u32 },
}

impl Caller {
    /// A call that begins at `now` and is given up after `timeout`.
    pub fn new(offer: Offer, now: Instant, timeout: Duration) -> Self {
        Self {
            offer,
            state: CallerState::Induction,
            asked: 0,
            inductions: 0,
            conclusions: 0,
            asked_at: now,
            retry: Timer::at(now),
            give_up: now + timeout,
            timeout,
            round_trip: None,
        }
    }

    /// The packet to send now, if an attempt is due.
    pub fn poll(&mut self, now: Instant) -> Option<Handshake> {
        if !self.retry.fires(now) {
            return None;
        }
        if let CallerState::Conclusion { cookie } = self.state
            && self.asked >= MAX_CONCLUSIONS
        {
            self.enter(CallerState::Renewal { cookie });
        }
        self.asked += 1;
        self.asked_at = now;
        self.retry.set(now + RETRY);
        let shown = match self.state {
            CallerState::Induction => None,
            CallerState::Conclusion { cookie } => Some(cookie),
            CallerState::Renewal { cookie } => self.asked.is_multiple_of(2).then_some(cookie),
        };
        Some(if let Some(cookie) = shown {
            self.conclusions += 1;
            self.offer.packet(Request::Conclusion, cookie)
        } else {
            self.inductions += 1;
            self.offer.packet(Request::Induction, 0)
        })
    }

    /// This computer was suspended for `gap`, which does not count.
    pub fn on_suspended(&mut self, gap: Duration) {
        self.give_up += gap;
    }

    /// The reason to give up, if the time limit has passed.
    pub fn check(&self, now: Instant) -> Option<ConnectionLost> {
        let reason = match self.state {
            CallerState::Induction => ConnectionLost::ConnectTimeout(self.timeout),
            CallerState::Conclusion { .. } | CallerState::Renewal { .. } => {
                ConnectionLost::HandshakeTimeout(self.timeout)
            }
        };
        (now >= self.give_up).then_some(reason)
    }

    /// A handshake packet came from the called address, addressed to this socket.
    pub fn on_handshake(&mut self, packet: &Handshake, now: Instant) -> Step<Agreed> {
        match (packet.request, self.state) {
            (Request::Induction, CallerState::Induction | CallerState::Renewal { .. }) => {
                if self.inductions == 1 {
                    self.round_trip = Some(now - self.asked_at);
                }
                self.enter(CallerState::Conclusion { cookie: packet.cookie });
                self.retry.set(now);
                Step::Wait
            }
            // The listener asks for another cookie. The limit is that of unasked repetitions, so that a listener that
            // keeps asking does not cause a packet exchange at line rate.
            (Request::Induction, CallerState::Conclusion { cookie })
                if cookie != packet.cookie && self.asked < MAX_CONCLUSIONS =>
            {
                self.state = CallerState::Conclusion { cookie: packet.cookie };
                self.retry.set(now);
                Step::Wait
            }
            // A duplicate of an answer that was handled.
            (Request::Induction, CallerState::Conclusion { .. }) => Step::Wait,
            (Request::Refused, _) => Step::Failed(ConnectionLost::Refused),
            // Also while a new cookie is requested. On a long path the answer comes after the second attempt. Or the
            // listener accepted long ago and its answers were lost.
            (Request::Conclusion, _) if self.conclusions > 0 => self.conclude(packet, now),
            _ => Step::Wait,
        }
    }

    /// When to call again, or to give up.
    pub fn deadline(&self) -> Option<Instant> {
        earliest(self.retry.deadline(), Some(self.give_up))
    }

    fn conclude(&mut self, packet: &Handshake, now: Instant) -> Step<Agreed> {
        if packet.isn != self.offer.isn {
            return Step::Failed(ConnectionLost::PeerMisbehaved(PeerMisbehaved::SequenceNotEchoed));
        }
        if packet.socket_id.is_none() {
            return Step::Wait;
        }
        let sample = (self.conclusions == 1).then(|| now - self.asked_at);
        match self.offer.agree(packet, sample.or(self.round_trip)) {
            Ok(agreed) => {
                // libudt may send this side's own offer back.
                let largest = self.offer.largest_with(packet.largest.answered().map(u32::from), packet.mss);
                let is_ours = packet.largest.is_answer();
                let (wants_receipts, sends_receipts) =
                    (is_ours && agreed.wants_receipts, is_ours && agreed.sends_receipts);
                Step::Done(Agreed { largest, wants_receipts, sends_receipts, is_ours, ..agreed })
            }
            Err(reason) => Step::Failed(ConnectionLost::PeerIncompatible(reason)),
        }
    }

    fn enter(&mut self, state: CallerState) {
        self.state = state;
        self.asked = 0;
    }
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use farhaul_units::SeqNo;
    use farhaul_wire::udt4::SocketId;

    use super::*;
    use crate::config::Mode;

    fn caller() -> Caller {
        let offer = Offer {
            mode: Mode::Stream,
            isn: SeqNo::new(77),
            mss: 1500,
            largest: None,
            wants_receipts: false,
            is_ours: true,
            flow_window: 8192,
            max_flow_window: 8192,
            socket_id: SocketId::new(5),
            peer: SocketAddr::from(([127, 0, 0, 1], 9000)),
        };
        Caller::new(offer, Instant::ZERO, Duration::from_secs(5))
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_cookie_is_fetched_and_then_shown() {
        let mut caller = caller();
        assert_eq!(caller.poll(at(0)).unwrap().request, Request::Induction);
        assert_eq!(caller.poll(at(10)), None);
        let mut answer = caller.offer.packet(Request::Induction, 0xABCD);
        assert_eq!(caller.on_handshake(&answer, at(20)), Step::Wait);
        let conclusion = caller.poll(at(20)).unwrap();
        assert_eq!((conclusion.request, conclusion.cookie), (Request::Conclusion, 0xABCD));
        answer.request = Request::Conclusion;
        answer.socket_id = SocketId::new(99);
        let Step::Done(agreed) = caller.on_handshake(&answer, at(40)) else { panic!("not connected") };
        assert_eq!((agreed.peer_id, agreed.round_trip), (SocketId::new(99), Some(Duration::from_millis(20))));
    }

    #[test]
    fn after_two_unanswered_conclusions_a_new_cookie_is_asked_for() {
        let mut caller = caller();
        caller.poll(at(0));
        caller.on_handshake(&caller.offer.packet(Request::Induction, 1), at(1));
        let requests: Vec<Request> = [1, 251, 501].map(|millis| caller.poll(at(millis)).unwrap().request).into();
        assert_eq!(requests, [Request::Conclusion, Request::Conclusion, Request::Induction]);
    }

    #[test]
    fn while_no_new_cookie_comes_the_old_one_is_shown_in_turns() {
        let mut caller = caller();
        caller.poll(at(0));
        caller.on_handshake(&caller.offer.packet(Request::Induction, 7), at(1));
        let mut sent = [1, 251, 501, 751, 1_001, 1_251].map(|millis| caller.poll(at(millis)).unwrap()).to_vec();
        caller.on_handshake(&caller.offer.packet(Request::Induction, 8), at(1_260));
        sent.extend([1_260, 1_510].map(|millis| caller.poll(at(millis)).unwrap()));
        let cookies: Vec<u32> = sent.iter().map(|packet| packet.cookie).collect();
        assert_eq!(cookies, [7, 7, 0, 7, 0, 7, 8, 8]);
    }

    #[test]
    fn a_second_cookie_is_shown_at_once_and_a_third_is_not() {
        let mut caller = caller();
        caller.poll(at(0));
        let sent: Vec<_> = [1, 1, 2, 3, 4]
            .into_iter()
            .zip(1..)
            .filter_map(|(cookie, millis)| {
                caller.on_handshake(&caller.offer.packet(Request::Induction, cookie), at(millis));
                caller.poll(at(millis)).map(|packet| (packet.request, packet.cookie))
            })
            .collect();
        assert_eq!(sent, [(Request::Conclusion, 1), (Request::Conclusion, 2)]);
        assert_eq!(caller.poll(at(300)).unwrap().request, Request::Induction);
    }

    #[test]
    fn an_answer_that_does_not_echo_our_number_ends_the_attempt() {
        let mut caller = caller();
        caller.poll(at(0));
        caller.on_handshake(&caller.offer.packet(Request::Induction, 1), at(1));
        caller.poll(at(1));
        let mut answer = caller.offer.packet(Request::Conclusion, 1);
        answer.isn = SeqNo::new(78);
        assert!(matches!(caller.on_handshake(&answer, at(2)), Step::Failed(ConnectionLost::PeerMisbehaved(_))));
    }

    #[test]
    fn silence_ends_the_attempt() {
        let caller = caller();
        assert_eq!(caller.check(at(4_999)), None);
        assert!(matches!(caller.check(at(5_000)), Some(ConnectionLost::ConnectTimeout(_))));
    }
}
