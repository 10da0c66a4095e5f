//! Turns a rule about single packets into an element. The rule decides; the outlet stores, orders and counts.

use farhaul_units::Instant;

use crate::delay_line::DelayLine;
use crate::element::{Counters, Element};
pub(crate) use crate::packet::{Packet, WireLen};

/// A rule that decides for one packet at a time whether and when it passes. A new impairment is one file with one rule.
pub trait Impairment<P> {
    /// Hands `packet` to `out`: once, several times or not at all.
    fn apply(&mut self, now: Instant, packet: P, out: &mut Outlet<P>);
}

/// The output of an impairment.
#[derive(Debug)]
pub struct Outlet<P> {
    line: DelayLine<P>,
    /// Counters of the element. The outlet keeps `pushed`, `delivered` and `dropped_loss`; the impairment keeps the
    /// rest.
    pub counters: Counters,
}

impl<P: WireLen> Outlet<P> {
    pub(crate) fn new() -> Self {
        Self { line: DelayLine::new(), counters: Counters::default() }
    }

    /// Lets `packet` leave at `due`, which may be earlier than packets passed before.
    pub fn pass(&mut self, due: Instant, packet: P) {
        self.line.push(due, packet);
    }

    /// Counts `packet` as lost on the link.
    pub fn lose(&mut self, packet: P) {
        self.counters.dropped_loss.add(packet.wire_len());
    }

    pub(crate) fn next_event(&self) -> Option<Instant> {
        self.line.next_event()
    }

    pub(crate) fn pop(&mut self, now: Instant) -> Option<P> {
        let packet = self.line.pop(now)?;
        self.counters.delivered.add(packet.wire_len());
        Some(packet)
    }
}

/// An [`Impairment`] as an [`Element`].
#[derive(Debug)]
pub struct Impair<I, P> {
    impairment: I,
    outlet: Outlet<P>,
}

impl<I: Impairment<P>, P: WireLen> Impair<I, P> {
    /// An element that applies `impairment` to each packet.
    pub fn new(impairment: I) -> Self {
        Self { impairment, outlet: Outlet::new() }
    }
}

impl<I: Impairment<P>, P: WireLen> Element<P> for Impair<I, P> {
    fn push(&mut self, now: Instant, packet: P) {
        self.outlet.counters.pushed.add(packet.wire_len());
        self.impairment.apply(now, packet, &mut self.outlet);
    }

    fn next_event(&self) -> Option<Instant> {
        self.outlet.next_event()
    }

    fn pop(&mut self, now: Instant) -> Option<P> {
        self.outlet.pop(now)
    }

    fn counters(&self) -> Counters {
        self.outlet.counters
    }
}
