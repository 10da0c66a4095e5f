//! An IP packet in an emulated network.
//!
//! Hosts exchange packets with the emulator in the form of virtio. Packets may be larger than the MTU, for segmentation
//! by a network card (`packet/cut.rs`), and may lack checksums. On the links every packet is separate and has its
//! length on the wire. Consecutive packets for one host are coalesced again (`packet/train.rs`), as a network card
//! delivers them.
//!
//! The emulator computes checksums only before it damages a packet, because memory does not flip bits.

pub(crate) mod cut;
pub(crate) mod headers;
pub(crate) mod train;
pub(crate) mod virtio;

use farhaul_netem::{WireLen, flip_random_bit};
use farhaul_units::{Instant, Rng};

use crate::network::HostId;
use crate::pool::Buffer;
use headers::Checksum;

/// One IP packet, as long as on the wire.
#[derive(Debug)]
pub(crate) struct Packet {
    bytes: Buffer,
    /// The checksum that is still to be filled in.
    checksum: Option<Checksum>,
    to: HostId,
    /// Earliest arrival at its host, independent of the links.
    pub(crate) earliest: Instant,
}

impl Packet {
    pub(crate) fn new(bytes: Buffer, checksum: Option<Checksum>, to: HostId) -> Self {
        Self { bytes, checksum, to, earliest: Instant::ZERO }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn checksum(&self) -> Option<Checksum> {
        self.checksum
    }

    pub(crate) fn to(&self) -> HostId {
        self.to
    }
}

impl WireLen for Packet {
    fn wire_len(&self) -> u32 {
        u32::try_from(self.bytes.len()).unwrap_or(u32::MAX).max(1)
    }
}

impl farhaul_netem::Packet for Packet {
    fn duplicate(&self) -> Self {
        Self { bytes: self.bytes.again(), ..*self }
    }

    /// Fills in the checksum first. As on a cable, the receiving host usually detects the damage.
    fn corrupt(&mut self, rng: &mut Rng) {
        if let Some(checksum) = self.checksum.take() {
            checksum.fill_in(&mut self.bytes);
        }
        flip_random_bit(&mut self.bytes, rng);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use farhaul_netem::Packet as _;

    use super::*;
    use crate::pool::Pool;

    #[test]
    fn a_damaged_packet_gets_its_checksum_before_the_damage() {
        // Twenty bytes, then a segment whose checksum field holds the sum of its pseudo-header, here zero.
        let mut bytes = Rc::new(Pool::default()).copy(&[0; 40]).unwrap();
        bytes[21] = 7;
        let checksum = Checksum { start: 20, offset: 6 };
        let mut packet = Packet::new(bytes, Some(checksum), HostId(0));
        let copy = packet.duplicate();
        packet.corrupt(&mut Rng::new(1));
        assert_eq!((packet.checksum(), copy.checksum()), (None, Some(checksum)));
        let mut whole = copy.bytes().to_vec();
        checksum.fill_in(&mut whole);
        let differing: u32 = whole.iter().zip(packet.bytes()).map(|(a, b)| (a ^ b).count_ones()).sum();
        assert_eq!((differing, &whole[26..28]), (1, &[0xff, 0xf8][..]));
    }
}
