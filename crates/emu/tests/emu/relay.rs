//! The relay between real sockets: it treats the datagrams of both directions as the path says.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use farhaul_emu::{Flaw, Relay, RelayReport};
use farhaul_netem::{LossSpec, PathSpec, Pattern, QueueSize};
use farhaul_udp::{Clock, Interest, Options, RecvBatch, Token, UdpSocket, Waiter};
use farhaul_units::{Duration, Rate};

use crate::requirement::skip;

const PATIENCE: Duration = Duration::from_secs(10);

/// A client or a server that receives datagrams one by one.
struct Host {
    socket: UdpSocket,
    waiter: Waiter,
    batch: RecvBatch,
    inbox: Vec<(SocketAddr, Vec<u8>)>,
}

impl Host {
    fn new(local: &str) -> Self {
        let socket = UdpSocket::bind(local.parse().expect("an address"), Options::default()).expect("a socket");
        let waiter = Waiter::new().expect("a waiter");
        waiter.watch(&socket, Token(0), Interest::Readable).expect("a socket to watch");
        Self { socket, waiter, batch: RecvBatch::new(4), inbox: Vec::new() }
    }

    fn addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    fn send(&self, to: SocketAddr, datagrams: &[&[u8]]) {
        for datagram in datagrams {
            self.socket.send_one(None, to, datagram).expect("room to send");
        }
    }

