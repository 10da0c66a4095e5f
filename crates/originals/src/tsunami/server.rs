//! The server's side of a connection with a `tsunami` client.

mod sending;

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::tsunami::{
    Answer, Challenge, GOT_LIST, GOT_SIZE, LIST_ALL, LIST_FILES, ListingEntry, MAX_ENTRIES, MAX_LISTING, MessageError,
    Parameters, Proof, REVISION, Request, Sizes, Totals, check_revision, encode_count, read_name,
};

use self::sending::Sending;
pub use self::sending::TransferCounts;
use super::inbox::Inbox;
use super::name_rules::stays_inside;
use super::{DEFAULT_PATIENCE, Fault, Listed};
use crate::session::OriginalSession;
use farhaul_proto::channel::ChannelEnd;
use farhaul_proto::transport::earliest;

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The secret that clients must know; empty for none. It protects little (attack C1).
    pub secret: Vec<u8>,
    /// Cap of the rate that a client may ask for. Blocks alone count.
    pub max_rate: Option<Rate>,
    /// Longest time for a step of the dialogue, and longest silence of a client during a transfer. The time until a
    /// client asks for a file has no limit.
    pub patience: Duration,
}

impl Default for ServerOptions {
    /// No secret, no cap, and the original's 15 s.
    fn default() -> Self {
        Self { secret: Vec::new(), max_rate: None, patience: DEFAULT_PATIENCE }
    }
}

/// News and requests for the host of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// The client knows the secret.
    Admitted,
    /// The client asks for this file. The host answers by [`Server::grant`] or [`Server::refuse`].
    Asked(Vec<u8>),
    /// The client asked for a file outside the served folder, and the session refused it.
    NameRefused(Vec<u8>),
    /// The client asks for a list. The host answers by [`Server::give_list`].
    ListAsked,
    /// A transfer begins. Its datagrams leave from a new port of this side.
    Started {
        /// The client's UDP port.
        port: u16,
        /// Bytes of a block.
        block_size: u32,
        /// The target rate, blocks alone.
        rate: Rate,
    },
    /// The client stopped the transfer. It does not say whether it has everything.
    Stopped(TransferCounts),
    /// The client ended the connection in order.
    Ended,
}

/// One connection of a client.
#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    challenge: Challenge,
    state: ServerState,
    /// When this state began.
    since: Instant,
    inbox: Inbox,
    out: Vec<u8>,
    events: VecDeque<ServerEvent>,
    /// Bytes of the file for one train.
    content: Vec<u8>,
}

#[derive(Debug)]
enum ServerState {
    /// These wait for the client's message.
    Revision,
    Proof,
    Name,
    /// The host must answer.
    Asked,
    ListAsked(List),
    /// The size of the file and the time.
    Parameters(u64, u32),
    Port(Parameters, Sizes),
    Sending(Box<Sending>),
    /// The client confirms the list of files.
    FilesSent,
    /// The client confirms the size of these names, then the names.
    TotalsSent(Vec<u8>),
    NamesSent,
    /// The client was told that there are no names. It may confirm that, or ask for a file.
    NoNamesSent,
    Over,
}

#[derive(Clone, Copy, Debug)]
enum List {
    Files,
    All,
}

