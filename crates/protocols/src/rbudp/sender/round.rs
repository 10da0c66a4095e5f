//! The blast under way: its packets once, then those that the bitmaps report missing.

use farhaul_units::{SeqNo, SeqRange};
use farhaul_wire::rbudp::{BitmapError, BitmapReader};

use super::supply::{Cut, Supply};
use crate::blast::engine::Transmission;
use farhaul_proto::error::PeerMisbehaved;
use farhaul_proto::loss::SendList;

/// One blast and its repetitions.
#[derive(Debug)]
pub(super) struct Blast {
    pub(super) cut: Cut,
    /// Zero for the blast, then one more per repetition.
    round: u32,
    /// The first packet that has not left yet.
    pub(super) next: SeqNo,
    /// Packets to repeat.
    lost: SendList,
    /// Packets missing by the last bitmap; all of them before the first one.
    pub(super) missing: u32,
    pub(super) phase: Phase,
}

/// The step of a round.
#[derive(Debug)]
pub(super) enum Phase {
    /// The channel has not taken the length.
    Announcing,
    /// Packets leave.
    Sending,
    /// The end of the round was sent, and its bitmap is awaited.
    Awaiting(BitmapReader),
}

impl Blast {
    pub(super) fn new(cut: Cut, phase: Phase) -> Self {
        Self { cut, round: 0, next: cut.first, lost: SendList::new(cut.first), missing: cut.packets, phase }
    }

    /// One after the last packet.
    pub(super) fn end(&self) -> SeqNo {
        self.cut.first.plus(self.cut.packets)
    }

    /// The number of this round, zero for the blast.
    pub(super) const fn round(&self) -> u32 {
        self.round
    }

    /// The channel has taken the length.
    pub(super) fn announced(&mut self) {
        if matches!(self.phase, Phase::Announcing) {
            self.phase = Phase::Sending;
        }
    }

    /// Whether the packets of a round may leave.
    pub(super) const fn is_sending(&self) -> bool {
        matches!(self.phase, Phase::Sending)
    }

    /// Whether the next packet of a file was not written yet.
    pub(super) fn is_starved(&self, supply: &Supply) -> bool {
        self.round == 0 && self.is_sending() && !self.next.is_before(supply.end_of_ready(&self.cut))
    }

    /// The next packets of this round, at most `most`.
    pub(super) fn plan(&mut self, supply: &mut Supply, most: u32) -> Option<Transmission> {
        let again = self.round > 0;
        let (first, packets) = if again { self.plan_again(most)? } else { self.plan_new(supply, most)? };
        Some(Transmission { first: first.value().into(), packets, again })
    }

    fn plan_new(&self, supply: &mut Supply, most: u32) -> Option<(SeqNo, u32)> {
        let ready = u32::try_from(supply.end_of_ready(&self.cut).distance_from(self.next)).ok()?;
        let run = supply.run(self.next, most.min(ready))?;
        Some((self.next, run.packets))
    }

    fn plan_again(&mut self, most: u32) -> Option<(SeqNo, u32)> {
        let (first, end) = (self.lost.first()?, self.end());
        let (mut at, mut packets) = (first, 1);
        while packets < most {
            let Some(next) = self.lost.next_after(at.next(), end) else { break };
            (at, packets) = (next, packets + 1);
        }
        Some((first, packets))
    }

    /// Takes the first packet at or after `from` out of those to send.
    pub(super) fn take(&mut self, from: SeqNo) -> Option<SeqNo> {
        if self.round == 0 {
            self.next = from.next();
            return Some(from);
        }
        let seq = self.lost.next_after(from, self.end())?;
        self.lost.served(seq, 1);
        Some(seq)
    }

    /// Begins to await the bitmap if all packets of this round have left. Returns whether it does.
    pub(super) fn end_round(&mut self) -> bool {
        let done = self.next == self.end() && self.lost.is_empty();
        if done {
            self.phase = Phase::Awaiting(BitmapReader::new(self.cut.packets));
        }
        done
    }

    /// Takes bytes of the bitmap. Returns their number, and the missing packets at its end.
    pub(super) fn read_bitmap(&mut self, bytes: &[u8]) -> Result<(usize, Option<u32>), PeerMisbehaved> {
        let Phase::Awaiting(reader) = &mut self.phase else { return Err(PeerMisbehaved::out_of_turn("a bitmap")) };
        let (first, lost) = (self.cut.first, &mut self.lost);
        let used = reader
            .read(bytes, |range| {
                lost.report(SeqRange::new(first.plus(range.start), first.plus(range.end - 1)));
            })
            .map_err(refused)?;
        Ok((used, reader.is_done().then(|| reader.missing())))
    }

    /// Begins the next round, for `missing` packets.
    pub(super) fn repeat(&mut self, missing: u32) {
        self.missing = missing;
        self.round = self.round.saturating_add(1);
        self.phase = Phase::Sending;
    }
}

fn refused(error: BitmapError) -> PeerMisbehaved {
    match error {
        BitmapError::Flag(flag) => {
            let valid = "0 for missing, 1 for complete";
            PeerMisbehaved::out_of_range("the first byte of a bitmap", flag.into(), valid)
        }
        BitmapError::Contradiction { missing } => {
            let valid = "none if its first byte is 1, else some";
            PeerMisbehaved::out_of_range("the number of packets missing by a bitmap", missing.into(), valid)
        }
        _ => PeerMisbehaved::out_of_turn("a bitmap"),
    }
}
