//! The interface of a loss model.

use farhaul_units::Instant;

use crate::impair::{Impairment, Outlet, WireLen};

/// A rule that decides which packets the link loses. The others pass at once.
pub trait LossModel {
    /// Whether a packet of `bytes` bytes that comes at `now` is lost. Called once for each packet, in order.
    fn loses(&mut self, now: Instant, bytes: u32) -> bool;
}

impl<P: WireLen, L: LossModel> Impairment<P> for L {
    fn apply(&mut self, now: Instant, packet: P, out: &mut Outlet<P>) {
        if self.loses(now, packet.wire_len()) { out.lose(packet) } else { out.pass(now, packet) }
    }
}
