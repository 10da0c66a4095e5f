//! Peers that acknowledge what they never got, and honest ones in comparison.

use farhaul_netem::PathSpec;
use farhaul_proto::{ConnectionLost, Endpoint, Entropy, Mode, PeerMisbehaved, Stats, Streams, udt};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_sim::{Simulation, Workload};
use farhaul_units::{Duration, Instant, Rate, SeqNo};
use farhaul_wire::udt4::Control;

use crate::attack::bench::{Bench, Peer, Sent, range, with};

/// Packets after which one was withheld, whatever was drawn: the range of distances, and some that wait behind it.
const ENOUGH: u32 = (1 << 18) + 1_000;
const FULL: usize = 1456;

/// What a receiver answers to a gap.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// It reports the gap, and acknowledges what is before it.
    Honest,
    /// It acknowledges what is before the gap, and does not report it.
    Silent,
    /// It acknowledges everything that it has seen the begin of.
    Optimistic,
}

/// A receiver of a stream without end, played by hand.
struct Reader {
    bench: Bench,
    peer: Peer,
    manner: Manner,
    /// The first packet that is missing.
    missing: SeqNo,
    /// The packet after the newest.
    end: SeqNo,
    /// Packets of which there was a gap, in the order of their arrival.
    late: Vec<SeqNo>,
}

impl Reader {
    fn new(manner: Manner, withhold_packets: bool) -> Self {
        let mut bench = Bench::new(with(udt::Config { withhold_packets, ..udt::Config::default() }), Mode::Stream);
        let peer = bench.accept_default();
        bench.control(&peer, &Control::KeepAlive);
        let isn = peer.isn();
        Self { bench, peer, manner, missing: isn, end: isn, late: Vec::new() }
    }

    /// Ten milliseconds, and the answers to what was sent in them. Returns whether the connection lives.
    fn step(&mut self) -> bool {
        let waiting = self.bench.stats(&self.peer).send_buffer_packets;
        self.bench.write_some(&self.peer, (20_000_usize.saturating_sub(waiting as usize)) * FULL);
        self.bench.run_millis(10);
        for seq in self.bench.take_sent().iter().filter_map(Sent::seq) {
            if seq.is_before(self.end) {
                self.late.push(seq);
                self.missing = self.end;
            } else {
                if seq == self.missing {
                    self.missing = seq.next();
                }
                self.end = seq.next();
            }
        }
        if self.manner == Manner::Honest && self.missing != self.end {
            self.bench.nak(&self.peer, &[range(self.missing, self.missing)]);
        }
        let acknowledged = if self.manner == Manner::Optimistic { self.end } else { self.missing };
        self.acknowledge(acknowledged);
        self.bench.closed(&self.peer).is_none()
    }

    fn acknowledge(&mut self, seq: SeqNo) {
        let ack = self.peer.full_ack(seq, Duration::from_millis(10), 1 << 17, (100_000, 100_000));
        self.bench.control(&self.peer, &ack);
    }

    fn count(&self) -> u32 {
        self.end.distance_from(self.peer.isn()).unsigned_abs()
    }

    fn stats(&self) -> Stats {
        self.bench.stats(&self.peer)
    }

    /// Goes on until there is a gap.
    fn until_a_gap(&mut self) {
        while self.missing == self.end {
            assert!(self.step() && self.count() < ENOUGH, "no packet was withheld");
        }
    }
}

#[test]
fn b8_a_peer_that_acknowledges_what_it_never_got_loses_the_connection() {
    let mut reader = Reader::new(Manner::Optimistic, true);
    // It may tell fewer than three lies about the first one.
    while reader.step() {
        assert!(reader.count() < 3 * ENOUGH, "nobody noticed");
    }
    let lie = ConnectionLost::PeerMisbehaved(PeerMisbehaved::AcknowledgedUnsent);
    assert_eq!(reader.bench.closed(&reader.peer), Some(lie));
}

#[test]
fn b8_an_honest_peer_gets_everything_and_its_report_counts_as_no_loss() {
    let mut reader = Reader::new(Manner::Honest, true);
    while reader.count() < 2 * ENOUGH {
        assert!(reader.step());
    }
    assert!(reader.late.len() >= 2, "{:?}", reader.late);
    let totals = reader.stats().totals;
    assert_eq!((totals.packets_lost_sending, totals.packets_retransmitted, totals.packets_invalid), (0, 0, 0));
    assert!(totals.naks_received > 0);
}

#[test]
fn b8_a_withheld_packet_leaves_although_nobody_asks_for_it() {
    let mut reader = Reader::new(Manner::Silent, true);
    reader.until_a_gap();
    let withheld = reader.missing;
    for _ in 0..10 {
        reader.step();
    }
    assert_eq!(reader.late.first(), Some(&withheld));
}

#[test]
fn b8_two_forged_acknowledgements_of_a_withheld_packet_change_nothing() {
    let mut reader = Reader::new(Manner::Silent, true);
    reader.until_a_gap();
    let (before, end) = (reader.stats(), reader.end);
    for _ in 0..2 {
        reader.acknowledge(end);
    }
    let after = reader.stats();
    assert_eq!((after.in_flight, after.totals.bytes_acked), (before.in_flight, before.totals.bytes_acked));
    assert_eq!(after.totals.packets_invalid, before.totals.packets_invalid + 2);
    assert!(reader.step());
}

#[test]
fn b8_nothing_is_withheld_unless_it_is_configured() {
    let mut reader = Reader::new(Manner::Honest, false);
    while reader.count() < ENOUGH {
        assert!(reader.step());
    }
    assert_eq!(reader.late, []);
}

/// The time of a transfer over 1 Gbit/s with an RTT of 10 ms, and the sender's counters.
fn transfer(withhold_packets: bool) -> (Duration, Stats) {
    let end = |seed: u8| {
        let config = with(udt::Config { withhold_packets, ..udt::Config::default() });
        let mut end = udt::endpoint(config, Entropy { cookie_key: [seed; 16], seed: seed.into() });
        end.listen(Mode::Stream).expect("UDT has the mode");
        end
    };
    let rate = Some(Rate::from_megabits_per_second(1_000));
    let path = PathSpec { rate, delay: Duration::from_millis(5), ..PathSpec::default() };
    let pair = Pair::new(end(1), end(2)).path(path);
    let mut run = pair.caller(Workload::send(400_000_000)).listener(Workload::receive()).start();
    let complete = |run: &Simulation<Endpoint>| {
        run.flows(LISTENER).first().is_some_and(|flow| flow.received().complete_at.is_some())
    };
    assert!(run.run_until_true(Instant::ZERO + Duration::from_secs(60), complete), "it does not arrive");
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
    let id = run.flows(CALLER)[0].id();
    (run.now() - Instant::ZERO, run.transport(CALLER).stats(run.now(), id).expect("it was not released"))
}

// Slow: two transfers of 400 MB in virtual time. A packet is withheld after at most 2^18 of them, which carry 382 MB.
#[test]
fn b8_withheld_packets_cost_no_rate() {
    let ((plain, _), (probed, stats)) = (transfer(false), transfer(true));
    assert!(stats.totals.naks_received > 0, "no packet was withheld");
    assert!(probed < plain + plain / 200, "{probed:?} in place of {plain:?}");
}
