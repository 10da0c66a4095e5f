//! The host of RBUDP senders: gives the files of one directory to `recvfile` clients of QUANTA.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::rbudp::{SendingSession, Terms};
use farhaul::OtherClients;
use farhaul_udp::UdpSocket;
use farhaul_units::Instant;

use super::drive::{Application, drive};
use super::line::{Line, bind_udp};
use super::memory::{Budget, Share};
use super::rbudp_receiver::udp_port;
use super::serve::{OpenFile, Source, serve_all};
use super::{Failure, News, Port, Stop, Watch};
use farhaul_disk::Directory;

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
        serve_all(&self.source, most, stop, watch, |session, stream, peer, is_idle| {
            self.serve((stream, is_idle), peer, stop, &|news| watch.hear(session, peer, news))
        })
    }

    fn serve(
        &self,
        (stream, is_idle): (TcpStream, Arc<AtomicBool>),
        peer: SocketAddr,
        stop: &Stop,
        tell: &dyn Fn(News<'_>),
    ) -> Result<(), Failure> {
        let mut line = Line::accepted(stream, peer, stop, is_idle)?;
        line.use_socket(Arc::clone(&self.socket))?;
        let now = line.now();
        let terms = Terms { port: self.local_addr().port(), ..self.terms.clone() };
        let mut session = SendingSession::files(now, terms)?;
        let (file, counted, block) = (None, (0, 0), vec![0; BLOCK]);
        let mut files = Files { sender: self, tell, file, counted, idle_since: now, block };
        drive(&mut line, &mut session, &mut files)?;
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

struct Files<'a> {
    sender: &'a RbudpSender,
    tell: &'a dyn Fn(News<'_>),
    file: Option<InMemory>,
    /// Datagrams of earlier files: sent, and sent again.
    counted: (u64, u64),
    idle_since: Instant,
    block: Vec<u8>,
}

/// The present file.
struct InMemory {
    open: OpenFile,
    /// Bytes that the session has taken.
    taken: u64,
    /// Its share of the memory.
    _share: Share,
}

impl InMemory {
    fn left(&self) -> u64 {
        self.open.file.size() - self.taken
    }
}

impl Files<'_> {
    /// Answers a name. The dialogue has no word for a refusal, so it ends the session.
    fn answer(&mut self, now: Instant, session: &mut SendingSession, name: Vec<u8>) -> Result<(), Failure> {
        let opened = OpenFile::open(&self.sender.root, &name, now).and_then(|open| {
            let size = open.file.size();
            let share = self.sender.memory.take(size).ok_or(Failure::NoMemory(size))?;
            session.answer(now, size)?;
            Ok(InMemory { open, taken: 0, _share: share })
        });
        match opened {
            Ok(file) => self.file = Some(file),
            Err(why) => {
                (self.tell)(News::Refused { name: &name, why: &why });
                return Err(Failure::NoFile(name));
            }
        }
        Ok(())
    }

    /// Moves bytes of the file to the session.
    fn feed(&mut self, now: Instant, session: &mut SendingSession) -> Result<(), Failure> {
        let Some(file) = &mut self.file else { return Ok(()) };
        for _ in 0..READS {
            let left = usize::try_from(file.left()).unwrap_or(usize::MAX);
            let block = &mut self.block[..session.room().min(left).min(BLOCK)];
            if block.is_empty() {
                break;
            }
            file.open.file.read(file.taken, block)?;
            file.taken += session.write(now, block) as u64;
        }
        Ok(())
    }

    fn given(&mut self, now: Instant, session: &SendingSession) {
        let Some(file) = self.file.take() else { return };
        let totals = session.stats(now).totals;
        let (sent, again) = (totals.packets_sent - self.counted.0, totals.packets_retransmitted - self.counted.1);
        self.counted = (totals.packets_sent, totals.packets_retransmitted);
        (self.tell)(News::Given(&file.open.given(now, sent, again)));
        self.idle_since = now;
    }
}

impl Application<SendingSession> for Files<'_> {
    fn work(&mut self, now: Instant, session: &mut SendingSession, line: &mut Line) -> Result<bool, Failure> {
        if let Some(name) = session.asked() {
            let name = name.to_vec();
            self.answer(now, session, name)?;
        }
        self.feed(now, session)?;
        if session.is_complete() {
            self.given(now, session);
        }
        Ok(line.peer_ended())
    }

    /// At once if the session takes more bytes.
    fn deadline(&self, session: &SendingSession) -> Option<Instant> {
        let is_hungry = self.file.as_ref().is_some_and(|file| file.left() > 0) && session.room() > 0;
        is_hungry.then_some(Instant::ZERO)
    }

    fn idle_since(&self) -> Option<Instant> {
        self.file.is_none().then_some(self.idle_since)
    }
}
