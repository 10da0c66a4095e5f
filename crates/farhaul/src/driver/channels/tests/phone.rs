//! A toy transport whose connections are their channels.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::mpsc;

use farhaul_proto::{
    AddressPair, Batch, ChannelEnd, ChannelOutput, Channels, ConnectError, ConnectionId, ConnectionLost, Event, Read,
    Stats, StreamError, Streams, Transmit, Transport,
};
use farhaul_units::Instant;

/// Bytes of a request to send.
const CHUNK: usize = 40_000;

/// Unsent bytes up to which a line takes more.
const ROOM: usize = 64 << 10;

#[derive(Default)]
pub(super) struct Phone {
    lines: Vec<Line>,
    requests: VecDeque<Request>,
    sending: Vec<u8>,
    events: VecDeque<Event>,
    datagrams: VecDeque<(SocketAddr, Vec<u8>)>,
    manner: Manner,
    /// Disconnects its receiver when the phone is dropped.
    pub(super) alive: Option<mpsc::Sender<()>>,
}

/// How a phone treats its callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Manner {
    /// Keeps what arrives.
    #[default]
    Keeps,
    /// Keeps it and returns it, datagrams included.
    Echoes,
    /// Keeps no more than one byte, and returns datagrams alone.
    Discards,
    /// Accepts no channels.
    Refuses,
}

struct Line {
    peer: SocketAddr,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    state: PhoneState,
    /// The host has bytes of it.
    in_hand: bool,
    finishing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PhoneState {
    Opening,
    Open,
    /// The peer ended it.
    Ended,
    Over(ConnectionLost),
}

enum Request {
    Open(ConnectionId, SocketAddr),
    Send(ConnectionId, Vec<u8>),
    Finish(ConnectionId),
    Reset(ConnectionId),
}

impl Phone {
    pub(super) fn new(manner: Manner) -> Self {
        Self { manner, ..Self::default() }
    }

    /// Takes all of `data`, whatever the room.
    pub(super) fn write_any(&mut self, _: Instant, id: ConnectionId, data: &[u8]) {
        self.lines[id.slot()].outgoing.extend_from_slice(data);
        self.pump(id);
    }

    /// Sends `data` in one request, and ends the channel in the next.
    pub(super) fn finish_with(&mut self, id: ConnectionId, data: Vec<u8>) {
        self.lines[id.slot()].state = PhoneState::Over(ConnectionLost::ClosedLocally);
        self.requests.extend([Request::Send(id, data), Request::Finish(id)]);
    }

    /// Opens another channel for a connection that has one.
    pub(super) fn reopen(&mut self, id: ConnectionId) {
        let line = &mut self.lines[id.slot()];
        line.state = PhoneState::Opening;
        self.requests.push_back(Request::Open(id, line.peer));
    }

    /// How a channel ended, as far as the phone was told.
    pub(super) fn lost(&self, id: ConnectionId) -> Option<ConnectionLost> {
        match self.lines[id.slot()].state {
            PhoneState::Opening | PhoneState::Open => None,
            PhoneState::Ended => Some(ConnectionLost::ClosedByPeer),
            PhoneState::Over(lost) => Some(lost),
        }
    }

    /// The number of lines so far.
    pub(super) fn lines(&self) -> usize {
        self.lines.len()
    }

    fn add(&mut self, peer: SocketAddr, state: PhoneState) -> ConnectionId {
        let (incoming, outgoing) = (Vec::new(), Vec::new());
        self.lines.push(Line { peer, incoming, outgoing, state, in_hand: false, finishing: false });
        ConnectionId::from_parts(self.lines.len() as u32 - 1, 0)
    }

    fn pump(&mut self, id: ConnectionId) {
        let line = &mut self.lines[id.slot()];
        if line.in_hand || !matches!(line.state, PhoneState::Open | PhoneState::Ended) {
            return;
        }
        if !line.outgoing.is_empty() {
            line.in_hand = true;
            let chunk = line.outgoing.drain(..line.outgoing.len().min(CHUNK)).collect();
            self.requests.push_back(Request::Send(id, chunk));
        } else if line.finishing {
            line.state = PhoneState::Over(ConnectionLost::ClosedLocally);
            self.requests.push_back(Request::Finish(id));
        }
    }
}

impl Channels for Phone {
    fn needs_channels(&self) -> bool {
        true
    }

    fn accept_channel(&mut self, _: Instant, from: SocketAddr) -> Option<ConnectionId> {
        if self.manner == Manner::Refuses {
            return None;
        }
        let id = self.add(from, PhoneState::Open);
        self.events.push_back(Event::Accepted(id));
        Some(id)
    }

    fn channel_opened(&mut self, _: Instant, id: ConnectionId) {
        let line = &mut self.lines[id.slot()];
        assert_eq!(line.state, PhoneState::Opening);
        line.state = PhoneState::Open;
        self.events.push_back(Event::Connected(id));
        self.pump(id);
    }

