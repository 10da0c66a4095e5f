//! A list of elements is an element.

#[cfg(test)]
mod tests;

use core::fmt;

use farhaul_units::Instant;

use crate::{Counters, Element};

/// Elements one behind the other; what leaves one arrives at the next at that same instant, however late the host is.
///
/// A pipe has few elements, so it asks them all for their next event and keeps no list of events. It is not `Send`,
/// because simulators' packets are not: build it in the thread that drives it, from a [`PathSpec`](crate::PathSpec),
/// which is.
pub struct Pipe<P> {
    /// Never empty.
    elements: Vec<Box<dyn Element<P>>>,
}

impl<P> Pipe<P> {
    /// A pipe of one element.
    pub fn new(first: impl Element<P> + 'static) -> Self {
        Self { elements: vec![Box::new(first)] }
    }

    /// This pipe with `next` behind its last element.
    #[must_use]
    pub fn then(mut self, next: impl Element<P> + 'static) -> Self {
        self.elements.push(Box::new(next));
        self
    }

    /// Moves packets from element to element, in order of time, up to `now`.
    fn settle(&mut self, now: Instant) {
        while let Some((due, from)) = self.next_transfer().filter(|(due, _)| *due <= now) {
            if let Some(packet) = self.elements[from].pop(due) {
                self.elements[from + 1].push(due, packet);
            }
        }
    }

    /// When and from which element the next packet moves on to the element behind it.
    fn next_transfer(&self) -> Option<(Instant, usize)> {
        let with_successor = &self.elements[..self.elements.len() - 1];
        let events = with_successor.iter().enumerate();
        events.filter_map(|(index, element)| element.next_event().map(|due| (due, index))).min()
    }

    fn last(&mut self) -> &mut dyn Element<P> {
        self.elements.last_mut().expect("a pipe begins with one element and loses none").as_mut()
    }
}

impl<P> Element<P> for Pipe<P> {
    fn push(&mut self, now: Instant, packet: P) {
        self.settle(now);
        self.elements[0].push(now, packet);
    }

    fn next_event(&self) -> Option<Instant> {
        self.elements.iter().filter_map(|element| element.next_event()).min()
    }

    fn pop(&mut self, now: Instant) -> Option<P> {
        self.settle(now);
        self.last().pop(now)
    }

    fn advance(&mut self, now: Instant) {
        self.settle(now);
        self.elements.iter_mut().for_each(|element| element.advance(now));
    }

    /// Taken in by the first element, given out by the last, everything else summed up; of the queues' high-water
    /// marks the highest.
    fn counters(&self) -> Counters {
        let counters = self.elements.iter().map(|element| element.counters());
        counters.reduce(|before, next| before.followed_by(&next)).unwrap_or_default()
    }
}

impl<P> fmt::Debug for Pipe<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe").field("elements", &self.elements.len()).field("counters", &self.counters()).finish()
    }
}
