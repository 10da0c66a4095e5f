//! Measured streams on a UDP port: stable control streams and points of a throughput profile.
//!
//! The far end is a port with [`Builder::answer_probes`](crate::Builder::answer_probes). Both ends are plain, or both have
//! encryption: then the datagrams travel in a secure connection that has nothing else.

mod cache;
mod enclosure;

use std::net::SocketAddr;
use std::time::Duration;

pub use farhaul_proto::probe::{
    Advice, Blaster, BlasterConfig, BlasterFigures, Delays, PROTECTION_OVERHEAD, Point, Probing, Profile, Responder,
    Search, Shape, Spread, StableConfig, StableFigures, StableStream, grid,
};
use farhaul_proto::{Batch, earliest};
use farhaul_udp::{Clock, Interest, Options, RecvBatch, SendStatus, Token, UdpSocket, Waiter};
use farhaul_units::Instant;

pub use cache::{CachedRate, cache_rate, cached_rate, now};

use self::enclosure::Enclosure;
pub use self::enclosure::EnclosureConfig;
use crate::addresses::any_port_for;
use crate::error::Error;
use crate::randomness::session;
use crate::security::{Protection, Security};

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
    /// The connection around the streams; `None` in plain.
    enclosure: Option<Box<Enclosure>>,
    watched: Interest,
}

/// Datagrams of one length for one address.
#[derive(Debug)]
struct Rest {
    to: SocketAddr,
    segment_size: usize,
    bytes: Vec<u8>,
}

impl ProbeSocket {
    /// Opens a UDP port for plain streams to a responder at `peer`. Everybody on the path can read and forge them.
    ///
    /// # Errors
    /// The system has no port or no descriptor left.
    pub fn towards(peer: SocketAddr) -> Result<Self, Error> {
        Self::open(peer)
    }

    /// Opens a UDP port for streams inside an encrypted connection to `peer`, and begins to connect.
    /// [`connect`](Self::connect) goes on.
    ///
    /// # Errors
    /// The system has no port, no descriptor or no randomness left. Or the settings are out of their ranges.
    pub fn enclosed(peer: SocketAddr, security: Security, config: EnclosureConfig) -> Result<Self, Error> {
        let mut socket = Self::open(peer)?;
        socket.enclosure = Some(Box::new(Enclosure::begin(socket.now(), peer, security, config)?));
        Ok(socket)
    }

