//! The host of Tsunami servers: gives the files of one directory to `tsunami` clients.

use std::net::{SocketAddr, TcpStream};

use farhaul::OtherClients;
use farhaul_proto::ChannelEnd;
use farhaul_protocols::tsunami::original::{Listed, Server, ServerEvent, ServerOptions, TransferCounts};
use farhaul_session::RelPath;
use farhaul_units::Instant;

use super::drive::{Session, drive};
use super::line::Line;
use super::serve::{IDLE, Source, serve_all};
use super::{Failure, Given, News, Port, Stop, Watch};
use crate::disk::{Directory, ServedFile, unix_seconds};

/// Bytes of a challenge (tsunami-udp 1.1).
const CHALLENGE_LEN: usize = 64;

/// A server for clients of tsunami-udp 1.1.
#[derive(Debug)]
pub struct TsunamiServer {
    source: Source,
    root: Directory,
    options: ServerOptions,
}

impl TsunamiServer {
    /// A server of the files in `root`. Files below it are given, too, but a list names only those in `root` itself.
    pub const fn new(port: Port, root: Directory, options: ServerOptions) -> Self {
        Self { source: Source::Port(port), root, options }
    }

    /// The same for the original clients of an endpoint.
    pub const fn beside(clients: OtherClients, root: Directory, options: ServerOptions) -> Self {
        Self { source: Source::Endpoint(clients), root, options }
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
        let mut challenge = [0; CHALLENGE_LEN];
        getrandom::fill(&mut challenge).map_err(|error| std::io::Error::other(error.to_string()))?;
        let mut line = Line::accepted(stream, peer, stop)?;
        let now = line.now();
        let mut host = Host {
            session: Server::new(self.options.clone(), challenge, now),
            root: &self.root,
            tell,
            file: None,
            to: None,
            idle_since: now,
            content: Vec::new(),
        };
        let result = drive(&mut line, &mut host);
        // The client reads the last answer before it sees the end.
        line.finish();
        result
    }
}

struct Host<'a> {
    session: Server,
    root: &'a Directory,
    tell: &'a dyn Fn(News<'_>),
    file: Option<Open>,
    /// Where the datagrams of the present file go.
    to: Option<SocketAddr>,
    idle_since: Instant,
    content: Vec<u8>,
}

/// The present file.
struct Open {
    name: Vec<u8>,
    file: ServedFile,
    since: Instant,
}

impl Host<'_> {
    fn asked(&mut self, now: Instant, name: Vec<u8>) {
        let parsed =
            RelPath::parse(&name).map_err(|error| Failure::Name { name: name.clone(), reason: error.to_string() });
        match parsed.and_then(|path| Ok(ServedFile::open(self.root, &path)?)) {
            Ok(file) => {
                self.session.grant(now, file.size(), unix_seconds());
                self.file = Some(Open { name, file, since: now });
            }
            Err(why) => {
                (self.tell)(News::Refused { name: &name, why: &why });
                self.session.refuse(now);
            }
        }
    }

    fn list(&mut self, now: Instant) {
        let files = ServedFile::list(self.root).unwrap_or_default();
        let files: Vec<_> =
            files.into_iter().map(|(name, size)| Listed { name: name.as_bytes().to_vec(), size }).collect();
        self.session.give_list(now, &files);
    }

    fn stopped(&mut self, now: Instant, counts: TransferCounts) {
        let Some(Open { name, file, since }) = self.file.take() else { return };
        let (sent, retransmitted, time) = (counts.sent, counts.retransmitted, now - since);
        (self.tell)(News::Given(&Given { name, size: file.size(), sent, retransmitted, time }));
        self.to = None;
    }

    fn idle_ends(&self) -> Option<Instant> {
        self.file.is_none().then(|| self.idle_since + IDLE)
    }
}

impl Session for Host<'_> {
    fn handle_channel(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Failure> {
        self.session.handle_channel(now, bytes);
        Ok(())
    }

    fn channel_ended(&mut self, now: Instant, _end: ChannelEnd) -> Result<(), Failure> {
        self.session.channel_ended(now);
        Ok(())
    }

    fn poll_channel(&mut self, _now: Instant, out: &mut Vec<u8>) {
        self.session.poll_channel(out);
    }

    fn to(&self) -> Option<SocketAddr> {
        self.to
    }

    fn next_train<'a>(
        &'a mut self,
        now: Instant,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Option<(usize, &'a [u8])>, Failure> {
        let (Some(train), Some(open)) = (self.session.plan(now), &mut self.file) else { return Ok(None) };
        self.content.resize(train.length, 0);
        open.file.read(train.offset, &mut self.content)?;
        scratch.clear();
        let segment = self.session.emit(now, train, &self.content, scratch);
        Ok(Some((segment, scratch)))
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Failure> {
        self.session.handle_timeout(now);
        match self.idle_ends() {
            Some(end) if end <= now => Err(Failure::Idle(IDLE)),
            _ => Ok(()),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        [self.session.deadline(), self.idle_ends()].into_iter().flatten().min()
    }

    fn work(&mut self, now: Instant, line: &mut Line) -> Result<bool, Failure> {
        while let Some(event) = self.session.poll_event() {
            self.idle_since = now;
            match event {
                ServerEvent::Asked(name) => self.asked(now, name),
                ServerEvent::ListAsked => self.list(now),
                ServerEvent::NameRefused(name) => {
                    let reason = "it leads out of the served directory".to_owned();
                    (self.tell)(News::Refused { name: &name, why: &Failure::Name { name: name.clone(), reason } });
                }
                ServerEvent::Started { port, .. } => {
                    line.open_socket(0)?;
                    // Never elsewhere than to the peer of the channel (attack C1).
                    self.to = Some(SocketAddr::new(line.peer().ip(), port));
                }
                ServerEvent::Stopped(counts) => self.stopped(now, counts),
                ServerEvent::Ended => return Ok(true),
                ServerEvent::Failed(fault) => return Err(fault.into()),
                _ => {}
            }
        }
        Ok(false)
    }
}
