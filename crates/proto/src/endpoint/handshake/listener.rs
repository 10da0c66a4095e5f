//! The listening side. It stores nothing of a caller before a valid cookie.

use core::net::SocketAddr;

use farhaul_units::{Duration, Instant};
use farhaul_wire::udt4::{Handshake, Request, SocketId};

use super::cookie::{CookieJar, Round};
use super::prefix::PrefixBudget;
use crate::config::Mode;

/// Wrong cookies per second and network above which one valid cookie is no longer enough (attack A1).
///
/// A guess of 32 bits is right once in 2^31. At this rate an attacker needs most of a year, at line rate only an hour.
const WRONG_COOKIES_PER_SECOND: u32 = 100;
/// Time in which that budget refills.
const SECOND: Duration = Duration::from_secs(1);
/// Callers remembered between their first and their second cookie, by hash: 2 KiB. Only a valid cookie adds one. So
/// this many would have to arrive within an RTT to displace one.
const VETTED: usize = 256;

/// Answers callers without storing them.
///
/// While somebody in a network guesses cookies, a caller there needs a second valid cookie. An honest caller cannot be
/// told from a lucky guess. It is delayed by an RTT, not locked out. A guess must be right twice, for the same caller,
/// without seeing the first answer.
pub(crate) struct Listener {
    jar: CookieJar,
    mode: Mode,
    guesses: PrefixBudget,
    /// Marks of callers that must return a second cookie. Zero marks no caller.
    vetted: Box<[u64]>,
}

/// The room for one more connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// There is room.
    Free,
    /// None for this network at the moment. The caller gets no answer and retries.
    Later,
    /// None for any caller. The caller is refused.
    None,
}

/// The response to a handshake packet for socket id 0.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Response {
    Ignore,
    /// Send this packet, which is no longer than the request (attack A11).
    Reply(Handshake),
    /// The caller can receive at its address and requests a connection.
    Accept,
}

impl Listener {
    pub(super) fn new(key: [u8; 16], mode: Mode) -> Self {
        Self {
            jar: CookieJar::new(key),
            mode,
            guesses: PrefixBudget::new(key, WRONG_COOKIES_PER_SECOND, SECOND),
            vetted: vec![0; VETTED].into(),
        }
    }

    pub(crate) const fn mode(&self) -> Mode {
        self.mode
    }

    /// Responds to a handshake packet. `room` is the room for another connection from that address.
    pub(super) fn on_handshake(&mut self, packet: &Handshake, from: SocketAddr, now: Instant, room: Room) -> Response {
        if packet.socket_id.is_none() {
            // The answer would go to a listener there, which would answer in turn, endlessly (attack A11).
            return Response::Ignore;
        }
        match packet.request {
            Request::Induction => self.ask(Round::First, packet, from, now),
            Request::Conclusion => self.on_conclusion(packet, from, now, room),
            _ => Response::Ignore,
        }
    }

    fn ask(&self, round: Round, packet: &Handshake, from: SocketAddr, now: Instant) -> Response {
        let cookie = self.jar.bake(round, from, packet.socket_id, now);
        Response::Reply(Handshake { request: Request::Induction, cookie, ..*packet })
    }

    fn on_conclusion(&mut self, packet: &Handshake, from: SocketAddr, now: Instant, room: Room) -> Response {
        match self.jar.check(packet.cookie, from, packet.socket_id, now) {
            Some(Round::First) if !self.guesses.has_left(from.ip(), now) => {
                let (place, mark) = self.vetting_place(from, packet.socket_id);
                self.vetted[place] = mark;
                return self.ask(Round::Second, packet, from, now);
            }
            Some(Round::First) => {}
            Some(Round::Second) if self.is_vetted(from, packet.socket_id) => {}
            Some(Round::Second) | None => {
                self.guesses.take(from.ip(), now);
                return Response::Ignore;
            }
        }
        let fits = packet.version == Handshake::VERSION
            && packet.socket_type == super::socket_type(self.mode)
            && packet.mss >= super::min_mss(from.ip());
        match room {
            Room::Free if fits => Response::Accept,
            Room::Later if fits => Response::Ignore,
            _ => Response::Reply(Handshake { request: Request::Refused, ..*packet }),
        }
    }

    fn is_vetted(&self, from: SocketAddr, id: SocketId) -> bool {
        let (place, mark) = self.vetting_place(from, id);
        self.vetted[place] == mark
    }

