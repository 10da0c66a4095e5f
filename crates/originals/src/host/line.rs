//! The two sockets of a session: a TCP connection, and a UDP socket.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use farhaul_proto::ChannelEnd;
use farhaul_udp::tcp::{BLOCK, Received, Sent, TcpChannel};
use farhaul_udp::{Clock, Interest, Options, RecvBatch, SendStatus, Timeline, Token, UdpSocket, Waiter, Waker};
use farhaul_units::Instant;

use super::stop::Woken;
use super::{Failure, Stop};

const CHANNEL: Token = Token(0);
const SOCKET: Token = Token(1);

/// A TCP connection to one peer, and a UDP socket.
#[derive(Debug)]
pub(super) struct Line {
    channel: TcpChannel,
    /// The events that the channel is watched for.
    channel_watched: Option<Interest>,
    socket: Option<Arc<UdpSocket>>,
    /// The address that its datagrams leave from, if the socket has several.
    source: Option<IpAddr>,
    socket_watched: Option<Interest>,
    peer: SocketAddr,
    round_trip: Duration,
    waiter: Waiter,
    woken: Woken,
    clock: Clock,
    timeline: Timeline,
    /// When the next call is due at the latest.
    due: Option<Instant>,
    block: Box<[u8]>,
    batch: RecvBatch,
    /// Datagrams that the kernel did not take, with their length.
    blocked: Option<(usize, Vec<u8>)>,
    /// Whether the client of a server asks for nothing at present.
    is_idle: Arc<AtomicBool>,
    /// Bytes for the channel.
    pub(super) out: Vec<u8>,
}

impl Line {
    /// Connects to `peer`.
    pub(super) fn connect(peer: SocketAddr, time: Duration, stop: &Stop) -> Result<Self, Failure> {
        let any: IpAddr = if peer.is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
        let channel = TcpChannel::connect((any, 0).into(), peer).map_err(|_| Failure::Refused(peer))?;
        let mut line = Self::new(channel, peer, stop)?;
        let began = line.clock.now();
        line.waiter.watch(&line.channel, CHANNEL, Interest::Writable)?;
        line.channel_watched = Some(Interest::Writable);
        loop {
            let passed = line.clock.now() - began;
            let left = time.checked_sub(passed).filter(|left| !left.is_zero());
            let left = left.ok_or(Failure::NoAnswer { peer, time })?;
            line.waiter.wait(Some(left))?;
            line.check_stop()?;
            if line.channel.establish().map_err(|_| Failure::Refused(peer))? {
                line.round_trip = line.clock.now() - began;
                return Ok(line);
            }
        }
    }

    /// Takes an accepted connection, which shows whether its client asks for something.
    pub(super) fn accepted(
        stream: TcpStream,
        peer: SocketAddr,
        stop: &Stop,
        is_idle: Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        Ok(Self { is_idle, ..Self::new(TcpChannel::accepted(stream)?, canonical(peer), stop)? })
    }

    pub(super) fn show_idle(&self, is_idle: bool) {
        self.is_idle.store(is_idle, Ordering::Release);
    }

    fn new(channel: TcpChannel, peer: SocketAddr, stop: &Stop) -> Result<Self, Failure> {
        let waiter = Waiter::new()?;
        let woken = stop.wakes(waiter.waker());
        Ok(Self {
            channel,
            channel_watched: None,
            socket: None,
            source: None,
            socket_watched: None,
            peer,
            round_trip: Duration::ZERO,
            waiter,
            woken,
            clock: Clock::start(),
            timeline: Timeline::default(),
            due: None,
            block: vec![0; BLOCK].into_boxed_slice(),
            batch: RecvBatch::default(),
            blocked: None,
            is_idle: Arc::default(),
            out: Vec::new(),
        })
    }

    /// Opens a UDP socket for the session at this side's address of the channel, in place of the last one. Port 0 lets
    /// the system choose. Returns the port.
    pub(super) fn open_socket(&mut self, port: u16) -> Result<u16, Failure> {
        let mut address = canonical(self.channel.local_addr()?);
        address.set_port(port);
        let socket = bind_udp(address)?;
        let port = socket.local_addr().port();
        self.use_socket(Arc::new(socket))?;
        Ok(port)
    }

    /// Sends from this socket, which other sessions may share. The peer expects datagrams from the address of the channel.
    pub(super) fn use_socket(&mut self, socket: Arc<UdpSocket>) -> Result<(), Failure> {
        let is_at_all = socket.local_addr().ip().to_canonical().is_unspecified();
        self.source = if is_at_all { Some(canonical(self.channel.local_addr()?).ip()) } else { None };
        if let Some(old) = self.socket.take()
            && self.socket_watched.take().is_some()
        {
            // If it fails, the socket ends here anyway.
            let _ = self.waiter.unwatch(&*old);
        }
        self.socket = Some(socket);
        self.blocked = None;
        Ok(())
    }

    /// The peer of the channel.
    pub(super) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// How long the channel took to open; zero at the accepting side.
    pub(super) const fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// The session's time. Pauses in which this process did not run are cut out.
    pub(super) fn now(&mut self) -> Instant {
        let now = self.clock.now();
        self.timeline.at(now, self.due.take())
    }

    /// Ends the present wait, or the next one, from another thread.
    pub(super) fn waker(&self) -> Waker {
        self.waiter.waker()
    }

