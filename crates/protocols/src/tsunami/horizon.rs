//! Which absent blocks a client takes for lost: those before the block that it expects next (tsunami-udp 1.1).
//!
//! A restart moves that block back. Blocks that left the server before it obeyed still arrive. They must not count as
//! signs of loss, or each restart would cause the next.

use farhaul_units::SeqNo;
use farhaul_wire::tsunami::Kind;

/// The block expected next, and a restart under way.
#[derive(Clone, Copy, Debug)]
pub struct Horizon {
    next: SeqNo,
    restart: Option<Restart>,
}

#[derive(Clone, Copy, Debug)]
struct Restart {
    /// The last block that was missing.
    last: SeqNo,
    /// The last block that may be in flight.
    on_wire: SeqNo,
}

impl Horizon {
    /// A client that expects `first`.
    pub const fn new(first: SeqNo) -> Self {
        Self { next: first, restart: None }
    }

    /// Absent blocks before this one are lost.
    pub const fn next(&self) -> SeqNo {
        self.next
    }

    /// A block arrived.
    pub fn on_block(&mut self, block: SeqNo, kind: Kind) {
        if let Some(restart) = self.restart
            && kind != Kind::Last
            && block.is_after(restart.last)
            && !block.is_after(restart.on_wire)
        {
            return;
        }
        if kind != Kind::Retransmission {
            self.next = self.next.later(block.next());
        }
        if self.restart.is_some_and(|restart| self.next.is_after(restart.last)) {
            self.restart = None;
        }
    }

    /// The server was asked to go back to `first`. `on_wire` blocks may still be in flight.
    pub fn restart(&mut self, first: SeqNo, on_wire: u32) {
        let last = self.next.minus(1);
        self.restart = Some(Restart { last, on_wire: last.plus(on_wire) });
        self.next = first;
    }

    /// Whether a restart was asked for and its blocks have not arrived.
    #[cfg(test)]
    pub const fn restarts(&self) -> bool {
        self.restart.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(number: u32) -> SeqNo {
        SeqNo::new(number)
    }

    #[test]
    fn blocks_in_their_turn_move_the_horizon_and_repeated_ones_do_not() {
        let mut horizon = Horizon::new(seq(1));
        horizon.on_block(seq(7), Kind::Original);
        assert_eq!(horizon.next(), seq(8));
        horizon.on_block(seq(20), Kind::Retransmission);
        horizon.on_block(seq(3), Kind::Original);
        assert_eq!(horizon.next(), seq(8));
        horizon.on_block(seq(9), Kind::Last);
        assert_eq!(horizon.next(), seq(10));
    }

    #[test]
    fn blocks_on_the_wire_after_a_restart_are_no_sign_of_loss() {
        let mut horizon = Horizon::new(seq(1));
        horizon.on_block(seq(5_000), Kind::Original);
        horizon.restart(seq(10), 300);
        horizon.on_block(seq(5_001), Kind::Original);
        horizon.on_block(seq(5_300), Kind::Original);
        assert_eq!(horizon.next(), seq(10));
        horizon.on_block(seq(11), Kind::Original);
        assert!(horizon.restarts());
        horizon.on_block(seq(5_000), Kind::Original);
        assert_eq!((horizon.next(), horizon.restarts()), (seq(5_001), false));
        horizon.restart(seq(10), 300);
        horizon.on_block(seq(5_301), Kind::Original);
        assert_eq!((horizon.next(), horizon.restarts()), (seq(5_302), false), "beyond what was on the wire");
    }
}
