//! Serves `recvfile` clients of QUANTA: gives them the files of one directory.

use std::sync::Arc;

use crate::rbudp::{SendingSession, Terms};
use farhaul::OtherClients;
use farhaul_udp::UdpSocket;
use farhaul_units::Instant;

use super::drive::{Application, drive};
use super::line::Line;
use super::memory::{Budget, Share};
use super::rbudp_receiver::udp_port;
use super::serve::OpenFile;
use super::{Failure, News};
use farhaul_disk::Directory;

/// Bytes of one read from the disk.
const BLOCK: usize = 256 << 10;
/// Reads of one turn. Datagrams and the channel get their turn in between.
const READS: usize = 8;
/// Bytes of files that all sessions hold together. A session keeps its file in memory, because the receiver may ask for any
/// packet again until it has all of them. This is two of the largest files of the protocol.
const HELD: u64 = 4 << 30;

/// What the sessions of a server for clients of QUANTA's RBUDP share.
#[derive(Debug)]
pub(super) struct RbudpSender {
    /// All sessions send from the port that the clients expect.
    socket: Arc<UdpSocket>,
    terms: Terms,
    memory: Budget,
}

impl RbudpSender {
    /// For the clients of an endpoint.
    ///
    /// # Errors
    /// The endpoint's port is the last one, and a receiver would need the one after it.
    pub(super) fn new(clients: &OtherClients, terms: Terms) -> Result<Self, Failure> {
        let port = clients.local_addr().port();
        udp_port(clients.local_addr())?;
        let terms = Terms { port, ..terms };
        Ok(Self { socket: Arc::clone(clients.socket()), terms, memory: Budget::new(HELD) })
    }

    /// Bounds the bytes of files that all sessions hold in memory together.
    #[cfg(test)]
    pub(super) fn hold_at_most(&mut self, bytes: u64) {
        self.memory = Budget::new(bytes);
    }

    /// Gives the files in `root` and below it to one client.
    pub(super) fn serve(&self, mut line: Line, root: &Directory, tell: &dyn Fn(News<'_>)) -> Result<(), Failure> {
        line.use_socket(Arc::clone(&self.socket))?;
        let now = line.now();
        let mut session = SendingSession::files(now, self.terms.clone())?;
        let (file, counted, block) = (None, (0, 0), vec![0; BLOCK]);
        let mut files = Files { sender: self, root, tell, file, counted, idle_since: now, block };
        drive(&mut line, &mut session, &mut files)?;
        line.finish();
        Ok(())
    }
}

struct Files<'a> {
    sender: &'a RbudpSender,
    root: &'a Directory,
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
        let opened = OpenFile::open(self.root, &name, now).and_then(|open| {
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