    pub(super) fn check_stop(&self) -> Result<(), Failure> {
        if self.woken.is_stopped() { Err(Failure::Stopped) } else { Ok(()) }
    }

    // ---- the channel ----

    /// Hands received blocks to `take`, and returns the end of the channel if it came. Reads nothing while bytes for the
    /// peer wait: a peer that asks and does not read must not fill this side's memory.
    pub(super) fn receive(
        &mut self,
        take: impl FnOnce(&[u8]) -> Result<(), Failure>,
    ) -> Result<Option<ChannelEnd>, Failure> {
        if self.channel.peer_ended() || self.channel.has_rest() {
            return Ok(None);
        }
        match self.channel.receive(&mut self.block) {
            Received::Bytes(length) => take(&self.block[..length]).map(|()| None),
            Received::Nothing => Ok(None),
            Received::Finished => Ok(Some(ChannelEnd::Finished)),
            Received::Failed => Ok(Some(ChannelEnd::Failed)),
        }
    }

    /// Sends what is in `out`.
    pub(super) fn flush(&mut self) {
        let mut sent = if self.channel.has_rest() { self.channel.send_rest() } else { Sent::All };
        if !self.out.is_empty() {
            sent = self.channel.send(&self.out);
            self.out.clear();
        }
        while sent == Sent::Part {
            sent = self.channel.send_rest();
        }
    }

    /// Whether the peer ended the channel, or it broke.
    pub(super) fn peer_ended(&self) -> bool {
        self.channel.peer_ended()
    }

    /// Whether bytes for the peer wait.
    pub(super) fn has_rest(&self) -> bool {
        self.channel.has_rest()
    }

    /// Ends the sending direction in order. Without this call the drop resets the connection.
    pub(super) fn finish(&mut self) {
        self.flush();
        self.channel.finish();
    }

    // ---- datagrams ----

    /// Hands the datagrams of one receive call to `take`. Returns whether more may wait.
    pub(super) fn receive_datagrams(
        &mut self,
        mut take: impl FnMut(SocketAddr, &[u8]) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let Some(socket) = &self.socket else { return Ok(false) };
        match socket.recv(&mut self.batch) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        for train in self.batch.trains() {
            for datagram in train.datagrams() {
                take(train.from, datagram)?;
            }
        }
        Ok(true)
    }

    /// Sends datagrams that the kernel refused before. Returns whether the kernel takes more.
    pub(super) fn send_blocked(&mut self, to: SocketAddr) -> Result<bool, Failure> {
        match self.blocked.take() {
            Some((segment, bytes)) => self.send_datagrams(to, segment, &bytes),
            None => Ok(true),
        }
    }

    /// Sends a train. Returns whether the kernel takes more.
    pub(super) fn send_datagrams(&mut self, to: SocketAddr, segment: usize, bytes: &[u8]) -> Result<bool, Failure> {
        let Some(socket) = &self.socket else { return Ok(false) };
        let mut rest = bytes;
        while !rest.is_empty() {
            let sent = socket.send_from(self.source, to, segment, rest)?;
            rest = &rest[sent.taken.min(rest.len())..];
            match sent.status {
                SendStatus::Complete => break,
                // It counts as lost. The peer reports it until the user chooses smaller ones.
                SendStatus::TooLarge => rest = &rest[segment.min(rest.len())..],
                _ => {
                    self.blocked = Some((segment, rest.to_vec()));
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    // ---- waiting ----

    /// Waits for the channel, for datagrams if `datagrams`, for room for refused datagrams, or for the deadline.
    pub(super) fn wait(&mut self, deadline: Option<Instant>, datagrams: bool, at_once: bool) -> Result<(), Failure> {
        let channel = match self.channel.has_rest() {
            true => Some(Interest::Writable),
            false => self.channel.interest(),
        };
        let socket = match (datagrams, self.blocked.is_some()) {
            (true, true) => Some(Interest::Both),
            (true, false) => Some(Interest::Readable),
            (false, true) => Some(Interest::Writable),
            (false, false) => None,
        };
        watch(&self.waiter, &self.channel, CHANNEL, &mut self.channel_watched, channel)?;
        if let Some(udp) = &self.socket {
            watch(&self.waiter, &**udp, SOCKET, &mut self.socket_watched, socket)?;
        }
        let now = self.timeline.at(self.clock.now(), None);
        let left = if at_once { Some(Duration::ZERO) } else { deadline.map(|end| end.saturating_since(now)) };
        self.due = deadline;
        self.waiter.wait(left)?;
        Ok(())
    }
}

/// Changes the events for which a source is watched.
fn watch(
    waiter: &Waiter,
    source: impl std::os::fd::AsFd,
    token: Token,
    watched: &mut Option<Interest>,
    wanted: Option<Interest>,
) -> Result<(), Failure> {
    match (*watched, wanted) {
        (before, now) if before == now => {}
        (None, Some(interest)) => waiter.watch(source, token, interest)?,
        (Some(_), Some(interest)) => waiter.rewatch(source, token, interest)?,
        (_, None) => waiter.unwatch(source)?,
    }
    *watched = wanted;
    Ok(())
}

/// An address of IPv4 as one, however a socket of both families reports it. One of a link keeps its interface.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Opens a UDP port.
pub(super) fn bind_udp(address: SocketAddr) -> Result<UdpSocket, Failure> {
    UdpSocket::bind(address, Options::default()).map_err(|source| Failure::Bind { transport: "UDP", address, source })
}
