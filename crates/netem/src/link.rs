//! A link: packets wait in a queue, are sent at the link's rate and travel for its delay.

mod transmitter;

#[cfg(test)]
mod tests;

use farhaul_units::{Duration, Instant, Rate};

use crate::queue::Queue;
use crate::{Counters, DropTail, Element, Outlet, QueueSize, Tally, WireLen};
use transmitter::Transmitter;

/// Queue, then rate, then propagation delay.
///
/// The queue holds the packets that wait; the packet that is being sent has left it. A link without a rate has no
/// queue: it holds as many packets as arrive during its delay, however many that are.
#[derive(Debug)]
pub struct Link<P, Q = DropTail<P>> {
    queue: Q,
    /// `None` when sending takes no time.
    transmitter: Option<Transmitter>,
    delay: Duration,
    high_water: Tally,
    /// Packets that are being sent or travel. All have the same delay, so they stay in order.
    outlet: Outlet<P>,
}

impl<P: WireLen> Link<P> {
    /// A link with a drop-tail queue of `size`. Without a rate, sending takes no time and nothing is queued.
    pub fn new(rate: Option<Rate>, delay: Duration, size: QueueSize) -> Self {
        Self::with_queue(rate, delay, size.drop_tail(rate))
    }
}

impl<P: WireLen, Q: Queue<P>> Link<P, Q> {
    /// A link with a queue of its own kind.
    pub fn with_queue(rate: Option<Rate>, delay: Duration, queue: Q) -> Self {
        let transmitter = rate.map(Transmitter::new);
        Self { queue, transmitter, delay, high_water: Tally::default(), outlet: Outlet::new() }
    }

    /// Sends what can begin by `now`, each packet at the instant when the one before was out.
    fn send_waiting(&mut self, now: Instant) {
        let Some(transmitter) = &mut self.transmitter else { return };
        while transmitter.free_at() <= now {
            let Some(packet) = self.queue.dequeue(transmitter.free_at()) else { return };
            self.outlet.pass(transmitter.send(packet.wire_len()) + self.delay, packet);
        }
    }
}

impl<P: WireLen, Q: Queue<P>> Element<P> for Link<P, Q> {
    fn push(&mut self, now: Instant, packet: P) {
        self.outlet.counters.pushed.add(packet.wire_len());
        self.send_waiting(now);
        let Some(transmitter) = &mut self.transmitter else {
            return self.outlet.pass(now + self.delay, packet);
        };
        if transmitter.free_at() <= now {
            transmitter.idle_until(now);
        }
        self.queue.enqueue(now, packet);
        self.send_waiting(now);
        self.high_water = self.high_water.max(self.queue.waiting());
    }

    fn next_event(&self) -> Option<Instant> {
        // Nothing waits unless something is being sent, so the outlet always knows the next event.
        self.outlet.next_event()
    }

    fn pop(&mut self, now: Instant) -> Option<P> {
        self.send_waiting(now);
        self.outlet.pop(now)
    }

    fn advance(&mut self, now: Instant) {
        self.send_waiting(now);
    }

    fn counters(&self) -> Counters {
        let mut counters = self.outlet.counters;
        counters.dropped_queue = self.queue.dropped();
        counters.queue.waiting = self.queue.waiting();
        counters.queue.high_water = self.high_water;
        counters
    }
}
