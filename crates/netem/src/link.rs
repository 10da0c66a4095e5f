//! A link: packets wait in a queue, are sent at the link's rate and travel for its propagation delay.

mod meter;
mod opportunities;
mod server;
mod transmitter;

#[cfg(test)]
mod tests;

use farhaul_units::{Duration, Instant, Rate};

use crate::element::{Counters, Element};
use crate::impair::{Outlet, WireLen};
use crate::queue::{DropTail, Queue};
use crate::schedule::{Propagation, Schedule};
use crate::trace::DeliveryTrace;
use meter::Meter;
use opportunities::Opportunities;
use server::Server;
use transmitter::Transmitter;

/// How a link changes over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Variation {
    /// Constant rate and delay.
    #[default]
    None,
    /// Rate and delay change at known instants.
    Schedule(Schedule),
    /// Packets leave at the recorded opportunities of a link. The trace replaces `rate`; `delay` still applies.
    Trace(DeliveryTrace),
}

/// A queue, then a rate, then a propagation delay.
///
/// The queue holds the waiting packets. The packet in transmission has left it. A link without a rate has no queue and
/// holds every packet that arrives during its delay, without a limit.
#[derive(Debug)]
pub struct Link<P, Q = DropTail<P>> {
    queue: Q,
    /// `None` if transmission takes no time.
    server: Option<Server>,
    propagation: Propagation,
    meter: Meter,
    /// Packets in transmission and in propagation.
    outlet: Outlet<P>,
}

#[cfg(test)]
impl<P: WireLen> Link<P> {
    /// A link with a drop-tail queue of `size`. Without a rate, transmission takes no time and the queue stays empty.
    pub(crate) fn new(rate: Option<Rate>, delay: Duration, size: crate::QueueSize) -> Self {
        Self::with_queue(rate, delay, size.drop_tail(rate))
    }
}

impl<P: WireLen, Q: Queue<P>> Link<P, Q> {
    /// A link with a queue of another discipline.
    #[cfg(test)]
    pub(crate) fn with_queue(rate: Option<Rate>, delay: Duration, queue: Q) -> Self {
        Self::varying(rate, delay, &Variation::None, queue)
    }

    /// A link whose rate or delay changes over time.
    pub fn varying(rate: Option<Rate>, delay: Duration, variation: &Variation, queue: Q) -> Self {
        let constant = Propagation::constant(delay);
        let (server, propagation) = match variation {
            Variation::None => (rate.map(|rate| Server::Rate(Transmitter::new(rate))), constant),
            Variation::Trace(trace) => (Some(Server::Trace(Opportunities::new(trace.clone()))), constant),
            Variation::Schedule(schedule) => {
                let timeline = schedule.timeline(rate, delay);
                let is_limited = rate.is_some() || schedule.steps().iter().any(|step| step.rate.is_some());
                let server = is_limited.then(|| Server::Rate(Transmitter::changing(timeline.clone())));
                (server, Propagation::changing(timeline, schedule.may_reorder()))
            }
        };
        Self { queue, server, propagation, meter: Meter::default(), outlet: Outlet::new() }
    }

    /// Sends every packet whose transmission can begin by `now`, each when the one before it has ended.
    fn send_waiting(&mut self, now: Instant) {
        let Some(server) = &mut self.server else { return };
        loop {
            let begin = server.free_at();
            if begin > now {
                return;
            }
            self.meter.elapse(begin, self.queue.tallies().waiting);
            let Some(packet) = self.queue.dequeue(begin) else { return };
            let sent = server.send(packet.wire_len());
            self.outlet.pass(self.propagation.arrival(sent), packet);
        }
    }

    /// When the next packet leaves the queue, if one waits.
    fn next_departure(&self) -> Option<Instant> {
        let server = self.server.as_ref().filter(|_| self.queue.tallies().waiting.packets > 0)?;
        Some(server.free_at()).filter(|due| *due < Instant::FAR_FUTURE)
    }
}

impl<P: WireLen, Q: Queue<P>> Element<P> for Link<P, Q> {
    fn push(&mut self, now: Instant, packet: P) {
        self.outlet.counters.pushed.add(packet.wire_len());
        self.send_waiting(now);
        let Some(server) = &mut self.server else {
            return self.outlet.pass(self.propagation.arrival(now), packet);
        };
        self.meter.elapse(now, self.queue.tallies().waiting);
        if server.free_at() <= now {
            // Nothing waits, or it would have been sent.
            server.idle_until(now);
            if Q::IS_PASSIVE && server.free_at() <= now {
                let sent = server.send(packet.wire_len());
                return self.outlet.pass(self.propagation.arrival(sent), packet);
            }
        }
        self.queue.enqueue(now, packet);
        self.send_waiting(now);
        self.meter.note(self.queue.tallies().waiting);
    }

    fn next_event(&self) -> Option<Instant> {
        let arrival = self.outlet.next_event();
        // With in-order propagation, packets in flight arrive before any that still waits, so their arrival is next.
        // A departure from the queue matters if no packet is in flight, or if the delay lets packets overtake.
        if arrival.is_some() && !self.propagation.may_reorder {
            return arrival;
        }
        arrival.into_iter().chain(self.next_departure()).min()
    }

    fn pop(&mut self, now: Instant) -> Option<P> {
        self.send_waiting(now);
        self.outlet.pop(now)
    }

    fn advance(&mut self, now: Instant) {
        self.send_waiting(now);
        self.meter.elapse(now, self.queue.tallies().waiting);
    }

    fn counters(&self) -> Counters {
        let (mut counters, tallies) = (self.outlet.counters, self.queue.tallies());
        (counters.dropped_queue, counters.dropped_early) = (tallies.dropped, tallies.dropped_early);
        counters.queue = self.meter.depth(tallies.waiting, self.queue.average());
        counters
    }
}
