//! The client's side of a connection with a `tsunamid` server.

mod lists;
mod options;
mod receiving;

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant};
use farhaul_wire::tsunami::{
    Answer, GOT_LIST, LIST_ALL, LIST_FILES, MAX_BLOCK, MAX_NAME, MessageError, Parameters, Proof, REVISION, Request,
    Sizes, Totals, check_revision, encode_name,
};

pub use self::options::{ClientOptions, Losses};
use self::receiving::Receiving;
use super::inbox::Inbox;
use super::{Fault, Listed};
use crate::session::{DatagramOutcome, OriginalSession};
use farhaul_proto::channel::ChannelEnd;
use farhaul_proto::transport::earliest;

/// Time within which the first datagram must come. Control connections of firewalled hosts work, so users need to be
/// told soon.
const FIRST_DATAGRAM: Duration = Duration::from_secs(3);
/// Time for a server to say that it has no names to list. Of the original's servers, those whose list is a program's say
/// it, and those whose list is fixed await [`GOT_LIST`]. Longer than any RTT, and short for somebody who waits.
const NO_NAMES: Duration = Duration::from_secs(1);

/// News and requests for the host of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The server knows this client. From now on one request may follow another.
    Admitted,
    /// The server has the file. Its blocks follow.
    Granted {
        /// Bytes of the file.
        size: u64,
    },
    /// The server cannot open the file, or knows no such list.
    Refused,
    /// The files of the server. Their names are those of the server, and the host checks them before use.
    Files(Vec<Listed>),
    /// The names of all files, to be asked for one after another.
    Names(Vec<Vec<u8>>),
    /// The transfer is over, and the server was told.
    Done {
        /// Blocks that are missing. Only a client that accepts losses misses any.
        missing: u32,
    },
    /// The server ended the connection while no transfer was under way.
    Ended,
}

/// Why a request was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameRefused {
    /// Another request is under way, or the session is over.
    #[error("one request at a time: another one is under way, or the session is over")]
    Busy,
    /// The name is empty, longer than 1023 bytes, holds a line feed or a zero, or means a list.
    #[error("the name is empty, too long, holds a line feed or a zero, or means a list")]
    Name,
}

/// One connection to a server.
#[derive(Debug)]
pub struct Client {
    options: ClientOptions,
    state: ClientState,
    /// When this state began.
    since: Instant,
    inbox: Inbox,
    out: Vec<u8>,
    events: VecDeque<ClientEvent>,
    /// The server may still say that it has no names.
    no_names_is_due: bool,
}

#[derive(Debug)]
enum ClientState {
    /// These wait for the server's message.
    Revision,
    Challenge,
    Admission,
    /// No request is under way.
    Ready,
    /// These bear the UDP port for the file.
    Grant(u16),
    Sizes(u16),
    Receiving(Box<Receiving>),
    FileCount,
    Files {
        left: u64,
        bytes: u64,
        files: Vec<Listed>,
    },
    Totals,
    Names {
        totals: Totals,
        bytes: u64,
        names: Vec<Vec<u8>>,
    },
    /// The server has no names to list. It may say so by [`Answer::NoFile`], or await [`GOT_LIST`].
    NoNames,
    Over,
}

impl Client {
    /// A session with a server to which the host has just connected.
    pub fn new(mut options: ClientOptions, now: Instant) -> Self {
        options.block_size = options.block_size.clamp(1, MAX_BLOCK);
        let out = REVISION.to_be_bytes().to_vec();
        let (inbox, events) = (Inbox::default(), VecDeque::new());
        Self { options, state: ClientState::Revision, since: now, inbox, out, events, no_names_is_due: false }
    }

    // ---- requests ----

    /// Asks for a file, whose datagrams shall come to this UDP port. The host has a socket there, and takes a new port
    /// for each file.
    ///
    /// # Errors
    /// Another request is under way, or no file can have this name.
    pub fn get(&mut self, now: Instant, name: &[u8], port: u16) -> Result<(), NameRefused> {
        let forbidden = name.iter().any(|byte| matches!(byte, b'\n' | 0));
        if name.is_empty() || name.len() > MAX_NAME || forbidden || name == LIST_ALL || name == LIST_FILES {
            return Err(NameRefused::Name);
        }
        self.ask(now, name, ClientState::Grant(port))
    }

