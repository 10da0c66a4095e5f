//! A NAT in front of a host, whose address outside changes.

use core::net::SocketAddr;
use std::cell::Cell;
use std::rc::Rc;

use crate::trace::{OutgoingDatagram, Tap, TapAction};

/// Translates the address of one host, as a [`Tap`]. Copies share their state, so a test keeps one to change the address.
///
/// The path of the host stays as it is. Datagrams to an outside address of the past are lost.
#[derive(Clone, Debug)]
pub struct Nat {
    inside: SocketAddr,
    outside: Rc<Cell<SocketAddr>>,
}

impl Nat {
    /// A NAT in front of the host at `inside`, which others see at `outside`.
    pub fn new(inside: SocketAddr, outside: SocketAddr) -> Self {
        Self { inside, outside: Rc::new(Cell::new(outside)) }
    }

    /// The address outside.
    pub fn outside(&self) -> SocketAddr {
        self.outside.get()
    }

    /// From now on others see the host there.
    pub fn rebind(&self, outside: SocketAddr) {
        self.outside.set(outside);
    }

    /// Sends a datagram on with the other address, if it is of this host or for it.
    pub fn translate(&self, datagram: &mut OutgoingDatagram<'_>) -> TapAction {
        let ends = if datagram.from == self.inside {
            (self.outside(), datagram.to)
        } else if datagram.to == self.outside() {
            (datagram.from, self.inside)
        } else {
            return TapAction::Pass;
        };
        datagram.forged.push((ends.0, ends.1, std::mem::take(datagram.bytes)));
        TapAction::Drop
    }

    /// The same as a tap.
    pub fn tap(&self) -> Tap {
        let nat = self.clone();
        Box::new(move |datagram| nat.translate(datagram))
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::Instant;

    use super::*;

    fn address(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, host], port))
    }

    fn through(nat: &Nat, from: SocketAddr, to: SocketAddr) -> Option<(SocketAddr, SocketAddr)> {
        let (mut bytes, mut forged) = (vec![7], Vec::new());
        let action = nat.translate(&mut OutgoingDatagram {
            now: Instant::ZERO,
            from,
            to,
            bytes: &mut bytes,
            forged: &mut forged,
        });
        let ends = forged.pop().map(|(from, to, bytes)| {
            assert_eq!(bytes, [7]);
            (from, to)
        });
        assert_eq!(action == TapAction::Drop, ends.is_some());
        ends
    }

    #[test]
    fn both_directions_are_translated_and_an_old_address_leads_nowhere() {
        let (inside, far) = (address(1, 9_000), address(2, 9_000));
        let [old, new] = [address(9, 1), address(9, 2)];
        let nat = Nat::new(inside, old);
        assert_eq!(through(&nat, inside, far), Some((old, far)));
        assert_eq!(through(&nat, far, old), Some((far, inside)));
        nat.rebind(new);
        assert_eq!(through(&nat, inside, far), Some((new, far)));
        assert_eq!(through(&nat, far, old), None, "it passes, and no host has this address");
    }
}
