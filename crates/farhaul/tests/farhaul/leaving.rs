//! Endpoints whose last handle is dropped. They still send the peer all packets of the transport's close.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::net::UdpSocket;
use std::time::Duration;

use farhaul::{Endpoint, wait_idle};
use farhaul_proto::{Batch, Config, Entropy, Event, Streams, udt};
use farhaul_protocols::udt2004;
use farhaul_units::Instant;
use farhaul_wire::{udt4, udt2004 as wire_2004};

/// Longest wait for a datagram. If none comes, the test fails.
const PATIENCE: Duration = Duration::from_secs(5);

/// Shutdowns of one close.
const SHUTDOWNS: usize = 3;

/// A peer whose clock stands still, behind a plain socket.
struct Peer<T> {
    socket: UdpSocket,
    transport: T,
}

impl<T: Streams> Peer<T> {
    fn new(transport: T) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, transport }
    }

    /// Connects to `to`.
    fn connect(&mut self, to: &Endpoint) {
        self.transport.connect(Instant::ZERO, to.local_addr()).unwrap();
        self.send();
        loop {
            let (from, mut datagram) = self.recv();
            let stride = datagram.len();
            self.transport.handle_datagrams(Instant::ZERO, Instant::ZERO, from, &mut datagram, stride);
            self.send();
            if let Some(Event::Connected(_)) = self.transport.poll_event() {
                return;
            }
        }
    }

    fn send(&mut self) {
        let mut batch = Batch::new();
        while let Some(transmit) = self.transport.poll_transmit(Instant::ZERO, &mut batch) {
            for datagram in transmit.datagrams() {
                self.socket.send_to(datagram, transmit.to).unwrap();
            }
        }
    }

    fn recv(&self) -> (std::net::SocketAddr, Vec<u8>) {
        let mut room = [0; 2_000];
        let (len, from) = self.socket.recv_from(&mut room).expect("a datagram arrives within the wait");
        (from, room[..len].to_vec())
    }

    /// Accepts this peer at an endpoint, drops everything there, and waits for the whole close.
    fn assert_told(mut self, protocol: &str, is_shutdown: impl Fn(&[u8]) -> bool) {
        let there = Endpoint::builder()
            .plain()
            .protocol(protocol.parse().unwrap())
            .bind("127.0.0.1:0".parse().unwrap())
            .unwrap();
        let listener = there.listen().unwrap();
        self.connect(&there);
        let (stream, _) = listener.accept().unwrap();
        stream.close();
        drop((stream, listener, there));
        let mut shutdowns = 0;
        while shutdowns < SHUTDOWNS {
            shutdowns += usize::from(is_shutdown(&self.recv().1));
        }
    }
}

fn entropy() -> Entropy {
    Entropy { cookie_key: [3; 16], seed: 3 }
}

fn is_shutdown(datagram: &[u8]) -> bool {
    matches!(udt4::Control::decode(datagram), Ok((_, _, udt4::Control::Shutdown)))
}

// Without a sample the RTT counts as up to 300 ms, so the third shutdown follows the first after 600 ms.
#[test]
fn a_port_stays_open_until_the_last_shutdown_has_left() {
    Peer::new(udt::endpoint(Config::default(), entropy())).assert_told("udt", is_shutdown);
}

#[test]
fn a_port_of_the_2004_protocol_stays_open_until_the_last_close_packet_has_left() {
    Peer::new(udt2004::endpoint(udt2004::Options::default(), udt2004::default_config(), entropy()))
        .assert_told("udt-2004", |datagram| {
            matches!(wire_2004::Control::decode(datagram), Ok(wire_2004::Control::Close { .. }))
        });
}

/// At the end of a program, a thread that reads standard input may still hold a handle, for example.
#[test]
fn wait_idle_ends_after_the_last_shutdown_even_if_a_handle_is_left() {
    let mut peer = Peer::new(udt::endpoint(Config::default(), entropy()));
    let there = Endpoint::plain("127.0.0.1:0").unwrap();
    let listener = there.listen().unwrap();
    peer.connect(&there);
    let (stream, _) = listener.accept().unwrap();
    stream.close();
    wait_idle();
    peer.socket.set_nonblocking(true).unwrap();
    let mut room = [0; 2_000];
    let arrived = std::iter::from_fn(|| peer.socket.recv(&mut room).ok().map(|len| is_shutdown(&room[..len])));
    assert_eq!(arrived.filter(|is_shutdown| *is_shutdown).count(), SHUTDOWNS);
    drop(stream);
}
