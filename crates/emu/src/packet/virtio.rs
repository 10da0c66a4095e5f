//! The header in front of every packet at a TUN device (`struct virtio_net_hdr`, VIRTIO 1.2 §5.1.6), in native byte
//! order.

use super::headers::Checksum;

/// Length of the header in bytes.
pub(crate) const LENGTH: usize = 10;

/// `flags`: the checksum is to be filled in.
const NEEDS_CHECKSUM: u8 = 1;
/// Mask of `gso_type` without the ECN flag.
const KIND: u8 = 0x7f;
const TCP_IPV4: u8 = 1;
const TCP_IPV6: u8 = 4;
const UDP: u8 = 5;

/// The type of a large packet that stands for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GsoType {
    /// TCP segments.
    Tcp,
    /// UDP datagrams.
    Udp,
}

/// The types of large packets that a device accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GsoTypes {
    pub(crate) tcp: bool,
    pub(crate) udp: bool,
}

impl GsoTypes {
    pub(crate) const ALL: Self = Self { tcp: true, udp: true };

    pub(crate) fn has(self, gso: GsoType) -> bool {
        match gso {
            GsoType::Tcp => self.tcp,
            GsoType::Udp => self.udp,
        }
    }

    pub(crate) fn remove(&mut self, gso: GsoType) {
        match gso {
            GsoType::Tcp => self.tcp = false,
            GsoType::Udp => self.udp = false,
        }
    }
}

/// The fields of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// The checksum to fill in, if any.
    pub(crate) checksum: Option<Checksum>,
    /// Type and payload per packet in bytes, if the packet stands for several. The last one may have less payload.
    pub(crate) gso: Option<(GsoType, u16)>,
    /// Bytes of headers in front of the payload of a large packet; a hint.
    pub(crate) header_length: u16,
}

impl Header {
    /// Reads the header; `None` for an unknown type.
    pub(crate) fn read(bytes: &[u8; LENGTH]) -> Option<Self> {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let gso = match bytes[1] & KIND {
            0 => None,
            TCP_IPV4 | TCP_IPV6 => Some((GsoType::Tcp, word(4))),
            UDP => Some((GsoType::Udp, word(4))),
            _ => return None,
        };
        let checksum = (bytes[0] & NEEDS_CHECKSUM != 0).then(|| Checksum { start: word(6), offset: word(8) });
        Some(Self { checksum, gso, header_length: word(2) })
    }

    /// Writes the header for a packet of IPv6, or else of IPv4.
    pub(crate) fn write(self, ipv6: bool) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let mut put = |at: usize, word: u16| bytes[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        put(2, self.header_length);
        if let Some((_, size)) = self.gso {
            put(4, size);
        }
        if let Some(Checksum { start, offset }) = self.checksum {
            put(6, start);
            put(8, offset);
            bytes[0] = NEEDS_CHECKSUM;
        }
        bytes[1] = match (self.gso, ipv6) {
            (None, _) => 0,
            (Some((GsoType::Tcp, _)), false) => TCP_IPV4,
            (Some((GsoType::Tcp, _)), true) => TCP_IPV6,
            (Some((GsoType::Udp, _)), _) => UDP,
        };
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_header_is_read_back() {
        let checksum = Some(Checksum { start: 20, offset: 16 });
        for header in [
            Header::default(),
            Header { checksum, ..Header::default() },
            Header { checksum, gso: Some((GsoType::Tcp, 1_448)), header_length: 52 },
            Header { checksum, gso: Some((GsoType::Udp, 1_472)), header_length: 28 },
        ] {
            assert_eq!(Header::read(&header.write(false)), Some(header));
            assert_eq!(Header::read(&header.write(true)), Some(header));
        }
    }

    #[test]
    fn an_unknown_gso_type_is_refused() {
        assert_eq!(Header::read(&[0, 3, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
