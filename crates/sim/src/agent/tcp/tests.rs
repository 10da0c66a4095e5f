//! Sender and receiver together over the path models: invariants on any path.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use farhaul_cc::{AckEvent, Control, Controller, LossEvent, Path, Spec};
use farhaul_netem::{Element, JitterSpec, LossSpec, Packet, PathSpec, Pattern, Pipe, QueueSize, ReorderSpec, WireLen};
use farhaul_units::{Duration, Instant, Rate, Rng, SendPeriod, SeqNo};
use proptest::prelude::*;

use super::*;
use crate::agent::Agent;
use crate::topology::graph::Graph;
use crate::world::World;

const STYLES: [Recovery; 4] = [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack];

/// A segment on a path model without the simulator.
#[derive(Clone, Copy, Debug)]
struct Travelling(Segment);

impl WireLen for Travelling {
    fn wire_len(&self) -> u32 {
        self.0.wire_len()
    }
}

impl Packet for Travelling {
    fn duplicate(&self) -> Self {
        *self
    }

    fn corrupt(&mut self, _rng: &mut Rng) {}
}

/// A sender and a receiver with one path per direction.
struct Pair {
    sender: TcpSender,
    receiver: TcpReceiver,
    data: Pipe<Travelling>,
    acks: Pipe<Travelling>,
    now: Instant,
    /// Most segments ever in flight beyond the window.
    most_beyond_window: u64,
}

impl Pair {
    fn new(recovery: Recovery, bytes: u64, data: &PathSpec, acks: &PathSpec) -> Self {
        let config = SenderConfig { recovery, bytes: Some(bytes), ..SenderConfig::default() };
        let controller = if recovery == Recovery::Tahoe { "tahoe" } else { "reno" };
        let mut sender = TcpSender::new(config, || controller.parse::<Spec>().unwrap().build(1));
        sender.start(Instant::ZERO);
        Self {
            sender,
            receiver: TcpReceiver::new(ReceiverConfig {
                sack: recovery == Recovery::Sack,
                ..ReceiverConfig::default()
            }),
            data: data.build(),
            acks: acks.build(),
            now: Instant::ZERO,
            most_beyond_window: 0,
        }
    }

    /// Lets both ends send, then moves to the next event. Returns `false` if there is none.
    fn step(&mut self) -> bool {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            self.data.push(self.now, Travelling(segment));
        }
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            self.acks.push(self.now, Travelling(segment));
        }
        if !self.sender.is_recovering() {
            let beyond = self.sender.in_flight().saturating_sub(self.sender.cwnd());
            self.most_beyond_window = self.most_beyond_window.max(beyond);
        }
        let deadlines =
            [self.data.next_event(), self.acks.next_event(), self.sender.poll_timeout(), self.receiver.poll_timeout()];
        let Some(next) = deadlines.into_iter().flatten().min() else { return false };
        assert!(next >= self.now, "time does not go back");
        self.now = next;
        if let Some(Travelling(segment)) = self.data.pop(self.now) {
            self.receiver.handle_data(self.now, &segment);
        } else if let Some(Travelling(segment)) = self.acks.pop(self.now) {
            self.sender.handle_ack(self.now, &segment);
        }
        self.sender.handle_timeout(self.now);
        self.receiver.handle_timeout(self.now);
        true
    }

    fn run(mut self) -> Self {
        let end = Instant::ZERO + Duration::from_secs(36_000);
        while self.sender.finished_at().is_none() {
            assert!(self.step(), "everybody waits for somebody: {:?}", self.sender);
            assert!(self.now < end, "no end of it: {:?}", self.sender);
        }
        self
    }
}

fn path(megabits: u64, delay: u64, queue: u32) -> PathSpec {
    PathSpec {
        rate: Some(Rate::from_megabits_per_second(megabits)),
        delay: Duration::from_millis(delay),
        queue: QueueSize::Packets(queue),
        ..PathSpec::default()
    }
}