impl Server {
    /// A session with a client that has just connected. `challenge` must be random and new.
    pub fn new(options: ServerOptions, challenge: Challenge, now: Instant) -> Self {
        let out = REVISION.to_be_bytes().to_vec();
        let (inbox, events) = (Inbox::default(), VecDeque::new());
        Self { options, challenge, state: ServerState::Revision, since: now, inbox, out, events, content: Vec::new() }
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    // ---- the host's answers ----

    /// The file that the client asked for has `size` bytes. `unix_time` are the seconds since 1970. Without effect
    /// unless the client asked.
    pub fn grant(&mut self, now: Instant, size: u64, unix_time: u32) {
        if matches!(self.state, ServerState::Asked) {
            self.out.push(Answer::Accepted.byte());
            self.enter(now, ServerState::Parameters(size, unix_time));
        }
    }

    /// The file that the client asked for cannot be had. Without effect unless the client asked.
    pub fn refuse(&mut self, now: Instant) {
        if matches!(self.state, ServerState::Asked) {
            self.out.push(Answer::NoFile.byte());
            self.enter(now, ServerState::Name);
        }
    }

    /// The files that are served. Those beyond the limits of a list are left out, and so are names that the session
    /// would refuse. Without effect unless the client asked.
    pub fn give_list(&mut self, now: Instant, files: &[Listed]) {
        let ServerState::ListAsked(list) = self.state else { return };
        let mut left = MAX_LISTING;
        let fits = |file: &&Listed| {
            left = left.saturating_sub(file.name.len() as u64 + 1);
            left > 0
        };
        let servable = files.iter().filter(|file| stays_inside(&file.name));
        let files: Vec<&Listed> = servable.take_while(fits).take(MAX_ENTRIES as usize).collect();
        match list {
            List::Files => {
                encode_count(files.len() as u64, &mut self.out);
                for file in files {
                    ListingEntry { name: &file.name, size: file.size }.encode(&mut self.out);
                }
                self.enter(now, ServerState::FilesSent);
            }
            List::All => {
                let mut names = Vec::new();
                for file in &files {
                    names.extend_from_slice(&file.name);
                    names.push(0);
                }
                Totals { bytes: names.len() as u64, names: files.len() as u64 }.encode(&mut self.out);
                self.enter(now, ServerState::TotalsSent(names));
            }
        }
    }

    // ---- the dialogue ----

    fn enter(&mut self, now: Instant, state: ServerState) {
        self.state = state;
        self.since = now;
    }

    fn fail<T>(&mut self, now: Instant, fault: Fault) -> Result<T, Fault> {
        self.enter(now, ServerState::Over);
        self.inbox.clear();
        Err(fault)
    }

    /// Handles one message. Returns false if none is complete.
    fn step(&mut self, now: Instant) -> Result<bool, Fault> {
        match &mut self.state {
            ServerState::Revision => self.step_revision(now),
            ServerState::Proof => self.step_proof(now),
            ServerState::Name => self.step_name(now),
            ServerState::Parameters(size, time) => {
                let (size, time) = (*size, *time);
                self.step_parameters(now, size, time)
            }
            ServerState::Port(parameters, sizes) => {
                let (parameters, sizes) = (*parameters, *sizes);
                self.step_port(now, &parameters, sizes)
            }
            ServerState::Sending(sending) => {
                let Some(bytes) = self.inbox.take::<{ Request::LEN }>() else { return Ok(false) };
                let request = Request::decode(&bytes)?;
                if request == Request::Stop {
                    let counts = sending.counts();
                    self.events.push_back(ServerEvent::Stopped(counts));
                    self.enter(now, ServerState::Name);
                } else {
                    sending.handle_request(now, request)?;
                }
                Ok(true)
            }
            ServerState::FilesSent => {
                // The original sends a zero, but nothing depends on it.
                let confirmed = self.inbox.take::<1>().is_some();
                self.confirmed(now, confirmed, ServerState::Name)
            }
            ServerState::TotalsSent(names) => {
                let Some(_) = self.inbox.take::<{ GOT_SIZE.len() }>() else { return Ok(false) };
                if names.is_empty() {
                    // The original client reads this byte in place of names, and goes back to its prompt (departure D188).
                    self.out.push(Answer::NoFile.byte());
                    return self.confirmed(now, true, ServerState::NoNamesSent);
                }
                self.out.append(names);
                self.confirmed(now, true, ServerState::NamesSent)
            }
            ServerState::NoNamesSent => {
                // Other clients confirm the list as if it had names.
                let rest = self.inbox.rest();
                let may_confirm = rest.len() < GOT_LIST.len() && GOT_LIST.starts_with(rest);
                if may_confirm {
                    return Ok(false);
                }
                let is_name = |next: Option<&u8>| matches!(next, Some(b'\n' | 0));
                if rest.starts_with(GOT_LIST) && !is_name(rest.get(GOT_LIST.len())) {
                    self.inbox.consume(GOT_LIST.len());
                }
                self.confirmed(now, true, ServerState::Name)
            }
            ServerState::NamesSent => {
                let confirmed = self.inbox.take::<{ GOT_LIST.len() }>().is_some();
                self.confirmed(now, confirmed, ServerState::Name)
            }
            // An honest client waits for the answer.
            ServerState::Asked | ServerState::ListAsked(_) if !self.inbox.rest().is_empty() => Err(Fault::OutOfTurn),
            ServerState::Asked | ServerState::ListAsked(_) | ServerState::Over => Ok(false),
        }
    }

    fn confirmed(&mut self, now: Instant, confirmed: bool, next: ServerState) -> Result<bool, Fault> {
        if confirmed {
            self.enter(now, next);
        }
        Ok(confirmed)
    }

    fn step_revision(&mut self, now: Instant) -> Result<bool, Fault> {
        let Some(length) = check_revision(self.inbox.rest())? else { return Ok(false) };
        self.inbox.consume(length);
        self.out.extend_from_slice(&self.challenge);
        self.enter(now, ServerState::Proof);
        Ok(true)
    }

    fn step_proof(&mut self, now: Instant) -> Result<bool, Fault> {
        let Some(proof) = self.inbox.take() else { return Ok(false) };
        if !Proof::of(&self.challenge, &self.options.secret).matches(&Proof(proof)) {
            self.out.push(Answer::WrongProof.byte());
            return Err(Fault::WrongSecret);
        }
        self.out.push(Answer::Accepted.byte());
        self.events.push_back(ServerEvent::Admitted);
        self.enter(now, ServerState::Name);
        Ok(true)
    }

    fn step_name(&mut self, now: Instant) -> Result<bool, Fault> {
        let Some((name, length)) = read_name(self.inbox.rest())? else { return Ok(false) };
        let name = name.to_vec();
        self.inbox.consume(length);
        let list = [(LIST_FILES, List::Files), (LIST_ALL, List::All)].into_iter().find(|(asked, _)| *asked == name);
        if let Some((_, list)) = list {
            self.events.push_back(ServerEvent::ListAsked);
            self.enter(now, ServerState::ListAsked(list));
        } else if stays_inside(&name) {
            self.events.push_back(ServerEvent::Asked(name));
            self.enter(now, ServerState::Asked);
        } else {
            self.out.push(Answer::NoFile.byte());
            self.events.push_back(ServerEvent::NameRefused(name));
            // An honest client waits for the answer. A flood of names would be a flood of events.
            if !self.inbox.rest().is_empty() {
                return Err(Fault::OutOfTurn);
            }
        }
        Ok(true)
    }

    fn step_parameters(&mut self, now: Instant, size: u64, time: u32) -> Result<bool, Fault> {
        let Some(parameters) = Parameters::decode(self.inbox.rest())? else { return Ok(false) };
        self.inbox.consume(Parameters::LEN);
        let block = parameters.block_size;
        let sizes = Sizes::new(size, block, time).ok_or(Fault::TooManyBlocks { size, block })?;
        sizes.encode(&mut self.out);
        self.enter(now, ServerState::Port(parameters, sizes));
        Ok(true)
    }

    fn step_port(&mut self, now: Instant, parameters: &Parameters, sizes: Sizes) -> Result<bool, Fault> {
        let Some(port) = self.inbox.take().map(u16::from_be_bytes) else { return Ok(false) };
        if port == 0 {
            let (field, valid) = ("the client's UDP port", "1 or more");
            return Err(MessageError::OutOfRange { field, value: 0, valid }.into());
        }
        let asked = u64::from(parameters.target_rate);
        let bits = self.options.max_rate.map_or(asked, |most| most.bits_per_second().min(asked));
        let rate = Rate::from_bits_per_second(bits);
        self.events.push_back(ServerEvent::Started { port, block_size: sizes.block, rate });
        self.enter(now, ServerState::Sending(Box::new(Sending::new(port, sizes, parameters, rate, now))));
        Ok(true)
    }

    fn patience_ends(&self) -> Option<Instant> {
        match &self.state {
            ServerState::Name
            | ServerState::NoNamesSent
            | ServerState::Asked
            | ServerState::ListAsked(_)
            | ServerState::Over => None,
            ServerState::Sending(sending) => Some(sending.heard() + self.options.patience),
            _ => Some(self.since + self.options.patience),
        }
    }
}

impl OriginalSession for Server {
    type Fault = Fault;

