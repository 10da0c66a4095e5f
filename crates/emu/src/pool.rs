//! Memory of packets under way, used again and bounded.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// Sizes of buffers: acknowledgements, full Ethernet packets, jumbo packets, the largest packet.
const CLASSES: [usize; 4] = [256, 2_048, 16_384, 65_536];

/// Most memory for packets under way: a bandwidth-delay product of 10 Gbit/s × 400 ms, and as much in a queue.
pub(crate) const MAX_BYTES: usize = 1 << 30;

/// Buffers that were returned, for the next packets.
#[derive(Debug)]
pub(crate) struct Pool {
    free: [RefCell<Vec<Vec<u8>>>; CLASSES.len()],
    /// Bytes in buffers that are in use.
    used: Cell<usize>,
    limit: usize,
}

impl Default for Pool {
    fn default() -> Self {
        Self::of(MAX_BYTES)
    }
}

impl Pool {
    /// A pool with memory for so many bytes.
    pub(crate) fn of(limit: usize) -> Self {
        Self { free: Default::default(), used: Cell::new(0), limit }
    }

    /// An empty buffer with room for `length` bytes; `None` if too much is under way already.
    pub(crate) fn buffer(self: &Rc<Self>, length: usize) -> Option<Buffer> {
        (self.used.get() < self.limit).then(|| self.take(length))
    }

    /// A copy of `bytes`; `None` if too much is under way already.
    pub(crate) fn copy(self: &Rc<Self>, bytes: &[u8]) -> Option<Buffer> {
        let mut buffer = self.buffer(bytes.len())?;
        buffer.extend_from_slice(bytes);
        Some(buffer)
    }

    fn take(self: &Rc<Self>, length: usize) -> Buffer {
        let class = CLASSES.partition_point(|&size| size < length).min(CLASSES.len() - 1);
        let mut bytes =
            self.free[class].borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(CLASSES[class].max(length)));
        bytes.clear();
        self.used.set(self.used.get() + CLASSES[class]);
        Buffer { bytes, class, pool: Rc::clone(self) }
    }
}

/// The bytes of a packet. Their memory goes back to its pool when dropped.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    class: usize,
    pool: Rc<Pool>,
}

impl Buffer {
    /// Another one with the same bytes, however much is under way: who makes copies is bounded by what they are made of.
    pub(crate) fn again(&self) -> Self {
        let mut copy = self.pool.take(self.bytes.len());
        copy.extend_from_slice(&self.bytes);
        copy
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.used.set(self.pool.used.get() - CLASSES[self.class]);
        self.pool.free[self.class].borrow_mut().push(std::mem::take(&mut self.bytes));
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again() {
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