    fn handle_channel(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        let line = &mut self.lines[id.slot()];
        assert_eq!(line.state, PhoneState::Open, "nothing arrives after the end");
        line.incoming.extend_from_slice(bytes);
        if self.manner == Manner::Discards {
            line.incoming.truncate(1);
        }
        self.events.push_back(Event::Readable(id));
        if self.manner == Manner::Echoes {
            self.write_any(now, id, bytes);
        }
    }

    fn channel_drained(&mut self, _: Instant, id: ConnectionId) {
        let line = &mut self.lines[id.slot()];
        assert!(std::mem::replace(&mut line.in_hand, false), "the host had bytes");
        self.events.push_back(Event::Writable(id));
        self.pump(id);
    }

    fn channel_ended(&mut self, _: Instant, id: ConnectionId, end: ChannelEnd) {
        let line = &mut self.lines[id.slot()];
        assert!(!matches!(line.state, PhoneState::Over(_)), "it ends once");
        let lost = match end {
            ChannelEnd::Finished => ConnectionLost::ClosedByPeer,
            ChannelEnd::Refused => ConnectionLost::Refused,
            _ => ConnectionLost::Aborted,
        };
        line.state = if end == ChannelEnd::Finished { PhoneState::Ended } else { PhoneState::Over(lost) };
        self.events.push_back(Event::Closed(id, lost));
    }

    fn poll_channel(&mut self, _: Instant) -> Option<ChannelOutput<'_>> {
        Some(match self.requests.pop_front()? {
            Request::Open(id, to) => ChannelOutput::Open(id, to),
            Request::Send(id, bytes) => {
                self.sending = bytes;
                ChannelOutput::Send(id, &self.sending)
            }
            Request::Finish(id) => ChannelOutput::Finish(id),
            Request::Reset(id) => ChannelOutput::Reset(id),
        })
    }
}

impl Streams for Phone {
    fn connect(&mut self, _: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        let id = self.add(peer, PhoneState::Opening);
        self.requests.push_back(Request::Open(id, peer));
        Ok(id)
    }

    fn write(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, StreamError> {
        if let PhoneState::Over(lost) = self.lines[id.slot()].state {
            return Err(lost.into());
        }
        let taken = data.len().min(self.writable(id));
        self.write_any(now, id, &data[..taken]);
        Ok(taken)
    }

    fn writable(&self, id: ConnectionId) -> usize {
        ROOM.saturating_sub(self.lines[id.slot()].outgoing.len())
    }

    fn read(&mut self, _: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Read, StreamError> {
        let line = &mut self.lines[id.slot()];
        let len = out.len().min(line.incoming.len());
        if len > 0 {
            out[..len].copy_from_slice(&line.incoming[..len]);
            line.incoming.drain(..len);
            return Ok(Read::Data(len));
        }
        match self.lost(id) {
            Some(lost) => Err(lost.into()),
            None => Ok(Read::Pending),
        }
    }

    fn readable(&self, id: ConnectionId) -> usize {
        self.lines[id.slot()].incoming.len()
    }

    fn finish(&mut self, _: Instant, id: ConnectionId) {
        self.lines[id.slot()].finishing = true;
        self.pump(id);
    }

    fn close(&mut self, now: Instant, id: ConnectionId) {
        self.release(now, id);
    }

    fn abort(&mut self, now: Instant, id: ConnectionId) {
        self.release(now, id);
    }

    fn release(&mut self, _: Instant, id: ConnectionId) {
        let line = &mut self.lines[id.slot()];
        if !line.finishing && !matches!(line.state, PhoneState::Over(_)) {
            line.state = PhoneState::Over(ConnectionLost::ClosedLocally);
            self.requests.push_back(Request::Reset(id));
        }
    }

    fn is_closing(&self, id: ConnectionId) -> bool {
        let line = &self.lines[id.slot()];
        line.finishing && !matches!(line.state, PhoneState::Over(_))
    }

    fn peer(&self, id: ConnectionId) -> Option<SocketAddr> {
        Some(self.lines[id.slot()].peer)
    }

    fn stats(&self, _: Instant, _: ConnectionId) -> Option<Stats> {
        None
    }
}

impl Transport for Phone {
    fn handle_datagrams(
        &mut self,
        _: Instant,
        _: Instant,
        from: impl Into<AddressPair>,
        bytes: &mut [u8],
        stride: usize,
    ) {
        if matches!(self.manner, Manner::Echoes | Manner::Discards) {
            let from = from.into().peer;
            self.datagrams.extend(bytes.chunks(stride).map(|datagram| (from, datagram.to_vec())));
        }
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit<'a>(&'a mut self, _: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        let (to, datagram) = self.datagrams.pop_front()?;
        scratch.cleared().extend_from_slice(&datagram);
        Some(Transmit::between(to.into(), datagram.len(), scratch.bytes()))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
