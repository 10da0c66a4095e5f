//! Measured streams on a UDP port: stable control streams and points of a throughput profile.
//!
//! The far end is a port with [`Builder::answer_probes`](crate::Builder::answer_probes).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use farhaul_proto::Batch;
pub use farhaul_proto::probe::{
    Blaster, BlasterConfig, BlasterFigures, Delays, Probing, Responder, StableConfig, StableFigures, StableStream,
};
use farhaul_udp::{Clock, Interest, Options, RecvBatch, SendStatus, Token, UdpSocket, Waiter};
use farhaul_units::Instant;

use crate::error::Error;

/// Trains per receive call. Answers are small and come one by one.
const TRAINS: usize = 4;
/// Bursts that leave before arrivals are handled.
const BURSTS: usize = 32;
/// Pause before another attempt at a full socket.
const BLOCKED: Duration = Duration::from_micros(100);

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
        let socket = UdpSocket::bind(address, Options::default()).map_err(|source| Error::Bind { address, source })?;
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
            let now = self.now();
            let blocked = self.transmit(stream, now)?;
            self.receive(stream)?;
            let Some(next) = stream.poll_timeout() else { return Ok(()) };
            let now = self.now();
            if now >= end {
                return Ok(());
            }
            let mut rest = next.min(end).saturating_since(now);
            if blocked {
                rest = rest.max(BLOCKED);
            }
            let ready = self.waiter.wait(Some(rest));
            ready.map_err(|source| Error::System { what: "a wait", source })?;
        }
    }

    /// Sends what is due. Returns whether the socket took no more.
    fn transmit(&mut self, stream: &mut impl Probing, now: Instant) -> Result<bool, Error> {
        for _ in 0..BURSTS {
            let Some(transmit) = stream.poll_transmit(now, &mut self.scratch) else { return Ok(false) };
            let mut bytes = transmit.bytes;
            while !bytes.is_empty() {
                let sent = self.socket.send(transmit.to, transmit.segment_size, bytes);
                match sent {
                    Ok(sent) if sent.taken > 0 => bytes = &bytes[sent.taken..],
                    // A full socket drops the rest, as a full queue on the way would. The profile counts it as lost.
                    Ok(sent) => return Ok(!matches!(sent.status, SendStatus::TooLarge)),
                    Err(source) => return Err(self.unreachable(source)),
                }
            }
        }
        Ok(false)
    }

    fn receive(&mut self, stream: &mut impl Probing) -> Result<(), Error> {
        loop {
            self.received.clear();
            match self.socket.recv(&mut self.received) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
                Err(source) => return Err(self.unreachable(source)),
            }
            let now = self.clock.now();
            for train in self.received.trains() {
                for datagram in train.datagrams() {
                    stream.handle_datagram(now, train.from, datagram);
                }
            }
            if !self.received.is_full() {
                return Ok(());
            }
        }
    }

    fn unreachable(&self, source: std::io::Error) -> Error {
        Error::Unreachable { peer: self.peer, time: Duration::ZERO, source }
    }
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
    /// What the sender put into it, padding included.
    pub bytes: Vec<u8>,
}

/// A number that strangers do not guess.
fn session() -> Result<u64, Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::System { what: "randomness", source: std::io::Error::other(error) })?;
    Ok(u64::from_ne_bytes(bytes))
}
