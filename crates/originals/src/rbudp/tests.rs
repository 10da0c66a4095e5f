//! Both programs with one another, and each against a peer that speaks exactly the bytes of the originals.

mod pairs;
mod receivers;
mod senders;

use super::*;
use crate::session::testing::{said, train};
use crate::session::{DatagramOutcome, OriginalSession};
use farhaul_proto::channel::ChannelEnd;

const NOW: Instant = Instant::from_nanos(1_000_000_000);

fn terms() -> Terms {
    Terms { round_trip: Duration::from_millis(20), ..Terms::default() }
}

/// Terms with small packets.
fn hundred() -> Terms {
    Terms { payload: 100, ..terms() }
}

/// A datagram of a little-endian program.
fn datagram(index: i32, payload: &[u8]) -> Vec<u8> {
    [&index.to_le_bytes()[..], payload].concat()
}

/// The end of a round of a little-endian program.
fn end(round: u8) -> [u8; 8] {
    [round, 0, 0, 0, b'E', b'E', b'E', 0x5A]
}

/// A name block with the garbage that the original sends.
fn dirty_block(name: &[u8]) -> Vec<u8> {
    let mut block = b"HOME=/root".repeat(26);
    block.truncate(256);
    block[..name.len()].copy_from_slice(name);
    block[name.len()] = 0;
    block
}

/// Whether a receiver takes a datagram.
fn takes(receiver: &mut ReceivingSession, datagram: &[u8]) -> bool {
    receiver.handle_datagram(NOW, PORT, datagram) == DatagramOutcome::Taken
}

/// Everything that leaves until the sender waits for its peer, and the time of the last datagram.
fn blast(sender: &mut SendingSession, mut now: Instant) -> (Vec<Vec<u8>>, Instant) {
    let (mut all, mut last) = (Vec::new(), now);
    loop {
        while let Some((size, bytes)) = train(sender, now) {
            all.extend(bytes.chunks(size).map(<[u8]>::to_vec));
            last = now;
        }
        match sender.deadline() {
            Some(deadline) if deadline < now + Duration::from_secs(1) => {
                now = deadline.max(now + Duration::from_nanos(1));
            }
            _ => return (all, last),
        }
    }
}
