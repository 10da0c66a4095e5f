//! An endpoint whose protocol is chosen at run time.

use core::net::SocketAddr;

use farhaul_units::{Instant, Network};

use crate::channel::{ChannelEnd, ChannelOutput, Channels};
use crate::config::Mode;
use crate::error::ConnectError;
use crate::event::{ConnectionId, Event};
use crate::secure::Protection;
use crate::shell::endpoint::Endpoint;
use crate::stats::Stats;
use crate::transport::{
    Batch, ConnectOptions, Message, MessageOptions, Read, StreamError, Streams, Transmit, Transport,
};

/// The endpoint of any protocol, as [`Protocol::endpoint`](crate::Protocol::endpoint) makes it: streams, and listening.
///
/// Messages, rendezvous, error signals and custom packets exist in some protocols only. Here is the answer of all
/// others: calls with a result fail, and the rest do nothing.
pub trait AnyEndpoint: Streams + Channels + Send {
    /// Accepts callers of `mode` from now on. [`Event::Accepted`] reports each.
    ///
    /// # Errors
    /// The protocol has no such mode: [`ConnectError::StreamsOnly`].
    fn listen(&mut self, mode: Mode) -> Result<(), ConnectError>;

    /// Stops accepting callers.
    fn stop_listening(&mut self);

    /// Takes an accepted connection for the application, so it leaves the [backlog](crate::Config::backlog).
    fn claim(&mut self, id: ConnectionId);

    /// Connections held, closing ones included.
    fn connections(&self) -> usize;

    /// Datagrams that were invalid or belonged to no connection.
    fn invalid_datagrams(&self) -> u64;

    /// Opens a connection with options. See [`Streams::connect`].
    ///
    /// # Errors
    /// As for [`Streams::connect`]. Also, the protocol has no such option: [`ConnectError::StreamsOnly`].
    fn connect_with(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        if options == ConnectOptions::default() { self.connect(now, peer) } else { Err(ConnectError::StreamsOnly) }
    }

    /// Takes one message for sending. Returns false if there is no room now. Then [`Event::Writable`] follows.
    ///
    /// # Errors
    /// The connection is over, is not in message mode or was finished. Or the message exceeds the peer's window.
    fn send_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        options: MessageOptions,
    ) -> Result<bool, StreamError> {
        let _ = (now, id, message, options);
        Err(StreamError::WrongMode)
    }

    /// Copies the next message into `out`.
    ///
    /// # Errors
    /// The connection was lost, or closed while data was known to be missing, or is not in message mode.
    fn recv_message(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Message, StreamError> {
        let _ = (now, id, out);
        Err(StreamError::WrongMode)
    }

    /// Tells the peer that this side cannot store the data.
    fn signal_error(&mut self, id: ConnectionId, code: u32) {
        let _ = (id, code);
    }

    /// Sends a user-defined control packet to the peer's controller. Not reliable.
    fn send_custom(&mut self, id: ConnectionId, kind: u16, body: &[u8]) {
        let _ = (id, kind, body);
    }

    /// The address by which datagrams of measured streams reach the peer of a connection
    /// [inside](crate::Endpoint::enclose) its envelope. `None` without an envelope.
    fn address_inside(&self, id: ConnectionId) -> Option<SocketAddr> {
        let _ = id;
        None
    }

    /// The protection of a connection; `None` if it has none, or before it is established.
    fn protection(&self, id: ConnectionId) -> Option<&Protection> {
        let _ = id;
        None
    }

    /// Whether the connection is neither encrypted nor authenticated. This never changes, and holds for connections that are
    /// over, too.
    fn is_plain(&self, id: ConnectionId) -> bool {
        let _ = id;
        true
    }

    /// Admits plain callers from these networks alone, and ends the plain connections of others. Returns false if the
    /// endpoint has no such callers beside its secure ones.
    fn admit_plain(&mut self, now: Instant, networks: Vec<Network>) -> bool {
        let _ = (now, networks);
        false
    }

    /// Aborts the secure connections of callers that `admits` refuses. Its arguments are the address from which a caller
    /// called, and the protection of the connection. Measured streams count as connections. Returns how many it ended.
    fn end_callers(&mut self, now: Instant, admits: &mut dyn FnMut(SocketAddr, &Protection) -> bool) -> usize {
        let _ = (now, admits);
        0
    }
}

impl AnyEndpoint for Endpoint {
    fn listen(&mut self, mode: Mode) -> Result<(), ConnectError> {
        Self::listen(self, mode)
    }

    fn stop_listening(&mut self) {
        Self::stop_listening(self);
    }

