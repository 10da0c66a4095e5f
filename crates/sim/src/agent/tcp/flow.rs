//! TCP sender and receiver as agents of a simulation.

use core::net::SocketAddr;

use farhaul_cc::{Controller, ControllerFailure};
use farhaul_netem::WireLen;
use farhaul_proto::{ConnectionId, Stats, earliest};
use farhaul_units::Instant;

use super::config::SenderConfig;
use super::receiver::{ReceiverConfig, TcpReceiver};
use super::sender::TcpSender;
use crate::agent::source::CONNECTION;
use crate::agent::{Agent, Outbox};
use crate::packet::segment::{Segment, SegmentKind};
use crate::packet::{Payload, PooledPacket, Share};

/// A TCP sender with data for one receiver.
#[derive(Debug)]
pub struct TcpSource {
    to: SocketAddr,
    sender: TcpSender,
    /// When it begins; `None` once it has begun.
    begin: Option<Instant>,
    /// When it stops sending new data; `None` once it has stopped, and for never.
    end: Option<Instant>,
    payload: u32,
    /// The number of this connection between the two hosts.
    connection: u32,
}

impl TcpSource {
    /// Begins to send to `to` at `begin`, under the controller that `make` makes.
    pub fn new(
        to: SocketAddr,
        begin: Instant,
        config: SenderConfig,
        make: impl FnOnce() -> Box<dyn Controller>,
    ) -> Self {
        let sender = TcpSender::new(config, make);
        Self { to, sender, begin: Some(begin), end: None, payload: config.payload, connection: 0 }
    }

    /// Sets the number of this connection, for connections that follow one another.
    #[must_use]
    pub(super) fn numbered(mut self, connection: u32) -> Self {
        self.connection = connection;
        self
    }

    /// Stops sending new data at `end`.
    #[must_use]
    pub fn until(mut self, end: Instant) -> Self {
        self.end = Some(end);
        self
    }

    /// The sender's state machine.
    pub fn sender(&self) -> &TcpSender {
        &self.sender
    }

    /// Counters and estimates.
    pub(super) fn stats(&self) -> Stats {
        let totals = self.sender.totals();
        let mut stats = Stats::default();
        stats.totals.packets_sent = totals.sent;
        stats.totals.packets_retransmitted = totals.retransmitted;
        stats.totals.acks_received = totals.acks;
        stats.totals.timeouts = totals.timeouts;
        stats.totals.bytes_acked = self.sender.acknowledged() * u64::from(self.payload);
        stats.cwnd = narrow(self.sender.cwnd());
        stats.in_flight = narrow(self.sender.in_flight());
        (stats.rtt, stats.rtt_var) = self.sender.rtt();
        stats.payload_size = self.payload;
        stats
    }

    fn transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        let mut sent = self.sender.totals().retransmitted;
        while let Some(mut segment) = self.sender.poll_transmit(now) {
            segment.connection = self.connection;
            let retransmitted = self.sender.totals().retransmitted;
            let share = match segment.payload {
                0 => Share::Control,
                _ if retransmitted > sent => Share::Repeated,
                _ => Share::New,
            };
            sent = retransmitted;
            out.packet(self.to, Payload::Tcp(segment), segment.wire_len(), share);
        }
    }
}

impl Agent for TcpSource {
    fn handle_packet(&mut self, now: Instant, packet: &mut PooledPacket, out: &mut Outbox<'_>) {
        if let Payload::Tcp(segment) = packet.payload()
            && segment.connection == self.connection
        {
            self.sender.handle_ack(now, segment);
            self.transmit(now, out);
        }
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox<'_>) {
        if self.begin.take_if(|begin| *begin <= now).is_some() {
            self.sender.start(now);
        }
        if self.end.take_if(|end| *end <= now).is_some() {
            self.sender.finish(now);
        }
        self.sender.handle_timeout(now);
        self.transmit(now, out);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earliest(earliest(self.begin, self.end), self.sender.poll_timeout())
    }

    fn sample(&self, _: Instant, out: &mut Vec<(ConnectionId, Stats)>) {
        out.push((CONNECTION, self.stats()));
    }

    fn failure(&self) -> Option<ControllerFailure> {
        self.sender.failure()
    }

    fn finished_at(&self) -> Option<Instant> {
        self.sender.finished_at()
    }
}

/// A TCP receiver that reads all data and answers its one sender. A connection that follows another begins with its
/// SYN; late segments of the previous one are dropped.
#[derive(Clone, Debug)]
pub struct TcpSink {
    config: ReceiverConfig,
    receiver: TcpReceiver,
    /// The number of the connection.
    connection: u32,
    /// Bytes and duplicate segments of the connections before this one.
    past: (u64, u64),
    /// The sender's address; `None` before the first segment.
    peer: Option<SocketAddr>,
    packets: u64,
    acks: u64,
}

impl TcpSink {
    /// A receiver without data.
    pub fn new(config: ReceiverConfig) -> Self {
        let receiver = TcpReceiver::new(config);
        Self { config, receiver, connection: 0, past: (0, 0), peer: None, packets: 0, acks: 0 }
    }

    /// The receiver's state machine.
    pub fn receiver(&self) -> &TcpReceiver {
        &self.receiver
    }

    fn transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        let Some(peer) = self.peer else { return };
        while let Some(mut segment) = self.receiver.poll_transmit(now) {
            segment.connection = self.connection;
            self.acks += 1;
            out.packet(peer, Payload::Tcp(segment), segment.wire_len(), Share::Control);
        }
    }

    fn accept(&mut self, now: Instant, from: SocketAddr, segment: &Segment) {
        self.peer = Some(from);
        self.packets += 1;
        if segment.kind == SegmentKind::Syn && segment.connection > self.connection {
            self.past.0 += self.receiver.bytes();
            self.past.1 += self.receiver.duplicates();
            self.receiver = TcpReceiver::new(self.config);
            self.connection = segment.connection;
        }
        if segment.connection == self.connection {
            self.receiver.handle_data(now, segment);
        }
    }
}

impl Agent for TcpSink {
    fn handle_packet(&mut self, now: Instant, packet: &mut PooledPacket, out: &mut Outbox<'_>) {
        if let Payload::Tcp(segment) = packet.payload() {
            self.accept(now, packet.from(), segment);
            self.transmit(now, out);
        }
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox<'_>) {
        self.receiver.handle_timeout(now);
        self.transmit(now, out);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.receiver.poll_timeout()
    }

    fn sample(&self, _: Instant, out: &mut Vec<(ConnectionId, Stats)>) {
        let mut stats = Stats::default();
        stats.totals.packets_received = self.packets;
        stats.totals.packets_duplicate = self.past.1 + self.receiver.duplicates();
        stats.totals.acks_sent = self.acks;
        stats.totals.bytes_received = self.past.0 + self.receiver.bytes();
        stats.totals.bytes_read = self.past.0 + self.receiver.bytes_in_order();
        out.push((CONNECTION, stats));
    }
}

fn narrow(packets: u64) -> u32 {
    u32::try_from(packets).unwrap_or(u32::MAX)
}
