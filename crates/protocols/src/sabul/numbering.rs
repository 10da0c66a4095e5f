//! The numbers of the wire and those of the buffers.
//!
//! Buffers count modulo 2^31, and the wire modulo 10^8. Neither divides the other. So the two are tied at an anchor,
//! which follows the transfer.

use farhaul_units::SeqNo;
use farhaul_wire::sabul::DecimalSeq;

/// A packet's number in both systems.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    seq: SeqNo,
    wire: DecimalSeq,
}

impl Numbering {
    /// The number of the first packet in the buffers. On the wire it is 0.
    pub(super) const FIRST: SeqNo = SeqNo::new(0);

    /// Both begin with their first packet.
    pub(super) const fn new() -> Self {
        Self { seq: Self::FIRST, wire: DecimalSeq::ZERO }
    }

    /// The wire's number of a packet.
    pub(super) const fn wire(self, seq: SeqNo) -> DecimalSeq {
        let distance = seq.distance_from(self.seq);
        if distance < 0 { self.wire.minus(distance.unsigned_abs()) } else { self.wire.plus(distance.unsigned_abs()) }
    }

    /// The packet with this number on the wire that is closest to the anchor.
    pub(super) const fn near(self, wire: DecimalSeq) -> SeqNo {
        let distance = wire.distance_from(self.wire);
        if distance < 0 { self.seq.minus(distance.unsigned_abs()) } else { self.seq.plus(distance.unsigned_abs()) }
    }

    /// Moves the anchor to a packet near by.
    pub(super) const fn advance(&mut self, seq: SeqNo) {
        self.wire = self.wire(seq);
        self.seq = seq;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// 5 · 10^9 packets pass the end of both systems more than once.
        #[test]
        fn both_systems_agree_however_far_the_transfer_is(steps in proptest::collection::vec(0u32..50_000_000, 1..100), ahead in 0u32..50_000_000) {
            let (mut numbering, mut packets) = (Numbering::new(), 0u64);
            for step in steps {
                packets += u64::from(step);
                let seq = numbering.seq.plus(step);
                numbering.advance(seq);
                prop_assert_eq!(u64::from(numbering.wire.value()), packets % 100_000_000);
                prop_assert_eq!(u64::from(numbering.seq.value()), packets % (1 << 31));
                for packet in [seq.plus(ahead), seq.minus(ahead)] {
                    prop_assert_eq!(numbering.near(numbering.wire(packet)), packet);
                }
            }
        }
    }
}