    /// Asks for names and sizes of all files. [`ClientEvent::Files`] or [`ClientEvent::Refused`] follows.
    ///
    /// # Errors
    /// Another request is under way.
    pub fn list(&mut self, now: Instant) -> Result<(), NameRefused> {
        self.ask(now, LIST_FILES, ClientState::FileCount)
    }

    /// Asks for the names of all files, as `get *` of the original. [`ClientEvent::Names`] follows.
    ///
    /// # Errors
    /// Another request is under way.
    pub fn list_all(&mut self, now: Instant) -> Result<(), NameRefused> {
        self.ask(now, LIST_ALL, ClientState::Totals)
    }

    fn ask(&mut self, now: Instant, name: &[u8], next: ClientState) -> Result<(), NameRefused> {
        if !matches!(self.state, ClientState::Ready) {
            return Err(NameRefused::Busy);
        }
        encode_name(name, &mut self.out);
        self.enter(now, next);
        Ok(())
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    // ---- the dialogue ----

    fn enter(&mut self, now: Instant, state: ClientState) {
        self.state = state;
        self.since = now;
    }

    fn fail<T>(&mut self, now: Instant, fault: Fault) -> Result<T, Fault> {
        self.enter(now, ClientState::Over);
        self.inbox.clear();
        Err(fault)
    }

    fn finish(&mut self, now: Instant, event: ClientEvent) {
        self.events.push_back(event);
        self.enter(now, ClientState::Ready);
    }

    /// Handles one message. Returns false if none is complete.
    fn step(&mut self, now: Instant) -> Result<bool, Fault> {
        match &mut self.state {
            ClientState::Revision => {
                let Some(length) = check_revision(self.inbox.rest())? else { return Ok(false) };
                self.inbox.consume(length);
                self.enter(now, ClientState::Challenge);
            }
            ClientState::Challenge => {
                let Some(challenge) = self.inbox.take() else { return Ok(false) };
                self.out.extend_from_slice(&Proof::of(&challenge, &self.options.secret).0);
                self.enter(now, ClientState::Admission);
            }
            ClientState::Admission => {
                let Some([byte]) = self.inbox.take() else { return Ok(false) };
                match Answer::from_byte(byte)? {
                    Answer::Accepted => self.finish(now, ClientEvent::Admitted),
                    Answer::WrongProof => return Err(Fault::WrongSecret),
                    Answer::NoFile => return Err(MessageError::Answer(byte).into()),
                }
            }
            ClientState::Grant(port) => {
                let port = *port;
                let Some([byte]) = self.inbox.take() else { return Ok(false) };
                match Answer::from_byte(byte)? {
                    Answer::Accepted => self.send_parameters(now, port),
                    Answer::NoFile => self.finish(now, ClientEvent::Refused),
                    Answer::WrongProof => return Err(MessageError::Answer(byte).into()),
                }
            }
            ClientState::Sizes(port) => {
                let port = *port;
                let Some(sizes) = Sizes::decode(self.inbox.rest())? else { return Ok(false) };
                self.inbox.consume(Sizes::LEN);
                self.begin(now, sizes, port)?;
            }
            ClientState::FileCount
            | ClientState::Files { .. }
            | ClientState::Totals
            | ClientState::Names { .. }
            | ClientState::NoNames => {
                return self.step_list(now);
            }
            ClientState::Ready if self.no_names_is_due && self.inbox.rest() == [Answer::NoFile.byte()] => {
                self.no_names_is_due = false;
                self.inbox.consume(1);
            }
            ClientState::Ready | ClientState::Receiving(_) if !self.inbox.rest().is_empty() => {
                return Err(Fault::OutOfTurn);
            }
            ClientState::Ready | ClientState::Receiving(_) | ClientState::Over => return Ok(false),
        }
        Ok(true)
    }

    fn send_parameters(&mut self, now: Instant, port: u16) {
        let options = &self.options;
        let parameters = Parameters {
            block_size: options.block_size,
            target_rate: u32::try_from(options.rate.bits_per_second()).unwrap_or(u32::MAX).max(1),
            error_threshold: options.error_threshold,
            slower: options.slower,
            faster: options.faster,
        };
        parameters.encode(&mut self.out);
        self.enter(now, ClientState::Sizes(port));
    }

    /// The server named the sizes of the file.
    fn begin(&mut self, now: Instant, sizes: Sizes, port: u16) -> Result<(), Fault> {
        let (asked, answered) = (self.options.block_size, sizes.block);
        if asked != answered {
            return Err(Fault::BlockSize { asked, answered });
        }
        if sizes.file > self.options.largest {
            return Err(Fault::TooLarge { size: sizes.file, most: self.options.largest });
        }
        self.out.extend_from_slice(&port.to_be_bytes());
        self.events.push_back(ClientEvent::Granted { size: sizes.file });
        let receiving = Receiving::new(sizes, &self.options, now);
        self.enter(now, ClientState::Receiving(Box::new(receiving)));
        if sizes.count == 0 {
            self.stop(now, 0);
        }
        Ok(())
    }

    fn stop(&mut self, now: Instant, missing: u32) {
        self.out.extend_from_slice(&Request::Stop.bytes());
        self.finish(now, ClientEvent::Done { missing });
    }

    /// When a server that has no names to list is taken for one that awaits a word.
    fn no_names_ends(&self) -> Option<Instant> {
        matches!(self.state, ClientState::NoNames).then(|| self.since + NO_NAMES)
    }

    fn patience_ends(&self) -> Option<(Instant, Fault)> {
        let patience = self.options.patience;
        match &self.state {
            ClientState::Ready | ClientState::NoNames | ClientState::Over => None,
            ClientState::Receiving(receiving) => Some(match receiving.heard() {
                Some(heard) => (heard + patience, Fault::Silent(patience)),
                None => (self.since + FIRST_DATAGRAM, Fault::NoDatagrams(FIRST_DATAGRAM)),
            }),
            _ => Some((self.since + patience, Fault::NoAnswer(patience))),
        }
    }
}

impl OriginalSession for Client {
    type Fault = Fault;

