//! Measured streams on a UDP port: stable control streams and points of a throughput profile.
//!
//! The far end is a port with [`Builder::answer_probes`](crate::Builder::answer_probes).

mod cache;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use farhaul_proto::Batch;
pub use farhaul_proto::probe::{
    Advice, Blaster, BlasterConfig, BlasterFigures, Delays, Point, Probing, Profile, Responder, Search, Shape, Spread,
    StableConfig, StableFigures, StableStream, grid,
};
use farhaul_udp::{Clock, Interest, Options, RecvBatch, SendStatus, Token, UdpSocket, Waiter};
use farhaul_units::Instant;

pub use cache::{CachedRate, cache_rate, cached_rate, now};

use crate::error::Error;

/// Trains per receive call. Answers are small and come one by one.
const TRAINS: usize = 4;
/// Bursts that leave before arrivals are handled.
const BURSTS: usize = 32;

/// A UDP port from which measured streams start. One at a time.
///
/// ```no_run
/// use std::time::Duration;
///
/// use farhaul::probe::{ProbeSocket, StableConfig};
///
/// # fn main() -> Result<(), farhaul::Error> {
/// let peer = "192.0.2.7:9000".parse().expect("an address");
/// let mut socket = ProbeSocket::towards(peer)?;
/// let mut stream = socket.stable(StableConfig::new(farhaul::Rate::from_bits_per_second(1_000_000)))?;
/// for _ in 0..10 {
///     socket.run(&mut stream, Duration::from_secs(1))?;
///     println!("{} kbit/s", stream.figures(socket.now()).goodput.bits_per_second() / 1_000);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ProbeSocket {
    socket: UdpSocket,
    peer: SocketAddr,
    waiter: Waiter,
    clock: Clock,
    received: RecvBatch,
    scratch: Batch,
    /// Datagrams that the socket has not taken yet.
    rest: Rest,
    watched: Interest,
}

/// Datagrams of one length for the peer.
#[derive(Debug, Default)]
struct Rest {
    segment_size: usize,
    bytes: Vec<u8>,
}

impl ProbeSocket {
    /// Opens a UDP port for streams to a responder at `peer`.
    ///
    /// # Errors
    /// The system has no port or no descriptor left.
    pub fn towards(peer: SocketAddr) -> Result<Self, Error> {
        let address = match peer {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        // With the kernel's arrival times, a late wake-up adds no delay.
        let options = Options { timestamps: true, ..Options::default() };
        let socket = UdpSocket::bind(address, options).map_err(|source| Error::Bind { address, source })?;
        let system = |source| Error::System { what: "an epoll instance", source };
        let waiter = Waiter::new().map_err(system)?;
        waiter.watch(&socket, Token(0), Interest::Readable).map_err(system)?;
        Ok(Self {
            socket,
            peer,
            waiter,
            clock: Clock::start(),
            received: RecvBatch::new(TRAINS),
            scratch: Batch::new(),
            rest: Rest::default(),
            watched: Interest::Readable,
        })
    }

    /// The time of the streams.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// A stable stream that begins now.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn stable(&self, config: StableConfig) -> Result<StableStream, Error> {
        Ok(StableStream::new(config, self.peer, session()?, self.now()))
    }

