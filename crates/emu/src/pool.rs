//! A bounded pool of memory for packets in flight.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// Sizes of buffers: acknowledgements, full Ethernet packets, jumbo packets, the largest packet.
const CLASSES: [usize; 4] = [256, 2_048, 16_384, 65_536];

/// Most memory for packets in flight: the BDP of 10 Gbit/s × 400 ms, and as much in a queue.
pub(crate) const MAX_BYTES: usize = 1 << 30;

/// Returned buffers, for reuse.
#[derive(Debug)]
pub(crate) struct Pool {
    free: [RefCell<Vec<Box<[u8]>>>; CLASSES.len()],
    /// Bytes in buffers in use.
    used: Cell<usize>,
    limit: usize,
}

impl Default for Pool {
    fn default() -> Self {
        Self::of(MAX_BYTES)
    }
}

impl Pool {
    /// A pool of `limit` bytes.
    pub(crate) fn of(limit: usize) -> Self {
        Self { free: Default::default(), used: Cell::new(0), limit }
    }

    /// An empty buffer with room for `length` bytes; `None` if the pool is exhausted.
    pub(crate) fn buffer(self: &Rc<Self>, length: usize) -> Option<Buffer> {
        (self.used.get() < self.limit).then(|| self.take(length))
    }

    /// A copy of `bytes`; `None` if the pool is exhausted.
    pub(crate) fn copy(self: &Rc<Self>, bytes: &[u8]) -> Option<Buffer> {
        let mut buffer = self.buffer(bytes.len())?;
        buffer.append(bytes);
        Some(buffer)
    }

    fn take(self: &Rc<Self>, length: usize) -> Buffer {
        let class = CLASSES.partition_point(|&size| size < length).min(CLASSES.len() - 1);
        let room = self.free[class].borrow_mut().pop().filter(|room| room.len() >= length);
        let room = room.unwrap_or_else(|| vec![0; CLASSES[class].max(length)].into_boxed_slice());
        self.used.set(self.used.get() + CLASSES[class]);
        Buffer { room, length: 0, class, pool: Rc::clone(self) }
    }
}

/// The bytes of a packet. Returns its memory to the pool when dropped.
pub(crate) struct Buffer {
    room: Box<[u8]>,
    length: usize,
    class: usize,
    pool: Rc<Pool>,
}

impl Buffer {
    /// A copy, even if the pool is exhausted. Copies are bounded by the packets they duplicate.
    pub(crate) fn again(&self) -> Self {
        let mut copy = self.pool.take(self.length);
        copy.append(self);
        copy
    }

    /// Appends bytes, for which there must be room.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        self.room[self.length..end].copy_from_slice(bytes);
        self.length = end;
    }

    /// All of its memory. After filling it from the beginning, call [`set_length`](Self::set_length).
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.room
    }

    /// Sets the number of used bytes.
    pub(crate) fn set_length(&mut self, length: usize) {
        self.length = length.min(self.room.len());
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.room[..self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.room[..self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.used.set(self.pool.used.get() - CLASSES[self.class]);
        self.pool.free[self.class].borrow_mut().push(std::mem::take(&mut self.room));
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused() {
        let pool = Rc::new(Pool::default());
        let first = pool.copy(&[1; 1_472]).unwrap();
        let address = first.as_ptr();
        drop(first);
        assert_eq!(pool.used.get(), 0);
        let second = pool.copy(&[2; 1_000]).unwrap();
        assert_eq!((second.as_ptr(), &second[..]), (address, &[2; 1_000][..]));
        let copy = second.again();
        assert_eq!(copy[..], second[..]);
        assert_ne!(copy.as_ptr(), address);
    }

    #[test]
    fn memory_is_bounded() {
        let pool = Rc::new(Pool::of(1_000));
        let first = pool.copy(&[0; 2_000]).unwrap();
        assert!(pool.copy(&[1]).is_none());
        let copy = first.again();
        assert_eq!(copy.len(), 2_000, "copies are bounded by what they are made of");
        drop((first, copy));
        assert!(pool.copy(&[1]).is_some());
    }
}