    fn handle_channel(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Fault> {
        if matches!(self.state, ClientState::Over) {
            return Ok(());
        }
        self.inbox.push(bytes);
        while self.step(now).or_else(|fault| self.fail(now, fault))? {}
        Ok(())
    }

    fn channel_ended(&mut self, now: Instant, _end: ChannelEnd) -> Result<(), Fault> {
        match self.state {
            ClientState::Over => {}
            ClientState::Ready => {
                self.enter(now, ClientState::Over);
                self.events.push_back(ClientEvent::Ended);
            }
            ClientState::Revision | ClientState::Challenge | ClientState::Admission => {
                return self.fail(now, Fault::EndedInOpening);
            }
            // The server had nothing more to say.
            ClientState::NoNames => {
                self.enter(now, ClientState::Over);
                self.events.push_back(ClientEvent::Names(Vec::new()));
            }
            ClientState::Receiving(_) => return self.fail(now, Fault::ChannelEnded),
            _ => return self.fail(now, Fault::EndedUnanswered),
        }
        Ok(())
    }

    fn poll_channel(&mut self, _now: Instant, out: &mut Vec<u8>) {
        out.append(&mut self.out);
    }

    /// The server may send from any port.
    fn peer_port(&self) -> Option<u16> {
        None
    }

    fn receives(&self) -> bool {
        matches!(self.state, ClientState::Receiving(_))
    }

    fn handle_datagram<'d>(&mut self, now: Instant, _from_port: u16, datagram: &'d [u8]) -> DatagramOutcome<'d> {
        let ClientState::Receiving(receiving) = &mut self.state else { return DatagramOutcome::Taken };
        receiving.handle_datagram(now, datagram).map_or(DatagramOutcome::Taken, DatagramOutcome::Block)
    }

    fn end_batch(&mut self, now: Instant) {
        let ClientState::Receiving(receiving) = &mut self.state else { return };
        if let Some(missing) = receiving.end_batch(now, &mut self.out) {
            self.stop(now, missing);
        }
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Fault> {
        if self.no_names_ends().is_some_and(|end| end <= now) {
            self.out.extend_from_slice(GOT_LIST);
            self.no_names_is_due = true;
            self.finish(now, ClientEvent::Names(Vec::new()));
        }
        match self.patience_ends() {
            Some((end, fault)) if end <= now => self.fail(now, fault),
            _ => Ok(()),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        earliest(self.no_names_ends(), self.patience_ends().map(|(end, _)| end))
    }
}
