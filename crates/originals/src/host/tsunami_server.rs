//! Serves `tsunami` clients: gives them the files of one directory.

use crate::tsunami::{Listed, Server, ServerEvent, ServerOptions};
use farhaul_units::Instant;

use super::drive::{Application, drive};
use super::line::Line;
use super::serve::OpenFile;
use super::{Failure, News};
use farhaul_disk::{Directory, ServedFile, unix_seconds};

/// Bytes of a challenge (tsunami-udp 1.1).
const CHALLENGE_LEN: usize = 64;

/// Gives the files in `root` and below it to one client of tsunami-udp 1.1. A list names only those in `root` itself.
pub(super) fn serve(
    mut line: Line,
    root: &Directory,
    options: &ServerOptions,
    tell: &dyn Fn(News<'_>),
) -> Result<(), Failure> {
    let mut challenge = [0; CHALLENGE_LEN];
    getrandom::fill(&mut challenge).map_err(|error| std::io::Error::other(error.to_string()))?;
    let now = line.now();
    let mut session = Server::new(options.clone(), challenge, now);
    let mut files = Files { root, tell, file: None, idle_since: now };
    let result = drive(&mut line, &mut session, &mut files);
    // The client reads the last answer before it sees the end.
    line.finish();
    result
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
