//! A transport that sends a stream over a channel, and a datagram for each chunk that it hands over.
//!
//! It keeps a log of everything that its host tells it.

use core::net::SocketAddr;
use std::collections::VecDeque;

use farhaul_proto::{
    AddressPair, Batch, ChannelEnd, ChannelOutput, Channels, ConnectError, ConnectionId, Event, Read, Stats,
    StreamError, Streams, Transmit, Transport,
};
use farhaul_sim::Application;
use farhaul_units::Instant;

/// The only connection.
pub(crate) const ID: ConnectionId = ConnectionId::from_parts(0, 0);
const DATAGRAM: usize = 1_000;

/// What the host told the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Opened,
    Accepted,
    Drained,
    Ended(ChannelEnd),
}

/// A request to the host.
#[derive(Clone, Debug)]
enum Wish {
    Open(SocketAddr),
    Send(Vec<u8>),
    Finish,
    Reset,
}

#[derive(Default)]
pub(crate) struct Caller {
    /// Whether it takes channels; `None` if it needs none.
    accepts: Option<bool>,
    wishes: VecDeque<Wish>,
    /// The request that the host reads.
    wish: Option<Wish>,
    /// Chunks to send, one after the other.
    chunks: VecDeque<Vec<u8>>,
    /// Whether it sends chunks.
    sends: bool,
    /// Whether it finishes behind the last chunk.
    finishes: bool,
    peer: Option<SocketAddr>,
    datagrams: u32,
    /// What arrived over the channel, and in how many pieces.
    pub(crate) received: Vec<u8>,
    pub(crate) pieces: usize,
    /// Whether it does not finish when the peer has.
    pub(crate) lingers: bool,
    /// Whether each piece is sent back.
    pub(crate) echoes: bool,
    pub(crate) datagrams_received: u64,
    pub(crate) log: Vec<(Instant, Told)>,
}

impl Caller {
    /// Opens channels and takes those of peers.
    pub(crate) fn new() -> Self {
        Self { accepts: Some(true), ..Self::default() }
    }

    /// Refuses the channels of peers.
    pub(crate) fn refusing() -> Self {
        Self { accepts: Some(false), ..Self::default() }
    }

    /// Needs no channels.
    pub(crate) fn without_channels() -> Self {
        Self::default()
    }

    /// Sends these chunks, then finishes.
    pub(crate) fn sending(mut self, chunks: impl IntoIterator<Item = Vec<u8>>) -> Self {
        (self.chunks, self.sends, self.finishes) = (chunks.into_iter().collect(), true, true);
        self
    }

    /// Finishes once the channel is open.
    pub(crate) fn finishing_at_once(self) -> Self {
        self.sending([])
    }

    pub(crate) fn open(&mut self, peer: SocketAddr) {
        self.peer = Some(peer);
        self.wishes.push_back(Wish::Open(peer));
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.wishes.push_back(Wish::Send(bytes.to_vec()));
    }

    pub(crate) fn finish(&mut self) {
        self.wishes.push_back(Wish::Finish);
    }

    pub(crate) fn reset(&mut self) {
        self.wishes.push_back(Wish::Reset);
    }

    /// When the host told this first.
    pub(crate) fn when(&self, told: Told) -> Option<Instant> {
        self.log.iter().find(|(_, other)| *other == told).map(|(at, _)| *at)
    }

    fn send_chunk(&mut self) {
        match self.chunks.pop_front() {
            Some(chunk) => {
                self.datagrams += 1;
                self.wishes.push_back(Wish::Send(chunk));
            }
            None if std::mem::take(&mut self.finishes) => self.finish(),
            None => {}
        }
    }
}

impl Channels for Caller {
    fn needs_channels(&self) -> bool {
        self.accepts.is_some()
    }

    fn accept_channel(&mut self, now: Instant, from: SocketAddr) -> Option<ConnectionId> {
        self.log.push((now, Told::Accepted));
        self.peer = Some(from);
        (self.accepts == Some(true)).then_some(ID)
    }

    fn channel_opened(&mut self, now: Instant, id: ConnectionId) {
        assert_eq!(id, ID);
        self.log.push((now, Told::Opened));
        if self.sends {
            self.send_chunk();
        }
    }

    fn handle_channel(&mut self, _now: Instant, id: ConnectionId, bytes: &[u8]) {
        assert_eq!(id, ID);
        assert!(!bytes.is_empty());
        self.pieces += 1;
        self.received.extend(bytes);
        if self.echoes {
            self.send(bytes);
        }
    }

    fn channel_drained(&mut self, now: Instant, id: ConnectionId) {
        assert_eq!(id, ID);
        self.log.push((now, Told::Drained));
        if self.sends {
            self.send_chunk();
        }
    }

    fn channel_ended(&mut self, now: Instant, id: ConnectionId, end: ChannelEnd) {
        assert_eq!(id, ID);
        self.log.push((now, Told::Ended(end)));
        if end == ChannelEnd::Finished && !self.lingers {
            self.finish();
        }
    }

    fn poll_channel(&mut self, _now: Instant) -> Option<ChannelOutput<'_>> {
        self.wish = self.wishes.pop_front();
        Some(match self.wish.as_ref()? {
            Wish::Open(peer) => ChannelOutput::Open(ID, *peer),
            Wish::Send(bytes) => ChannelOutput::Send(ID, bytes),
            Wish::Finish => ChannelOutput::Finish(ID),
            Wish::Reset => ChannelOutput::Reset(ID),
        })
    }
}

impl Transport for Caller {
    fn handle_datagrams(&mut self, _: Instant, _: Instant, from: impl Into<AddressPair>, bytes: &mut [u8], _: usize) {
        let from = from.into();
        assert!(self.peer.is_none_or(|peer| peer == from.peer), "the channel came from the same address");
        assert_eq!(bytes.len(), DATAGRAM);
        self.datagrams_received += 1;
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit<'a>(&'a mut self, _: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        self.datagrams = self.datagrams.checked_sub(1)?;
        scratch.cleared().resize(DATAGRAM, 1);
        Some(Transmit::between(self.peer?.into(), DATAGRAM, scratch.bytes()))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

/// It has no streams: its tests look at the channel.
impl Streams for Caller {
    fn connect(&mut self, _: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        self.open(peer);
        Ok(ID)
    }

    fn write(&mut self, _: Instant, _: ConnectionId, _: &[u8]) -> Result<usize, StreamError> {
        Ok(0)
    }

    fn writable(&self, _: ConnectionId) -> usize {
        0
    }

    fn read(&mut self, _: Instant, _: ConnectionId, _: &mut [u8]) -> Result<Read, StreamError> {
        Ok(Read::Pending)
    }

    fn readable(&self, _: ConnectionId) -> usize {
        0
    }

    fn finish(&mut self, _: Instant, _: ConnectionId) {}

    fn close(&mut self, _: Instant, _: ConnectionId) {}

    fn abort(&mut self, _: Instant, _: ConnectionId) {}

    fn release(&mut self, _: Instant, _: ConnectionId) {}

    fn is_closing(&self, _: ConnectionId) -> bool {
        false
    }

    fn peer(&self, _: ConnectionId) -> Option<SocketAddr> {
        self.peer
    }

    fn stats(&self, _: Instant, _: ConnectionId) -> Option<Stats> {
        None
    }
}

/// An application that does nothing. Tests give the commands.
pub(crate) struct Idle;

impl Application<Caller> for Idle {
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _: Instant, _: &mut Caller) {}

    fn handle_event(&mut self, _: Instant, _: &mut Caller, _: Event) {}
}
