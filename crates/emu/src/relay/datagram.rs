//! Datagrams in the relay.

use std::fmt;

use farhaul_netem::{Packet, WireLen, flip_random_bit};
use farhaul_units::Rng;

use super::clients::ClientId;
use crate::pool::Buffer;

/// A datagram of a client, in either direction.
pub(super) struct Datagram {
    bytes: Buffer,
    /// Bytes of headers in front of it on the wire.
    overhead: u32,
    client: ClientId,
}

impl Datagram {
    pub(super) fn new(bytes: Buffer, overhead: u32, client: ClientId) -> Self {
        Self { bytes, overhead, client }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn client(&self) -> ClientId {
        self.client
    }
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

impl fmt::Debug for Datagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Datagram({} bytes of {:?})", self.bytes.len(), self.client)
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
        let datagram = Datagram::new(bytes, 28, ClientId::default());
        assert_eq!((datagram.wire_len(), datagram.duplicate().wire_len()), (1_500, 1_500));
    }
}
