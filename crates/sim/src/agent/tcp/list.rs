//! A list of transfers, one after the other.

use core::net::SocketAddr;
use std::cell::Cell;
use std::rc::Rc;

use farhaul_cc::{ControllerFailure, Spec};
use farhaul_proto::{ConnectionId, Stats};
use farhaul_units::{Duration, Instant};

use super::config::SenderConfig;
use super::flow::TcpSource;
use crate::agent::source::CONNECTION;
use crate::agent::{Agent, Outbox};
use crate::packet::PooledPacket;

/// The number of transfers not yet begun, shared by several agents. An agent that finishes a transfer takes the next
/// one, so as many transfers run at a time as agents share the list.
#[derive(Clone, Debug)]
pub struct Remaining(Rc<Cell<u32>>);

impl Remaining {
    /// A list of `transfers` transfers.
    pub fn new(transfers: u32) -> Self {
        Self(Rc::new(Cell::new(transfers)))
    }

    /// Takes one transfer; `false` if the list is empty.
    fn take(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }
}

/// A TCP sender of transfers of equal size to one [`TcpSink`](super::TcpSink). Each transfer is its own connection and
/// begins when the one before has been acknowledged, until the list is empty.
#[derive(Debug)]
pub struct TcpTransfers {
    to: SocketAddr,
    config: SenderConfig,
    law: Spec,
    seed: u64,
    remaining: Remaining,
    source: TcpSource,
    /// When the current transfer began.
    begun: Instant,
    /// The number of the current transfer.
    number: u32,
    /// Durations of the completed transfers.
    times: Vec<Duration>,
    /// Counters of the completed transfers.
    past: Stats,
    finished_at: Option<Instant>,
}

impl TcpTransfers {
    /// Begins the first transfer, of `config.bytes`, at `begin`. Each window follows `law`.
    pub fn new(
        to: SocketAddr,
        begin: Instant,
        config: SenderConfig,
        (law, seed): (Spec, u64),
        remaining: Remaining,
    ) -> Self {
        let finished_at = if remaining.take() { None } else { Some(begin) };
        let source = TcpSource::new(to, begin, config, || law.build(seed));
        Self {
            to,
            config,
            law,
            seed,
            remaining,
            source,
            begun: begin,
            number: 0,
            times: Vec::new(),
            past: Stats::default(),
            finished_at,
        }
    }

    /// Begins the next transfer if the current one is complete.
    fn go_on(&mut self, now: Instant, out: &mut Outbox<'_>) {
        // The last acknowledgement may have failed the controller, which would go with its transfer.
        let goes_on = self.source.finished_at().is_some() && self.source.failure().is_none();
        if self.finished_at.is_some() || !goes_on {
            return;
        }
        self.times.push(now - self.begun);
        if !self.remaining.take() {
            self.finished_at = Some(now);
            return;
        }
        self.past = self.stats();
        self.number += 1;
        self.begun = now;
        let source = TcpSource::new(self.to, now, self.config, || self.law.build(self.seed));
        self.source = source.numbered(self.number);
        self.source.handle_timeout(now, out);
    }

    /// Counters of all transfers and estimates of the current one.
    fn stats(&self) -> Stats {
        let mut stats = self.source.stats();
        let (totals, past) = (&mut stats.totals, &self.past.totals);
        totals.packets_sent += past.packets_sent;
        totals.packets_retransmitted += past.packets_retransmitted;
        totals.acks_received += past.acks_received;
        totals.timeouts += past.timeouts;
        totals.bytes_acked += past.bytes_acked;
        stats
    }
}

impl Agent for TcpTransfers {
    fn handle_packet(&mut self, now: Instant, packet: &mut PooledPacket, out: &mut Outbox<'_>) {
        self.source.handle_packet(now, packet, out);
        self.go_on(now, out);
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox<'_>) {
        if self.finished_at.is_none() {
            self.source.handle_timeout(now, out);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.finished_at.is_none() { self.source.poll_timeout() } else { None }
    }

    fn sample(&self, _: Instant, out: &mut Vec<(ConnectionId, Stats)>) {
        out.push((CONNECTION, self.stats()));
    }

    fn failure(&self) -> Option<ControllerFailure> {
        self.source.failure()
    }

    fn finished_at(&self) -> Option<Instant> {
        self.finished_at
    }

    fn transfer_times(&self) -> &[Duration] {
        &self.times
    }
}
