//! A host: a transport, the application on it, and the order in which both are asked.

use farhaul_proto::{Batch, ConnectionId, Event, Stats, Streams, earliest};
use farhaul_units::Instant;

use crate::agent::{Agent, Outbox};
use crate::first_times::FirstTimes;
use crate::packet::PooledPacket;

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

    /// When everything that it had to send had been acknowledged; `None` until then, and for whoever only receives.
    fn finished_at(&self) -> Option<Instant> {
        None
    }
}

/// A transport and its application behind one address.
///
/// This is the one place in the simulator that knows the contract of [`Transport`](farhaul_proto::Transport): after
/// every input or command, transmit is drained, then events, then the deadline is read.
pub struct Host<T, A> {
    /// The transport.
    pub transport: T,
    /// What uses it.
    pub application: A,
    /// Whether damaged datagrams reach it.
    pub(crate) takes_damaged: bool,
    shares: FirstTimes,
    scratch: Batch,
}

impl<T: Streams, A: Application<T>> Host<T, A> {
    /// A host whose datagrams begin as UDT's do: see [`FirstTimes::UDT4`].
    pub fn new(transport: T, application: A) -> Self {
        Self { transport, application, takes_damaged: false, shares: FirstTimes::UDT4, scratch: Batch::new() }
    }

    /// A host whose datagrams are numbered so.
    #[must_use]
    pub fn numbering(mut self, shares: FirstTimes) -> Self {
        self.shares = shares;
        self
    }

    /// Drains transmit, then events, until neither has more.
    pub(crate) fn settle(&mut self, now: Instant, out: &mut Outbox<'_>) {
        loop {
            while let Some(transmit) = self.transport.poll_transmit(now, &mut self.scratch) {
                for datagram in transmit.datagrams() {
                    out.datagram(transmit.to, datagram, self.shares.share(datagram));
                }
            }
            let Some(event) = self.transport.poll_event() else { return };
            self.application.handle_event(now, &mut self.transport, event);
        }
    }
}

impl<T: Streams, A: Application<T>> Agent for Host<T, A> {
    fn handle_packet(&mut self, now: Instant, packet: &mut PooledPacket, out: &mut Outbox<'_>) {
        let from = packet.from();
        let Some(bytes) = packet.bytes_mut() else { return };
        let stride = bytes.len();
        self.transport.handle_datagrams(now, now, from, bytes, stride);
        self.settle(now, out);
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox<'_>) {
        if self.transport.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.transport.handle_timeout(now);
        }
        if self.application.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.application.handle_timeout(now, &mut self.transport);
        }
        self.settle(now, out);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.transport.poll_timeout(), self.application.poll_timeout())
    }

    fn sample(&self, now: Instant, out: &mut Vec<(ConnectionId, Stats)>) {
        let mut ids = Vec::new();
        self.application.list_connections(&mut ids);
        out.extend(ids.into_iter().filter_map(|id| Some((id, self.transport.stats(now, id)?))));
    }

    fn finished_at(&self) -> Option<Instant> {
        self.application.finished_at()
    }

    fn takes_damaged(&self) -> bool {
        self.takes_damaged
    }
}
