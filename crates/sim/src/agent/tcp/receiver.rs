//! The TCP receiver: reassembly and acknowledgements.

use farhaul_units::{Duration, Instant};

use super::ranges::Ranges;
use crate::packet::segment::{Block, HEADER, MAX_SACK_BLOCKS, Segment, SegmentKind};

/// Full segments that end the delay of an acknowledgement.
//= paper:rfc5681 §4.2
const SEGMENTS_PER_ACK: u32 = 2;

/// How a receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// Whether acknowledgements report segments beyond a gap (RFC 2018).
    pub sack: bool,
    /// The longest delay of an acknowledgement while it waits for a second segment. RFC 5681 allows at most 500 ms.
    /// `None` to acknowledge every segment.
    pub delayed_ack: Option<Duration>,
    /// Bytes of IP and TCP header of an acknowledgement.
    pub header: u32,
}

impl Default for ReceiverConfig {
    /// SACK, and acknowledgements delayed by at most 200 ms, as in BSD.
    fn default() -> Self {
        Self { sack: true, delayed_ack: Some(Duration::from_millis(200)), header: HEADER }
    }
}

/// Takes data segments and returns acknowledgements.
///
/// After each call, call [`poll_transmit`](TcpReceiver::poll_transmit) until it returns `None`.
#[derive(Clone, Debug)]
pub struct TcpReceiver {
    config: ReceiverConfig,
    /// The first missing segment.
    next: u64,
    /// Segments that arrived beyond it.
    beyond: Ranges,
    /// One segment of each recently reported range, latest first.
    recent: [u64; MAX_SACK_BLOCKS],
    recent_count: usize,
    /// The segment to send now.
    due: Option<SegmentKind>,
    /// In-order segments not yet acknowledged, and until when the acknowledgement may wait.
    waiting: u32,
    deadline: Option<Instant>,
    /// The time stamp to echo.
    echo: Instant,
    /// One past the last segment, known once that has arrived.
    end: Option<u64>,
    finished_at: Option<Instant>,
    /// Bytes received, without duplicates.
    bytes: u64,
    /// Bytes of a full segment: the largest payload so far.
    full: u32,
    duplicates: u64,
}

impl TcpReceiver {
    /// A receiver without data.
    pub fn new(config: ReceiverConfig) -> Self {
        Self {
            config,
            next: 0,
            beyond: Ranges::default(),
            recent: [0; MAX_SACK_BLOCKS],
            recent_count: 0,
            due: None,
            waiting: 0,
            deadline: None,
            echo: Instant::ZERO,
            end: None,
            finished_at: None,
            bytes: 0,
            full: 0,
            duplicates: 0,
        }
    }

    /// A segment arrived.
    pub fn handle_data(&mut self, now: Instant, segment: &Segment) {
        match segment.kind {
            SegmentKind::Syn => {
                self.echo = segment.sent;
                self.due = Some(SegmentKind::SynAck);
            }
            SegmentKind::Data => self.accept(now, segment),
            SegmentKind::LastData => {
                self.end = Some(segment.seq + 1);
                self.accept(now, segment);
            }
            SegmentKind::SynAck | SegmentKind::Ack | SegmentKind::Reset => {}
        }
    }

