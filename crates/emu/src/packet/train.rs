//! Coalesces consecutive packets for one host, so that one write delivers them.
//!
//! The rules are those of a network card (GRO). All packets belong to one flow and have equal headers. TCP segments are
//! contiguous and end with the first PSH. UDP datagrams have one length. The last packet may be shorter.

use std::io::{self, IoSlice};

use super::Packet;
use super::headers::{FIN, Layout, PROTOCOL_TCP, PSH, TCP_FLAGS};
use super::virtio::{GsoType, GsoTypes, Header};

/// Most packets in a train. More than the largest packet holds in units of 1500 bytes. The longest pause covers 83 at 10
/// Gbit/s.
const MAX_PACKETS: usize = 64;
/// Size of the largest IPv4 packet, which limits a train.
const MAX_BYTES: usize = 65_535;
/// IPv4 and TCP, both with all options.
const MAX_HEADERS: usize = 120;

/// Packets for one host that are written together.
#[derive(Debug)]
pub(crate) struct PacketTrain {
    packets: Vec<Packet>,
    /// The types of large packets that the host accepts.
    gso_types: GsoTypes,
    /// The conditions for further packets; `None` if the first packet travels alone.
    pattern: Option<Pattern>,
    bytes: usize,
}

/// The common properties of the packets in a train.
#[derive(Clone, Copy, Debug)]
struct Pattern {
    layout: Layout,
    /// The headers without the fields that may differ.
    headers: [u8; MAX_HEADERS],
    /// Bytes of payload in each packet but the last.
    size: usize,
    /// The next TCP sequence number.
    next: u32,
    /// The train accepts no further packets.
    closed: bool,
}

impl PacketTrain {
    /// An empty train for a host that accepts these types of large packets.
    pub(crate) fn new(gso_types: GsoTypes) -> Self {
        Self { packets: Vec::new(), gso_types, pattern: None, bytes: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Adds `packet` if it fits the train.
    ///
    /// # Errors
    /// Returns the packet if it does not fit.
    pub(crate) fn add(&mut self, packet: Packet) -> Result<(), Packet> {
        if self.packets.is_empty() {
            self.pattern = Pattern::of(&packet).filter(|pattern| self.gso_types.has(pattern.gso()));
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

    /// Passes the train to `write`, headers first, and empties it. Returns how many packets were refused.
    ///
    /// If the system rejects a type of large packets, later packets of that type are written one by one.
    pub(crate) fn write(&mut self, mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<()>) -> u64 {
        let packets = &self.packets[..];
        let refused = match self.pattern.take() {
            Some(pattern) if packets.len() > 1 => match pattern.write(packets, self.bytes, &mut write) {
                Ok(()) => 0,
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.gso_types.remove(pattern.gso());
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

/// Passes packets to `write` one by one. Returns how many were refused.
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
    /// The conditions for packets that follow `packet`; `None` if none may follow.
    fn of(packet: &Packet) -> Option<Self> {
        let bytes = packet.bytes();
        let layout = Layout::of(bytes).filter(|layout| layout.payload <= MAX_HEADERS)?;
        if !layout.leaves_checksum(packet) {
            return None;
        }
        let size = bytes.len() - layout.payload;
        let mut pattern = Self { layout, headers: blanked(layout, bytes), size, next: 0, closed: size == 0 };
        pattern.advance(bytes, size);
        Some(pattern)
    }

    /// The type of large packet that these packets form.
    fn gso(&self) -> GsoType {
        if self.layout.protocol == PROTOCOL_TCP { GsoType::Tcp } else { GsoType::Udp }
    }

    /// Passes `packets` to `write` as one packet of `bytes` bytes.
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
        if self.gso() == GsoType::Tcp {
            headers[layout.transport + TCP_FLAGS] |= last.bytes()[layout.transport + TCP_FLAGS] & (FIN | PSH);
        }
        let header = Header {
            checksum: Some(layout.checksum()),
            gso: Some((self.gso(), self.size as u16)),
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

    /// Bytes by which `packet` extends a train of `bytes` bytes; `None` if it does not fit.
    fn takes(&mut self, packet: &Packet, bytes: usize) -> Option<usize> {
        let candidate = packet.bytes();
        let added = candidate.len().checked_sub(self.layout.payload)?;
        let belongs = !self.closed
            && self.layout.leaves_checksum(packet)
            && (1..=self.size).contains(&added)
            && bytes + added <= MAX_BYTES
            && Layout::of(candidate) == Some(self.layout)
            && (self.layout.protocol != PROTOCOL_TCP || self.layout.sequence(candidate) == self.next)
            && blanked(self.layout, candidate) == self.headers;
        belongs.then(|| self.advance(candidate, added))?;
        Some(added)
    }

    /// Records that `packet` with `length` bytes of payload was added.
    fn advance(&mut self, packet: &[u8], length: usize) {
        self.closed |= length < self.size;
        if self.layout.protocol == PROTOCOL_TCP {
            self.next = self.layout.sequence(packet).wrapping_add(length as u32);
            self.closed |= packet[self.layout.transport + TCP_FLAGS] & !ACK != 0;
        }
    }
}

impl Layout {
    /// Whether the checksum of the packet's own header is to be filled in. A complete one covers this packet alone, and a tunnel
    /// leaves that of a header inside.
    fn leaves_checksum(self, packet: &Packet) -> bool {
        packet.checksum() == Some(self.checksum())
    }
}

/// The TCP flag that every segment of a train carries.
const ACK: u8 = 0x10;

fn blanked(layout: Layout, packet: &[u8]) -> [u8; MAX_HEADERS] {
    let mut headers = [0; MAX_HEADERS];
    headers[..layout.payload].copy_from_slice(&packet[..layout.payload]);
    layout.blank_variables(&mut headers[..layout.payload]);
    headers
}

#[cfg(test)]
mod tests;
