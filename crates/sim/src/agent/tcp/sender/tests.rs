//! The rules of RFC 5681, 6298, 6582 and 6675, each tested with hand-made acknowledgements.

use farhaul_cc::Spec;
use farhaul_netem::WireLen;

use super::*;
use crate::packet::segment::Block;

struct Peer {
    sender: TcpSender,
    now: Instant,
}

const ROUND_TRIP: Duration = Duration::from_millis(100);

fn config(recovery: Recovery, initial_window: u32) -> SenderConfig {
    SenderConfig { recovery, initial_window, handshake: false, ..SenderConfig::default() }
}

fn controller(recovery: Recovery) -> Box<dyn Controller> {
    let name = if recovery == Recovery::Tahoe { "tahoe" } else { "reno" };
    name.parse::<Spec>().unwrap().build(1)
}

impl Peer {
    fn new(config: SenderConfig) -> Self {
        let mut sender = TcpSender::new(config, || controller(config.recovery));
        sender.start(Instant::ZERO);
        Self { sender, now: Instant::ZERO }
    }

    /// A sender whose first window of `window` packets has left.
    fn with_flight(recovery: Recovery, window: u32) -> Self {
        let mut peer = Self::new(config(recovery, window));
        assert_eq!(peer.sent().len(), window as usize);
        peer
    }

