//! Reads packets from hosts into the memory in which they travel.
//!
//! A packet that needs no segmentation is read into a buffer of the pool and never copied here. Large packets, which
//! are segmented later, end in memory of the loop. So does every packet while the pool has no buffer.

use std::io::{self, IoSliceMut};
use std::rc::Rc;

use crate::packet::virtio;
use crate::pool::{Buffer, Pool};
use crate::tun::Tun;

/// The largest packet that a TUN device delivers.
const LARGEST: usize = 65_536;

/// Reads one packet at a time, behind its virtio header.
pub(crate) struct PacketReader {
    header: [u8; virtio::LENGTH],
    /// The buffer for the next packet.
    buffer: Option<Buffer>,
    /// The part of a packet that does not fit the buffer. The space for the part before it stays free.
    spill: Vec<u8>,
    length: usize,
}

impl PacketReader {
    pub(crate) fn new() -> Self {
        Self { header: [0; virtio::LENGTH], buffer: None, spill: vec![0; LARGEST], length: 0 }
    }

    /// Reads the next packet of a host whose packets have at most `mtu` bytes on the wire.
    ///
    /// # Errors
    /// `WouldBlock` if there is none, and errors of the device.
    pub(crate) fn read(&mut self, tun: &Tun, mtu: usize, pool: &Rc<Pool>) -> io::Result<()> {
        if self.buffer.as_mut().is_none_or(|buffer| buffer.room().len() < mtu) {
            self.buffer = pool.buffer(mtu);
        }
        let room = self.buffer.as_mut().map_or(&mut [][..], Buffer::room);
        let spill = &mut self.spill[room.len().min(LARGEST)..];
        let parts = &mut [IoSliceMut::new(&mut self.header), IoSliceMut::new(room), IoSliceMut::new(spill)];
        self.length = tun.read(parts)?.saturating_sub(virtio::LENGTH);
        if let Some(buffer) = &mut self.buffer {
            buffer.set_length(self.length);
        }
        Ok(())
    }

    /// The virtio header and the packet read last.
    pub(crate) fn packet(&mut self) -> (&[u8; virtio::LENGTH], &[u8]) {
        let packet = match &self.buffer {
            Some(buffer) if buffer.len() == self.length => buffer,
            buffer => {
                let first = buffer.as_deref().unwrap_or_default();
                self.spill[..first.len()].copy_from_slice(first);
                &self.spill[..self.length]
            }
        };
        (&self.header, packet)
    }

    /// The packet read last, in its own buffer. `None` if the pool is exhausted.
    pub(crate) fn take(&mut self, pool: &Rc<Pool>) -> Option<Buffer> {
        self.buffer.take_if(|buffer| buffer.len() == self.length).or_else(|| pool.copy(self.packet().1))
    }
}