    fn handle_channel(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Fault> {
        if matches!(self.state, ServerState::Over) {
            return Ok(());
        }
        self.inbox.push(bytes);
        while self.step(now).or_else(|fault| self.fail(now, fault))? {}
        Ok(())
    }

    /// A transfer ends at once.
    fn channel_ended(&mut self, now: Instant, _end: ChannelEnd) -> Result<(), Fault> {
        match self.state {
            ServerState::Over => Ok(()),
            ServerState::Name | ServerState::NoNamesSent if self.inbox.rest().is_empty() => {
                self.enter(now, ServerState::Over);
                self.events.push_back(ServerEvent::Ended);
                Ok(())
            }
            ServerState::Revision | ServerState::Proof => self.fail(now, Fault::EndedInOpening),
            ServerState::Sending(_) => self.fail(now, Fault::ChannelEnded),
            _ => self.fail(now, Fault::EndedUnanswered),
        }
    }

    fn poll_channel(&mut self, _now: Instant, out: &mut Vec<u8>) {
        out.append(&mut self.out);
    }

    fn peer_port(&self) -> Option<u16> {
        if let ServerState::Sending(sending) = &self.state { Some(sending.port()) } else { None }
    }

    fn poll_datagrams<'a, E>(
        &'a mut self,
        now: Instant,
        mut content: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Option<(usize, &'a [u8])>, E> {
        let ServerState::Sending(sending) = &mut self.state else { return Ok(None) };
        let Some(train) = sending.plan(now) else { return Ok(None) };
        self.content.resize(train.length, 0);
        content(train.offset, &mut self.content)?;
        scratch.clear();
        let segment = sending.emit(now, train, &self.content, scratch);
        Ok(Some((segment, scratch)))
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Fault> {
        if self.patience_ends().is_none_or(|end| end > now) {
            return Ok(());
        }
        let patience = self.options.patience;
        let sending = matches!(self.state, ServerState::Sending(_));
        self.fail(now, if sending { Fault::Silent(patience) } else { Fault::NoAnswer(patience) })
    }

    fn deadline(&self) -> Option<Instant> {
        let datagrams = if let ServerState::Sending(sending) = &self.state { sending.deadline() } else { None };
        earliest(datagrams, self.patience_ends())
    }
}
