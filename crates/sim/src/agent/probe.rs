//! Measured streams as agents: a stable control stream or a point of a throughput profile, and the responder.

use core::net::SocketAddr;

use farhaul_proto::probe::{Blaster, BlasterConfig, Delays, Probing, Responder, StableConfig, StableStream};
use farhaul_proto::{Batch, ConnectionId, Stats};
use farhaul_units::{Instant, Rng};

use super::source::CONNECTION;
use super::{Agent, Outbox};
use crate::packet::{PooledPacket, Share};

/// What a source sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measured {
    /// A stable control stream.
    Stable(StableConfig),
    /// A point of a throughput profile.
    Point(BlasterConfig),
}

/// The sending end of a measured stream.
pub struct ProbeSource {
    to: SocketAddr,
    measured: Measured,
    session: u64,
    /// When it begins; `None` once it has begun.
    begin: Option<Instant>,
    end: Option<Instant>,
    stream: Option<Stream>,
    sent: u64,
    scratch: Batch,
}

enum Stream {
    Stable(Box<StableStream>),
    Point(Box<Blaster>),
}

impl Stream {
    fn probing(&mut self) -> &mut dyn Probing {
        match self {
            Self::Stable(stream) => &mut **stream,
            Self::Point(point) => &mut **point,
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Stable(stream) => stream.poll_timeout(),
            Self::Point(point) => point.poll_timeout(),
        }
    }
}

impl ProbeSource {
    /// A stream to the responder at `to` that begins at `begin`. `seed` gives its session.
    pub fn new(to: SocketAddr, begin: Instant, measured: Measured, seed: u64) -> Self {
        let session = Rng::new(seed).next_u64();
        let (end, stream, sent) = (None, None, 0);
        Self { to, measured, session, begin: Some(begin), end, stream, sent, scratch: Batch::new() }
    }

    /// Ends a stable stream at `end`. A point ends by itself.
    #[must_use]
    pub fn until(mut self, end: Instant) -> Self {
        self.end = Some(end);
        self
    }

    /// The stable stream, once it has begun.
    pub fn stable(&self) -> Option<&StableStream> {
        match &self.stream {
            Some(Stream::Stable(stream)) => Some(stream),
            _ => None,
        }
    }

    /// The point, once it has begun.
    pub fn point(&self) -> Option<&Blaster> {
        match &self.stream {
            Some(Stream::Point(point)) => Some(point),
            _ => None,
        }
    }

    fn transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        let Some(stream) = &mut self.stream else { return };
        loop {
            let before = stream.probing().sent();
            let Some(transmit) = stream.probing().poll_transmit(now, &mut self.scratch) else { return };
            // A question for the counts is no datagram of the stream.
            let share = if stream.probing().sent() > before { Share::New } else { Share::Control };
            for datagram in transmit.datagrams() {
                out.datagram(transmit.to, datagram, share);
            }
            self.sent = stream.probing().sent();
        }
    }
}

impl Agent for ProbeSource {
    fn handle_packet(&mut self, now: Instant, packet: &mut PooledPacket, out: &mut Outbox<'_>) {
        let from = packet.from();
        if let Some(stream) = &mut self.stream {
            stream.probing().handle_datagram(now, from, packet.bytes());
        }
        self.transmit(now, out);
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox<'_>) {
        if self.begin.take_if(|begin| *begin <= now).is_some() {
            let (to, session) = (self.to, self.session);
            self.stream = Some(match self.measured {
                Measured::Stable(config) => Stream::Stable(Box::new(StableStream::new(config, to, session, now))),
                Measured::Point(config) => Stream::Point(Box::new(Blaster::new(config, to, session, now))),
            });
        }
        if self.end.take_if(|end| *end <= now).is_some()
            && let Some(Stream::Stable(stream)) = &mut self.stream
        {
            stream.stop();
        }
        self.transmit(now, out);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let stream = self.stream.as_ref().and_then(Stream::poll_timeout);
        [self.begin, self.end, stream].into_iter().flatten().min()
    }

    fn sample(&self, now: Instant, out: &mut Vec<(ConnectionId, Stats)>) {
        let mut stats = match &self.stream {
            Some(Stream::Stable(stream)) => stable_stats(stream, now),
            Some(Stream::Point(point)) => delay_stats(point.delays()),
            None => Stats::default(),
        };
        stats.totals.packets_sent = self.sent;
        out.push((CONNECTION, stats));
    }
}

