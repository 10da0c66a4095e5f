//! The host of a Tsunami client: asks a `tsunamid` for lists and files, and writes the files.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::session::Placed;
use crate::tsunami::{Client, ClientEvent, ClientOptions, Fault, Listed};
use farhaul_session::Component;
use farhaul_units::Instant;

use super::drive::{Application, drive};
use super::line::Line;
use super::{Failure, Progress, SessionHandle};
use farhaul_disk::{IncomingFile, IncomingPlace};

/// A connection with a Tsunami server.
#[derive(Debug)]
pub struct TsunamiClient {
    line: Line,
    session: Client,
    requests: Requests,
}

#[derive(Debug)]
struct Requests {
    progress: Progress,
    task: Task,
    /// The server's answer to it.
    answer: Option<ClientEvent>,
}

/// The task of the present request.
#[derive(Debug)]
enum Task {
    /// The opening, or a list.
    Dialogue,
    /// A file that was asked for.
    Asked {
        place: Arc<IncomingPlace>,
        name: Component,
    },
    Receiving(IncomingFile),
}

impl TsunamiClient {
    /// Connects to a server and proves the secret. `time` bounds the opening of the TCP connection.
    ///
    /// # Errors
    /// Nobody answers, the secret is wrong, or the peer speaks something else.
    pub fn connect(
        server: SocketAddr,
        options: ClientOptions,
        time: Duration,
        handle: &SessionHandle,
    ) -> Result<Self, Failure> {
        let mut line = Line::connect(server, time, &handle.stop)?;
        let session = Client::new(options, line.now());
        let requests = Requests { progress: handle.progress.clone(), task: Task::Dialogue, answer: None };
        let mut client = Self { line, session, requests };
        match client.run()? {
            ClientEvent::Admitted => Ok(client),
            _ => Err(Fault::OutOfTurn.into()),
        }
    }

    /// Names and sizes of the server's files; `None` if the server knows no such list. The names are the server's.
    ///
    /// # Errors
    /// The session failed. It is of no more use.
    pub fn list(&mut self) -> Result<Option<Vec<Listed>>, Failure> {
        let now = self.line.now();
        self.session.list(now).map_err(|error| refused(b"", &error))?;
        match self.run()? {
            ClientEvent::Files(files) => Ok(Some(files)),
            _ => Ok(None),
        }
    }

    /// The names of all files, which the original asks for as `get *`.
    ///
    /// # Errors
    /// The session failed. It is of no more use.
    pub fn names(&mut self) -> Result<Vec<Vec<u8>>, Failure> {
        let now = self.line.now();
        self.session.list_all(now).map_err(|error| refused(b"", &error))?;
        match self.run()? {
            ClientEvent::Names(names) => Ok(names),
            _ => Ok(Vec::new()),
        }
    }

    /// Copies the file that the server calls `name` to `place`, where it is called `local` unless the place has a name.
    /// Returns its size.
    ///
    /// # Errors
    /// The server has no such file, which leaves the session usable: [`Failure::NoFile`], [`Failure::Name`]. After any
    /// other failure it is of no more use.
    pub fn get(&mut self, name: &[u8], local: &Component, place: &Arc<IncomingPlace>) -> Result<u64, Failure> {
        let port = self.line.open_socket(0)?;
        let now = self.line.now();
        let before = self.requests.progress.figures().announced;
        self.session.get(now, name, port).map_err(|error| refused(name, &error))?;
        self.requests.task = Task::Asked { place: Arc::clone(place), name: local.clone() };
        let answer = self.run();
        match (answer?, std::mem::replace(&mut self.requests.task, Task::Dialogue)) {
            (ClientEvent::Done { .. }, Task::Receiving(file)) => file.commit()?,
            (ClientEvent::Refused, _) => return Err(Failure::NoFile(name.to_vec())),
            _ => return Err(Fault::OutOfTurn.into()),
        }
        Ok(self.requests.progress.figures().announced - before)
    }

    /// Ends the connection in order.
    pub fn finish(mut self) {
        self.line.finish();
    }

    fn run(&mut self) -> Result<ClientEvent, Failure> {
        self.requests.answer = None;
        let result = drive(&mut self.line, &mut self.session, &mut self.requests);
        if result.is_err() {
            // The incomplete file goes.
            self.requests.task = Task::Dialogue;
            self.line.finish();
        }
        result?;
        self.requests.answer.take().ok_or(Failure::Ended)
    }
}

fn refused(name: &[u8], error: &dyn std::fmt::Display) -> Failure {
    Failure::Name { name: name.to_vec(), reason: error.to_string() }
}

impl Requests {
    fn granted(&mut self, size: u64) -> Result<(), Failure> {
        let Task::Asked { place, name } = &self.task else { return Err(Fault::OutOfTurn.into()) };
        let file = place.begin(name, size)?;
        self.progress.announce(size);
        self.task = Task::Receiving(file);
        Ok(())
    }

    fn handle_events(&mut self, session: &mut Client) -> Result<bool, Failure> {
        while let Some(event) = session.poll_event() {
            match event {
                ClientEvent::Granted { size } => self.granted(size)?,
                ClientEvent::Ended => return Err(Failure::Ended),
                answer => self.answer = Some(answer),
            }
        }
        Ok(self.answer.is_some())
    }
}

impl Application<Client> for Requests {
    fn work(&mut self, _now: Instant, session: &mut Client, _line: &mut Line) -> Result<bool, Failure> {
        self.handle_events(session)
    }

    fn work_after_fault(&mut self, _now: Instant, session: &mut Client, _line: &mut Line) -> Result<(), Failure> {
        self.handle_events(session).map(|_| ())
    }

    fn progress(&self) -> Option<&Progress> {
        Some(&self.progress)
    }

    fn store(&mut self, session: &mut Client, block: Placed<'_>) -> Result<(), Failure> {
        // The first block may come in the turn of the grant.
        if let Task::Asked { .. } = self.task {
            self.handle_events(session)?;
        }
        if let Task::Receiving(file) = &self.task {
            file.write(block.offset, block.bytes)?;
            self.progress.add_bytes(block.bytes.len() as u64);
        }
        Ok(())
    }
}