    /// The delay of an acknowledgement has ended.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.due = Some(SegmentKind::Ack);
        }
    }

    /// When to call [`handle_timeout`](TcpReceiver::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    /// The segment to send now. A receiver whose host opened the connection clears
    /// [`from_acceptor`](Segment::from_acceptor).
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        let kind = self.due.take()?;
        self.waiting = 0;
        self.deadline = None;
        let mut segment = Segment::new(kind, self.config.header, now);
        segment.from_acceptor = true;
        segment.ack = self.next;
        segment.echo = self.echo;
        segment.sack_permitted = self.config.sack && kind == SegmentKind::SynAck;
        if self.config.sack && !self.beyond.is_empty() {
            self.report(&mut segment);
        }
        Some(segment)
    }

    /// Owes the peer an acknowledgement at once: of a handshake, or of a segment that it repeated.
    pub(crate) fn acknowledge(&mut self) {
        self.due = Some(SegmentKind::Ack);
    }

    /// Answers the SYN again.
    pub(crate) fn answer_again(&mut self) {
        self.due = Some(SegmentKind::SynAck);
    }

    /// Acknowledges with a data segment of the other direction, which leaves now. Gaps need an acknowledgement of their
    /// own, because this one has no room for blocks.
    pub(crate) fn ride_on(&mut self, segment: &mut Segment) {
        (segment.ack, segment.echo) = (self.next, self.echo);
        if self.beyond.is_empty() {
            (self.due, self.waiting, self.deadline) = (None, 0, None);
        }
    }

    /// Bytes received without duplicates, including those beyond gaps.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that can be read: those before the first gap.
    pub fn bytes_in_order(&self) -> u64 {
        if self.beyond.is_empty() { self.bytes } else { self.next * u64::from(self.full) }
    }

    /// The first missing segment.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Segments received more than once.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// When the last segment arrived and no gap was left; `None` until then.
    pub fn finished_at(&self) -> Option<Instant> {
        self.finished_at
    }

    fn accept(&mut self, now: Instant, segment: &Segment) {
        //= paper:rfc7323 §4.3: echo the stamp of the earliest segment that the next acknowledgement covers
        if segment.seq <= self.next && self.waiting == 0 {
            self.echo = segment.sent;
        }
        self.full = self.full.max(segment.payload);
        if segment.seq == self.next {
            self.bytes += u64::from(segment.payload);
            self.advance(now);
        } else if segment.seq < self.next {
            self.duplicates += 1;
            self.due = Some(SegmentKind::Ack);
        } else {
            self.keep(segment);
            //= paper:rfc5681 §4.2: an out-of-order segment is acknowledged at once
            self.due = Some(SegmentKind::Ack);
        }
    }

    /// The next segment in order arrived.
    fn advance(&mut self, now: Instant) {
        self.next += 1;
        //= paper:rfc5681 §4.2: so is a segment that fills a gap
        let filled = !self.beyond.is_empty();
        if filled && let Some(first) = self.beyond.first().filter(|first| first.start == self.next) {
            self.next = first.end;
            self.beyond.remove_before(first.end);
        }
        if self.end.is_some_and(|end| self.next >= end) && self.finished_at.is_none() {
            self.finished_at = Some(now);
        }
        self.waiting += 1;
        match self.config.delayed_ack {
            Some(delay) if !filled && self.waiting < SEGMENTS_PER_ACK && self.finished_at.is_none() => {
                self.deadline = Some(now + delay);
            }
            _ => self.due = Some(SegmentKind::Ack),
        }
    }

    /// Keeps a segment beyond a gap.
    fn keep(&mut self, segment: &Segment) {
        let mut news = false;
        self.beyond.insert(Block::new(segment.seq, segment.seq + 1), |_| news = true);
        if news {
            self.bytes += u64::from(segment.payload);
        } else {
            self.duplicates += 1;
        }
        self.put_first(segment.seq);
    }

    /// Marks the range of `seq` as the first to report.
    fn put_first(&mut self, seq: u64) {
        let Some(range) = self.beyond.range_of(seq) else { return };
        let mut recent = [seq; MAX_SACK_BLOCKS];
        let mut count = 1;
        for &other in &self.recent[..self.recent_count] {
            let same = other >= range.start && other < range.end;
            if !same && other >= self.next && count < MAX_SACK_BLOCKS {
                recent[count] = other;
                count += 1;
            }
        }
        (self.recent, self.recent_count) = (recent, count);
    }

    /// Adds SACK blocks: the range of the latest segment first, then the ranges reported before it.
    //= paper:rfc2018 §4
    fn report(&self, segment: &mut Segment) {
        for &seq in &self.recent[..self.recent_count] {
            if let Some(range) = self.beyond.range_of(seq)
                && !segment.sack().contains(&range)
            {
                segment.push_sack(range);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn data(seq: u64) -> Segment {
        let mut segment = Segment::new(SegmentKind::Data, 40, at(0));
        (segment.seq, segment.payload) = (seq, 1_460);
        segment
    }

    /// The response to segment `seq` at `millis`: the acknowledgement number and its SACK blocks.
    fn answer(receiver: &mut TcpReceiver, millis: u64, seq: u64) -> Option<(u64, Vec<(u64, u64)>)> {
        receiver.handle_data(at(millis), &data(seq));
        let ack = receiver.poll_transmit(at(millis))?;
        assert_eq!(receiver.poll_transmit(at(millis)), None);
        Some((ack.ack, ack.sack().iter().map(|block| (block.start, block.end)).collect()))
    }

    #[test]
    fn every_second_segment_is_acknowledged_and_a_single_one_after_its_delay() {
        let mut receiver = TcpReceiver::new(ReceiverConfig::default());
        assert_eq!(answer(&mut receiver, 0, 0), None);
        assert_eq!(answer(&mut receiver, 1, 1), Some((2, vec![])));
        assert_eq!(answer(&mut receiver, 2, 2), None);
        assert_eq!(receiver.poll_timeout(), Some(at(202)));
        receiver.handle_timeout(at(202));
        assert_eq!(receiver.poll_transmit(at(202)).map(|ack| ack.ack), Some(3));
        assert_eq!(receiver.poll_timeout(), None);
    }

    #[test]
    fn without_delay_every_segment_is_acknowledged() {
        let mut receiver = TcpReceiver::new(ReceiverConfig { delayed_ack: None, ..ReceiverConfig::default() });
        for seq in 0..5 {
            assert_eq!(answer(&mut receiver, seq, seq), Some((seq + 1, vec![])));
        }
    }

    #[test]
    fn out_of_order_gap_filling_and_repeated_segments_are_acknowledged_at_once() {
        let mut receiver = TcpReceiver::new(ReceiverConfig::default());
        assert_eq!(answer(&mut receiver, 0, 1), Some((0, vec![(1, 2)])));
        assert_eq!(answer(&mut receiver, 0, 3), Some((0, vec![(3, 4), (1, 2)])));
        assert_eq!(answer(&mut receiver, 0, 0), Some((2, vec![(3, 4)])));
        assert_eq!((receiver.bytes(), receiver.bytes_in_order()), (3 * 1_460, 2 * 1_460));
        assert_eq!(answer(&mut receiver, 0, 2), Some((4, vec![])));
        assert_eq!(answer(&mut receiver, 0, 1), Some((4, vec![])));
        assert_eq!(receiver.duplicates(), 1);
        assert_eq!(receiver.bytes(), 4 * 1_460);
    }

    /// The second and third case of RFC 2018 §7, in segments: the first four, then every second one, is lost.
    #[test]
    fn the_latest_range_is_reported_first_and_three_at_most() {
        let mut receiver = TcpReceiver::new(ReceiverConfig::default());
        assert_eq!(answer(&mut receiver, 0, 2), Some((0, vec![(2, 3)])));
        assert_eq!(answer(&mut receiver, 0, 4), Some((0, vec![(4, 5), (2, 3)])));
        assert_eq!(answer(&mut receiver, 0, 6), Some((0, vec![(6, 7), (4, 5), (2, 3)])));
        assert_eq!(answer(&mut receiver, 0, 8), Some((0, vec![(8, 9), (6, 7), (4, 5)])));
        assert_eq!(answer(&mut receiver, 0, 5), Some((0, vec![(4, 7), (8, 9)])), "two ranges became one");
        assert_eq!(answer(&mut receiver, 0, 9), Some((0, vec![(8, 10), (4, 7)])));
    }

    #[test]
    fn without_sack_there_are_no_blocks() {
        let mut receiver = TcpReceiver::new(ReceiverConfig { sack: false, ..ReceiverConfig::default() });
        assert_eq!(answer(&mut receiver, 0, 5), Some((0, vec![])));
    }

    #[test]
    fn the_stamp_echoed_is_that_of_the_first_segment_not_acknowledged() {
        let mut receiver = TcpReceiver::new(ReceiverConfig::default());
        let stamped = |seq, millis| {
            let mut segment = data(seq);
            segment.sent = at(millis);
            segment
        };
        receiver.handle_data(at(10), &stamped(0, 3));
        receiver.handle_data(at(11), &stamped(1, 5));
        assert_eq!(receiver.poll_transmit(at(11)).map(|ack| ack.echo), Some(at(3)));
        receiver.handle_data(at(12), &stamped(3, 7));
        assert_eq!(receiver.poll_transmit(at(12)).map(|ack| ack.echo), Some(at(3)), "not of one beyond a gap");
    }

    #[test]
    fn the_transfer_ends_once_the_last_segment_and_all_before_it_arrived() {
        let mut receiver = TcpReceiver::new(ReceiverConfig::default());
        let mut last = data(1);
        (last.kind, last.payload) = (SegmentKind::LastData, 10);
        receiver.handle_data(at(1), &last);
        assert_eq!(receiver.finished_at(), None);
        assert_eq!(answer(&mut receiver, 2, 0), Some((2, vec![])));
        assert_eq!((receiver.finished_at(), receiver.bytes()), (Some(at(2)), 1_470));
    }
}