/// Loses these packets. Number 0 is the SYN, so number 1 is segment 0.
fn losing(numbers: &[usize], path: PathSpec) -> PathSpec {
    let text: String = (0..64).map(|number| if numbers.contains(&number) { 'x' } else { '.' }).collect();
    PathSpec { loss: Some(LossSpec::Pattern(text.parse::<Pattern>().unwrap())), ..path }
}

#[test]
fn on_a_clean_path_nothing_is_sent_twice() {
    for style in STYLES {
        let pair = Pair::new(style, 3_000_000, &path(10, 20, 10_000), &path(10, 20, 10_000)).run();
        let totals = pair.sender.totals();
        assert_eq!((totals.sent, totals.retransmitted, totals.timeouts), (2_055, 0, 0), "{style:?}");
        assert_eq!((pair.receiver.bytes_in_order(), pair.receiver.duplicates()), (3_000_000, 0));
        assert_eq!(pair.most_beyond_window, 0);
    }
}

#[test]
fn one_lost_segment_is_retransmitted_once_and_no_timer_expires() {
    for style in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let pair = Pair::new(style, 1_000_000, &losing(&[40], path(10, 20, 10_000)), &path(10, 20, 10_000)).run();
        let totals = pair.sender.totals();
        assert_eq!((totals.retransmitted, totals.recoveries, totals.timeouts), (1, 1, 0), "{style:?}");
    }
}

#[test]
fn sack_repairs_many_losses_of_a_flight_in_one_recovery() {
    let lost: Vec<usize> = (42..=60).step_by(3).collect();
    let run = |style| Pair::new(style, 100 * 1_460, &losing(&lost, path(10, 50, 10_000)), &path(10, 50, 10_000)).run();
    let (sack, newreno) = (run(Recovery::Sack), run(Recovery::NewReno));
    let totals = sack.sender.totals();
    assert_eq!((totals.retransmitted, totals.recoveries, totals.timeouts), (7, 1, 0));
    let took = |pair: &Pair| pair.sender.finished_at().unwrap() - Instant::ZERO;
    assert!(took(&sack) + Duration::from_millis(100) < took(&newreno), "NewReno repairs one hole a round trip");
}

#[test]
fn a_lost_last_segment_is_repaired_by_timeout() {
    for style in STYLES {
        let pair = Pair::new(style, 14_600, &losing(&[10], path(10, 20, 100)), &path(10, 20, 100)).run();
        assert_eq!((pair.sender.totals().timeouts, pair.receiver.bytes()), (1, 14_600), "{style:?}");
    }
}

fn spec(seed: u64, loss: f64, rough: bool) -> PathSpec {
    let mut spec = PathSpec { loss: Some(LossSpec::Bernoulli(loss)), seed, ..path(20, 10, 30) };
    if rough {
        spec.duplicate = 0.02;
        spec.jitter = Some(JitterSpec::up_to(Duration::from_millis(5)));
        spec.reorder = Some(ReorderSpec { probability: 0.05, extra_delay: Duration::from_millis(3) });
    }
    spec
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn everything_arrives_once_and_in_order_whatever_is_lost(
        seed: u64, bytes in 1u64..600_000, loss in 0.0..0.2, rough: bool,
    ) {
        for style in STYLES {
            let pair = Pair::new(style, bytes, &spec(seed, loss, rough), &spec(!seed, loss / 2.0, rough)).run();
            prop_assert_eq!(pair.receiver.bytes_in_order(), bytes);
            prop_assert_eq!(pair.receiver.bytes(), bytes);
            prop_assert_eq!(pair.receiver.next(), bytes.div_ceil(1_460));
            prop_assert!(pair.receiver.finished_at() <= pair.sender.finished_at());
            let totals = pair.sender.totals();
            prop_assert_eq!(totals.sent - totals.retransmitted, bytes.div_ceil(1_460));
        }
    }
}

