//! Messages on their way out: whole ones are taken, and what is too old to be of use is given up.

use farhaul_units::{Instant, MsgNo, SeqNo};
use farhaul_wire::udt4::DropRequest;

use super::Sender;
use super::repair::MIN_RETRANSMISSION_TIMEOUT;

impl Sender {
    /// The next message has this number; before the first only.
    pub(crate) fn number_messages_from(&mut self, number: MsgNo) {
        self.buffer.number_messages_from(number);
    }

    /// Takes a whole message if there is any room: a message larger than the backlog has to go some time, and one that waited
    /// for the buffer to be empty would leave the path idle.
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

    /// A drop request to be sent.
    pub(crate) fn poll_drop(&mut self) -> Option<DropRequest> {
        self.drops.pop_front()
    }

    /// Gives up the message of `seq` if its time is over; the receiver is told once per call.
    pub(super) fn drop_if_expired(&mut self, seq: SeqNo, now: Instant) -> bool {
        let Some((request, news)) = self.lifetimes.expired(seq, now) else { return false };
        self.messages_dropped += u64::from(news);
        self.repairs.forget(request.range);
        self.next = self.next.later(request.range.last.next());
        // The request may be lost, and the receiver may not know of these packets at all.
        self.repairs.watch(now, MIN_RETRANSMISSION_TIMEOUT * 2);
        if self.drops.back().is_none_or(|newest| newest.message != request.message) {
            self.drops.push_back(request);
        }
        true
    }
}
