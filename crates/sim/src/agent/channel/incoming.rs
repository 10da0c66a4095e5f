//! The bytes that a host receives over a channel, put in order.

use std::collections::BTreeMap;

use farhaul_units::Instant;

use super::config::{receiver_config, sender_config};
use crate::agent::tcp::{Segment, TcpReceiver};

/// One direction of a connection, at its receiver.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) receiver: TcpReceiver,
    /// The bytes of segments beyond a gap.
    beyond: BTreeMap<u64, Vec<u8>>,
}

impl Incoming {
    pub(super) fn new() -> Self {
        Self { receiver: TcpReceiver::new(receiver_config()), beyond: BTreeMap::new() }
    }

    /// Takes a data segment. `deliver` gets the bytes that are next in order.
    pub(super) fn handle_data(
        &mut self,
        now: Instant,
        segment: &Segment,
        bytes: &[u8],
        mut deliver: impl FnMut(&[u8]),
    ) {
        let next = self.receiver.next();
        // No sender has more in flight.
        if segment.seq >= next + u64::from(sender_config().max_window) {
            return;
        }
        self.receiver.handle_data(now, segment);
        if segment.seq > next {
            self.beyond.entry(segment.seq).or_insert_with(|| bytes.to_vec());
        }
        if segment.seq != next {
            return;
        }
        deliver_some(bytes, &mut deliver);
        while let Some(entry) = self.beyond.first_entry().filter(|entry| *entry.key() < self.receiver.next()) {
            deliver_some(&entry.remove(), &mut deliver);
        }
    }
}

/// Delivers bytes, unless there are none: a FIN may come alone.
fn deliver_some(bytes: &[u8], deliver: &mut impl FnMut(&[u8])) {
    if !bytes.is_empty() {
        deliver(bytes);
    }
}
