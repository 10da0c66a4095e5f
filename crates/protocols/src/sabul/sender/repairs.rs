//! Packets that leave again.
//!
//! The original receiver stores what is beyond the buffer of its application, and copies it when the application brings the
//! next buffer. Each time it forgets as much of the end of its store as is already acknowledged. The next arrival beyond
//! corrects that. While only repairs arrive none does, and it leaves out packets that it holds and has acknowledged. Its own
//! sender causes this as well. Ours has the newest packet follow each repair (departure D345).

use farhaul_units::{Instant, SeqNo, SeqRange};

use super::{Receiver, Sender};

impl Sender {
    /// The newest packet that has left and is full, if it must follow each repair.
    fn follower(&self) -> Option<SeqNo> {
        let left = (self.receiver != Receiver::Ours).then(|| self.buffer.in_flight())?;
        [left.last, left.last.minus(1)].into_iter().find(|seq| self.buffer.store.is_full(*seq))
    }

    /// Calls `visit` with the bytes of the lowest losses, and of the packet that follows each unless `most` is one. All but
    /// the last are full. Returns their number, at most `most`, and the last loss.
    pub(super) fn visit_losses(&mut self, most: u32, mut visit: impl FnMut(&[u8])) -> (u32, Option<SeqNo>) {
        let follower = self.follower().filter(|_| most > 1);
        let (mut at, mut packets, mut last) = (self.buffer.store.first(), 0, None);
        while let Some(seq) = self.losses.next_after(at, self.buffer.next) {
            let leaving = [Some(seq), follower.filter(|follower| follower.is_after(seq))];
            let count = leaving.iter().flatten().count() as u32;
            if packets + count > most {
                break;
            }
            for seq in leaving.into_iter().flatten() {
                visit(self.buffer.datagram(seq).unwrap_or_default());
            }
            packets += count;
            (at, last) = (seq.next(), Some(seq));
            if !self.buffer.store.is_full(seq) {
                break;
            }
        }
        (packets, last)
    }

    pub(super) fn emit_losses<'a>(
        &mut self,
        now: Instant,
        most: u32,
        scratch: &'a mut Vec<u8>,
    ) -> Option<(usize, u32, &'a [u8])> {
        scratch.clear();
        let (packets, last) = self.visit_losses(most, |bytes| scratch.extend_from_slice(bytes));
        // No loss before the last one is left.
        let range = SeqRange::new(self.losses.first()?, last?);
        let mut at = range.first;
        while let Some(seq) = self.losses.next_after(at, range.last.next()) {
            let run = self.losses.run_length(seq, SeqRange::new(seq, range.last).len());
            self.losses.served(SeqRange::new(seq, seq.plus(run - 1)), now, self.state.round_trip);
            at = seq.plus(run);
        }
        Some((self.buffer.size(), packets, scratch))
    }
}