    /// A point of a profile that begins now.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn blaster(&self, config: BlasterConfig) -> Result<Blaster, Error> {
        Ok(Blaster::new(config, self.peer, session()?, self.now()))
    }

    /// Runs a stream for `time`, or until it sends nothing more.
    ///
    /// # Errors
    /// The network reports an error that does not pass: no route, or nobody listens there.
    pub fn run(&mut self, stream: &mut impl Probing, time: Duration) -> Result<(), Error> {
        let end = self.now() + time;
        loop {
            let is_blocked = self.transmit(stream)?;
            self.receive(stream)?;
            let Some(next) = stream.poll_timeout() else { return Ok(()) };
            let now = self.now();
            if now >= end {
                return Ok(());
            }
            // A blocked socket becomes writable. Until then, the stream's own time does not matter.
            let interest = if is_blocked { Interest::Both } else { Interest::Readable };
            let next = if is_blocked { end } else { next.min(end) };
            self.wait(interest, next.saturating_since(now))?;
        }
    }

    /// Takes the answers that still come in `time`, after the end of a stream.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn drain(&mut self, stream: &mut impl Probing, time: Duration) -> Result<(), Error> {
        let end = self.now() + time;
        loop {
            self.receive(stream)?;
            let now = self.now();
            if now >= end {
                return Ok(());
            }
            self.wait(Interest::Readable, end.saturating_since(now))?;
        }
    }

    /// Waits until the socket is ready, or `time` has passed.
    fn wait(&mut self, interest: Interest, time: Duration) -> Result<(), Error> {
        let failed = |source| Error::System { what: "a wait", source };
        if interest != self.watched {
            self.waiter.rewatch(&self.socket, Token(0), interest).map_err(failed)?;
            self.watched = interest;
        }
        self.waiter.wait(Some(time)).map_err(failed)?;
        Ok(())
    }

    /// Sends what is due. Returns whether the socket takes no more. The rest of a burst then waits, as in a program that
    /// blocks: the source sends no faster than the network card.
    fn transmit(&mut self, stream: &mut impl Probing) -> Result<bool, Error> {
        for _ in 0..BURSTS {
            let Rest { segment_size, bytes } = &mut self.rest;
            let taken = send(&self.socket, self.peer, *segment_size, bytes)?;
            bytes.drain(..taken);
            if !bytes.is_empty() {
                return Ok(true);
            }
            let now = self.clock.now();
            let Some(transmit) = stream.poll_transmit(now, &mut self.scratch) else { return Ok(false) };
            let taken = send(&self.socket, self.peer, transmit.segment_size, transmit.bytes)?;
            *segment_size = transmit.segment_size;
            bytes.extend_from_slice(&transmit.bytes[taken..]);
        }
        Ok(!self.rest.bytes.is_empty())
    }

    fn receive(&mut self, stream: &mut impl Probing) -> Result<(), Error> {
        loop {
            self.received.clear();
            match self.socket.recv(&mut self.received) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
                Err(source) => return Err(unreachable(self.peer, source)),
            }
            let wall = self.clock.wall();
            for train in self.received.trains() {
                let arrived = train.arrived.map_or(wall.now, |stamp| wall.instant_of(stamp));
                for datagram in train.datagrams() {
                    stream.handle_datagram(arrived, train.from, datagram);
                }
            }
            if !self.received.is_full() {
                return Ok(());
            }
        }
    }
}

/// Sends datagrams of one length. Returns the number of bytes taken: fewer than all if the socket is full.
fn send(socket: &UdpSocket, peer: SocketAddr, segment_size: usize, bytes: &[u8]) -> Result<usize, Error> {
    let mut taken = 0;
    while taken < bytes.len() {
        let sent = socket.send(peer, segment_size, &bytes[taken..]).map_err(|source| unreachable(peer, source))?;
        taken += sent.taken;
        match sent.status {
            SendStatus::Blocked => break,
            // As lost as on a router with smaller packets.
            SendStatus::TooLarge => return Ok(bytes.len()),
            _ => {}
        }
    }
    Ok(taken)
}

fn unreachable(peer: SocketAddr, source: std::io::Error) -> Error {
    Error::Unreachable { peer, time: Duration::ZERO, source }
}

/// The payload of one datagram of a measured stream: see
/// [`Endpoint::probe_payloads`](crate::Endpoint::probe_payloads).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbePayload {
    /// The address of the stream's sender.
    pub from: SocketAddr,
    /// The stream.
    pub session: u64,
    /// The number of the datagram in its stream, from 0.
    pub number: u64,
    /// The bytes that the sender put into it, padding included.
    pub bytes: Vec<u8>,
}

/// A number that strangers do not guess.
pub(crate) fn session() -> Result<u64, Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::System { what: "randomness", source: std::io::Error::other(error) })?;
    Ok(u64::from_ne_bytes(bytes))
}
