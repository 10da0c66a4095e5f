//! Chunks of memory that wait for their next use.
//!
//! A steady flow should allocate nothing: memory that goes back to the system is zeroed page by page when it returns. So as many
//! chunks stay as were in use at once lately.

/// The mark falls by one chunk for this many chunks that come back. A buffer that fills and drains all the time allocates one chunk in so
/// many, and the memory of a burst has gone back after so many times its size.
const RETURNS_PER_STEP: usize = 32;

/// Chunks for reuse, up to the most that were in use lately.
#[derive(Debug)]
pub(super) struct Spares<C> {
    free: Vec<C>,
    /// The most chunks in use lately, in steps of `1 / RETURNS_PER_STEP`.
    mark: usize,
}

impl<C> Default for Spares<C> {
    fn default() -> Self {
        Self { free: Vec::new(), mark: 0 }
    }
}

impl<C> Spares<C> {
    /// A chunk, if one waits.
    pub(super) fn take(&mut self) -> Option<C> {
        self.free.pop()
    }

    /// Takes back a chunk, beside `in_use` others.
    pub(super) fn put_back(&mut self, chunk: C, in_use: usize) {
        self.mark = self.mark.saturating_sub(1).max((in_use + 1) * RETURNS_PER_STEP);
        let most = (self.mark / RETURNS_PER_STEP).saturating_sub(in_use);
        if self.free.len() < most {
            self.free.push(chunk);
        } else {
            self.free.truncate(most);
        }
    }

    /// The chunks that wait.
    pub(super) fn iter(&self) -> impl Iterator<Item = &C> {
        self.free.iter()
    }

    /// Gives all memory back.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a buffer to `size` chunks and empties it. Returns how many were new.
    fn cycle(spares: &mut Spares<()>, size: usize) -> usize {
        let new = (0..size).filter(|_| spares.take().is_none()).count();
        (0..size).rev().for_each(|in_use| spares.put_back((), in_use));
        new
    }

    #[test]
    fn a_steady_flow_allocates_once() {
        let mut spares = Spares::default();
        assert_eq!(cycle(&mut spares, 500), 500);
        for _ in 0..20 {
            assert!(cycle(&mut spares, 500) <= 500 / RETURNS_PER_STEP + 1);
        }
    }

    #[test]
    fn memory_of_a_burst_goes_back_after_a_few_times_its_size() {
        let mut spares = Spares::default();
        cycle(&mut spares, 500);
        for _ in 0..RETURNS_PER_STEP * 500 {
            cycle(&mut spares, 1);
        }
        assert_eq!(spares.iter().count(), 1);
    }
}