/// A flow of each style over one bottleneck, in the simulator.
fn world(seed: u64) -> World<dyn Agent> {
    let mut graph = Graph::new(2);
    graph.duplex(0, 1, &PathSpec { loss: Some(LossSpec::Bernoulli(0.001)), ..path(20, 10, 40) });
    for (index, recovery) in STYLES.into_iter().enumerate() {
        let port = index as u16 + 1;
        let flow = graph.next_flow();
        let begin = Instant::ZERO + Duration::from_millis(100 * u64::from(port));
        let config = SenderConfig { recovery, bytes: Some(2_000_000), ..SenderConfig::default() };
        let reno = || "reno".parse::<Spec>().unwrap().build(1);
        let source = TcpSource::new(graph.address(1, port), begin, config, reno);
        graph.add(0, port, flow, Box::new(source));
        graph.add(1, port, flow, Box::new(TcpSink::new(ReceiverConfig::default())));
    }
    let mut world = graph.start(seed);
    world.run_for(Duration::from_secs(30));
    world
}

#[test]
fn in_the_simulator_flows_share_a_link_finish_and_are_counted() {
    let world = world(1);
    let mut connections = Vec::new();
    world.agents.iter().for_each(|agent| agent.sample(world.now(), &mut connections));
    for (index, pair) in connections.chunks(2).enumerate() {
        let (source, sink) = (pair[0].1, pair[1].1);
        assert_eq!(sink.totals.bytes_read, 2_000_000, "{index}");
        assert_eq!(source.totals.packets_sent - source.totals.packets_retransmitted, 1_370);
        let tally = world.flow_tally(0, index);
        assert_eq!(tally.new.packets + tally.repeated.packets, sink.totals.packets_received - 1, "but for the SYN");
    }
    assert!((0..4).all(|index| world.agent(2 * index).finished_at().is_some()));
}

#[test]
fn equal_seeds_give_equal_runs() {
    assert_eq!(world(7).trace_hash(), world(7).trace_hash());
    assert_ne!(world(7).trace_hash(), world(8).trace_hash());
}

/// Two agents that share a list of transfers of 100 kB, over a link with loss and jitter.
fn lists(transfers: u32) -> World<dyn Agent> {
    let mut graph = Graph::new(2);
    graph.duplex(0, 1, &spec(3, 0.02, true));
    let remaining = Remaining::new(transfers);
    for port in 1..=2 {
        let flow = graph.next_flow();
        let begin = Instant::ZERO + Duration::from_secs(u64::from(port));
        let config = SenderConfig { bytes: Some(100_000), ..SenderConfig::default() };
        let law = "reno".parse::<Spec>().unwrap();
        let to = graph.address(1, port);
        graph.add(0, port, flow, Box::new(TcpTransfers::new(to, begin, config, (law, 1), remaining.clone())));
        graph.add(1, port, flow, Box::new(TcpSink::new(ReceiverConfig::default())));
    }
    let mut world = graph.start(1);
    world.run_for(Duration::from_secs(60));
    world
}

#[test]
fn transfers_of_a_list_follow_each_other_and_each_arrives_once() {
    let world = lists(21);
    let stats = |agent: usize| {
        let mut stats = Vec::new();
        world.agent(agent).sample(world.now(), &mut stats);
        stats[0].1
    };
    let done = |agent: usize| world.agent(agent).transfer_times().len() as u64;
    assert_eq!(done(0) + done(2), 21);
    for sender in [0, 2] {
        assert!(done(sender) > 5, "both take from the list: {}", done(sender));
        let (sent, read) = (stats(sender).totals, stats(sender + 1).totals);
        assert_eq!(read.bytes_read, 100_000 * done(sender));
        assert_eq!(sent.packets_sent - sent.packets_retransmitted, 69 * done(sender));
        let begin = Instant::ZERO + Duration::from_secs(1 + sender as u64 / 2);
        let taken: Duration = world.agent(sender).transfer_times().iter().sum();
        assert_eq!(world.agent(sender).finished_at(), Some(begin + taken), "no pause between them");
    }
    assert!(stats(0).totals.packets_retransmitted > 0, "or nothing was late");
}

#[test]
fn an_agent_with_an_empty_list_is_done_at_its_start() {
    let world = lists(1);
    assert_eq!(world.agent(2).transfer_times(), []);
    assert_eq!(world.agent(2).finished_at(), Some(Instant::ZERO + Duration::from_secs(2)));
}

/// Sends a packet each millisecond, and panics at its acknowledgement number `last`.
struct PacedUntil {
    last: u32,
}

