//! The interface a packet needs to travel through the models.

use farhaul_units::Rng;

/// Something that occupies a link.
///
/// A model that loses a packet drops the value. A handle that must return to a pool does so in its `Drop`.
pub trait WireLen {
    /// Bytes on the link, at least one. The caller decides which headers count: 28 bytes for IPv4 and UDP, 48 for IPv6
    /// and UDP.
    fn wire_len(&self) -> u32;
}

/// A packet that every impairment can handle. Handles do both operations cheaply: they share the payload and mark the
/// damage.
pub trait Packet: WireLen {
    /// A second packet like this one.
    #[must_use]
    fn duplicate(&self) -> Self;

    /// Damages the packet with random draws from `rng`.
    fn corrupt(&mut self, rng: &mut Rng);
}

/// Payload bytes alone, without headers.
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

/// Flips one random bit of `bytes`. Does nothing if `bytes` is empty.
pub fn flip_random_bit(bytes: &mut [u8], rng: &mut Rng) {
    let index = rng.below(bytes.len() as u64) as usize;
    let bit = rng.below(u64::from(u8::BITS));
    if let Some(byte) = bytes.get_mut(index) {
        *byte ^= 1 << bit;
    }
}
