//! A bounded number of places. Dropping a place frees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A counter of taken places with a maximum.
#[derive(Clone, Debug)]
pub(super) struct Places {
    taken: Arc<AtomicUsize>,
    max: usize,
}

/// One taken place.
#[derive(Debug)]
pub(super) struct Place(Arc<AtomicUsize>);

impl Places {
    pub(super) fn new(max: usize) -> Self {
        Self { taken: Arc::default(), max }
    }

    /// Takes a place, if one is free.
    pub(super) fn take(&self) -> Option<Place> {
        let one_more = |taken| (taken < self.max).then_some(taken + 1);
        let took = self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
        took.is_ok().then(|| Place(Arc::clone(&self.taken)))
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// Whether no place is free now.
    pub(super) fn are_taken(&self) -> bool {
        self.taken() >= self.max
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_once_it_is_dropped() {
        let places = Places::new(2);
        let (first, second) = (places.take(), places.take());
        assert!(first.is_some() && second.is_some() && places.are_taken());
        assert!(places.take().is_none(), "an attempt that fails takes nothing");
        drop(first);
        assert_eq!((places.taken(), places.are_taken()), (1, false));
        assert!(places.take().is_some());
    }
}
