//! What a packet must be able to do to travel through the models.

use farhaul_units::Rng;

use crate::corrupt::flip_random_bit;

/// Something that occupies a link.
///
/// A packet that a model loses is dropped in Rust's sense: a handle that has to go back to a pool does so in its
/// `Drop`.
pub trait WireLen {
    /// Bytes on the link, at least one. The caller decides which headers count: 28 bytes for IPv4 and UDP, 48 for
    /// IPv6 and UDP.
    fn wire_len(&self) -> u32;
}

/// A packet that can suffer every impairment. Handles can do both cheaply: share the payload, note the damage.
pub trait Packet: WireLen {
    /// A second packet like this one.
    #[must_use]
    fn duplicate(&self) -> Self;

    /// Damages the packet, with the draws it needs from `rng`.
    fn corrupt(&mut self, rng: &mut Rng);
}

/// Bare bytes, no header counted.
impl WireLen for Vec<u8> {
    fn wire_len(&self) -> u32 {
        u32::try_from(self.len()).unwrap_or(u32::MAX).max(1)
    }
}

impl Packet for Vec<u8> {
    fn duplicate(&self) -> Self {
        self.clone()
    }

    fn corrupt(&mut self, rng: &mut Rng) {
        flip_random_bit(self, rng);
    }
}