    fn vetting_place(&self, from: SocketAddr, id: SocketId) -> (usize, u64) {
        let mark = self.jar.mark(from, id).max(1);
        (mark as usize % VETTED, mark)
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::SeqNo;
    use farhaul_wire::udt4::SocketType;

    use super::super::Offer;
    use super::*;

    fn from(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 4000))
    }

    fn call(request: Request, cookie: u32) -> Handshake {
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
            peer: from(200),
        };
        offer.packet(request, cookie)
    }

    fn fetch_cookie(listener: &mut Listener) -> u32 {
        match listener.on_handshake(&call(Request::Induction, 0), from(1), Instant::ZERO, Room::Free) {
            Response::Reply(reply) => reply.cookie,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_caller_that_echoes_its_cookie_is_accepted() {
        let mut listener = Listener::new([3; 16], Mode::Stream);
        let cookie = fetch_cookie(&mut listener);
        let conclusion = call(Request::Conclusion, cookie);
        assert_eq!(listener.on_handshake(&conclusion, from(1), Instant::ZERO, Room::Free), Response::Accept);
        assert_eq!(listener.on_handshake(&conclusion, from(2), Instant::ZERO, Room::Free), Response::Ignore);
    }

    #[test]
    fn another_version_type_or_a_full_backlog_is_refused() {
        let mut listener = Listener::new([3; 16], Mode::Stream);
        let good = call(Request::Conclusion, fetch_cookie(&mut listener));
        let refused = |response| matches!(response, Response::Reply(Handshake { request: Request::Refused, .. }));
        let other_version = Handshake { version: 3, ..good };
        let messages = Handshake { socket_type: SocketType::Dgram, ..good };
        assert!(refused(listener.on_handshake(&other_version, from(1), Instant::ZERO, Room::Free)));
        assert!(refused(listener.on_handshake(&messages, from(1), Instant::ZERO, Room::Free)));
        assert!(refused(listener.on_handshake(&good, from(1), Instant::ZERO, Room::None)));
    }

    #[test]
    fn the_smallest_packet_is_as_long_over_either_address_family() {
        for (address, mss) in [("10.0.0.1:4000", 576), ("[fd00::1]:4000", 556)] {
            let from: SocketAddr = address.parse().unwrap();
            let mut listener = Listener::new([3; 16], Mode::Stream);
            let mut answer = |mss, request, cookie| {
                let packet = Handshake { mss, ..call(request, cookie) };
                listener.on_handshake(&packet, from, Instant::ZERO, Room::Free)
            };
            let Response::Reply(Handshake { cookie, .. }) = answer(mss, Request::Induction, 0) else { panic!() };
            assert!(matches!(answer(mss - 1, Request::Conclusion, cookie), Response::Reply(_)), "{address}");
            assert_eq!(answer(mss, Request::Conclusion, cookie), Response::Accept, "{address}");
        }
    }

    #[test]
    fn a_network_that_had_its_share_is_left_to_call_again() {
        let mut listener = Listener::new([3; 16], Mode::Stream);
        let good = call(Request::Conclusion, fetch_cookie(&mut listener));
        assert_eq!(listener.on_handshake(&good, from(1), Instant::ZERO, Room::Later), Response::Ignore);
        assert_eq!(listener.on_handshake(&good, from(1), Instant::ZERO, Room::Free), Response::Accept);
    }

    #[test]
    fn while_somebody_guesses_a_good_cookie_is_asked_for_twice() {
        let mut listener = Listener::new([3; 16], Mode::Stream);
        let good = call(Request::Conclusion, fetch_cookie(&mut listener));
        for guess in 0..WRONG_COOKIES_PER_SECOND {
            let wrong = call(Request::Conclusion, good.cookie.wrapping_add(guess + 1));
            assert_eq!(listener.on_handshake(&wrong, from(9), Instant::ZERO, Room::Free), Response::Ignore);
        }
        let second = listener.jar.bake(Round::Second, from(1), good.socket_id, Instant::ZERO);
        let conclusion = Handshake { cookie: second, ..good };
        let lucky = listener.on_handshake(&conclusion, from(1), Instant::ZERO, Room::Free);
        assert_eq!(lucky, Response::Ignore, "the second is worth nothing without the first");
        let asked = listener.on_handshake(&good, from(1), Instant::ZERO, Room::Free);
        assert_eq!(asked, Response::Reply(Handshake { request: Request::Induction, cookie: second, ..good }));
        assert_eq!(listener.on_handshake(&conclusion, from(1), Instant::ZERO, Room::Free), Response::Accept);
        let later = Instant::ZERO + SECOND;
        assert_eq!(listener.on_handshake(&good, from(1), later, Room::Free), Response::Accept);
    }
}
