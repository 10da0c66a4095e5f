//! The interface of every model: push packets in, ask for the next event, pop packets out.

use farhaul_units::Instant;

pub(crate) use crate::counters::Counters;

/// A part of a path.
///
/// The contract between an element and its driver:
///
/// - `now` never decreases from one call to the next.
/// - After [`pop`](Element::pop) returned `None`, [`next_event`](Element::next_event) is later than that `now`.
/// - A late driver does not change what happens to a packet. The element computes each step for the instant at which it
///   was due. Only the last step, out of the element, waits for the driver.
///
/// A driver therefore pops until `None`, then sleeps until `next_event` or until it has a packet to push.
pub trait Element<P> {
    /// Takes in a packet that arrives at `now`.
    fn push(&mut self, now: Instant, packet: P);

    /// When to call [`pop`](Element::pop) again. `None` if nothing happens before the next push.
    ///
    /// At that instant a packet comes out or moves on inside the element. Only `push`, `pop` and `advance` change the
    /// answer.
    fn next_event(&self) -> Option<Instant>;

    /// The next packet that has left the element by `now`, in order of departure.
    fn pop(&mut self, now: Instant) -> Option<P>;

    /// Runs the element up to `now`, so that [`counters`](Element::counters) describe that instant. Needed only before
    /// reading counters: `push` and `pop` run the element as far as they need.
    fn advance(&mut self, now: Instant) {
        let _ = now;
    }

    /// The counters at the latest [`advance`](Element::advance).
    fn counters(&self) -> Counters;
}
