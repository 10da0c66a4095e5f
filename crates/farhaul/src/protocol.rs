//! The protocol of a port, behind the one type that its driver knows.

use std::net::SocketAddr;

use farhaul_proto::udt::{ConnectOptions, Message, MessageOptions};
use farhaul_proto::{
    Batch, ChannelEnd, ChannelOutput, Channels, Config, ConnectError, ConnectionId, Entropy, Event, Mode, Read, Stats,
    StreamError, Streams, Transmit, Transport, udt, udt2004,
};
use farhaul_units::Instant;

/// The wire protocol of an endpoint. Both sides of a connection must speak the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// UDT4, as libudt speaks it.
    #[default]
    Udt,
    /// The protocol of the 2004 paper, for experiments. It has streams between caller and listener only, and one
    /// connection at a time between two ports. Its default controller is `udt-2004`.
    Udt2004,
}

/// The endpoint of either protocol.
pub(crate) enum AnyEndpoint {
    Udt(Box<udt::Endpoint>),
    Udt2004(Box<udt2004::Endpoint>),
}

impl AnyEndpoint {
    pub(crate) fn new(protocol: Protocol, config: Config, entropy: Entropy) -> Self {
        match protocol {
            Protocol::Udt => Self::Udt(Box::new(udt::Endpoint::new(config, entropy))),
            Protocol::Udt2004 => Self::Udt2004(Box::new(udt2004::Endpoint::new(config, entropy))),
        }
    }

    fn streams(&self) -> &dyn Streams {
        match self {
            Self::Udt(end) => &**end,
            Self::Udt2004(end) => &**end,
        }
    }

    fn streams_mut(&mut self) -> &mut dyn Streams {
        match self {
            Self::Udt(end) => &mut **end,
            Self::Udt2004(end) => &mut **end,
        }
    }

    fn channels(&self) -> &dyn Channels {
        match self {
            Self::Udt(end) => &**end,
            Self::Udt2004(end) => &**end,
        }
    }

    fn channels_mut(&mut self) -> &mut dyn Channels {
        match self {
            Self::Udt(end) => &mut **end,
            Self::Udt2004(end) => &mut **end,
        }
    }

    /// Accepts callers of `mode`.
    ///
    /// # Errors
    /// The protocol has no such mode.
    pub(crate) fn listen(&mut self, mode: Mode) -> Result<(), ConnectError> {
        match self {
            Self::Udt(end) => end.listen(mode),
            Self::Udt2004(end) if mode == Mode::Stream => end.listen(),
            Self::Udt2004(_) => return Err(ConnectError::StreamsOnly),
        }
        Ok(())
    }

    pub(crate) fn stop_listening(&mut self) {
        match self {
            Self::Udt(end) => end.stop_listening(),
            Self::Udt2004(end) => end.stop_listening(),
        }
    }

    pub(crate) fn connect_with(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        match self {
            Self::Udt(end) => end.connect_with(now, peer, options),
            Self::Udt2004(end) if options == ConnectOptions::default() => end.connect(now, peer),
            Self::Udt2004(_) => Err(ConnectError::StreamsOnly),
        }
    }

    pub(crate) fn send_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        options: MessageOptions,
    ) -> Result<bool, StreamError> {
        match self {
            Self::Udt(end) => end.send_message(now, id, message, options),
            Self::Udt2004(_) => Err(StreamError::WrongMode),
        }
    }

    pub(crate) fn recv_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        out: &mut [u8],
    ) -> Result<Message, StreamError> {
        match self {
            Self::Udt(end) => end.recv_message(now, id, out),
            Self::Udt2004(_) => Err(StreamError::WrongMode),
        }
    }

    pub(crate) fn claim(&mut self, id: ConnectionId) {
        match self {
            Self::Udt(end) => end.claim(id),
            Self::Udt2004(end) => end.claim(id),
        }
    }

    /// Does nothing on a protocol without such a packet.
    pub(crate) fn signal_error(&mut self, id: ConnectionId, code: u32) {
        if let Self::Udt(end) = self {
            end.signal_error(id, code);
        }
    }

    /// Does nothing on a protocol without such a packet.
    pub(crate) fn send_custom(&mut self, id: ConnectionId, kind: u16, body: &[u8]) {
        if let Self::Udt(end) = self {
            end.send_custom(id, kind, body);
        }
    }

    pub(crate) fn invalid_datagrams(&self) -> u64 {
        match self {
            Self::Udt(end) => end.invalid_datagrams(),
            Self::Udt2004(end) => end.invalid_datagrams(),
        }
    }
}

impl Transport for AnyEndpoint {
    fn handle_datagrams(&mut self, now: Instant, arrived: Instant, from: SocketAddr, bytes: &mut [u8], stride: usize) {
        self.streams_mut().handle_datagrams(now, arrived, from, bytes, stride);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.streams_mut().handle_timeout(now);
    }

    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        self.streams_mut().poll_transmit(now, scratch)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.streams().poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.streams_mut().poll_event()
    }
}

impl Channels for AnyEndpoint {
    fn needs_channels(&self) -> bool {
        self.channels().needs_channels()
    }

    fn accept_channel(&mut self, now: Instant, from: SocketAddr) -> Option<ConnectionId> {
        self.channels_mut().accept_channel(now, from)
    }

    fn channel_opened(&mut self, now: Instant, id: ConnectionId) {
        self.channels_mut().channel_opened(now, id);
    }

    fn handle_channel(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        self.channels_mut().handle_channel(now, id, bytes);
    }

    fn channel_drained(&mut self, now: Instant, id: ConnectionId) {
        self.channels_mut().channel_drained(now, id);
    }

    fn channel_ended(&mut self, now: Instant, id: ConnectionId, end: ChannelEnd) {
        self.channels_mut().channel_ended(now, id, end);
    }

    fn poll_channel(&mut self, now: Instant) -> Option<ChannelOutput<'_>> {
        self.channels_mut().poll_channel(now)
    }
}

impl Streams for AnyEndpoint {
    fn connect(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        self.streams_mut().connect(now, peer)
    }

    fn write(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, StreamError> {
        self.streams_mut().write(now, id, data)
    }

    fn writable(&self, id: ConnectionId) -> usize {
        self.streams().writable(id)
    }

    fn read(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Read, StreamError> {
        self.streams_mut().read(now, id, out)
    }

    fn readable(&self, id: ConnectionId) -> usize {
        self.streams().readable(id)
    }

    fn finish(&mut self, now: Instant, id: ConnectionId) {
        self.streams_mut().finish(now, id);
    }

    fn close(&mut self, now: Instant, id: ConnectionId) {
        self.streams_mut().close(now, id);
    }

    fn abort(&mut self, now: Instant, id: ConnectionId) {
        self.streams_mut().abort(now, id);
    }

    fn release(&mut self, now: Instant, id: ConnectionId) {
        self.streams_mut().release(now, id);
    }

    fn is_leaving(&self, id: ConnectionId) -> bool {
        self.streams().is_leaving(id)
    }

    fn peer(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.streams().peer(id)
    }

    fn stats(&self, now: Instant, id: ConnectionId) -> Option<Stats> {
        self.streams().stats(now, id)
    }
}
