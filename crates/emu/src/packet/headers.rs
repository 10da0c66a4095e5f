//! Fields of IP, TCP and UDP headers that change in segmentation and coalescing (RFC 791, 8200, 9293, 768).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
pub(crate) const PROTOCOL_TCP: u8 = 6;
pub(crate) const PROTOCOL_UDP: u8 = 17;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
/// Offset of the checksum in the headers of TCP and UDP.
const TCP_CHECKSUM: u16 = 16;
const UDP_CHECKSUM: u16 = 6;
/// Offset of the flags of TCP.
pub(crate) const TCP_FLAGS: usize = 13;
pub(crate) const FIN: u8 = 0x01;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const CWR: u8 = 0x80;

/// An internet checksum to fill in. It covers everything from `start` on. Until then its field holds the sum of the
/// pseudo-header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checksum {
    pub(crate) start: u16,
    /// Offset of its field from `start`.
    pub(crate) offset: u16,
}

impl Checksum {
    /// Fills in the checksum. Does nothing if the packet is too short for the field.
    pub(crate) fn fill_in(self, packet: &mut [u8]) {
        let start = usize::from(self.start);
        let place = start + usize::from(self.offset);
        if place + 2 > packet.len() {
            return;
        }
        // A checksum of zero means "no checksum" in UDP. The other zero of ones' complement is equivalent.
        let sum = match internet_checksum(&packet[start..]) {
            0 => 0xffff,
            sum => sum,
        };
        put(packet, place, sum);
    }
}

/// Offsets in a TCP or UDP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) ipv6: bool,
    pub(crate) protocol: u8,
    /// Offset of the TCP or UDP header.
    pub(crate) transport: usize,
    /// Offset of the payload.
    pub(crate) payload: usize,
}

impl Layout {
    /// The layout of a packet. `None` for a fragment, another protocol, or a packet too short for its headers.
    pub(crate) fn of(packet: &[u8]) -> Option<Self> {
        let (ipv6, protocol, transport) = match packet.first()? >> 4 {
            4 => {
                let length = usize::from(packet[0] & 0x0f) * 4;
                let fragment = word(packet, 6)? & 0x3fff;
                (false, *packet.get(9)?, (length >= IPV4_HEADER && fragment == 0).then_some(length)?)
            }
            6 => (true, *packet.get(6)?, IPV6_HEADER),
            _ => return None,
        };
        let header = match protocol {
            PROTOCOL_TCP => usize::from(packet.get(transport + 12)? >> 4) * 4,
            PROTOCOL_UDP => UDP_HEADER,
            _ => return None,
        };
        let least = if protocol == PROTOCOL_TCP { TCP_HEADER } else { UDP_HEADER };
        let payload = transport + header;
        (header >= least && payload <= packet.len()).then_some(Self { ipv6, protocol, transport, payload })
    }

    /// The checksum of its TCP or UDP header.
    pub(crate) fn checksum(self) -> Checksum {
        let offset = if self.protocol == PROTOCOL_TCP { TCP_CHECKSUM } else { UDP_CHECKSUM };
        Checksum { start: self.transport as u16, offset }
    }

    /// Sets the lengths and the IPv4 checksum of `headers` for a packet of `length` bytes. The TCP or UDP checksum
    /// remains to be filled in.
    pub(crate) fn set_length(self, headers: &mut [u8], length: usize) {
        let transport_length = (length - self.transport) as u16;
        let addresses = if self.ipv6 {
            put(headers, 4, (length - IPV6_HEADER) as u16);
            8..IPV6_HEADER
        } else {
            put(headers, 2, length as u16);
            put(headers, 10, 0);
            let sum = internet_checksum(&headers[..self.transport]);
            put(headers, 10, sum);
            12..IPV4_HEADER
        };
        if self.protocol == PROTOCOL_UDP {
            put(headers, self.transport + 4, transport_length);
        }
        let pseudo = sum(&headers[addresses]) + u64::from(self.protocol) + u64::from(transport_length);
        let Checksum { start, offset } = self.checksum();
        put(headers, usize::from(start + offset), fold(pseudo));
    }