impl Controller for PacedUntil {
    fn name(&self) -> &str {
        "paced"
    }

    fn on_connect(&mut self, _: &Path, control: &mut Control) {
        control.send_period = SendPeriod::from_micros(1_000.0);
    }

    fn on_ack(&mut self, _: &Path, _: &AckEvent, _: &mut Control) {
        self.last -= 1;
        assert!(self.last > 0, "the panic of this test");
    }

    fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {}
}

#[test]
fn a_paced_sender_whose_controller_fails_asks_for_no_more_calls() {
    let mut pair = Pair::new(Recovery::Sack, 1_000_000, &path(100, 20, 10_000), &path(100, 20, 10_000));
    let config = SenderConfig { bytes: Some(1_000_000), initial_window: 50, ..SenderConfig::default() };
    pair.sender = TcpSender::new(config, || Box::new(PacedUntil { last: 5 }));
    pair.sender.start(Instant::ZERO);
    for _ in 0..10_000 {
        if !pair.step() {
            break;
        }
    }
    let failure = pair.sender.failure().map(|failure| failure.to_string());
    assert_eq!(failure.as_deref(), Some("the congestion controller 'paced' failed: it panicked in on_ack"));
    assert_eq!((pair.step(), pair.sender.poll_timeout()), (false, None));
}

/// A controller that counts its end, and fails at the acknowledgement of this segment.
struct FailsAt {
    seq: u32,
    ends: Arc<AtomicU32>,
}

impl Controller for FailsAt {
    fn name(&self) -> &str {
        "fails"
    }

    fn on_ack(&mut self, _: &Path, ack: &AckEvent, control: &mut Control) {
        if ack.seq == SeqNo::new(self.seq) {
            control.cwnd = Some(f64::NAN);
        }
    }

    fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {}

    fn on_close(&mut self) {
        self.ends.fetch_add(1, Ordering::Relaxed);
    }
}

/// Transfers of two segments, one after the other, whose controllers fail at the acknowledgement of this segment: how many
/// were complete, the failure, and the number of controllers that heard of their end.
fn transfers_failing_at(seq: u32) -> (usize, Option<String>, u32) {
    let mut graph = Graph::new(2);
    graph.duplex(0, 1, &path(20, 10, 40));
    let flow = graph.next_flow();
    let config = SenderConfig { bytes: Some(2_000), ..SenderConfig::default() };
    let ends = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&ends);
    let law =
        Spec::made("fails", move |_| Box::new(FailsAt { seq, ends: Arc::clone(&counter) }) as Box<dyn Controller>);
    let to = graph.address(1, 1);
    graph.add(0, 1, flow, Box::new(TcpTransfers::new(to, Instant::ZERO, config, (law, 1), Remaining::new(3))));
    graph.add(1, 1, flow, Box::new(TcpSink::new(ReceiverConfig::default())));
    let mut world = graph.start(1);
    world.run_for(Duration::from_secs(60));
    let sender = world.agent(0);
    let failure = sender.failure().map(|failure| failure.to_string());
    (sender.transfer_times().len(), failure, ends.load(Ordering::Relaxed))
}

#[test]
fn a_list_of_transfers_ends_with_the_first_controller_that_fails() {
    let why = "the congestion controller 'fails' failed: on_ack set cwnd to NaN";
    // The last acknowledgement of the first transfer.
    let (complete, failure, ends) = transfers_failing_at(2);
    assert_eq!((complete, ends), (0, 1));
    assert!(failure.is_some_and(|failure| failure.starts_with(why)));
    assert_eq!(transfers_failing_at(9), (3, None, 3));
}

#[test]
fn a_controller_that_cannot_be_made_is_the_failure_of_its_flow() {
    let to = "10.0.0.1:9".parse().unwrap();
    let source = TcpSource::new(to, Instant::ZERO, SenderConfig::default(), || panic!("the panic of this test"));
    let failure = Agent::failure(&source).map(|failure| failure.to_string());
    assert!(failure.is_some_and(|failure| failure.ends_with("it panicked in its constructor")));
}