/// The counters of a stable stream. Its acknowledgements are those whose round trips the statistics describe.
pub(super) fn stable_stats(stream: &StableStream, now: Instant) -> Stats {
    let mut stats = delay_stats(stream.delays());
    stats.totals.packets_sent = stream.figures(now).sent;
    stats
}

fn delay_stats(delays: &Delays) -> Stats {
    let mut stats = Stats::default();
    stats.totals.acks_received = delays.count();
    (stats.rtt, stats.rtt_var) = (delays.mean(), delays.deviation());
    stats
}

/// The far end of measured streams.
#[derive(Debug, Default)]
pub struct ProbeSink {
    responder: Responder,
}

impl ProbeSink {
    /// A responder that has heard nothing.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Agent for ProbeSink {
    fn handle_packet(&mut self, now: Instant, packet: &mut PooledPacket, out: &mut Outbox<'_>) {
        self.responder.handle_datagram(now, packet.from(), packet.bytes());
        let mut answer = Vec::new();
        while let Some(to) = self.responder.poll_answer(&mut answer) {
            out.datagram(to, &answer, Share::Control);
            answer.clear();
        }
    }

    fn handle_timeout(&mut self, _: Instant, _: &mut Outbox<'_>) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn sample(&self, _: Instant, out: &mut Vec<(ConnectionId, Stats)>) {
        let mut stats = Stats::default();
        let (datagrams, bytes) = self.responder.totals();
        stats.totals.packets_received = datagrams;
        (stats.totals.bytes_received, stats.totals.bytes_read) = (bytes, bytes);
        out.push((CONNECTION, stats));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_point_over_a_perfect_path_loses_nothing() {
        let mut graph = Graph::new(2);
        graph.duplex(0, 1, &PathSpec::default());
        let point = BlasterConfig {
            datagram: 1_472,
            window: 10,
            sleep: Duration::from_millis(1),
            spaced: false,
            messages: false,
            time: Duration::from_secs(1),
        };
        let flow = graph.next_flow();
        let source = ProbeSource::new(graph.address(1, 9), Instant::ZERO, Measured::Point(point), 3);
        graph.add(0, 9, flow, Box::new(source) as Box<dyn Agent>);
        graph.add(1, 9, flow, Box::new(ProbeSink::new()));
        let mut world = graph.start(1);
        world.run_until(Instant::ZERO + Duration::from_secs(5));
        let totals = |agent| {
            let mut stats = Vec::new();
            world.agent(agent).sample(world.now(), &mut stats);
            stats[0].1.totals
        };
        assert_eq!(totals(0).packets_sent, totals(1).packets_received);
    }

    use farhaul_netem::PathSpec;
    use farhaul_units::{Duration, Rate};

    use super::*;
    use crate::topology::graph::Graph;

    #[test]
    fn a_stable_stream_over_a_simulated_path_settles_at_its_target() {
        let spec = PathSpec { delay: Duration::from_micros(5_500), ..PathSpec::default() };
        let mut graph = Graph::new(2);
        graph.duplex(0, 1, &spec);
        let config = StableConfig { datagram: 8_972, ..StableConfig::new(Rate::from_megabits_per_second(10)) };
        let flow = graph.next_flow();
        let source = ProbeSource::new(graph.address(1, 9), Instant::ZERO, Measured::Stable(config), 3);
        graph.add(0, 9, flow, Box::new(source) as Box<dyn Agent>);
        graph.add(1, 9, flow, Box::new(ProbeSink::new()));
        let mut world = graph.start(1);
        let received = |world: &crate::World<dyn Agent>| {
            let mut stats = Vec::new();
            world.agent(1).sample(world.now(), &mut stats);
            stats[0].1.totals.bytes_received
        };
        world.run_until(Instant::ZERO + Duration::from_secs(10));
        let before = received(&world);
        world.run_until(Instant::ZERO + Duration::from_secs(20));
        let goodput = (received(&world) - before) as f64 * 8.0 / 10.0;
        assert!((goodput / 10e6 - 1.0).abs() < 0.02, "{goodput}");
    }
}