    fn open(peer: SocketAddr) -> Result<Self, Error> {
        let address = any_port_for(peer);
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
            rest: Rest { to: peer, segment_size: 0, bytes: Vec::new() },
            enclosure: None,
            watched: Interest::Readable,
        })
    }

    /// The time of the streams.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Goes on connecting for `time` at most. Returns whether streams can begin, which is always so in plain.
    ///
    /// # Errors
    /// The attempt failed ([`Error::Lost`]), or the network reports an error that does not pass.
    pub fn connect(&mut self, time: Duration) -> Result<bool, Error> {
        let end = self.now() + time;
        loop {
            let is_blocked = self.transmit(None)?;
            self.receive(None)?;
            let Some(enclosure) = &self.enclosure else { return Ok(true) };
            let now = self.now();
            if enclosure.is_connected()? || now >= end {
                return enclosure.is_connected();
            }
            let next = enclosure.poll_timeout().map_or(end, |next| next.min(end));
            self.wait_for(is_blocked, next.saturating_since(now))?;
        }
    }

    /// Waits for `time` without a stream. A server judges this side's key after the connection is established here, and ends it
    /// then.
    ///
    /// # Errors
    /// The connection is over, or the network reports an error that does not pass.
    pub fn hold(&mut self, time: Duration) -> Result<(), Error> {
        self.rest(None, time)
    }

    /// The protection of the streams. `None` in plain, and before they are connected.
    pub fn protection(&self) -> Option<Protection> {
        self.enclosure.as_ref()?.protection()
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
    /// The network reports an error that does not pass: no route, or nobody listens there. Or the connection around the
    /// stream is over.
    pub fn run(&mut self, stream: &mut impl Probing, time: Duration) -> Result<(), Error> {
        let end = self.now() + time;
        loop {
            let is_blocked = self.transmit(Some(&mut *stream))?;
            self.receive(Some(&mut *stream))?;
            let Some(next) = stream.poll_timeout() else { return Ok(()) };
            let now = self.now();
            if now >= end {
                return Ok(());
            }
            let next = earliest(Some(next.min(end)), self.enclosure_timeout()?).unwrap_or(end);
            // A blocked socket becomes writable. Until then, the stream's own time does not matter.
            let next = if is_blocked { end } else { next };
            self.wait_for(is_blocked, next.saturating_since(now))?;
        }
    }

    /// Takes the answers that still come in `time`, after the end of a stream.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn drain(&mut self, stream: &mut impl Probing, time: Duration) -> Result<(), Error> {
        self.rest(Some(stream), time)
    }

    /// Serves the connection around the streams for `time`, and sends nothing of a stream. `stream` takes the answers.
    fn rest(&mut self, mut stream: Option<&mut dyn Probing>, time: Duration) -> Result<(), Error> {
        let end = self.now() + time;
        loop {
            let is_blocked = self.enclosure.is_some() && self.transmit(None)?;
            self.receive(stream.as_mut().map(|stream| &mut **stream as &mut dyn Probing))?;
            let now = self.now();
            if now >= end {
                return Ok(());
            }
            let next = earliest(Some(end), self.enclosure_timeout()?).unwrap_or(end);
            self.wait_for(is_blocked, next.saturating_since(now))?;
        }
    }

    /// When the connection around the streams must be served next.
    fn enclosure_timeout(&self) -> Result<Option<Instant>, Error> {
        let Some(enclosure) = &self.enclosure else { return Ok(None) };
        enclosure.is_connected()?;
        Ok(enclosure.poll_timeout())
    }

    /// Waits until the socket has something to read, or takes datagrams again, or `time` has passed.
    fn wait_for(&mut self, is_blocked: bool, time: Duration) -> Result<(), Error> {
        let interest = if is_blocked { Interest::Both } else { Interest::Readable };
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
    fn transmit(&mut self, mut stream: Option<&mut dyn Probing>) -> Result<bool, Error> {
        for _ in 0..BURSTS {
            let Rest { to, segment_size, bytes } = &mut self.rest;
            let taken = send(&self.socket, *to, *segment_size, bytes)?;
            bytes.drain(..taken);
            if !bytes.is_empty() {
                return Ok(true);
            }
            let now = self.clock.now();
            let transmit = match (&mut self.enclosure, &mut stream) {
                (Some(enclosure), stream) => enclosure.poll_transmit(now, stream, &mut self.scratch),
                (None, Some(stream)) => stream.poll_transmit(now, &mut self.scratch),
                (None, None) => None,
            };
            let Some(transmit) = transmit else { return Ok(false) };
            let taken = send(&self.socket, transmit.to, transmit.segment_size, transmit.bytes)?;
            (*to, *segment_size) = (transmit.to, transmit.segment_size);
            bytes.extend_from_slice(&transmit.bytes[taken..]);
        }
        Ok(!self.rest.bytes.is_empty())
    }

    fn receive(&mut self, mut stream: Option<&mut dyn Probing>) -> Result<(), Error> {
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
                match (&mut self.enclosure, &mut stream) {
                    (Some(enclosure), stream) => enclosure.handle(wall.now, arrived, train, stream),
                    (None, Some(stream)) => train.datagrams().for_each(|datagram| {
                        stream.handle_datagram(arrived, train.from, datagram);
                    }),
                    (None, None) => {}
                }
            }
            if !self.received.is_full() {
                return Ok(());
            }
        }
    }
}

impl Drop for ProbeSocket {
    /// Tells the peer of an encrypted connection.
    fn drop(&mut self) {
        let now = self.now();
        if let Some(enclosure) = &mut self.enclosure {
            enclosure.end(now);
            // A peer that does not hear it waits for its time-out.
            let _ = self.transmit(None);
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
