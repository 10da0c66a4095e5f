//! A pool of packet memory, so that a packet allocates nothing once the pool has grown.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use super::body::Body;
use super::content::{Carrying, Payload};

/// Memory for the bytes of datagrams, and the number of packets.
#[derive(Clone, Default)]
pub struct Pool {
    shared: Rc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Reused last in, first out: the latest buffer is still in a cache.
    buffers: RefCell<Vec<Vec<u8>>>,
    #[expect(clippy::vec_box, reason = "packets hold the boxes themselves")]
    boxes: RefCell<Vec<Box<Carrying>>>,
    in_use: Cell<usize>,
    made: Cell<usize>,
}

impl Pool {
    /// An empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// A box with this content.
    pub(super) fn carrying(&self, payload: Payload, body: Body) -> Box<Carrying> {
        let carrying = Carrying { payload, body };
        match self.shared.boxes.borrow_mut().pop() {
            Some(mut used) => {
                *used = carrying;
                used
            }
            None => Box::new(carrying),
        }
    }

    /// Takes back a box.
    pub(super) fn take_box(&self, used: Box<Carrying>) {
        self.shared.boxes.borrow_mut().push(used);
    }

    /// Counts one more packet in use.
    pub(super) fn count(&self) {
        let Shared { in_use, made, .. } = &*self.shared;
        in_use.set(in_use.get() + 1);
        made.set(made.get().max(in_use.get()));
    }

    /// Memory for bytes, with undefined content.
    pub(super) fn buffer(&self) -> Vec<u8> {
        self.shared.buffers.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back a packet and the memory of its bytes.
    pub(super) fn take_back(&self, buffer: Option<Vec<u8>>) {
        self.shared.in_use.set(self.shared.in_use.get() - 1);
        if let Some(buffer) = buffer {
            self.shared.buffers.borrow_mut().push(buffer);
        }
    }

    /// The largest number of packets in use at once so far.
    pub fn made(&self) -> usize {
        self.shared.made.get()
    }

    /// Packets in flight now.
    pub fn in_use(&self) -> usize {
        self.shared.in_use.get()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("in_use", &self.in_use()).field("made", &self.made()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use farhaul_netem::WireLen;
    use farhaul_units::Instant;

    use super::*;
    use crate::packet::content::{Ends, Share};
    use crate::packet::segment::{HEADER, Segment, SegmentKind};

    #[test]
    fn a_dropped_packet_lends_its_buffer_to_the_next() {
        let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let pool = Pool::new();
        let mut room = None;
        for round in 0..100u8 {
            let bytes = [[round; 700], [round + 1; 700]].concat();
            let packet = pool.packet(address(1), address(2), &bytes);
            assert_eq!((packet.bytes(), packet.wire_len()), (&bytes[..], 1_428));
            assert_eq!(packet.bytes().as_ptr(), *room.get_or_insert(packet.bytes().as_ptr()));
            assert_eq!(pool.in_use(), 1);
        }
        assert_eq!((pool.made(), pool.in_use()), (1, 0));
    }

    #[test]
    fn a_segment_keeps_its_bytes_and_lends_its_memory_to_the_next() {
        let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let pool = Pool::new();
        let ends = Rc::new(Ends { from: address(1), to: address(2), destination: None, flow: 0 });
        let bytes = [[1; 700], [2; 700]].concat();
        let mut segment = Segment::new(SegmentKind::Data, HEADER, Instant::ZERO);
        segment.payload = 1_400;
        let mut places = Vec::new();
        for _ in 0..3 {
            let mut packet = pool.segment(Rc::clone(&ends), segment, &bytes, Share::Channel);
            assert_eq!((packet.bytes(), packet.wire_len()), (&bytes[..], 1_440));
            assert_eq!(packet.payload(), &Payload::Tcp(segment));
            assert_eq!(packet.bytes_mut(), None, "taps and transports see datagrams only");
            places.push((packet.bytes().as_ptr(), core::ptr::from_ref(packet.payload())));
        }
        assert_eq!(places, [places[0]; 3]);
        let packet = pool.segment(ends, segment, &bytes, Share::Channel);
        let copy = farhaul_netem::Packet::duplicate(&packet);
        assert_eq!((copy.bytes(), copy.payload()), (packet.bytes(), packet.payload()));
        drop((packet, copy));
        assert_eq!((pool.made(), pool.in_use()), (2, 0));
    }
}