    fn claim(&mut self, id: ConnectionId) {
        Self::claim(self, id);
    }

    fn connections(&self) -> usize {
        Self::connections(self)
    }

    fn invalid_datagrams(&self) -> u64 {
        Self::invalid_datagrams(self)
    }

    fn connect_with(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        Self::connect_with(self, now, peer, options)
    }

    fn send_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        options: MessageOptions,
    ) -> Result<bool, StreamError> {
        Self::send_message(self, now, id, message, options)
    }

    fn recv_message(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Message, StreamError> {
        Self::recv_message(self, now, id, out)
    }

    fn signal_error(&mut self, id: ConnectionId, code: u32) {
        Self::signal_error(self, id, code);
    }

    fn send_custom(&mut self, id: ConnectionId, kind: u16, body: &[u8]) {
        Self::send_custom(self, id, kind, body);
    }

    fn address_inside(&self, id: ConnectionId) -> Option<SocketAddr> {
        Self::address_inside(self, id)
    }

    fn protection(&self, id: ConnectionId) -> Option<&Protection> {
        Self::protection(self, id)
    }

    fn is_plain(&self, id: ConnectionId) -> bool {
        Self::is_plain(self, id)
    }

    fn admit_plain(&mut self, now: Instant, networks: Vec<Network>) -> bool {
        Self::admit_plain(self, now, &networks)
    }

    fn end_callers(&mut self, now: Instant, admits: &mut dyn FnMut(SocketAddr, &Protection) -> bool) -> usize {
        Self::end_callers(self, now, admits)
    }
}

impl Transport for Box<dyn AnyEndpoint> {
    fn handle_datagrams(&mut self, now: Instant, arrived: Instant, from: SocketAddr, bytes: &mut [u8], stride: usize) {
        (**self).handle_datagrams(now, arrived, from, bytes, stride);
    }

    fn handle_timeout(&mut self, now: Instant) {
        (**self).handle_timeout(now);
    }

    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        (**self).poll_transmit(now, scratch)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        (**self).poll_event()
    }

    fn envelopes(&mut self) -> Option<&mut Endpoint> {
        (**self).envelopes()
    }
}

impl Channels for Box<dyn AnyEndpoint> {
    fn needs_channels(&self) -> bool {
        (**self).needs_channels()
    }

    fn accept_channel(&mut self, now: Instant, from: SocketAddr) -> Option<ConnectionId> {
        (**self).accept_channel(now, from)
    }

    fn channel_opened(&mut self, now: Instant, id: ConnectionId) {
        (**self).channel_opened(now, id);
    }

    fn handle_channel(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        (**self).handle_channel(now, id, bytes);
    }

    fn channel_drained(&mut self, now: Instant, id: ConnectionId) {
        (**self).channel_drained(now, id);
    }

    fn channel_ended(&mut self, now: Instant, id: ConnectionId, end: ChannelEnd) {
        (**self).channel_ended(now, id, end);
    }

    fn poll_channel(&mut self, now: Instant) -> Option<ChannelOutput<'_>> {
        (**self).poll_channel(now)
    }
}

impl Streams for Box<dyn AnyEndpoint> {
    fn connect(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        (**self).connect(now, peer)
    }

    fn write(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, StreamError> {
        (**self).write(now, id, data)
    }

    fn writable(&self, id: ConnectionId) -> usize {
        (**self).writable(id)
    }

    fn read(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Read, StreamError> {
        (**self).read(now, id, out)
    }

    fn readable(&self, id: ConnectionId) -> usize {
        (**self).readable(id)
    }

    fn has_half_close(&self, id: ConnectionId) -> bool {
        (**self).has_half_close(id)
    }

    fn finish_sending(&mut self, now: Instant, id: ConnectionId) -> Result<(), StreamError> {
        (**self).finish_sending(now, id)
    }

    fn finish(&mut self, now: Instant, id: ConnectionId) {
        (**self).finish(now, id);
    }

    fn close(&mut self, now: Instant, id: ConnectionId) {
        (**self).close(now, id);
    }

    fn abort(&mut self, now: Instant, id: ConnectionId) {
        (**self).abort(now, id);
    }

    fn release(&mut self, now: Instant, id: ConnectionId) {
        (**self).release(now, id);
    }

    fn is_leaving(&self, id: ConnectionId) -> bool {
        (**self).is_leaving(id)
    }

    fn peer(&self, id: ConnectionId) -> Option<SocketAddr> {
        (**self).peer(id)
    }

    fn stats(&self, now: Instant, id: ConnectionId) -> Option<Stats> {
        (**self).stats(now, id)
    }
}
