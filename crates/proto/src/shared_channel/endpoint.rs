//! Commands pass to the endpoint of the bulk.

use core::net::SocketAddr;

use farhaul_units::{Instant, Network};

use super::SharedChannel;
use crate::any_endpoint::AnyEndpoint;
use crate::channel::{ChannelEnd, ChannelOutput, Channels};
use crate::config::Mode;
use crate::error::ConnectError;
use crate::event::ConnectionId;
use crate::secure::Protection;
use crate::stats::Stats;
use crate::transport::{ConnectOptions, Message, MessageOptions, Read, StreamError, Streams};

impl<T: Streams> Streams for SharedChannel<T> {
    fn connect(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        self.bulk.connect(now, peer)
    }

    fn write(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, StreamError> {
        self.bulk.write(now, id, data)
    }

    fn writable(&self, id: ConnectionId) -> usize {
        self.bulk.writable(id)
    }

    fn read(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Read, StreamError> {
        self.bulk.read(now, id, out)
    }

    fn readable(&self, id: ConnectionId) -> usize {
        self.bulk.readable(id)
    }

    fn has_half_close(&self, id: ConnectionId) -> bool {
        self.bulk.has_half_close(id)
    }

    fn finish_sending(&mut self, now: Instant, id: ConnectionId) -> Result<(), StreamError> {
        self.bulk.finish_sending(now, id)
    }

    fn finish(&mut self, now: Instant, id: ConnectionId) {
        self.bulk.finish(now, id);
    }

    fn close(&mut self, now: Instant, id: ConnectionId) {
        self.bulk.close(now, id);
    }

    fn abort(&mut self, now: Instant, id: ConnectionId) {
        self.bulk.abort(now, id);
    }

    fn release(&mut self, now: Instant, id: ConnectionId) {
        self.bulk.release(now, id);
    }

    fn is_leaving(&self, id: ConnectionId) -> bool {
        self.bulk.is_leaving(id)
    }

    fn peer(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.bulk.peer(id)
    }

    fn stats(&self, now: Instant, id: ConnectionId) -> Option<Stats> {
        self.bulk.stats(now, id)
    }
}

impl<T: Channels> Channels for SharedChannel<T> {
    fn needs_channels(&self) -> bool {
        self.bulk.needs_channels()
    }

    fn accept_channel(&mut self, now: Instant, from: SocketAddr) -> Option<ConnectionId> {
        self.bulk.accept_channel(now, from)
    }

    fn channel_opened(&mut self, now: Instant, id: ConnectionId) {
        self.bulk.channel_opened(now, id);
    }

    fn handle_channel(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        self.bulk.handle_channel(now, id, bytes);
    }

    fn channel_drained(&mut self, now: Instant, id: ConnectionId) {
        self.bulk.channel_drained(now, id);
    }

    fn channel_ended(&mut self, now: Instant, id: ConnectionId, end: ChannelEnd) {
        self.bulk.channel_ended(now, id, end);
    }

    fn poll_channel(&mut self, now: Instant) -> Option<ChannelOutput<'_>> {
        self.bulk.poll_channel(now)
    }
}

impl AnyEndpoint for SharedChannel<Box<dyn AnyEndpoint>> {
    fn listen(&mut self, mode: Mode) -> Result<(), ConnectError> {
        self.bulk.listen(mode)
    }

    fn stop_listening(&mut self) {
        self.bulk.stop_listening();
    }

    fn claim(&mut self, id: ConnectionId) {
        self.bulk.claim(id);
    }

    fn connections(&self) -> usize {
        self.bulk.connections()
    }

    fn invalid_datagrams(&self) -> u64 {
        self.bulk.invalid_datagrams()
    }

    fn connect_with(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        self.bulk.connect_with(now, peer, options)
    }

    fn send_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        options: MessageOptions,
    ) -> Result<bool, StreamError> {
        self.bulk.send_message(now, id, message, options)
    }

    fn recv_message(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Message, StreamError> {
        self.bulk.recv_message(now, id, out)
    }

    fn signal_error(&mut self, id: ConnectionId, code: u32) {
        self.bulk.signal_error(id, code);
    }

    fn send_custom(&mut self, id: ConnectionId, kind: u16, body: &[u8]) {
        self.bulk.send_custom(id, kind, body);
    }

    fn address_inside(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.bulk.address_inside(id)
    }

    fn protection(&self, id: ConnectionId) -> Option<&Protection> {
        self.bulk.protection(id)
    }

    fn is_plain(&self, id: ConnectionId) -> bool {
        self.bulk.is_plain(id)
    }

    fn admit_plain(&mut self, now: Instant, networks: Vec<Network>) -> bool {
        self.bulk.admit_plain(now, networks)
    }

    fn end_callers(&mut self, now: Instant, admits: &mut dyn FnMut(SocketAddr, &Protection) -> bool) -> usize {
        self.bulk.end_callers(now, admits)
    }
}