    /// Increases the IPv4 identification by `count`.
    pub(crate) fn advance_identification(self, headers: &mut [u8], count: u16) {
        if !self.ipv6
            && let Some(identification) = word(headers, 4)
        {
            put(headers, 4, identification.wrapping_add(count));
        }
    }

    /// The TCP sequence number.
    pub(crate) fn sequence(self, headers: &[u8]) -> u32 {
        let at = self.transport + 4;
        headers.get(at..at + 4).map_or(0, |bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub(crate) fn set_sequence(self, headers: &mut [u8], sequence: u32) {
        let at = self.transport + 4;
        headers[at..at + 4].copy_from_slice(&sequence.to_be_bytes());
    }

    /// Clears the fields that may differ between coalesced packets: lengths, identification, checksums, sequence
    /// number, and the flags FIN and PSH.
    pub(crate) fn blank_variables(self, headers: &mut [u8]) {
        if self.ipv6 {
            put(headers, 4, 0);
        } else {
            put(headers, 2, 0);
            put(headers, 4, 0);
            put(headers, 10, 0);
        }
        if self.protocol == PROTOCOL_TCP {
            self.set_sequence(headers, 0);
            headers[self.transport + TCP_FLAGS] &= !(FIN | PSH);
        } else {
            put(headers, self.transport + 4, 0);
        }
        let Checksum { start, offset } = self.checksum();
        put(headers, usize::from(start + offset), 0);
    }
}

/// Whether a packet has a valid IP version. Damage may have changed the version, and then no host accepts the packet.
pub(crate) fn is_ip(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| matches!(first >> 4, 4 | 6))
}

/// The destination address; `None` if the packet is not IP.
pub(crate) fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(16..20)?).ok()?).into()),
        6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(packet.get(24..40)?).ok()?).into()),
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

/// The internet checksum (RFC 1071).
pub fn internet_checksum(bytes: &[u8]) -> u16 {
    !fold(sum(bytes))
}

/// The sum of 16-bit words (RFC 1071), with carries. An odd byte at the end is the high one of a word.
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(2);
    let odd = words.remainder().first().map_or(0, |byte| u64::from(*byte) << 8);
    words.map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u64>() + odd
}

/// Adds the carries, which leaves 16 bits.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_matches_the_example_of_rfc_1071() {
        assert_eq!(internet_checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn a_packet_that_is_not_ip_has_no_destination() {
        assert!(is_ip(&[0x45]) && is_ip(&[0x60]) && !is_ip(&[0x05]) && !is_ip(&[0xc5]) && !is_ip(&[]));
        assert_eq!(destination(&[]), None);
        assert_eq!(destination(&[0x45; 19]), None);
        assert_eq!(destination(&[0x10; 60]), None);
        let mut packet = [0_u8; 40];
        packet[0] = 0x45;
        packet[16..20].copy_from_slice(&[10, 77, 0, 2]);
        assert_eq!(destination(&packet), Some(IpAddr::from([10, 77, 0, 2])));
    }

    #[test]
    fn fragments_other_protocols_and_short_packets_have_no_layout() {
        let mut packet = [0_u8; 28];
        packet[0] = 0x45;
        packet[9] = PROTOCOL_UDP;
        assert_eq!(Layout::of(&packet), Some(Layout { ipv6: false, protocol: 17, transport: 20, payload: 28 }));
        assert_eq!(Layout::of(&packet[..27]), None);
        packet[9] = 1;
        assert_eq!(Layout::of(&packet), None);
        packet[9] = PROTOCOL_UDP;
        packet[6] = 0x20;
        assert_eq!(Layout::of(&packet), None);
        assert_eq!(Layout::of(&[]), None);
    }
}
