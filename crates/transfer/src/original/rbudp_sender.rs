//! The host of RBUDP senders: gives the files of one directory to `recvfile` clients of QUANTA.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use farhaul::OtherClients;
use farhaul_proto::ChannelEnd;
use farhaul_protocols::rbudp::original::{SendingSession, Terms};
use farhaul_session::RelPath;
use farhaul_udp::UdpSocket;
use farhaul_units::Instant;

use super::drive::{Session, drive};
use super::line::{Line, bind_udp};
use super::memory::{Budget, Share};
use super::rbudp_receiver::udp_port;
use super::serve::{IDLE, Source, serve_all};
use super::{Failure, Given, News, Port, Stop, Watch};
use crate::disk::{Directory, ServedFile};

/// Bytes of one read from the disk.
const BLOCK: usize = 256 << 10;
/// Reads of one turn. Datagrams and the channel get their turn in between.
const READS: usize = 8;
/// Bytes of files that all sessions hold together. A session keeps its file in memory, because the receiver may ask for any
/// packet again until it has all of them. This is two of the largest files of the protocol.
const HELD: u64 = 4 << 30;
/// Attempts to find a number that is free for both TCP and UDP.
const ATTEMPTS: usize = 16;

/// A server for clients of QUANTA's RBUDP.
#[derive(Debug)]
pub struct RbudpSender {
    source: Source,
    /// All sessions send from the port that the clients expect.
    socket: Arc<UdpSocket>,
    root: Directory,
    terms: Terms,
    memory: Budget,
}

impl RbudpSender {
    /// Opens TCP and UDP port `p`, and gives the files in `root` and below it.
    ///
    /// # Errors
    /// A port is taken, or is none of this machine.
    pub fn bind(address: SocketAddr, root: Directory, terms: Terms) -> Result<Self, Failure> {
        let (port, socket) = bind_both(address)?;
        udp_port(port.local_addr())?;
        Ok(Self { source: Source::Port(port), socket: Arc::new(socket), root, terms, memory: Budget::new(HELD) })
    }

    /// Gives the files in `root` and below it to the original clients of an endpoint.
    ///
    /// # Errors
    /// The endpoint's port is the last one, and a receiver would need the one after it.
    pub fn beside(clients: OtherClients, root: Directory, terms: Terms) -> Result<Self, Failure> {
        udp_port(clients.local_addr())?;
        let socket = Arc::clone(clients.socket());
        Ok(Self { source: Source::Endpoint(clients), socket, root, terms, memory: Budget::new(HELD) })
    }

    /// Bounds the bytes of files that all sessions hold in memory together. Default 4 GiB. A client that asks for more is
    /// refused.
    #[must_use]
    pub fn hold_at_most(mut self, bytes: u64) -> Self {
        self.memory = Budget::new(bytes);
        self
    }

    /// The address, with the port chosen by the system.
    pub fn local_addr(&self) -> SocketAddr {
        self.source.local_addr()
    }

    /// Serves at most `most` clients at a time, until a stop. A server of an endpoint ends once the endpoint's listener
    /// is closed as well.
    ///
    /// # Errors
    /// [`Failure::Stopped`], or the system fails.
    pub fn run(&self, most: usize, stop: &Stop, watch: &dyn Watch) -> Result<(), Failure> {
        serve_all(&self.source, most, stop, watch, |session, stream, peer| {
            self.serve(stream, peer, stop, &|news| watch.hear(session, peer, news))
        })
    }

    fn serve(&self, stream: TcpStream, peer: SocketAddr, stop: &Stop, tell: &dyn Fn(News<'_>)) -> Result<(), Failure> {
        let mut line = Line::accepted(stream, peer, stop)?;
        line.use_socket(Arc::clone(&self.socket));
        let to = SocketAddr::new(line.peer().ip(), udp_port(self.local_addr())?);
        let now = line.now();
        let session = SendingSession::files(now, self.terms.clone())?;
        let counted = (0, 0);
        let block = vec![0; BLOCK];
        let mut host =
            Host { session, sender: self, tell, to, file: None, counted, ended: false, idle_since: now, block };
        drive(&mut line, &mut host)?;
        line.finish();
        Ok(())
    }
}

/// A TCP and a UDP port of one number.
pub(super) fn bind_both(address: SocketAddr) -> Result<(Port, UdpSocket), Failure> {
    let mut attempts = 1;
    loop {
        let port = Port::bind(address)?;
        match bind_udp(port.local_addr()) {
            Ok(socket) => return Ok((port, socket)),
            // The system chose a number that is free for TCP alone.
            Err(_) if address.port() == 0 && attempts < ATTEMPTS => attempts += 1,
            Err(failure) => return Err(failure),
        }
    }
}

struct Host<'a> {
    session: SendingSession,
    sender: &'a RbudpSender,
    tell: &'a dyn Fn(News<'_>),
    to: SocketAddr,
    file: Option<Open>,
    /// Datagrams of earlier files: sent, and sent again.
    counted: (u64, u64),
    ended: bool,
    idle_since: Instant,
    block: Vec<u8>,
}

