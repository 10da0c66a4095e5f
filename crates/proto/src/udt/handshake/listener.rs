//! The side that waits to be called: no memory of a caller before it has shown a good cookie.

use std::net::{IpAddr, SocketAddr};

use farhaul_units::Instant;
use farhaul_wire::udt4::{Handshake, Request};

use super::cookie::CookieJar;
use crate::config::Mode;

/// Conclusions with a wrong cookie that are looked at per second and address prefix (attack A1).
const WRONG_COOKIES_PER_SECOND: u32 = 100;
/// Prefixes told apart, by hash: more share a budget.
const PREFIX_BUCKETS: usize = 256;
/// One second, the time base of the budgets.
const SECOND: u64 = 1_000_000_000;

/// Answers callers without remembering them.
pub(crate) struct Listener {
    jar: CookieJar,
    mode: Mode,
    /// Wrong cookies per prefix in the present second.
    wrong: Box<[u32; PREFIX_BUCKETS]>,
    second: u64,
}

/// What to do with a handshake packet that was addressed to nobody in particular.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ignore,
    /// Send this back; it is no longer than what came (attack A11).
    Reply(Handshake),
    /// The caller can receive at its address and wants a connection.
    Accept,
}

impl Listener {
    pub(crate) fn new(key: [u8; 16], mode: Mode) -> Self {
        Self { jar: CookieJar::new(key), mode, wrong: Box::new([0; PREFIX_BUCKETS]), second: 0 }
    }

    pub(crate) const fn mode(&self) -> Mode {
        self.mode
    }

    /// Judges a handshake packet; `has_room` says whether another connection may wait to be accepted.
    pub(crate) fn on_handshake(
        &mut self,
        packet: &Handshake,
        from: SocketAddr,
        now: Instant,
        has_room: bool,
    ) -> Verdict {
        if packet.socket_id.is_none() {
            // The answer would go to whoever listens there, who would answer it in turn, for ever (attack A11).
            return Verdict::Ignore;
        }
        match packet.request {
            Request::Induction => {
                let cookie = self.jar.bake(from, packet.socket_id, now);
                Verdict::Reply(Handshake { cookie, ..*packet })
            }
            Request::Conclusion => self.on_conclusion(packet, from, now, has_room),
            _ => Verdict::Ignore,
        }
    }

    fn on_conclusion(&mut self, packet: &Handshake, from: SocketAddr, now: Instant, has_room: bool) -> Verdict {
        if !self.has_budget(from.ip(), now) {
            return Verdict::Ignore;
        }
        if !self.jar.is_good(packet.cookie, from, packet.socket_id, now) {
            self.wrong[bucket(from.ip())] += 1;
            return Verdict::Ignore;
        }
        let fits = packet.version == Handshake::VERSION
            && packet.socket_type == super::socket_type(self.mode)
            && packet.mss >= super::MIN_MSS;
        if fits && has_room {
            return Verdict::Accept;
        }
        Verdict::Reply(Handshake { request: Request::Refused, ..*packet })
    }

    fn has_budget(&mut self, from: IpAddr, now: Instant) -> bool {
        let second = now.as_nanos() / SECOND;
        if second != self.second {
            self.second = second;
            self.wrong.fill(0);
        }
        self.wrong[bucket(from)] < WRONG_COOKIES_PER_SECOND
    }
}

/// The budget of an address: that of its /24 or /56.
fn bucket(ip: IpAddr) -> usize {
    let prefix: &[u8] = match &ip {
        IpAddr::V4(ip) => &ip.octets()[..3],
        IpAddr::V6(ip) => &ip.octets()[..7],
    };
    prefix.iter().fold(0, |hash: usize, &byte| (hash * 31 + usize::from(byte)) % PREFIX_BUCKETS)
}

#[cfg(test)]
mod tests {
    use farhaul_units::{Duration, SeqNo};
    use farhaul_wire::udt4::{SocketId, SocketType};

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
            flow_window: 8192,
            socket_id: SocketId::new(5),
            peer: from(200),
        };
        offer.packet(request, cookie)
    }

    fn fetch_cookie(listener: &mut Listener) -> u32 {
        match listener.on_handshake(&call(Request::Induction, 0), from(1), Instant::ZERO, true) {
            Verdict::Reply(reply) => reply.cookie,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_caller_that_echoes_its_cookie_is_accepted() {
        let mut listener = Listener::new([3; 16], Mode::Stream);
        let cookie = fetch_cookie(&mut listener);
        let conclusion = call(Request::Conclusion, cookie);
        assert_eq!(listener.on_handshake(&conclusion, from(1), Instant::ZERO, true), Verdict::Accept);
        assert_eq!(listener.on_handshake(&conclusion, from(2), Instant::ZERO, true), Verdict::Ignore);
    }

    #[test]
    fn another_version_type_or_a_full_backlog_is_refused() {
        let mut listener = Listener::new([3; 16], Mode::Stream);
        let good = call(Request::Conclusion, fetch_cookie(&mut listener));
        let refused = |verdict| matches!(verdict, Verdict::Reply(Handshake { request: Request::Refused, .. }));
        let other_version = Handshake { version: 3, ..good };
        let messages = Handshake { socket_type: SocketType::Dgram, ..good };
        assert!(refused(listener.on_handshake(&other_version, from(1), Instant::ZERO, true)));
        assert!(refused(listener.on_handshake(&messages, from(1), Instant::ZERO, true)));
        assert!(refused(listener.on_handshake(&good, from(1), Instant::ZERO, false)));
    }

    #[test]
    fn guessing_cookies_is_limited_per_prefix_and_second() {
        let mut listener = Listener::new([3; 16], Mode::Stream);
        let good = call(Request::Conclusion, fetch_cookie(&mut listener));
        for guess in 0..WRONG_COOKIES_PER_SECOND {
            let wrong = call(Request::Conclusion, good.cookie.wrapping_add(guess + 1));
            assert_eq!(listener.on_handshake(&wrong, from(9), Instant::ZERO, true), Verdict::Ignore);
        }
        assert_eq!(listener.on_handshake(&good, from(1), Instant::ZERO, true), Verdict::Ignore, "same /24");
        let later = Instant::ZERO + Duration::from_secs(1);
        assert_eq!(listener.on_handshake(&good, from(1), later, true), Verdict::Accept);
    }
}
