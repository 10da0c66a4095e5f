//! How the versions of the program repair losses, behind one face.

use farhaul_units::{Duration, Instant, SeqNo};
use farhaul_wire::fobs::Version;

use super::circle::Circle;
use super::segments::Segments;
use super::{Options, SEGMENT};
use crate::blast::numbered::SendBuffer;

/// The repair of one sender.
#[derive(Debug)]
pub(super) enum Repair {
    Segments(Segments),
    Greedy(Circle),
}

/// The packets that may be repeated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The oldest packet that the peer may lack.
    pub(super) first: SeqNo,
    /// The next packet to leave for the first time.
    pub(super) next: SeqNo,
    /// The end of the oldest object, if all of it has left. The greedy version repeats nothing else.
    pub(super) object_end: Option<SeqNo>,
    pub(super) round_trip: Duration,
}

impl Repair {
    pub(super) fn new(options: &Options) -> Self {
        match options.version {
            Version::Segments => Self::Segments(Segments::new(options.segment.unwrap_or(SEGMENT))),
            Version::Greedy => Self::Greedy(Circle::new()),
        }
    }

    /// Segments whose bitmap the sender awaits.
    pub(super) fn awaited(&self) -> usize {
        match self {
            Self::Segments(segments) => segments.awaited(),
            Self::Greedy(_) => 0,
        }
    }

    /// New packets that may leave together.
    pub(super) const fn room(&self) -> u32 {
        match self {
            Self::Segments(segments) => segments.room(),
            Self::Greedy(_) => u32::MAX,
        }
    }

    /// The next packet to repeat, and how many with it make one train.
    pub(super) fn next(&mut self, now: Instant, sent: Sent, buffer: &mut SendBuffer) -> Option<(SeqNo, u32)> {
        match self {
            Self::Segments(segments) => {
                let packet = segments.next(sent.next)?;
                let lost = segments.lost();
                let train = buffer.train(packet, segments.room(), |from| lost.next_present(from, sent.next));
                Some((packet, train))
            }
            Self::Greedy(circle) => {
                let run = circle.next(now, sent.first, sent.object_end?, sent.round_trip)?;
                Some((run.first, buffer.store.run(run.first, run.len())?.packets))
            }
        }
    }

    /// The earliest time for the next repetition; `None` if there is none.
    pub(super) fn deadline(&self, sent: Sent) -> Option<Instant> {
        match self {
            Self::Segments(segments) => (!segments.lost().is_empty()).then_some(Instant::ZERO),
            Self::Greedy(circle) => circle.deadline(sent.first, sent.object_end?, sent.round_trip),
        }
    }

    /// New packets have left.
    pub(super) fn on_sent(&mut self, now: Instant, first: SeqNo, packets: u32) {
        match self {
            Self::Segments(segments) => (0..packets).for_each(|offset| segments.on_sent(first.plus(offset))),
            Self::Greedy(circle) => circle.on_sent(now, first.plus(packets)),
        }
    }

    /// The datagrams of a train from [`next`](Self::next), and the length of each but the last. They count as repeated.
    pub(super) fn emit<'a>(
        &mut self,
        (first, packets): (SeqNo, u32),
        next: SeqNo,
        buffer: &'a mut SendBuffer,
        scratch: &'a mut Vec<u8>,
    ) -> Option<(usize, &'a [u8])> {
        match self {
            Self::Segments(segments) => {
                scratch.clear();
                let mut at = Some(first);
                for _ in 0..packets {
                    let packet = at?;
                    scratch.extend_from_slice(buffer.datagram(packet).unwrap_or_default());
                    segments.on_sent(packet);
                    at = segments.lost().next_present(packet.next(), next);
                }
                Some((buffer.size(), scratch))
            }
            Self::Greedy(circle) => {
                circle.on_repeated(first.plus(packets));
                buffer.adjacent(first, packets, scratch)
            }
        }
    }

    /// Nothing can follow the packets sent before the peer answers. `next` is the next new one.
    pub(super) fn close_segment(&mut self, next: SeqNo) {
        if let Self::Segments(segments) = self
            && segments.next(next).is_none()
        {
            segments.close();
        }
    }

    /// Tells which segments have left.
    pub(super) fn poll_control(&mut self, out: &mut Vec<u8>) {
        if let Self::Segments(segments) = self {
            segments.poll_control(out);
        }
    }

    /// The peer has everything before `packet`.
    pub(super) fn advance(&mut self, packet: SeqNo) {
        match self {
            Self::Segments(segments) => segments.advance(packet),
            Self::Greedy(circle) => circle.advance(packet),
        }
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Segments(segments) => segments.memory(),
            Self::Greedy(circle) => circle.memory(),
        }
    }
}
