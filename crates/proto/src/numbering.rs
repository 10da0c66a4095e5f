//! Where a protocol's datagrams carry the numbers of data packets, for observers of traffic.

/// Where data packets carry their number. An observer of one direction tells new data from retransmissions by it.
#[derive(Clone, Copy, Debug)]
pub struct Numbering {
    /// The number of a datagram with data; `None` for every other datagram.
    pub number: fn(&[u8]) -> Option<u32>,
    /// The largest number, one below a power of two. Zero follows it.
    pub last: u32,
}

/// The first bit of a packet of every UDT: 1 in control packets, 0 in data packets, before their sequence number.
const CONTROL: u32 = 1 << 31;

/// The number in the first word of a datagram whose first bit is 0: data of every UDT.
pub(crate) fn in_first_word(datagram: &[u8]) -> Option<u32> {
    let word = datagram.first_chunk().map(|word| u32::from_be_bytes(*word))?;
    (word & CONTROL == 0).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_packets_and_stumps_have_no_number() {
        assert_eq!(in_first_word(&[0x7F, 0, 0, 9, 1]), Some(0x7F00_0009));
        assert_eq!(in_first_word(&[0x80, 0, 0, 9, 1]), None);
        assert_eq!(in_first_word(&[0, 0, 0]), None);
    }
}
