//! A secure listener on its own, and the datagrams of its callers.

use core::net::SocketAddr;

use farhaul_proto::{Batch, Config, Endpoint, Event, Mode, Streams, Transport};
use farhaul_units::{Duration, Instant};

use crate::attack_secure::bench::{endpoint, null};

pub(crate) struct Server {
    pub(crate) end: Endpoint,
    pub(crate) now: Instant,
    pub(crate) events: Vec<Event>,
}

/// The address of caller `n`, each in a network of its own.
pub(crate) fn caller(n: u32) -> SocketAddr {
    SocketAddr::from(([11, (n >> 8) as u8, n as u8, 1], 4_000))
}

/// Everything that an endpoint sends now, with the destinations.
pub(crate) fn sent(end: &mut Endpoint, now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
    let (mut batch, mut all) = (Batch::new(), Vec::new());
    while let Some(transmit) = end.poll_transmit(now, &mut batch) {
        all.extend(transmit.datagrams().map(|datagram| (transmit.to, datagram.to_vec())));
    }
    all
}

/// The first datagrams of a new caller.
pub(crate) fn call(seed: u8) -> (Endpoint, Vec<Vec<u8>>) {
    let now = Instant::from_nanos(1);
    let mut client = endpoint(seed, Config::default(), null(seed));
    client.connect(now, SocketAddr::from(([10, 0, 0, 2], 9_000))).unwrap();
    let datagrams = sent(&mut client, now).into_iter().map(|(_, datagram)| datagram).collect();
    (client, datagrams)
}

/// A client that was asked for a proof: its packets with the token.
pub(crate) fn with_token(server: &mut Server, from: SocketAddr, seed: u8) -> Vec<Vec<u8>> {
    let (mut client, first) = call(seed);
    let now = Instant::from_nanos(1);
    let answers: Vec<_> = first.iter().flat_map(|datagram| server.deliver(from, datagram)).collect();
    for (to, mut retry) in answers {
        assert_eq!(to, from);
        let stride = retry.len();
        client.handle_datagrams(now, now, SocketAddr::from(([10, 0, 0, 2], 9_000)), &mut retry, stride);
    }
    sent(&mut client, now).into_iter().map(|(_, datagram)| datagram).collect()
}

impl Server {
    pub(crate) fn new() -> Self {
        let mut end = endpoint(200, Config::default(), null(200));
        end.listen(Mode::Stream).expect("UDT has the mode");
        Self { end, now: Instant::from_nanos(1), events: Vec::new() }
    }

    /// Delivers a datagram. Returns what the server sends.
    pub(crate) fn deliver(&mut self, from: SocketAddr, datagram: &[u8]) -> Vec<(SocketAddr, Vec<u8>)> {
        let (mut bytes, stride) = (datagram.to_vec(), datagram.len());
        self.end.handle_datagrams(self.now, self.now, from, &mut bytes, stride);
        self.output()
    }

    pub(crate) fn output(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        let all = sent(&mut self.end, self.now);
        while let Some(event) = self.end.poll_event() {
            self.events.push(event);
        }
        all
    }

    /// Lets time pass in steps. Returns the bytes that the server sends.
    pub(crate) fn run_millis(&mut self, millis: u64) -> usize {
        let end = self.now + Duration::from_millis(millis);
        let mut bytes = 0;
        while self.now < end {
            self.now += Duration::from_millis(10);
            self.end.handle_timeout(self.now);
            bytes += self.output().iter().map(|(_, datagram)| datagram.len()).sum::<usize>();
        }
        bytes
    }

    /// Has so many callers in the middle of their handshakes that all others must prove their addresses.
    pub(crate) fn flooded() -> Self {
        let mut server = Self::new();
        let mut forger = endpoint(3, Config::default(), null(3));
        for n in 0..300 {
            forger.connect(server.now, SocketAddr::from(([10, 0, 0, 2], 9_000))).unwrap();
            for (_, datagram) in sent(&mut forger, server.now) {
                server.deliver(caller(n), &datagram);
            }
        }
        server
    }
}
