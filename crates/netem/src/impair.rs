//! How a rule about single packets becomes an element: the rule decides, the outlet keeps, orders and counts.

use farhaul_units::Instant;

use crate::delay_line::DelayLine;
use crate::{Counters, Element, WireLen};

/// A rule that decides the fate of one packet at a time. A new impairment is a file with one such rule.
pub trait Impairment<P> {
    /// Passes `packet`, or several, or none to `out`.
    fn apply(&mut self, now: Instant, packet: P, out: &mut Outlet<P>);
}

/// Where packets go when their fate is decided.
#[derive(Debug)]
pub struct Outlet<P> {
    line: DelayLine<P>,
    /// What has happened; `pushed`, `delivered` and `dropped_loss` are kept by the outlet, the rest by its user.
    pub counters: Counters,
}

impl<P: WireLen> Outlet<P> {
    pub(crate) fn new() -> Self {
        Self { line: DelayLine::new(), counters: Counters::default() }
    }

    /// The packet leaves at `due`, which may be before packets that were passed earlier.
    pub fn pass(&mut self, due: Instant, packet: P) {
        self.line.push(due, packet);
    }

    /// The packet is lost on the link.
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
    /// An element that does to each packet what `impairment` says.
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