    /// The next `count` datagrams. Fails instead of waiting for ever.
    fn recv(&mut self, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
        while self.inbox.len() < count {
            let ready = self.waiter.wait(Some(PATIENCE)).expect("a wait");
            assert!(!ready.is_empty(), "only {} of {count} came", self.inbox.len());
            match self.socket.recv(&mut self.batch) {
                Ok(_) => {
                    for train in self.batch.trains() {
                        self.inbox.extend(train.datagrams().map(|bytes| (train.from, bytes.to_vec())));
                    }
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        self.inbox.drain(..count).collect()
    }
}

/// Stops the relay even if the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `play` with the address of a relay in front of `server` while the relay runs.
fn with_relay(server: SocketAddr, up: PathSpec, down: PathSpec, play: impl FnOnce(SocketAddr)) -> RelayReport {
    let listen = if server.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
    let mut relay = Relay::bind(listen.parse().expect("an address"), server, up, down).expect("a relay");
    let (addr, stop) = (relay.local_addr(), AtomicBool::new(false));
    thread::scope(|scope| {
        let running = scope.spawn(|| relay.run(&stop));
        let stopper = Stop(&stop);
        play(addr);
        drop(stopper);
        running.join().expect("no panic").expect("a report")
    })
}

fn delay(millis: u64) -> PathSpec {
    PathSpec { delay: Duration::from_millis(millis), ..PathSpec::default() }
}

#[test]
fn both_directions_are_delayed_by_their_own_path() {
    delays_both("127.0.0.1:0", 28);
}

#[test]
fn datagrams_of_ipv6_are_delayed_and_their_headers_counted() {
    match UdpSocket::bind("[::1]:0".parse().expect("an address"), Options::default()) {
        Ok(_) => delays_both("[::1]:0", 48),
        Err(error) => skip(format!("no ::1: {error}")).unwrap_or(()),
    }
}

fn delays_both(local: &str, headers: u64) {
    let (mut client, mut server) = (Host::new(local), Host::new(local));
    let report = with_relay(server.addr(), delay(20), delay(30), |relay| {
        let clock = Clock::start();
        client.send(relay, &[b"ping", b""]);
        let got = server.recv(2);
        assert!(clock.now().as_micros() >= 20_000);
        assert_eq!([got[0].1.as_slice(), got[1].1.as_slice()], [&b"ping"[..], b""]);
        server.send(got[0].0, &[b"pong"]);
        assert_eq!(client.recv(1), [(relay, b"pong".to_vec())]);
        assert!(clock.now().as_micros() >= 50_000);
    });
    assert_eq!((report.up.sent, report.down.sent, report.clients), (2, 1, 1));
    assert_eq!(report.up.path.delivered.bytes, 4 + 2 * headers);
}

#[test]
fn exactly_the_datagrams_that_the_path_loses_are_missing() {
    let (client, mut server) = (Host::new("127.0.0.1:0"), Host::new("127.0.0.1:0"));
    let pattern: Pattern = ".x..".parse().expect("a pattern");
    let up = PathSpec { loss: Some(LossSpec::Pattern(pattern.repeated())), ..PathSpec::default() };
    let bytes: Vec<u8> = (0..40).flat_map(|number| [number; 100]).collect();
    let report = with_relay(server.addr(), up, PathSpec::default(), |relay| {
        assert_eq!(client.socket.send(relay, 100, &bytes).unwrap().taken, bytes.len());
        let got: Vec<u8> = server.recv(30).iter().map(|(_, datagram)| datagram[0]).collect();
        assert_eq!(got, (0..40).filter(|number| number % 4 != 1).collect::<Vec<u8>>());
    });
    assert_eq!((report.up.path.dropped_loss.packets, report.up.sent), (10, 30));
}

#[test]
fn a_queue_that_overflows_loses_the_tail() {
    let (client, mut server) = (Host::new("127.0.0.1:0"), Host::new("127.0.0.1:0"));
    let rate = Some(Rate::from_megabits_per_second(1));
    let up = PathSpec { rate, queue: QueueSize::Packets(5), ..PathSpec::default() };
    let report = with_relay(server.addr(), up, PathSpec::default(), |relay| {
        let _ = client.socket.send(relay, 100, &[7; 2_000]).unwrap();
        assert_eq!(server.recv(6).len(), 6, "one is on the link and five wait");
    });
    assert_eq!(report.up.path.dropped_queue.packets, 14);
}

#[test]
fn two_clients_each_get_their_own_answers() {
    let mut clients = [Host::new("127.0.0.1:0"), Host::new("127.0.0.1:0")];
    let mut server = Host::new("127.0.0.1:0");
    let report = with_relay(server.addr(), delay(2), delay(2), |relay| {
        for round in 0..3_u8 {
            for (number, client) in clients.iter().enumerate() {
                client.send(relay, &[&[number as u8, round]]);
            }
            for (from, question) in server.recv(2) {
                server.send(from, &[&question, &question]);
            }
            for (number, client) in clients.iter_mut().enumerate() {
                let answer = (relay, vec![number as u8, round]);
                assert_eq!(client.recv(2), [answer.clone(), answer]);
            }
        }
    });
    assert_eq!((report.clients, report.up.sent, report.down.sent), (2, 6, 12));
}

#[test]
fn a_client_beyond_the_limit_is_refused_and_invalidates_the_run() {
    const PLACES: usize = 64;
    let placed: Vec<Host> = (0..PLACES).map(|_| Host::new("127.0.0.1:0")).collect();
    let last = Host::new("127.0.0.1:0");
    let mut server = Host::new("127.0.0.1:0");
    let report = with_relay(server.addr(), PathSpec::default(), PathSpec::default(), |relay| {
        for client in &placed {
            client.send(relay, &[b"placed"]);
            assert_eq!(server.recv(1)[0].1, b"placed");
        }
        last.send(relay, &[b"too many", b"too many"]);
        placed[0].send(relay, &[b"placed"]);
        assert_eq!(server.recv(1)[0].1, b"placed");
    });
    assert_eq!(report.clients, PLACES as u64);
    assert!(report.flaws.contains(&Flaw::TooManyClients(2)), "{:?}", report.flaws);
}

#[test]
fn datagrams_from_other_senders_are_ignored() {
    let (mut client, mut server) = (Host::new("127.0.0.1:0"), Host::new("127.0.0.1:0"));
    let stranger = Host::new("127.0.0.1:0");
    let report = with_relay(server.addr(), PathSpec::default(), PathSpec::default(), |relay| {
        client.send(relay, &[b"hello"]);
        let upstream = server.recv(1)[0].0;
        stranger.send(upstream, &[b"forged"]);
        server.send(upstream, &[b"real"]);
        assert_eq!(client.recv(1)[0].1, b"real");
    });
    assert_eq!(report.down.path.pushed.packets, 1);
}

#[test]
fn a_missing_server_does_not_end_the_relay() {
    let client = Host::new("127.0.0.1:0");
    let addr = Host::new("127.0.0.1:0").addr();
    let report = with_relay(addr, PathSpec::default(), PathSpec::default(), |relay| {
        (0..5).for_each(|_| client.send(relay, &[b"x"]));
        let mut server = Host::new(&addr.to_string());
        client.send(relay, &[b"y"]);
        while server.recv(1)[0].1 != b"y" {}
    });
    assert_eq!(report.up.path.pushed.packets, 6);
}
