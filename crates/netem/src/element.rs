//! What every model can do: take packets in, say when it wants to be asked again, give packets out.

use farhaul_units::Instant;

use crate::Counters;

/// A piece of a path.
///
/// The contract between an element and its host:
///
/// - `now` never goes back from one call to the next.
/// - After [`pop`](Element::pop) returned `None`, [`next_event`](Element::next_event) is later than that `now`.
/// - A late host changes no packet's fate: what the element does happens at the instants when it was due, whenever
///   the host comes to ask. Only the last step, out of the element, waits for the host.
///
/// So a host pops until `None`, then sleeps until `next_event` or until it has something to push.
pub trait Element<P> {
    /// Takes in a packet that arrives at `now`.
    fn push(&mut self, now: Instant, packet: P);

    /// When [`pop`](Element::pop) is worth the next call; `None` if that takes another push. A packet may come out
    /// then, or only move on inside. The answer changes with `push`, `pop` and `advance` alone.
    fn next_event(&self) -> Option<Instant>;

    /// The next packet that has left the element by `now`, in order of leaving.
    fn pop(&mut self, now: Instant) -> Option<P>;

    /// Lets time pass inside the element up to `now`, so that [`counters`](Element::counters) show that instant.
    /// Needed only before reading them: `push` and `pop` go as far as they must by themselves.
    fn advance(&mut self, now: Instant) {
        let _ = now;
    }

    /// What has happened up to the latest [`advance`](Element::advance).
    fn counters(&self) -> Counters;
}
