//! Packets forged in the name of a real libudt, and their detection.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use farhaul::Error;
use farhaul_units::SeqNo;
use farhaul_wire::udt4::{Control, Handshake, Largest, Request, SocketId, SocketType, Timestamp};

use crate::content::{recv, send};
use crate::here::Here;
use crate::libudt::Libudt;
use crate::tap::Direction::Up;
use crate::tap::{Kind, Tap};

/// Longer than the verification of any shutdown.
const CERTAINTY: Duration = Duration::from_millis(800);

#[test]
fn an_idle_libudt_disproves_shutdowns_that_it_did_not_send() {
    let Some(libudt) = Libudt::find() else { return };
    // First before any data arrived, with nothing to acknowledge. Then after some data.
    for first in [0, 50_000] {
        let here = Here::new();
        let listener = here.listen().unwrap();
        let tap = Tap::new(here.local_addr(), 0);
        let peer = libudt.connect(tap.address(), &format!("both --bytes {first} --expect 100000"));
        let accepted = Here::accept(&listener);
        let (_, digest) = recv(&accepted, Some(first)).unwrap();
        // From now on the peer is idle. It also processes packets again, which it does not right after connecting.
        tap.wait_for(Up, Kind::KeepAlive);
        accepted.set_read_timeout(Some(CERTAINTY));
        for _ in 0..3 {
            tap.slip_in(Up, &Control::Shutdown);
        }
        let waited = accepted.recv(&mut [0]).unwrap_err();
        assert!(matches!(waited, Error::TimedOut(_)), "after {first} bytes: {waited}");
        tap.wait_for(Up, Kind::Ack2);
        let sent = send(&accepted, 21, 100_000).unwrap();
        accepted.finish().unwrap();
        let report = peer.report();
        assert_eq!((report.digest("received_digest"), report.digest("sent_digest")), (sent, digest));
    }
}

/// A crafted caller.
struct Caller {
    socket: UdpSocket,
    handshake: Handshake,
}

impl Caller {
    fn new(listener: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(listener).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let handshake = Handshake {
            version: Handshake::VERSION,
            socket_type: SocketType::Stream,
            isn: SeqNo::new(1),
            mss: 1500,
            flow_window: 8192,
            request: Request::Induction,
            socket_id: SocketId::new(5),
            cookie: 0,
            peer_ip: listener.ip(),
            largest: Largest::Unsaid,
            wants_receipts: false,
        };
        Self { socket, handshake }
    }

    fn send(&self, request: Request, cookie: u32) {
        let mut datagram = Vec::new();
        let packet = Handshake { request, cookie, ..self.handshake };
        Control::Handshake(packet).encode(Timestamp::ZERO, SocketId::NONE, &mut datagram);
        self.socket.send(&datagram).unwrap();
    }

    /// The listener's answer.
    fn recv(&self) -> Handshake {
        let mut datagram = [0; 2_000];
        let len = self.socket.recv(&mut datagram).unwrap();
        let Ok((_, _, Control::Handshake(answer))) = Control::decode(&datagram[..len]) else { panic!("no handshake") };
        answer
    }
}

/// Number of callers of which at least one needs a second cookie.
const TRIES: usize = 20;

#[test]
fn libudt_connects_from_a_network_with_cookie_guesses() {
    let Some(libudt) = Libudt::find() else { return };
    let here = Here::new();
    let listener = here.listen().unwrap();
    let over = AtomicBool::new(false);
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let guesser = Caller::new(here.local_addr());
            guesser.socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
            let mut guesses = 1..;
            // Guesses until the test ends.
            for round in 0..2_000 {
                for guess in guesses.by_ref().take(20) {
                    guesser.send(Request::Conclusion, guess);
                }
                if round == 40 {
                    tell.send(()).unwrap();
                }
                if over.load(Ordering::Relaxed) {
                    break;
                }
                // Guesses get no answer, so this receive only paces them.
                guesser.socket.recv(&mut [0]).unwrap_err();
            }
        });
        told.recv().unwrap();
        // If the guesser paused, the budget has a guess left. Then the listener rightly accepts a caller at once.
        let asked_twice = (0..TRIES).any(|_| {
            let caller = Caller::new(here.local_addr());
            caller.send(Request::Induction, 0);
            let cookie = caller.recv().cookie;
            caller.send(Request::Conclusion, cookie);
            let answer = caller.recv();
            if answer.request == Request::Induction {
                assert_ne!(answer.cookie, cookie);
                return true;
            }
            drop(Here::accept(&listener));
            false
        });
        let peer = libudt.connect(here.local_addr(), "send --bytes 100000 --seed 6");
        let received = recv(&Here::accept(&listener), None).unwrap();
        over.store(true, Ordering::Relaxed);
        assert!(asked_twice, "one cookie is not enough");
        assert_eq!(received, (100_000, peer.report().digest("sent_digest")));
    });
}
