//! Messages in the send buffer: they are taken whole, and dropped when they expire.

use farhaul_units::{Instant, MsgNo, SeqNo};
use farhaul_wire::udt4::DropRequest;

use super::Sender;
use super::repair::MIN_RETRANSMISSION_TIMEOUT;

impl Sender {
    /// Sets the number of the next message. For use before the first one only.
    pub(crate) fn number_messages_from(&mut self, number: MsgNo) {
        self.buffer.number_messages_from(number);
    }

    /// Takes a whole message if there is any room. A message larger than the limit on unsent data must be taken at some
    /// time. Waiting for an empty buffer would leave the path idle.
    pub(crate) fn write_message(&mut self, data: &[u8], in_order: bool, expires: Option<Instant>) -> bool {
        let packets = u64::from(self.buffer.packets()) + u64::from(self.buffer.packets_for(data.len()));
        let fits = self.intake.holds(packets * self.buffer.payload_size() as u64);
        if (self.room() == 0 || !fits) && self.buffer.packets() > 0 {
            return false;
        }
        let (range, message) = self.buffer.write_message(data, in_order);
        if let Some(expires) = expires {
            self.lifetimes.add(range, message, expires);
        }
        true
    }

    /// Whether a drop request waits.
    pub(crate) fn has_drops(&self) -> bool {
        !self.drops.is_empty()
    }

    /// The next drop request to send.
    pub(crate) fn poll_drop(&mut self) -> Option<DropRequest> {
        self.drops.pop_front()
    }

    /// Drops the message of `seq` if it has expired, and queues a drop request.
    pub(super) fn drop_if_expired(&mut self, seq: SeqNo, now: Instant) -> bool {
        let Some((request, news)) = self.lifetimes.expired(seq, now) else { return false };
        self.messages_dropped += u64::from(news);
        self.repairs.forget(request.range);
        self.next = self.next.later(request.range.last.next());
        // The request may be lost, and the receiver may have none of these packets.
        self.repairs.watch(now, MIN_RETRANSMISSION_TIMEOUT * 2);
        if self.drops.back().is_none_or(|newest| newest.message != request.message) {
            self.drops.push_back(request);
        }
        true
    }
}
