//! The next message to deliver: message mode on top of the receive buffer.
//!
//! In order, a message is deliverable once all of it lies before the acknowledgement point. Incomplete ones before it
//! were dropped by the sender and are skipped. Beyond the acknowledgement point, only complete messages without the
//! order bit are delivered, as they complete.

use std::collections::VecDeque;

use farhaul_units::{SeqNo, SeqRange};

use super::RecvBuffer;

/// Longest message in packets that is delivered out of order. Longer ones wait for their turn. The bound limits the
/// work per arriving packet, whatever a peer sends.
const MAX_UNORDERED_PACKETS: u32 = 1024;

/// Complete messages that were found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Complete messages beyond the acknowledgement point that may be delivered out of order.
    unordered: VecDeque<SeqRange>,
    /// The search for the end of the front message has come this far without finding it.
    scanned_to: Option<SeqNo>,
}

impl Found {
    /// Restarts the search, because packets examined before may have been dropped since.
    pub(super) fn forget_search(&mut self) {
        self.scanned_to = None;
    }
}

impl RecvBuffer {
    /// The packets of the next message to deliver, if there is one. Discards packets that can never be delivered.
    pub(crate) fn next_message(&mut self) -> Option<SeqRange> {
        while self.read_seq.is_before(self.ack_point()) {
            match self.front_message() {
                Front::Complete(range) => return Some(range),
                Front::Useless { next } => {
                    self.consume_to(next);
                    self.messages.scanned_to = None;
                }
                Front::Incomplete => break,
            }
        }
        while let Some(&range) = self.messages.unordered.front() {
            let dropped = self.skipped.next_present(range.first, range.last.next()).is_some();
            if !range.first.is_before(self.ack_point()) && !dropped {
                return Some(range);
            }
            // The acknowledgement point has passed it, so it is found in order, or was delivered. Or the sender
            // dropped it after all of it had arrived.
            self.messages.unordered.pop_front();
        }
        None
    }

    /// Copies the next message into `out`, as much of it as fits. Returns the message's full length; `None` if there is
    /// none.
    pub(crate) fn read_message(&mut self, out: &mut [u8]) -> Option<usize> {
        let range = self.next_message()?;
        let (mut at, mut len) = (range.first, 0);
        while !at.is_after(range.last) {
            let payload = self.payload(at).expect("a complete message is stored");
            let room = out.len().saturating_sub(len).min(payload.len());
            if room > 0 {
                out[len..len + room].copy_from_slice(&payload[..room]);
            }
            len += payload.len();
            at = at.next();
        }
        if range.first == self.read_seq {
            self.consume_to(range.last.next());
            self.messages.scanned_to = None;
        } else {
            self.skipped.insert_range(range);
            self.messages.unordered.pop_front();
        }
        Some(len)
    }

    /// A packet arrived beyond the acknowledgement point. Checks whether it completes a message that needs no order.
    pub(crate) fn note_unordered(&mut self, seq: SeqNo) {
        let Some(field) = self.field(seq) else { return };
        if field.in_order || seq.is_before(self.ack_point()) {
            return;
        }
        let belongs = |buffer: &Self, at: SeqNo| buffer.field(at).is_some_and(|other| other.message == field.message);
        let (mut first, mut last, mut packets) = (seq, seq, 1);
        while !self.field(first).is_some_and(|f| f.position.is_first()) {
            first = first.minus(1);
            packets += 1;
            if packets > MAX_UNORDERED_PACKETS || !belongs(self, first) {
                return;
            }
        }
        while !self.field(last).is_some_and(|f| f.position.is_last()) {
            last = last.next();
            packets += 1;
            if packets > MAX_UNORDERED_PACKETS || !belongs(self, last) {
                return;
            }
        }
        self.messages.unordered.push_back(SeqRange::new(first, last));
    }

    fn front_message(&mut self) -> Front {
        let Some(front) = self.field(self.read_seq) else {
            // One step over adjacent dropped packets, however many a peer claims (attack B7).
            return Front::Useless { next: self.skipped.next_absent(self.read_seq.next(), self.ack_point()) };
        };
        if !front.position.is_first() {
            return Front::Useless { next: self.read_seq.next() };
        }
        let mut at = self.messages.scanned_to.unwrap_or(self.read_seq).later(self.read_seq);
        while at.is_before(self.ack_point()) {
            let Some(field) = self.field(at) else { return Front::Useless { next: at } };
            if field.message != front.message || (at != self.read_seq && field.position.is_first()) {
                return Front::Useless { next: at };
            }
            if field.position.is_last() {
                return Front::Complete(SeqRange::new(self.read_seq, at));
            }
            at = at.next();
        }
        self.messages.scanned_to = Some(at);
        Front::Incomplete
    }
}

/// The state of the message at the read position.
enum Front {
    Complete(SeqRange),
    /// Packets before `next` will never become a message.
    Useless {
        next: SeqNo,
    },
    Incomplete,
}
