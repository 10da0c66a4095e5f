//! Datagrams in the relay.

use farhaul_netem::{Packet, WireLen, flip_random_bit};
use farhaul_units::Rng;

use super::clients::ClientId;
use crate::pool::Buffer;

/// A datagram of a client, in either direction.
#[derive(Debug)]
pub(super) struct Datagram {
    pub(super) bytes: Buffer,
    /// Bytes of headers in front of it on the wire.
    pub(super) overhead: u32,
    pub(super) client: ClientId,
}

impl WireLen for Datagram {
    fn wire_len(&self) -> u32 {
        u32::try_from(self.bytes.len()).unwrap_or(u32::MAX).saturating_add(self.overhead)
    }
}

impl Packet for Datagram {
    fn duplicate(&self) -> Self {
        Self { bytes: self.bytes.again(), ..*self }
    }

    fn corrupt(&mut self, rng: &mut Rng) {
        flip_random_bit(&mut self.bytes, rng);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::pool::Pool;

    #[test]
    fn headers_count_on_the_wire() {
        let bytes = Rc::new(Pool::default()).copy(&[1; 1_472]).unwrap();
        let datagram = Datagram { bytes, overhead: 28, client: ClientId::default() };
        assert_eq!((datagram.wire_len(), datagram.duplicate().wire_len()), (1_500, 1_500));
    }
}
