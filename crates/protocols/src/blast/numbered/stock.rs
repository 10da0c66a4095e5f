//! The stream of a sender with numbered datagrams: what was written, what has left, what the peer has.

use farhaul_units::{Instant, SeqNo, SeqRange};

use super::{FIRST, Outgoing};
use crate::blast::engine::{Departure, Setup};
use farhaul_proto::endpoint::limit::{Limit, LimitClock};
use farhaul_proto::intake::{Intake, Load};
use farhaul_proto::pacer::Pacer;
use farhaul_proto::stats::Stats;

/// The datagrams of a sender, and the account of its stream.
#[derive(Debug)]
pub(crate) struct Stock {
    pub(crate) datagrams: Outgoing,
    /// The next datagram to leave for the first time.
    pub(crate) next: SeqNo,
    intake: Intake,
    limits: LimitClock,
    /// Payload bytes written, and those that the peer has.
    written: u64,
    released: u64,
    /// Datagrams that left, and those of them that had left before.
    sent: u64,
    repeated: u64,
}

impl Stock {
    /// Nothing yet.
    pub(crate) fn new(setup: &Setup<'_>) -> Self {
        Self {
            datagrams: Outgoing::new(setup),
            next: FIRST,
            intake: Intake::new(setup.config.send_buffer),
            limits: LimitClock::default(),
            written: 0,
            released: 0,
            sent: 0,
            repeated: 0,
        }
    }

    // ---- the application's side ----

    /// The datagrams held and in flight. `filling` are those that fill the path, if the engine holds less data then.
    fn load(&self, filling: Option<u32>) -> Load {
        let (payload_size, held) = (self.datagrams.store.payload_size(), self.datagrams.store.packets());
        Load { payload_size, held, in_flight: self.in_flight().len(), filling }
    }

    /// Bytes that the application may write now.
    pub(crate) fn room(&self, filling: Option<u32>, pacer: &Pacer) -> u64 {
        self.intake.room(self.load(filling), pacer)
    }

    /// The application has written this many bytes.
    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.written += bytes as u64;
    }

    // ---- what leaves ----

    /// The datagrams that left and that the peer is not known to have.
    pub(crate) fn in_flight(&self) -> SeqRange {
        SeqRange::new(self.datagrams.store.first(), self.next.minus(1))
    }

    /// The next datagrams to leave for the first time, at most `most`.
    pub(crate) fn plan_new(&mut self, most: u32) -> Option<Departure> {
        let packets = self.datagrams.store.run(self.next, most)?.packets;
        Some(Departure { first: self.next.value().into(), packets, again: false })
    }

    /// Counts datagrams that leave. Returns the bytes of as many full ones.
    pub(crate) fn count(&mut self, plan: Departure) -> usize {
        self.sent += u64::from(plan.packets);
        self.repeated += if plan.again { u64::from(plan.packets) } else { 0 };
        plan.packets as usize * self.datagrams.size()
    }

    /// The bytes of new datagrams, which have left then.
    pub(crate) fn emit_new<'a>(&'a mut self, packets: u32, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        let first = self.next;
        self.next = first.plus(packets);
        self.datagrams.adjacent(first, packets, scratch)
    }

    /// There is nothing to send now.
    pub(crate) fn rest(&mut self, now: Instant) {
        let idle = self.datagrams.store.first() == self.datagrams.store.end();
        self.limits.set(if idle { Limit::Idle } else { Limit::Application }, now);
    }

    /// The rate holds back what could leave.
    pub(crate) fn hold_back(&mut self, now: Instant) {
        self.limits.set(Limit::Congestion, now);
    }

    // ---- what arrived ----

    /// Whether the peer has everything written.
    pub(crate) const fn is_delivered(&self) -> bool {
        self.released == self.written
    }

    /// The first datagram that the peer may miss once it has the stream up to `offset`. Nothing can have arrived that
    /// has not left.
    pub(crate) fn delivered_until(&self, offset: u64) -> SeqNo {
        self.datagrams.store.after_bytes(offset.saturating_sub(self.released), self.next)
    }

    /// The peer has everything before `packet`.
    pub(crate) fn release(&mut self, packet: SeqNo) {
        self.released += self.datagrams.store.release(packet);
    }

    /// Fills in the figures that do not depend on the protocol.
    pub(crate) fn fill_stats(&self, now: Instant, filling: Option<u32>, pacer: &Pacer, stats: &mut Stats) {
        let load = self.load(filling);
        stats.totals.packets_sent = self.sent;
        stats.totals.packets_retransmitted = self.repeated;
        stats.totals.bytes_written = self.written;
        stats.totals.bytes_acked = self.released;
        self.limits.fill(now, &mut stats.totals);
        stats.in_flight = load.in_flight;
        stats.send_buffer_packets = load.held;
        stats.send_buffer_free = self.room(filling, pacer);
        stats.payload_size = load.payload_size as u32;
        stats.memory += self.datagrams.store.memory() as u64;
    }
}
