//! The commands of the application go to the inner endpoint. Addresses and protection are those of the tunnels.

use core::net::SocketAddr;

use farhaul_units::Instant;

use super::Around;
use super::links::{Link, Stage};
use crate::any_endpoint::AnyEndpoint;
use crate::config::Mode;
use crate::error::ConnectError;
use crate::event::ConnectionId;
use crate::secure::Protection;
use crate::secure::address;
use crate::stats::Stats;
use crate::transport::{Message, MessageOptions, Read, StreamError, Streams};

impl Around {
    /// The reason in an error of the inner endpoint, which the tunnel may know better.
    fn explained<T>(&self, id: ConnectionId, result: Result<T, StreamError>) -> Result<T, StreamError> {
        result.map_err(|error| match (error, self.links.of(id)) {
            (StreamError::Lost(reason), Some(link)) => StreamError::Lost(link.explain(reason)),
            (error, _) => error,
        })
    }
}

impl Streams for Around {
    fn connect(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        let tunnel = self.tunnels.connect(now, peer)?;
        let address = address::behind(tunnel, peer);
        match self.inner.connect(now, address) {
            Ok(inner) => {
                let mut link = Link::new(tunnel, address, Some(inner), Stage::Opening);
                link.held = true;
                self.links.insert(link);
                Ok(inner)
            }
            Err(error) => {
                self.tunnels.release(now, tunnel);
                Err(error)
            }
        }
    }

    fn write(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, StreamError> {
        let written = self.inner.write(now, id, data);
        self.explained(id, written)
    }

    fn writable(&self, id: ConnectionId) -> usize {
        self.inner.writable(id)
    }

    fn read(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Read, StreamError> {
        let read = self.inner.read(now, id, out);
        self.explained(id, read)
    }

    fn readable(&self, id: ConnectionId) -> usize {
        self.inner.readable(id)
    }

    fn has_half_close(&self, id: ConnectionId) -> bool {
        self.inner.has_half_close(id)
    }

    fn finish_sending(&mut self, now: Instant, id: ConnectionId) -> Result<(), StreamError> {
        let finished = self.inner.finish_sending(now, id);
        self.explained(id, finished)
    }

    fn finish(&mut self, now: Instant, id: ConnectionId) {
        self.inner.finish(now, id);
    }

    fn close(&mut self, now: Instant, id: ConnectionId) {
        self.note_over(id);
        self.inner.close(now, id);
    }

    fn abort(&mut self, now: Instant, id: ConnectionId) {
        self.note_over(id);
        self.inner.abort(now, id);
    }

    fn release(&mut self, now: Instant, id: ConnectionId) {
        if let Some(link) = self.links.of_mut(id) {
            link.held = false;
        }
        self.note_over(id);
        self.inner.release(now, id);
    }

    fn is_leaving(&self, id: ConnectionId) -> bool {
        self.inner.is_leaving(id) || self.is_tunnel_leaving(id)
    }

    /// The address to which the tunnel has followed its peer.
    fn peer(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.inner.peer(id)?;
        self.tunnels.peer(self.links.of(id)?.tunnel)
    }

    fn stats(&self, now: Instant, id: ConnectionId) -> Option<Stats> {
        let mut stats = self.inner.stats(now, id)?;
        if let Some(tunnel) = self.links.of(id).and_then(|link| self.tunnels.stats(now, link.tunnel)) {
            stats.totals.packets_invalid += tunnel.totals.packets_invalid;
            stats.memory += tunnel.memory;
        }
        Some(stats)
    }
}

impl AnyEndpoint for Around {
    fn listen(&mut self, mode: Mode) -> Result<(), ConnectError> {
        self.inner.listen(mode)?;
        self.tunnels.listen(Mode::Stream)
    }

    fn stop_listening(&mut self) {
        self.inner.stop_listening();
        self.tunnels.stop_listening();
    }

    fn claim(&mut self, id: ConnectionId) {
        self.inner.claim(id);
    }

    fn connections(&self) -> usize {
        self.inner.connections().max(self.tunnels.connections())
    }

    fn invalid_datagrams(&self) -> u64 {
        self.inner.invalid_datagrams() + self.tunnels.invalid_datagrams()
    }

    fn send_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        options: MessageOptions,
    ) -> Result<bool, StreamError> {
        self.inner.send_message(now, id, message, options)
    }

    fn recv_message(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Message, StreamError> {
        self.inner.recv_message(now, id, out)
    }

    fn signal_error(&mut self, id: ConnectionId, code: u32) {
        self.inner.signal_error(id, code);
    }

    fn send_custom(&mut self, id: ConnectionId, kind: u16, body: &[u8]) {
        self.inner.send_custom(id, kind, body);
    }

    fn address_inside(&self, id: ConnectionId) -> Option<SocketAddr> {
        Some(self.links.of(id)?.address)
    }

    fn protection(&self, id: ConnectionId) -> Option<&Protection> {
        self.tunnels.protection(self.links.of(id)?.tunnel)
    }

    fn is_plain(&self, _id: ConnectionId) -> bool {
        false
    }

    fn end_callers(&mut self, now: Instant, admits: &mut dyn FnMut(SocketAddr, &Protection) -> bool) -> usize {
        let unwelcome = self.tunnels.unwelcome(admits);
        for tunnel in &unwelcome {
            match self.links.get(*tunnel).and_then(|link| link.inner) {
                // Its tunnel follows.
                Some(inner) => self.abort(now, inner),
                None => self.tunnels.abort(now, *tunnel),
            }
        }
        unwelcome.len()
    }
}