/// The present file.
struct Open {
    name: Vec<u8>,
    file: ServedFile,
    /// Bytes that the session has taken.
    given: u64,
    since: Instant,
    /// Its share of the memory.
    _share: Share,
}

impl Host<'_> {
    /// Answers a name. The dialogue has no word for a refusal, so it ends the session.
    fn answer(&mut self, now: Instant, name: Vec<u8>) -> Result<(), Failure> {
        let opened = RelPath::parse(&name)
            .map_err(|error| Failure::Name { name: name.clone(), reason: error.to_string() })
            .and_then(|path| Ok(ServedFile::open(&self.sender.root, &path)?))
            .and_then(|file| {
                let share = self.sender.memory.take(file.size()).ok_or(Failure::NoMemory(file.size()))?;
                self.session.answer(now, file.size())?;
                Ok((file, share))
            });
        match opened {
            Ok((file, share)) => self.file = Some(Open { name, file, given: 0, since: now, _share: share }),
            Err(why) => {
                (self.tell)(News::Refused { name: &name, why: &why });
                return Err(Failure::NoFile(name));
            }
        }
        Ok(())
    }

    /// Moves bytes of the file to the session.
    fn feed(&mut self, now: Instant) -> Result<(), Failure> {
        let Some(open) = &mut self.file else { return Ok(()) };
        for _ in 0..READS {
            let left = open.file.size() - open.given;
            let length = self.session.room().min(self.block.len()).min(usize::try_from(left).unwrap_or(usize::MAX));
            if length == 0 {
                break;
            }
            open.file.read(open.given, &mut self.block[..length])?;
            open.given += self.session.write(now, &self.block[..length]) as u64;
        }
        Ok(())
    }

    /// Whether the session takes more bytes at once.
    fn is_hungry(&self) -> bool {
        self.file.as_ref().is_some_and(|open| open.given < open.file.size()) && self.session.room() > 0
    }

    fn given(&mut self, now: Instant) {
        let Some(Open { name, file, since, .. }) = self.file.take() else { return };
        let totals = self.session.stats(now).totals;
        let (sent, again) = (totals.packets_sent - self.counted.0, totals.packets_retransmitted - self.counted.1);
        self.counted = (totals.packets_sent, totals.packets_retransmitted);
        (self.tell)(News::Given(&Given { name, size: file.size(), sent, retransmitted: again, time: now - since }));
        self.idle_since = now;
    }

    fn idle_ends(&self) -> Option<Instant> {
        self.file.is_none().then(|| self.idle_since + IDLE)
    }
}

impl Session for Host<'_> {
    fn handle_channel(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.session.handle_channel(now, bytes)?)
    }

    fn channel_ended(&mut self, now: Instant, end: ChannelEnd) -> Result<(), Failure> {
        self.ended = true;
        Ok(self.session.channel_ended(now, end)?)
    }

    fn poll_channel(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.session.poll_channel(now, out);
    }

    fn to(&self) -> Option<SocketAddr> {
        Some(self.to)
    }

    fn next_train<'a>(
        &'a mut self,
        now: Instant,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Option<(usize, &'a [u8])>, Failure> {
        Ok(self.session.poll_datagrams(now, scratch))
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Failure> {
        self.session.handle_timeout(now)?;
        match self.idle_ends() {
            Some(end) if end <= now => Err(Failure::Idle(IDLE)),
            _ => Ok(()),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        if self.is_hungry() {
            return Some(Instant::ZERO);
        }
        [self.session.deadline(), self.idle_ends()].into_iter().flatten().min()
    }

    fn work(&mut self, now: Instant, _line: &mut Line) -> Result<bool, Failure> {
        if let Some(name) = self.session.asked() {
            let name = name.to_vec();
            self.answer(now, name)?;
        }
        self.feed(now)?;
        if self.session.is_complete() {
            self.given(now);
        }
        Ok(self.ended)
    }
}
