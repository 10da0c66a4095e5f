//! Puts blocks in order that arrive over several flows, in bounded memory.
//!
//! **No deadlock.** A flow carries its blocks in the order of their offsets. A block that is not [admitted](Reassembly::admits)
//! waits on its flow, which holds back that flow alone. The block that is due next is always admitted, and it is the first of
//! those that its flow still has. So the stream goes on as long as every flow does.

use std::collections::BTreeMap;

/// Most blocks that wait for an earlier one: a peer could send them with one byte each.
const MAX_HELD: usize = 4096;

/// Blocks of a stream, in order. `T` stands for the bytes of a block.
#[derive(Debug)]
pub struct Reassembly<T> {
    /// The offset that is due.
    next: u64,
    /// Blocks from `next` on, with their ends, by their offsets.
    held: BTreeMap<u64, (u64, T)>,
    held_bytes: u64,
    /// Blocks end no further than this beyond `next`, so it bounds `held_bytes`.
    window: u64,
    total: Option<u64>,
}

/// The peer's blocks do not make a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Disorder {
    /// Two blocks have the same bytes.
    #[error("two blocks have the same offset")]
    Overlap,
    /// A block lies beyond the end of the stream.
    #[error("a block lies beyond the end of the stream")]
    BeyondEnd,
    /// Two ends of the stream differ.
    #[error("the stream has two ends")]
    TwoEnds,
}

impl<T> Reassembly<T> {
    /// A stream of which `next` bytes have come already. `window` bounds what is held, in bytes.
    pub const fn new(next: u64, window: u64) -> Self {
        Self { next, held: BTreeMap::new(), held_bytes: 0, window, total: None }
    }

    /// Whether a block may be stored now. If not, its flow waits until blocks were taken.
    pub fn admits(&self, offset: u64, len: usize) -> bool {
        offset <= self.next
            || offset.saturating_add(len as u64) <= self.next.saturating_add(self.window) && self.held.len() < MAX_HELD
    }

    /// Stores a block.
    ///
    /// # Errors
    /// It does not fit the others. The stream is broken.
    pub fn insert(&mut self, offset: u64, len: usize, bytes: T) -> Result<(), Disorder> {
        let end = offset.checked_add(len as u64).ok_or(Disorder::BeyondEnd)?;
        if self.total.is_some_and(|total| end > total) {
            return Err(Disorder::BeyondEnd);
        }
        let before = self.held.range(..=offset).next_back().map_or(self.next, |(_, (end, _))| *end);
        let after = self.held.range(offset..).next().map(|(offset, _)| *offset);
        if before > offset || offset < self.next || after.is_some_and(|after| after < end) {
            return Err(Disorder::Overlap);
        }
        self.held.insert(offset, (end, bytes));
        self.held_bytes += len as u64;
        Ok(())
    }

    /// Takes the block that is due.
    pub fn take(&mut self) -> Option<T> {
        let first = self.held.first_entry().filter(|first| *first.key() == self.next)?;
        let (offset, (end, bytes)) = first.remove_entry();
        self.next = end;
        self.held_bytes -= end - offset;
        Some(bytes)
    }

    /// Counts bytes that were due and came by another path.
    ///
    /// # Errors
    /// A block has some of them, or they lie beyond the end.
    pub fn advance(&mut self, len: usize) -> Result<(), Disorder> {
        let end = self.next.saturating_add(len as u64);
        if self.total.is_some_and(|total| end > total) {
            return Err(Disorder::BeyondEnd);
        }
        if self.held.first_key_value().is_some_and(|(offset, _)| *offset < end) {
            return Err(Disorder::Overlap);
        }
        self.next = end;
        Ok(())
    }

    /// The stream has this many bytes. Each flow says so.
    ///
    /// # Errors
    /// Another end was told, or blocks lie beyond it.
    pub fn end_at(&mut self, total: u64) -> Result<(), Disorder> {
        let reached = self.held.values().next_back().map_or(self.next, |(end, _)| *end);
        if reached > total {
            return Err(Disorder::BeyondEnd);
        }
        match self.total.replace(total) {
            Some(before) if before != total => Err(Disorder::TwoEnds),
            _ => Ok(()),
        }
    }

    /// The offset that is due.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Bytes that wait, in order or not.
    pub const fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Whether a block waits.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether all bytes of the stream have come. Some may not be taken yet.
    pub fn has_all(&self) -> bool {
        self.total.is_some_and(|total| self.next.saturating_add(self.held_bytes) == total)
    }

    /// Whether all bytes of the stream were taken.
    pub fn is_over(&self) -> bool {
        self.total == Some(self.next)
    }
}
