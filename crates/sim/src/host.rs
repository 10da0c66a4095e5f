//! A host: a transport, the application on it, and the order in which both are asked.

use std::net::SocketAddr;

use farhaul_proto::{Batch, ConnectionId, Event, Streams, Transmit, earliest};
use farhaul_units::Instant;

/// What uses a transport. It gives commands while it handles events and deadlines, never otherwise.
pub trait Application<T: Streams> {
    /// When [`handle_timeout`](Application::handle_timeout) is wanted next; an application that wants to begin says
    /// when.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The deadline has come.
    fn handle_timeout(&mut self, now: Instant, transport: &mut T);

    /// The transport has something to tell.
    fn handle_event(&mut self, now: Instant, transport: &mut T, event: Event);

    /// Appends the connections whose counters are to be recorded; none unless it says so.
    fn list_connections(&self, out: &mut Vec<ConnectionId>) {
        let _ = out;
    }
}

/// A transport and its application behind one address.
///
/// This is the one place in the simulator that knows the contract of [`Transport`](farhaul_proto::Transport): after
/// every input or command, transmit is drained, then events, then the deadline is read.
pub struct Host<T, A> {
    /// Where it can be reached.
    pub address: SocketAddr,
    /// The transport.
    pub transport: T,
    /// What uses it.
    pub application: A,
    scratch: Batch,
}

impl<T: Streams, A: Application<T>> Host<T, A> {
    /// A host at `address`.
    pub fn new(address: SocketAddr, transport: T, application: A) -> Self {
        Self { address, transport, application, scratch: Batch::new() }
    }

    /// A datagram arrived; what the host then sends goes to `send`.
    pub fn receive(&mut self, now: Instant, from: SocketAddr, bytes: &mut [u8], send: impl FnMut(Transmit<'_>)) {
        let stride = bytes.len();
        self.transport.handle_datagrams(now, now, from, bytes, stride);
        self.settle(now, send);
    }

    /// Time has passed; what the host then sends goes to `send`.
    pub fn wake(&mut self, now: Instant, send: impl FnMut(Transmit<'_>)) {
        if self.transport.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.transport.handle_timeout(now);
        }
        if self.application.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.application.handle_timeout(now, &mut self.transport);
        }
        self.settle(now, send);
    }

    /// Drains transmit, then events, until neither has more.
    pub fn settle(&mut self, now: Instant, mut send: impl FnMut(Transmit<'_>)) {
        loop {
            while let Some(transmit) = self.transport.poll_transmit(now, &mut self.scratch) {
                send(transmit);
            }
            let Some(event) = self.transport.poll_event() else { return };
            self.application.handle_event(now, &mut self.transport, event);
        }
    }

    /// When it wants to be woken.
    pub fn deadline(&self) -> Option<Instant> {
        earliest(self.transport.poll_timeout(), self.application.poll_timeout())
    }
}
