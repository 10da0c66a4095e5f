//! A transport with its application as an agent, and the order in which both are driven.

use farhaul_cc::ControllerFailure;
use farhaul_proto::probe::is_probe;
use farhaul_proto::{Batch, Channels, ConnectionId, ConnectionLost, Event, Numbering, Stats, Streams, earliest};
use farhaul_units::Instant;

use crate::agent::channel::ChannelHost;
use crate::agent::{Agent, Outbox};
use crate::first_times::FirstTimes;
use crate::packet::{Payload, PooledPacket, Share};

/// An application on a transport. It gives commands only while it handles events and deadlines.
pub trait Application<T: Streams> {
    /// When to call [`handle_timeout`](Application::handle_timeout) next. Before the first event: when the application
    /// begins.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The deadline has come.
    fn handle_timeout(&mut self, now: Instant, transport: &mut T);

    /// The transport reports an event.
    fn handle_event(&mut self, now: Instant, transport: &mut T, event: Event);

    /// Appends the connections whose counters are recorded. By default none.
    fn list_connections(&self, out: &mut Vec<ConnectionId>) {
        let _ = out;
    }

    /// When all data had been acknowledged; `None` until then, and for applications that only receive.
    fn finished_at(&self) -> Option<Instant> {
        None
    }
}

/// A transport and its application behind one address, and the [channels](crate::agent::channel) of the transport.
///
/// No other code in the simulator implements the driver's side of [`Transport`](farhaul_proto::Transport). After every
/// input or command it drains transmits, requests for channels and events, then reads the deadline.
pub struct TransportAgent<T, A> {
    /// The transport.
    pub transport: T,
    /// The application on it.
    pub application: A,
    /// Whether damaged datagrams reach the transport.
    pub(crate) takes_damaged: bool,
    channels: ChannelHost,
    /// The first failure of a congestion controller.
    failure: Option<ControllerFailure>,
    pub(crate) shares: FirstTimes,
}

impl<T: Streams + Channels, A: Application<T>> TransportAgent<T, A> {
    /// An agent whose datagrams have UDT4's numbering: see [`Numbering::UDT4`].
    pub fn new(transport: T, application: A) -> Self {
        Self {
            transport,
            application,
            takes_damaged: false,
            channels: ChannelHost::default(),
            failure: None,
            shares: FirstTimes::new(Numbering::UDT4),
        }
    }

    /// Sets the numbering of the datagrams.
    #[must_use]
    pub fn numbering(mut self, numbering: Numbering) -> Self {
        self.shares = FirstTimes::new(numbering);
        self
    }

    /// Breaks all channels, as a fault of the network.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn break_channels(&mut self, now: Instant, out: &mut Outbox<'_>) {
        self.channels.break_all(now, &mut self.transport, out);
        self.drain(now, out);
    }

    /// Drains transmits, requests for channels and events until there are no more.
    pub(crate) fn drain(&mut self, now: Instant, out: &mut Outbox<'_>) {
        let mut batch = core::mem::take(&mut out.network.batch);
        self.drain_with(&mut batch, now, out);
        out.network.batch = batch;
    }

    fn drain_with(&mut self, batch: &mut Batch, now: Instant, out: &mut Outbox<'_>) {
        loop {
            while let Some(transmit) = self.transport.poll_transmit(now, batch) {
                for datagram in transmit.datagrams() {
                    // A control stream beside the connections has numbers of its own.
                    let share = if is_probe(datagram) { Share::Control } else { self.shares.share(datagram) };
                    out.datagram(transmit.to, datagram, share);
                }
            }
            if self.channels.serve(now, &mut self.transport, out) {
                continue;
            }
            let Some(event) = self.transport.poll_event() else { return };
            if let Event::Closed(_, ConnectionLost::ControllerFailed(failure)) = event {
                self.failure = self.failure.or(Some(failure));
            }
            self.application.handle_event(now, &mut self.transport, event);
        }
    }
}

impl<T: Streams + Channels, A: Application<T>> Agent for TransportAgent<T, A> {
    fn handle_packet(&mut self, now: Instant, packet: &mut PooledPacket, out: &mut Outbox<'_>) {
        if matches!(packet.payload(), Payload::Tcp(_)) {
            // TCP has its checksum, whatever the transport takes.
            if !packet.is_damaged() {
                self.channels.handle_segment(now, packet, &mut self.transport, out);
                self.drain(now, out);
            }
            return;
        }
        let (from, arrived) = (packet.from(), packet.arrived(now));
        let Some(bytes) = packet.bytes_mut() else { return };
        let stride = bytes.len();
        self.transport.handle_datagrams(now, arrived, from, bytes, stride);
        self.drain(now, out);
    }

    fn note_drops(&mut self, now: Instant, buffer: u64) {
        self.transport.note_drops(now, buffer);
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox<'_>) {
        if self.transport.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.transport.handle_timeout(now);
        }
        self.channels.handle_timeout(now, &mut self.transport, out);
        if self.application.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.application.handle_timeout(now, &mut self.transport);
        }
        self.drain(now, out);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.channels.poll_timeout(), earliest(self.transport.poll_timeout(), self.application.poll_timeout()))
    }

    fn sample(&self, now: Instant, out: &mut Vec<(ConnectionId, Stats)>) {
        let mut ids = Vec::new();
        self.application.list_connections(&mut ids);
        out.extend(ids.into_iter().filter_map(|id| Some((id, self.transport.stats(now, id)?))));
    }

    fn failure(&self) -> Option<ControllerFailure> {
        self.failure
    }

    fn finished_at(&self) -> Option<Instant> {
        self.application.finished_at()
    }

    fn takes_damaged(&self) -> bool {
        self.takes_damaged
    }
}