    /// The data segments sent now.
    fn sent(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.sender.poll_transmit(self.now)).map(|segment| segment.seq).collect()
    }

    /// The segments sent on an acknowledgement one RTT after the data.
    fn ack(&mut self, ack: u64) -> Vec<u64> {
        self.sack(ack, &[])
    }

    fn sack(&mut self, ack: u64, blocks: &[(u64, u64)]) -> Vec<u64> {
        let mut segment = Segment::new(SegmentKind::Ack, 40, self.now);
        segment.ack = ack;
        segment.echo = self.now.saturating_sub(ROUND_TRIP);
        blocks.iter().for_each(|&(start, end)| segment.push_sack(Block::new(start, end)));
        self.sender.handle_ack(self.now, &segment);
        self.sent()
    }

    /// The segments sent on `count` duplicate acknowledgements.
    fn duplicates(&mut self, ack: u64, count: usize) -> Vec<u64> {
        (0..count).flat_map(|_| self.ack(ack)).collect()
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    /// The time until the timer expires, and the segments sent then.
    fn time_out(&mut self) -> (Duration, Vec<u64>) {
        let at = self.sender.poll_timeout().expect("data is in flight");
        let waited = at - self.now;
        self.now = at;
        self.sender.handle_timeout(self.now);
        (waited, self.sent())
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn in_slow_start_every_acknowledgement_lets_two_segments_go() {
    let mut peer = Peer::with_flight(Recovery::Sack, 2);
    assert_eq!(peer.ack(1), [2, 3]);
    assert_eq!(peer.ack(2), [4, 5]);
    assert_eq!(peer.ack(3), [6, 7]);
    assert_eq!(peer.sender.cwnd(), 5);
}

#[test]
fn an_acknowledgement_of_two_segments_lets_three_go_by_rfc_5681_and_four_by_byte_counting() {
    let mut peer = Peer::with_flight(Recovery::Sack, 2);
    assert_eq!(peer.ack(2), [2, 3, 4]);
    let mut peer = Peer::new(SenderConfig { ack_limit: 2, ..config(Recovery::Sack, 2) });
    peer.sent();
    assert_eq!(peer.ack(2), [2, 3, 4, 5]);
}

#[test]
fn the_receivers_window_bounds_the_flight() {
    for recovery in [Recovery::Reno, Recovery::Sack] {
        let mut peer = Peer::new(SenderConfig { max_window: 4, ..config(recovery, 10) });
        assert_eq!(peer.sent(), [0, 1, 2, 3]);
        assert_eq!(peer.ack(1), [4]);
    }
}

#[test]
fn the_first_two_duplicates_each_let_a_new_segment_go() {
    for recovery in [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno] {
        assert_eq!(Peer::with_flight(recovery, 8).duplicates(0, 2), [8, 9]);
        let mut peer = Peer::new(SenderConfig { limited_transmit: false, ..config(recovery, 8) });
        peer.sent();
        assert_eq!(peer.duplicates(0, 2), []);
    }
}

#[test]
fn the_third_duplicate_retransmits_the_first_segment_and_halves_the_window() {
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let mut peer = Peer::with_flight(recovery, 8);
        peer.duplicates(0, 2);
        assert_eq!(peer.ack(0), [0]);
        assert_eq!(peer.sender.cwnd(), 4, "half of eight: what limited transmit sent does not count");
        // Inflated by three: 4 + 3 + n duplicates beyond ten in flight.
        assert_eq!(peer.duplicates(0, 3), []);
        assert_eq!(peer.duplicates(0, 2), [10, 11]);
        assert_eq!(peer.ack(12), [12, 13, 14, 15], "deflated to half when all is repaired");
        assert!(!peer.sender.is_recovering());
    }
}

#[test]
fn tahoe_goes_back_and_enters_slow_start() {
    let mut peer = Peer::with_flight(Recovery::Tahoe, 8);
    peer.duplicates(0, 2);
    assert_eq!(peer.ack(0), [0]);
    assert_eq!(peer.sender.cwnd(), 1);
    assert_eq!(peer.duplicates(0, 6), []);
    assert_eq!(peer.ack(3), [3, 4], "everything from the loss on, as the window grows");
}

#[test]
fn reno_leaves_recovery_at_the_first_new_acknowledgement() {
    let mut peer = Peer::with_flight(Recovery::Reno, 8);
    assert_eq!(peer.duplicates(0, 5), [8, 9, 0]);
    assert_eq!(peer.ack(3), [], "seven are in flight, the window is four");
    assert!(!peer.sender.is_recovering());
    assert_eq!(peer.duplicates(3, 10), [], "and no second fast retransmit for the same flight");
    assert_eq!(peer.time_out().1, [3]);
}

#[test]
fn newreno_repairs_a_hole_per_partial_acknowledgement() {
    let mut peer = Peer::with_flight(Recovery::NewReno, 8);
    assert_eq!(peer.duplicates(0, 7), [8, 9, 0, 10]);
    // Before: 4 + 3 + 4. Three segments are acknowledged: 4 + 3 + 4 - 3 + 1 = 9, with eight in flight.
    assert_eq!(peer.ack(3), [3, 11]);
    assert!(peer.sender.is_recovering());
    assert_eq!(peer.ack(5)[0], 5);
    peer.ack(10);
    assert!(!peer.sender.is_recovering(), "ten had been sent when it began");
    assert_eq!((peer.sender.cwnd(), peer.sender.totals().recoveries), (4, 1));
}

#[test]
fn only_the_first_partial_acknowledgement_restarts_newrenos_timer() {
    let mut peer = Peer::with_flight(Recovery::NewReno, 8);
    peer.duplicates(0, 3);
    peer.wait(Duration::from_millis(100));
    peer.ack(2);
    let deadline = peer.sender.poll_timeout();
    assert_eq!(deadline, Some(peer.now + seconds(1)));
    peer.wait(Duration::from_millis(100));
    peer.ack(4);
    assert_eq!(peer.sender.poll_timeout(), deadline);
}

#[test]
fn sack_retransmits_lost_segments_while_the_pipe_has_room() {
    let mut peer = Peer::with_flight(Recovery::Sack, 10);
    // Segments 0, 2 and 4 are lost.
    assert_eq!(peer.sack(0, &[(1, 2)]), [10], "limited transmit, by the pipe");
    assert_eq!(peer.sack(0, &[(3, 4), (1, 2)]), [11]);
    // The third: cwnd 5, pipe 12 - 3 - lost {0}, plus the retransmission.
    assert_eq!(peer.sack(0, &[(5, 6), (3, 4), (1, 2)]), [0]);
    assert_eq!(peer.sender.cwnd(), 5);
    assert_eq!(peer.sack(0, &[(5, 7), (3, 4), (1, 2)]), [], "pipe 7: 4, 7..12 and the repair of 0; 2 is lost now");
    assert_eq!(peer.sack(0, &[(5, 8), (3, 4), (1, 2)]), [], "pipe 5");
    assert_eq!(peer.sack(0, &[(5, 9), (3, 4), (1, 2)]), [2], "pipe 4");
    assert_eq!(peer.sack(0, &[(5, 10), (3, 4), (1, 2)]), [4]);
    assert_eq!(peer.sack(2, &[(5, 10), (3, 4)]), [12], "new data once no loss is left");
    assert_eq!(peer.sack(12, &[]), [13, 14, 15, 16], "over; the window is five");
    assert!(!peer.sender.is_recovering());
}

#[test]
fn sack_counts_only_acknowledgements_with_news_as_duplicates() {
    let mut peer = Peer::with_flight(Recovery::Sack, 10);
    assert_eq!(peer.duplicates(0, 5), [], "nothing SACKed, nothing learnt");
    assert_eq!(peer.sack(0, &[(1, 2)]), [10]);
    assert_eq!(peer.sack(0, &[(1, 2)]), []);
    assert!(!peer.sender.is_recovering());
}

#[test]
fn sack_enters_recovery_before_three_duplicates_if_one_reports_three_segments() {
    let mut peer = Peer::with_flight(Recovery::Sack, 10);
    assert_eq!(peer.sack(0, &[(1, 4)]), [0]);
    assert!(peer.sender.is_recovering());
}

#[test]
fn sack_rescues_the_end_of_a_flight_once() {
    let mut peer = Peer::new(SenderConfig { bytes: Some(10 * 1_460), ..config(Recovery::Sack, 10) });
    peer.sent();
    // Segments 0, 8 and 9 are lost, and no segment follows them.
    assert_eq!(peer.sack(0, &[(1, 4)]), [0]);
    assert_eq!(peer.sack(0, &[(1, 8)]), []);
    assert_eq!(peer.sack(8, &[]), [9], "the highest one");
    assert_eq!(peer.sack(8, &[(9, 10)]), [8], "and by rule 3 what lies below it");
    assert_eq!(peer.sack(8, &[(9, 10)]), []);
    assert_eq!(peer.sack(10, &[]), []);
    assert!(peer.sender.finished_at().is_some());
}

#[test]
fn timeouts_double_and_retransmitted_data_gives_no_rtt_sample() {
    for recovery in [Recovery::Reno, Recovery::Sack] {
        let mut peer = Peer::new(SenderConfig { timestamps: false, ..config(recovery, 4) });
        peer.sent();
        let waits: Vec<_> = (0..4).map(|_| peer.time_out()).collect();
        assert_eq!(waits, [1, 2, 4, 8].map(|wait| (seconds(wait), vec![0])));
        peer.wait(ROUND_TRIP);
        assert_eq!(peer.ack(1), [1, 2]);
        assert_eq!(peer.sender.rtt().0, Duration::ZERO, "Karn");
        assert_eq!(peer.sender.rto(), seconds(16), "backed off until there is a sample");
        peer.wait(ROUND_TRIP);
        peer.ack(4);
        assert_eq!(peer.sender.rto(), seconds(16));
        peer.wait(ROUND_TRIP);
        peer.ack(5);
        assert_eq!(peer.sender.rtt().0, ROUND_TRIP);
        assert_eq!(peer.sender.rto(), seconds(1));
    }
}

#[test]
fn with_time_stamps_retransmitted_data_gives_rtt_samples() {
    let mut peer = Peer::with_flight(Recovery::Sack, 4);
    peer.time_out();
    peer.wait(ROUND_TRIP);
    peer.ack(1);
    assert_eq!(peer.sender.rtt().0, ROUND_TRIP);
}

#[test]
fn after_a_timeout_everything_is_retransmitted_in_slow_start() {
    let mut peer = Peer::with_flight(Recovery::NewReno, 8);
    assert_eq!(peer.time_out().1, [0]);
    assert_eq!(peer.ack(1), [1, 2]);
    assert_eq!(peer.ack(2), [3, 4]);
    assert_eq!(peer.sender.cwnd(), 3);
    assert_eq!(peer.ack(8), [8, 9, 10, 11], "what had arrived is not");
}

#[test]
fn after_a_timeout_sack_skips_newly_reported_segments() {
    let mut peer = Peer::with_flight(Recovery::Sack, 8);
    peer.sack(0, &[(2, 3)]);
    assert_eq!(peer.time_out().1, [0]);
    assert_eq!(peer.sack(1, &[(2, 3), (4, 7)]), [1, 3]);
    assert_eq!(peer.sack(4, &[(4, 7)]), [7, 8, 9]);
    assert!(!peer.sender.is_recovering());
}

#[test]
fn after_a_timeout_duplicates_of_its_flight_begin_no_recovery() {
    let mut peer = Peer::with_flight(Recovery::Sack, 8);
    peer.time_out();
    peer.sack(1, &[(2, 3)]);
    peer.sack(1, &[(2, 6)]);
    assert_eq!(peer.sender.totals().recoveries, 0);
    let mut peer = Peer::with_flight(Recovery::NewReno, 8);
    peer.time_out();
    peer.ack(1);
    peer.duplicates(1, 5);
    assert_eq!(peer.sender.totals().recoveries, 0);
}

#[test]
fn the_timer_restarts_on_new_acknowledgements_and_stops_when_nothing_is_in_flight() {
    let mut peer = Peer::new(SenderConfig { bytes: Some(2 * 1_460), ..config(Recovery::Sack, 2) });
    peer.sent();
    peer.wait(Duration::from_millis(600));
    peer.ack(1);
    assert_eq!(peer.sender.poll_timeout(), Some(peer.now + seconds(1)));
    peer.ack(2);
    assert_eq!(peer.sender.poll_timeout(), None);
}

#[test]
fn the_last_segment_carries_the_end_and_may_be_short() {
    let mut sender =
        TcpSender::new(SenderConfig { bytes: Some(2_000), ..config(Recovery::Sack, 4) }, || controller(Recovery::Sack));
    sender.start(Instant::ZERO);
    let first = sender.poll_transmit(Instant::ZERO).unwrap();
    let last = sender.poll_transmit(Instant::ZERO).unwrap();
    assert_eq!((first.kind, first.payload, first.wire_len()), (SegmentKind::Data, 1_460, 1_500));
    assert_eq!((last.kind, last.payload, last.wire_len()), (SegmentKind::LastData, 540, 580));
    assert_eq!(sender.poll_transmit(Instant::ZERO), None);
}

#[test]
fn a_handshake_takes_one_rtt_and_samples_it() {
    let mut peer = Peer::new(SenderConfig { handshake: true, ..config(Recovery::Sack, 3) });
    let syn = peer.sender.poll_transmit(peer.now).unwrap();
    assert_eq!((syn.kind, syn.wire_len()), (SegmentKind::Syn, 40));
    assert_eq!(peer.sent(), []);
    peer.wait(ROUND_TRIP);
    let mut answer = Segment::new(SegmentKind::SynAck, 40, peer.now);
    answer.echo = Instant::ZERO;
    peer.sender.handle_ack(peer.now, &answer);
    assert_eq!(peer.sent(), [0, 1, 2]);
    assert_eq!(peer.sender.rtt().0, ROUND_TRIP);
}

#[test]
fn a_lost_syn_is_retransmitted_and_leaves_a_window_of_one_and_three_seconds() {
    let mut peer = Peer::new(SenderConfig { handshake: true, ..config(Recovery::Sack, 3) });
    assert!(peer.sender.poll_transmit(peer.now).is_some());
    peer.now = peer.sender.poll_timeout().unwrap();
    peer.sender.handle_timeout(peer.now);
    assert_eq!(peer.sender.poll_transmit(peer.now).map(|segment| segment.kind), Some(SegmentKind::Syn));
    assert_eq!(peer.sender.poll_timeout(), Some(Instant::ZERO + seconds(3)));
    peer.sender.handle_ack(peer.now, &Segment::new(SegmentKind::SynAck, 40, peer.now));
    assert_eq!(peer.sent(), [0]);
    assert_eq!(peer.sender.rto(), seconds(3));
}

#[test]
fn acknowledgements_of_old_or_unsent_data_change_nothing() {
    for recovery in [Recovery::Reno, Recovery::Sack] {
        let mut peer = Peer::with_flight(recovery, 4);
        peer.ack(2);
        let before = peer.sender.cwnd();
        assert_eq!(peer.sack(100, &[(50, 200)]), []);
        assert_eq!(peer.sack(1, &[(50, 200)]), []);
        assert_eq!((peer.sender.acknowledged(), peer.sender.cwnd()), (2, before));
    }
}

#[test]
fn a_controller_with_a_period_spaces_segments() {
    let fixed = || "fixed:rate=12mbit".parse::<Spec>().unwrap().build(1);
    let mut sender = TcpSender::new(config(Recovery::Sack, 3), fixed);
    sender.start(Instant::ZERO);
    let mut now = Instant::ZERO;
    for count in 0..5 {
        assert!(sender.poll_transmit(now).is_some());
        assert_eq!(sender.poll_transmit(now), None);
        now = sender.poll_timeout().unwrap();
        assert_eq!(now, Instant::ZERO + Duration::from_millis(count + 1));
    }
}

#[test]
fn finish_ends_the_transfer_with_the_data_already_sent() {
    let mut peer = Peer::with_flight(Recovery::Sack, 4);
    peer.sender.finish(peer.now);
    assert_eq!(peer.ack(2), []);
    assert_eq!(peer.sender.finished_at(), None);
    peer.ack(4);
    assert_eq!(peer.sender.finished_at(), Some(peer.now));
}
