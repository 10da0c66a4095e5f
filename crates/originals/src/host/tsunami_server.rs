//! The host of Tsunami servers: gives the files of one directory to `tsunami` clients.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::tsunami::{Listed, Server, ServerEvent, ServerOptions};
use farhaul::OtherClients;
use farhaul_units::Instant;

use super::drive::{Application, drive};
use super::line::Line;
use super::serve::{OpenFile, Source, serve_all};
use super::{Failure, News, Port, Stop, Watch};
use farhaul_disk::{Directory, ServedFile, unix_seconds};

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
        let mut challenge = [0; CHALLENGE_LEN];
        getrandom::fill(&mut challenge).map_err(|error| std::io::Error::other(error.to_string()))?;
        let mut line = Line::accepted(stream, peer, stop, is_idle)?;
        let now = line.now();
        let mut session = Server::new(self.options.clone(), challenge, now);
        let mut files = Files { root: &self.root, tell, file: None, idle_since: now };
        let result = drive(&mut line, &mut session, &mut files);
        // The client reads the last answer before it sees the end.
        line.finish();
        result
    }
}

struct Files<'a> {
    root: &'a Directory,
    tell: &'a dyn Fn(News<'_>),
    /// The present file.
    file: Option<OpenFile>,
    idle_since: Instant,
}

impl Files<'_> {
    fn asked(&mut self, now: Instant, session: &mut Server, name: &[u8]) {
        match OpenFile::open(self.root, name, now) {
            Ok(open) => {
                session.grant(now, open.file.size(), unix_seconds());
                self.file = Some(open);
            }
            Err(why) => {
                (self.tell)(News::Refused { name, why: &why });
                session.refuse(now);
            }
        }
    }

    fn list(&self, now: Instant, session: &mut Server) {
        let files = ServedFile::list(self.root).unwrap_or_default();
        let files: Vec<_> =
            files.into_iter().map(|(name, size)| Listed { name: name.as_bytes().to_vec(), size }).collect();
        session.give_list(now, &files);
    }
}

impl Application<Server> for Files<'_> {
    fn work(&mut self, now: Instant, session: &mut Server, line: &mut Line) -> Result<bool, Failure> {
        while let Some(event) = session.poll_event() {
            self.idle_since = now;
            match event {
                ServerEvent::Asked(name) => self.asked(now, session, &name),
                ServerEvent::ListAsked => self.list(now, session),
                ServerEvent::NameRefused(name) => {
                    let reason = "it leads out of the served directory".to_owned();
                    (self.tell)(News::Refused { name: &name, why: &Failure::Name { name: name.clone(), reason } });
                }
                ServerEvent::Started { .. } => {
                    line.open_socket(0)?;
                }
                ServerEvent::Stopped(counts) => {
                    if let Some(open) = self.file.take() {
                        (self.tell)(News::Given(&open.given(now, counts.sent, counts.retransmitted)));
                    }
                }
                ServerEvent::Ended => return Ok(true),
                _ => {}
            }
        }
        Ok(false)
    }

    fn work_after_fault(&mut self, now: Instant, session: &mut Server, line: &mut Line) -> Result<(), Failure> {
        self.work(now, session, line).map(|_| ())
    }

    fn idle_since(&self) -> Option<Instant> {
        self.file.is_none().then_some(self.idle_since)
    }

    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), Failure> {
        let open = self.file.as_mut().ok_or_else(|| Failure::NoFile(Vec::new()))?;
        Ok(open.file.read(offset, out)?)
    }
}
