//! Elements joined to one element.

#[cfg(test)]
mod tests;

use core::fmt;

use farhaul_units::Instant;

use crate::element::{Counters, Element};

/// Elements one behind the other. A packet that leaves one arrives at the next at that same instant, however late the
/// driver is.
///
/// A pipe has few elements, so it searches all of them for the next event and keeps no heap. It is not `Send`, because
/// simulated packets are not. Build it in the thread that drives it, from a [`PathSpec`](crate::PathSpec), which is
/// `Send`.
pub struct Pipe<P> {
    /// Never empty.
    stages: Vec<Stage<P>>,
}

impl<P> Pipe<P> {
    /// A pipe of one element.
    pub fn new(first: impl Element<P> + 'static) -> Self {
        Self { stages: vec![Stage::new(first)] }
    }

    /// This pipe with `next` appended.
    #[must_use]
    pub fn then(mut self, next: impl Element<P> + 'static) -> Self {
        self.stages.push(Stage::new(next));
        self
    }

    /// The same path behind one pointer. A pipe of one element becomes that element.
    pub fn into_element(mut self) -> Box<dyn Element<P>>
    where
        P: 'static,
    {
        match self.stages.pop() {
            Some(only) if self.stages.is_empty() => only.element,
            last => {
                self.stages.extend(last);
                Box::new(self)
            }
        }
    }

    /// Moves packets from element to element, in order of time, up to `now`.
    fn transfer(&mut self, now: Instant) {
        while let Some((due, from)) = self.next_transfer().filter(|(due, _)| *due <= now) {
            if let Some(packet) = self.stages[from].pop(due) {
                self.stages[from + 1].push(due, packet);
            }
        }
    }

    /// When the next packet moves between two elements, and from which one.
    fn next_transfer(&self) -> Option<(Instant, usize)> {
        let with_successor = &self.stages[..self.stages.len() - 1];
        let events = with_successor.iter().enumerate();
        events.filter_map(|(index, stage)| stage.next_event.map(|due| (due, index))).min()
    }
}

impl<P> Element<P> for Pipe<P> {
    fn push(&mut self, now: Instant, packet: P) {
        self.transfer(now);
        self.stages[0].push(now, packet);
    }

    fn next_event(&self) -> Option<Instant> {
        self.stages.iter().filter_map(|stage| stage.next_event).min()
    }

    fn pop(&mut self, now: Instant) -> Option<P> {
        self.transfer(now);
        self.stages.last_mut().expect("a pipe begins with one element and loses none").pop(now)
    }

    fn advance(&mut self, now: Instant) {
        self.transfer(now);
        self.stages.iter_mut().for_each(|stage| stage.advance(now));
    }

    /// `pushed` of the first element, `delivered` of the last, the sum of all other counters. Of the queues' high-water
    /// marks the highest.
    fn counters(&self) -> Counters {
        let counters = self.stages.iter().map(|stage| stage.element.counters());
        counters.reduce(|before, next| before.followed_by(&next)).unwrap_or_default()
    }
}

impl<P> fmt::Debug for Pipe<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe").field("elements", &self.stages.len()).field("counters", &self.counters()).finish()
    }
}

/// An element with its next event cached, because a pipe reads the next event far more often than it changes.
struct Stage<P> {
    element: Box<dyn Element<P>>,
    next_event: Option<Instant>,
}

impl<P> Stage<P> {
    fn new(element: impl Element<P> + 'static) -> Self {
        let next_event = element.next_event();
        Self { element: Box::new(element), next_event }
    }

    fn push(&mut self, now: Instant, packet: P) {
        self.element.push(now, packet);
        self.next_event = self.element.next_event();
    }

    /// Returns `None` before the next event, without a call to the element.
    fn pop(&mut self, now: Instant) -> Option<P> {
        self.next_event.filter(|due| *due <= now)?;
        let packet = self.element.pop(now);
        self.next_event = self.element.next_event();
        packet
    }

    fn advance(&mut self, now: Instant) {
        self.element.advance(now);
        self.next_event = self.element.next_event();
    }
}
