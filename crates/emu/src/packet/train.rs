//! Packets that leave for a host one right after the other, put together so that one write delivers them.
//!
//! Only what a network card would put together goes together: packets of one flow with equal headers, TCP's without a gap and up
//! to the first that says "push", UDP's of one length; the last may be shorter.

use std::io::{self, IoSlice};

use super::Packet;
use super::headers::{FIN, Layout, PROTOCOL_TCP, PSH, TCP_FLAGS};
use super::virtio::{Bundle, Bundles, Header};

/// Packets in a train: more than the longest packet holds of 1500 bytes, and about the 83 that the longest nap lasts at 10 Gbit/s.
const MAX_PACKETS: usize = 64;
/// The longest packet of IPv4, which a train pretends to be.
const MAX_BYTES: usize = 65_535;
/// IPv4 with all options and TCP with all options.
const MAX_HEADERS: usize = 120;

/// Packets for one host that are written together.
#[derive(Debug)]
pub(crate) struct Train {
    packets: Vec<Packet>,
    /// What the host takes several of at once.
    bundles: Bundles,
    /// What all of them must be like; none if the first one travels alone.
    pattern: Option<Pattern>,
    bytes: usize,
}

/// What the packets of a train have in common.
#[derive(Clone, Copy, Debug)]
struct Pattern {
    layout: Layout,
    /// The headers with what may differ blanked.
    headers: [u8; MAX_HEADERS],
    /// Bytes of payload in each but the last.
    size: usize,
    /// The number of the byte that must come next, in TCP.
    next: u32,
    /// Nothing may follow any more.
    closed: bool,
}

impl Train {
    /// An empty one for a host that takes such bundles.
    pub(crate) fn new(bundles: Bundles) -> Self {
        Self { packets: Vec::new(), bundles, pattern: None, bytes: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Adds `packet` if it may travel with those that are there; gives it back if not.
    pub(crate) fn add(&mut self, packet: Packet) -> Result<(), Packet> {
        if self.packets.is_empty() {
            self.pattern = Pattern::of(&packet).filter(|pattern| self.bundles.has(pattern.bundle()));
            self.bytes = packet.bytes().len();
            self.packets.push(packet);
            return Ok(());
        }
        let fits = self.packets.len() < MAX_PACKETS;
        match self.pattern.as_mut().filter(|_| fits).and_then(|pattern| pattern.takes(&packet, self.bytes)) {
            Some(added) => {
                self.bytes += added;
                self.packets.push(packet);
                Ok(())
            }
            None => Err(packet),
        }
    }

    /// Hands all of it to `write`, headers first, and empties the train; returns how many packets were not taken. A system that
    /// does not know such bundles gets single packets from then on.
    pub(crate) fn write(&mut self, mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<()>) -> u64 {
        let packets = &self.packets[..];
        let refused = match self.pattern.take() {
            Some(pattern) if packets.len() > 1 => match pattern.write(packets, self.bytes, &mut write) {
                Ok(()) => 0,
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.bundles.remove(pattern.bundle());
                    write_singly(packets, write)
                }
                Err(_) => packets.len() as u64,
            },
            _ => write_singly(packets, write),
        };
        self.packets.clear();
        refused
    }
}

/// Hands packets to `write` one by one; returns how many were not taken.
fn write_singly(packets: &[Packet], mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<()>) -> u64 {
    let mut refused = 0;
    for packet in packets {
        let header = Header { checksum: packet.checksum(), ..Header::default() };
        let header = header.write(packet.bytes()[0] >> 4 == 6);
        refused += u64::from(write(&[IoSlice::new(&header), IoSlice::new(packet.bytes())]).is_err());
    }
    refused
}

impl Pattern {
    /// What others must be like to travel with `packet`; `None` if none may.
    fn of(packet: &Packet) -> Option<Self> {
        let bytes = packet.bytes();
        // A checksum that is there already was made for this packet alone.
        packet.checksum()?;
        let layout = Layout::of(bytes).filter(|layout| layout.payload <= MAX_HEADERS)?;
        let size = bytes.len() - layout.payload;
        let mut pattern = Self { layout, headers: blanked(layout, bytes), size, next: 0, closed: size == 0 };
        pattern.advance(bytes, size);
        Some(pattern)
    }

    /// What packets of this kind are together.
    fn bundle(&self) -> Bundle {
        if self.layout.protocol == PROTOCOL_TCP { Bundle::Tcp } else { Bundle::Udp }
    }

    /// Hands `packets`, which together are a packet of `bytes`, to `write`.
    fn write(
        &self,
        packets: &[Packet],
        bytes: usize,
        write: &mut impl FnMut(&[IoSlice<'_>]) -> io::Result<()>,
    ) -> io::Result<()> {
        let (Some(first), Some(last)) = (packets.first(), packets.last()) else { return Ok(()) };
        let layout = self.layout;
        let mut headers = [0; MAX_HEADERS];
        let headers = &mut headers[..layout.payload];
        headers.copy_from_slice(&first.bytes()[..layout.payload]);
        layout.set_length(headers, bytes);
        if self.bundle() == Bundle::Tcp {
            headers[layout.transport + TCP_FLAGS] |= last.bytes()[layout.transport + TCP_FLAGS] & (FIN | PSH);
        }
        let header = Header {
            checksum: Some(layout.checksum()),
            bundle: Some((self.bundle(), self.size as u16)),
            header_length: layout.payload as u16,
        };
        let header = header.write(layout.ipv6);
        let mut parts = [IoSlice::new(&[]); MAX_PACKETS + 2];
        parts[0] = IoSlice::new(&header);
        parts[1] = IoSlice::new(headers);
        for (part, packet) in parts[2..].iter_mut().zip(packets) {
            *part = IoSlice::new(&packet.bytes()[layout.payload..]);
        }
        write(&parts[..packets.len() + 2])
    }

    /// Bytes by which `packet` makes a train of `bytes` longer; `None` if it does not belong to it.
    fn takes(&mut self, packet: &Packet, bytes: usize) -> Option<usize> {
        let candidate = packet.bytes();
        let added = candidate.len().checked_sub(self.layout.payload)?;
        let belongs = !self.closed
            && packet.checksum().is_some()
            && (1..=self.size).contains(&added)
            && bytes + added <= MAX_BYTES
            && Layout::of(candidate) == Some(self.layout)
            && (self.layout.protocol != PROTOCOL_TCP || self.layout.sequence(candidate) == self.next)
            && blanked(self.layout, candidate) == self.headers;
        belongs.then(|| self.advance(candidate, added))?;
        Some(added)
    }

    /// `packet` with `length` bytes of payload has been added.
    fn advance(&mut self, packet: &[u8], length: usize) {
        self.closed |= length < self.size;
        if self.layout.protocol == PROTOCOL_TCP {
            self.next = self.layout.sequence(packet).wrapping_add(length as u32);
            self.closed |= packet[self.layout.transport + TCP_FLAGS] & !ACK != 0;
        }
    }
}

/// The flag of TCP that every segment of a bundle carries.
const ACK: u8 = 0x10;

fn blanked(layout: Layout, packet: &[u8]) -> [u8; MAX_HEADERS] {
    let mut headers = [0; MAX_HEADERS];
    headers[..layout.payload].copy_from_slice(&packet[..layout.payload]);
    layout.blank_variables(&mut headers[..layout.payload]);
    headers
}

#[cfg(test)]
mod tests;
