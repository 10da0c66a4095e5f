//! Datagrams on their way through the relay, in memory that is used again.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use farhaul_netem::{Packet, WireLen, flip_random_bit};
use farhaul_units::Rng;

use super::clients::ClientId;

/// Sizes of buffers: acknowledgements, full Ethernet packets, jumbo packets, the largest datagram.
const CLASSES: [usize; 4] = [256, 2_048, 16_384, 65_536];

/// Most memory for datagrams under way: a bandwidth-delay product of 10 Gbit/s × 400 ms, and as much in a queue.
const MAX_BYTES: usize = 1 << 30;

/// Memory of datagrams, kept for the next ones.
#[derive(Debug, Default)]
pub(super) struct Pool {
    free: [RefCell<Vec<Vec<u8>>>; CLASSES.len()],
    /// Bytes in buffers that are in use.
    used: Cell<usize>,
}

impl Pool {
    /// A copy of `bytes` as a datagram of `client`; `None` if too much is under way already.
    pub(super) fn datagram(self: &Rc<Self>, bytes: &[u8], overhead: u32, client: ClientId) -> Option<Datagram> {
        (self.used.get() < MAX_BYTES).then(|| self.copy(bytes, overhead, client))
    }

    fn copy(self: &Rc<Self>, bytes: &[u8], overhead: u32, client: ClientId) -> Datagram {
        let class = CLASSES.partition_point(|&size| size < bytes.len()).min(CLASSES.len() - 1);
        let mut buffer =
            self.free[class].borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(CLASSES[class].max(bytes.len())));
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.used.set(self.used.get() + CLASSES[class]);
        Datagram { bytes: buffer, pool: Rc::clone(self), class, overhead, client }
    }
}

/// A datagram of a client, in either direction. Goes back to its pool when dropped.
pub(super) struct Datagram {
    bytes: Vec<u8>,
    pool: Rc<Pool>,
    class: usize,
    overhead: u32,
    client: ClientId,
}

impl Datagram {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn client(&self) -> ClientId {
        self.client
    }
}

impl WireLen for Datagram {
    fn wire_len(&self) -> u32 {
        u32::try_from(self.bytes.len()).unwrap_or(u32::MAX).saturating_add(self.overhead)
    }
}

impl Packet for Datagram {
    fn duplicate(&self) -> Self {
        self.pool.copy(&self.bytes, self.overhead, self.client)
    }

    fn corrupt(&mut self, rng: &mut Rng) {
        flip_random_bit(&mut self.bytes, rng);
    }
}

impl Drop for Datagram {
    fn drop(&mut self) {
        self.pool.used.set(self.pool.used.get() - CLASSES[self.class]);
        self.pool.free[self.class].borrow_mut().push(std::mem::take(&mut self.bytes));
    }
}

impl fmt::Debug for Datagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Datagram({} bytes of {:?})", self.bytes.len(), self.client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again() {
        let pool = Rc::new(Pool::default());
        let first = pool.datagram(&[1; 1_472], 28, ClientId::default()).unwrap();
        assert_eq!(first.wire_len(), 1_500);
        let address = first.bytes().as_ptr();
        drop(first);
        assert_eq!(pool.used.get(), 0);
        let second = pool.datagram(&[2; 1_000], 28, ClientId::default()).unwrap();
        assert_eq!((second.bytes().as_ptr(), second.bytes()), (address, &[2; 1_000][..]));
        let copy = second.duplicate();
        assert_eq!(copy.bytes(), second.bytes());
        assert_ne!(copy.bytes().as_ptr(), address);
    }

    #[test]
    fn memory_is_bounded() {
        let pool = Rc::new(Pool::default());
        pool.used.set(MAX_BYTES);
        assert!(pool.datagram(&[1], 28, ClientId::default()).is_none());
    }
}
