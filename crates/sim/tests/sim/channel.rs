//! Channels beside datagrams: order, timing, loss, ends, determinism.

mod caller;

use std::cell::RefCell;
use std::rc::Rc;

use caller::{Caller, Idle, Told};
use farhaul_cc::Spec;
use farhaul_netem::{JitterSpec, LossSpec, PathSpec, Pattern, Periodic, QueueSize, ReorderSpec};
use farhaul_proto::{ChannelEnd, Numbering};
use farhaul_sim::agent::channel::{receiver_config, sender_config};
use farhaul_sim::agent::tcp::{SegmentKind, SenderConfig, TcpSink, TcpSource};
use farhaul_sim::topology::graph::Graph;
use farhaul_sim::topology::path::{CALLER, DOWN, LISTENER, Pair, UP, address};
use farhaul_sim::{Passing, Payload, Share, Simulation, TraceHash};
use farhaul_units::{Duration, Instant, Rate, Rng};

type Run = Simulation<Caller, Idle>;

/// A segment that a host sent: the host, its kind, its bytes.
type Sent = (usize, SegmentKind, usize);

const RTT: Duration = Duration::from_millis(20);
/// The longest time that the packets of a handshake or an end take beside their propagation, at 100 Mbit/s.
const TRANSMISSION: Duration = Duration::from_micros(200);

/// 100 Mbit/s, 20 ms RTT.
fn clean() -> PathSpec {
    PathSpec { rate: Some(Rate::from_megabits_per_second(100)), delay: RTT / 2, ..PathSpec::default() }
}

fn lossy() -> PathSpec {
    PathSpec {
        loss: Some(LossSpec::Bernoulli(0.01)),
        duplicate: 0.01,
        corrupt: 0.01,
        reorder: Some(ReorderSpec { probability: 0.01, extra_delay: Duration::from_millis(3) }),
        jitter: Some(JitterSpec::up_to(Duration::from_millis(1))),
        ..clean()
    }
}

/// Loses chosen packets of a link.
fn losing(pattern: &str) -> PathSpec {
    let pattern = pattern.parse::<Pattern>().expect("it is a pattern");
    PathSpec { loss: Some(LossSpec::Pattern(pattern)), ..clean() }
}

fn start(caller: Caller, listener: Caller, [up, down]: [PathSpec; 2]) -> Run {
    Pair::new(caller, listener).up(up).down(down).seed(5).start_with([Idle, Idle])
}

/// Opens a channel at instant zero and runs for ten minutes.
fn run(caller: Caller, listener: Caller, paths: [PathSpec; 2]) -> Run {
    let mut run = start(caller, listener, paths);
    open(&mut run);
    run.set_numbering(NUMBERS);
    run.run_for(Duration::from_secs(600));
    run
}

/// All datagrams of a [`Caller`] are alike, so each but the first repeats its number.
const NUMBERS: Numbering = Numbering::numbered(1 << 32).behind(4);

fn open(run: &mut Run) {
    run.command(CALLER, |_, transport, _| transport.open(address(LISTENER)));
}

fn at(time: Duration) -> Instant {
    Instant::ZERO + time
}

/// Asserts that the host told this at `time`, but for the transmission of small segments.
#[track_caller]
fn told(run: &Run, host: usize, told: Told, time: Duration) {
    let when = run.transport(host).when(told).expect("the host told it");
    assert!((at(time)..at(time) + TRANSMISSION).contains(&when), "{told:?} at {when}, not at {time:?}");
}

/// Records the segments that hosts send.
fn record(run: &mut Run) -> Rc<RefCell<Vec<Sent>>> {
    let sent = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&sent);
    run.set_capture(Some(Box::new(move |_, passing, packet| {
        if let (Passing::Sent(host), Payload::Tcp(segment)) = (passing, packet.payload()) {
            assert_eq!(packet.bytes().len(), segment.payload as usize);
            assert_eq!(packet.share(), Share::Channel);
            log.borrow_mut().push((host, segment.kind, packet.bytes().len()));
        }
    })));
    sent
}

/// Five million random bytes in chunks of many sizes.
fn chunks() -> Vec<Vec<u8>> {
    let mut rng = Rng::new(9);
    let mut left = 5_000_000;
    let mut chunks = Vec::new();
    while left > 0 {
        let length = (rng.next_u64() % 100_000 + 1).min(left);
        left -= length;
        chunks.push((0..length).map(|_| rng.next_u64() as u8).collect());
    }
    chunks
}

#[test]
fn five_megabytes_arrive_in_order_and_whole_beside_datagrams_of_the_same_host() {
    let chunks = chunks();
    let (count, bytes) = (chunks.len(), chunks.concat());
    let run = run(Caller::new().sending(chunks), Caller::new(), [lossy(), lossy()]);
    let [caller, listener] = [CALLER, LISTENER].map(|host| run.transport(host));
    assert!(listener.received == bytes, "{} bytes of {}", listener.received.len(), bytes.len());
    assert_eq!(listener.log.last().map(|(_, told)| *told), Some(Told::Ended(ChannelEnd::Finished)));
    assert_eq!(caller.log.iter().filter(|(_, told)| *told == Told::Drained).count(), count);
    let datagrams = listener.datagrams_received;
    assert!((count as u64 * 9 / 10..count as u64 * 11 / 10).contains(&datagrams), "{datagrams} of {count}");
    // All of the channel's packets, and nothing else, are in its tally.
    let [up, down] = [UP, DOWN].map(|link| run.flow_tally(link, 0));
    assert!(up.channel.bytes > 5_000_000 + 40 * (5_000_000 / 1_460), "{up:?}");
    assert_eq!((up.new.packets, up.control.packets), (1, 0), "{up:?}");
    assert!(up.repeated.packets <= count as u64 * 11 / 10, "{up:?}");
    assert!(down.channel.packets > 0 && down.new.packets + down.repeated.packets == 0, "{down:?}");
}

#[test]
fn a_channel_opens_after_one_round_trip_and_its_acceptor_knows_it_half_a_one_later() {
    let run = run(Caller::new(), Caller::new(), [clean(), clean()]);
    told(&run, CALLER, Told::Opened, RTT);
    told(&run, LISTENER, Told::Accepted, RTT * 3 / 2);
    assert_eq!((run.transport(CALLER).log.len(), run.transport(LISTENER).log.len()), (1, 1));
}

#[test]
fn a_lost_syn_is_sent_again_after_a_second_and_then_after_two() {
    for (pattern, waits) in [("x", 1), ("xx", 3), ("xxx", 7)] {
        let run = run(Caller::new(), Caller::new(), [losing(pattern), clean()]);
        told(&run, CALLER, Told::Opened, Duration::from_secs(waits) + RTT);
    }
}

#[test]
fn a_lost_answer_to_the_syn_is_repeated() {
    let run = run(Caller::new(), Caller::new(), [clean(), losing("x")]);
    told(&run, CALLER, Told::Opened, Duration::from_secs(1) + RTT / 2 * 2);
}

#[test]
fn a_lost_end_of_the_handshake_is_made_good_by_the_answer_or_by_data() {
    let idle = run(Caller::new(), Caller::new(), [losing(".x"), clean()]);
    told(&idle, LISTENER, Told::Accepted, Duration::from_millis(1_010) + RTT / 2 * 2);
    let busy = run(Caller::new().sending([vec![1; 10]]), Caller::new(), [losing(".x"), clean()]);
    told(&busy, LISTENER, Told::Accepted, RTT * 3 / 2);
    assert_eq!(busy.transport(LISTENER).received, [1; 10]);
}

#[test]
fn a_lost_fin_is_sent_again() {
    // The caller sends SYN, ACK, FIN.
    let lost = run(Caller::new().finishing_at_once(), Caller::new(), [losing("..x"), clean()]);
    let fine = run(Caller::new().finishing_at_once(), Caller::new(), [clean(), clean()]);
    told(&fine, LISTENER, Told::Ended(ChannelEnd::Finished), RTT * 3 / 2);
    told(&lost, LISTENER, Told::Ended(ChannelEnd::Finished), RTT * 3 / 2 + Duration::from_millis(200));
}

#[test]
fn both_directions_end_with_one_fin_each_and_hosts_forget_the_channel() {
    let mut run = start(Caller::new().sending([vec![7; 100]]), Caller::new(), [clean(), clean()]);
    let sent = record(&mut run);
    open(&mut run);
    run.run_for(Duration::from_secs(200));
    use SegmentKind::{Ack, LastData, Syn, SynAck};
    let expected = [
        (CALLER, Syn, 0),
        (LISTENER, SynAck, 0),
        (CALLER, Ack, 0),
        (CALLER, SegmentKind::Data, 100),
        (CALLER, LastData, 0),
        (LISTENER, Ack, 0),
        (LISTENER, LastData, 0),
        (CALLER, Ack, 0),
    ];
    assert_eq!(*sent.borrow(), expected);
    run.set_capture(None);
    assert_eq!(run.pool().in_use(), 0);
}

#[test]
fn a_reset_ends_the_channel_of_the_peer_at_once() {
    let mut run = start(Caller::new(), Caller::new(), [clean(), clean()]);
    open(&mut run);
    run.run_until(at(RTT * 5));
    run.command(CALLER, |_, transport, _| {
        transport.send(&[1; 100_000]);
        transport.reset();
    });
    run.run_for(Duration::from_secs(10));
    let listener = run.transport(LISTENER);
    let ended = listener.when(Told::Ended(ChannelEnd::Failed)).expect("it ended");
    // Behind the ten segments of the first window.
    assert!(ended - at(RTT * 5 + RTT / 2) < Duration::from_millis(2), "{ended}");
    assert_eq!(listener.received.len(), 14_600);
    assert_eq!(listener.log.len(), 2, "nothing follows the end");
}

#[test]
fn a_broken_channel_fails_at_both_hosts() {
    let mut run = start(Caller::new(), Caller::new(), [clean(), clean()]);
    open(&mut run);
    run.run_until(at(RTT * 5));
    run.break_channels(LISTENER);
    run.run_for(Duration::from_secs(1));
    told(&run, LISTENER, Told::Ended(ChannelEnd::Failed), RTT * 5);
    told(&run, CALLER, Told::Ended(ChannelEnd::Failed), RTT * 5 + RTT / 2);
}

#[test]
fn a_channel_that_the_peer_finished_takes_bytes_and_fails_once_the_peer_has_left() {
    let mut run = start(Caller::new().finishing_at_once(), Caller::new(), [clean(), clean()]);
    run.command(LISTENER, |_, transport, _| transport.lingers = true);
    open(&mut run);
    run.run_for(Duration::from_secs(25));
    run.command(LISTENER, |_, transport, _| transport.send(b"in time"));
    run.run_for(Duration::from_secs(10));
    assert_eq!(run.transport(LISTENER).when(Told::Ended(ChannelEnd::Failed)), None);
    run.command(LISTENER, |_, transport, _| transport.send(b"too late"));
    run.run_for(Duration::from_secs(1));
    told(&run, LISTENER, Told::Ended(ChannelEnd::Finished), RTT * 3 / 2);
    told(&run, LISTENER, Told::Ended(ChannelEnd::Failed), Duration::from_secs(35) + RTT);
    assert_eq!(run.transport(CALLER).received, b"");
}

#[test]
fn bytes_handed_over_before_the_peer_ended_the_channel_are_still_sent_and_repeated() {
    let loss = Some(LossSpec::Periodic(Periodic::every(40)));
    let down = PathSpec { loss, lossless_below: 100, ..clean() };
    let mut run = start(Caller::new().sending([vec![1; 20_000]]), Caller::new(), [clean(), down]);
    let sent = record(&mut run);
    open(&mut run);
    run.run_until(at(RTT * 3 / 2) + TRANSMISSION);
    run.command(LISTENER, |_, transport, _| transport.send(&[2; 200_000]));
    run.run_for(Duration::from_secs(5));
    let received = |host| run.transport(host).received.len();
    assert_eq!(received(LISTENER), 20_000);
    assert!(received(CALLER) < 100_000, "it had finished: {}", received(CALLER));
    let sent = sent.borrow();
    let carried: usize = sent.iter().filter(|sent| sent.0 == LISTENER).map(|sent| sent.2).sum();
    assert!(carried > 203_000, "{carried}");
    assert_eq!(sent.iter().filter(|sent| sent.1 == SegmentKind::LastData).count(), 2);
    assert!(sent.iter().all(|sent| sent.1 != SegmentKind::Reset));
}

#[test]
fn a_host_without_channels_refuses_them_after_one_round_trip() {
    let run = run(Caller::new(), Caller::without_channels(), [clean(), clean()]);
    told(&run, CALLER, Told::Ended(ChannelEnd::Refused), RTT);
    assert_eq!(run.transport(CALLER).log.len(), 1);
}

#[test]
fn a_channel_that_the_transport_refuses_opens_and_fails() {
    let run = run(Caller::new(), Caller::refusing(), [clean(), clean()]);
    told(&run, CALLER, Told::Opened, RTT);
    told(&run, CALLER, Told::Ended(ChannelEnd::Failed), RTT * 2);
}

#[test]
fn a_channel_through_a_dead_path_fails_after_seven_syns() {
    let dead = PathSpec { loss: Some(LossSpec::Bernoulli(1.0)), ..clean() };
    let run = run(Caller::new(), Caller::new(), [dead.clone(), dead]);
    told(&run, CALLER, Told::Ended(ChannelEnd::Failed), Duration::from_secs(127));
}

#[test]
fn an_open_channel_whose_path_dies_fails_after_fifteen_repetitions() {
    let pattern = Pattern::once(!0b11).repeated();
    let dies = PathSpec { loss: Some(LossSpec::Pattern(pattern)), ..clean() };
    let mut run = start(Caller::new(), Caller::new(), [dies, clean()]);
    let sent = record(&mut run);
    open(&mut run);
    run.run_until(at(RTT * 2));
    run.command(CALLER, |_, transport, _| transport.send(b"lost"));
    run.run_for(Duration::from_secs(600));
    assert!(run.transport(CALLER).when(Told::Ended(ChannelEnd::Failed)).is_some());
    assert_eq!(sent.borrow().iter().filter(|sent| sent.1 == SegmentKind::Data).count(), 16);
}

#[test]
fn a_small_message_leaves_at_once_and_its_answer_carries_the_acknowledgement() {
    let mut run = start(Caller::new(), Caller::new(), [clean(), clean()]);
    open(&mut run);
    run.command(LISTENER, |_, transport, _| transport.echoes = true);
    run.run_until(at(RTT * 2));
    let sent = record(&mut run);
    for message in [1, 2] {
        run.command(CALLER, |_, transport, _| transport.send(&[message; 50]));
    }
    run.run_until(at(RTT * 3) + TRANSMISSION);
    assert_eq!(run.transport(CALLER).received, [[1; 50], [2; 50]].concat(), "one RTT");
    run.run_for(Duration::from_secs(1));
    let data = |host| (host, SegmentKind::Data, 50);
    let count = |sent: &[Sent], one| sent.iter().filter(|sent| **sent == one).count();
    let sent = sent.borrow();
    assert_eq!((count(&sent, data(CALLER)), count(&sent, data(LISTENER))), (2, 2), "{sent:?}");
    assert_eq!(count(&sent, (LISTENER, SegmentKind::Ack, 0)), 0, "{sent:?}");
    assert_eq!(count(&sent, (CALLER, SegmentKind::Ack, 0)), 1, "{sent:?}");
}

/// When the channel has the last of `bytes` bytes over this path.
fn time_by_channel(path: &PathSpec, bytes: usize) -> Duration {
    let chunks = vec![vec![1; bytes / 10]; 10];
    let run = run(Caller::new().sending(chunks), Caller::new(), [path.clone(), path.clone()]);
    assert_eq!(run.transport(LISTENER).received.len(), bytes);
    run.transport(LISTENER).when(Told::Ended(ChannelEnd::Finished)).expect("it ended") - Instant::ZERO
}

/// When a TCP source knows that the last of `bytes` bytes has arrived.
fn time_by_source(path: &PathSpec, bytes: usize) -> Duration {
    let mut graph = Graph::new(2);
    graph.duplex(0, 1, path);
    let flow = graph.next_flow();
    let config = SenderConfig { bytes: Some(bytes as u64), ..sender_config() };
    let window = || "reno".parse::<Spec>().expect("it is a controller").build(0);
    graph.add(0, 9, flow, Box::new(TcpSource::new(graph.address(1, 9), Instant::ZERO, config, window)));
    graph.add(1, 9, flow, Box::new(TcpSink::new(receiver_config())));
    let mut world = graph.start(5);
    world.run_for(Duration::from_secs(600));
    world.agent(0).finished_at().expect("it is done") - Instant::ZERO
}

#[test]
fn a_channel_is_as_fast_as_other_tcp_on_the_same_path() {
    let paths = [
        clean(),
        PathSpec { queue: QueueSize::Packets(50), ..clean() },
        PathSpec { loss: Some(LossSpec::Periodic(Periodic::every(500))), lossless_below: 100, ..clean() },
    ];
    for path in paths {
        let [channel, source] = [time_by_channel, time_by_source].map(|time| time(&path, 20_000_000));
        let ratio = channel.as_secs_f64() / source.as_secs_f64();
        assert!((0.97..1.03).contains(&ratio), "{channel:?} and {source:?} on {path:?}");
    }
}

fn hash(seed: u64) -> TraceHash {
    let caller = Caller::new().sending(chunks());
    let mut run = Pair::new(caller, Caller::new()).path(lossy()).seed(seed).start_with([Idle, Idle]);
    open(&mut run);
    run.run_for(Duration::from_secs(600));
    run.trace_hash()
}

#[test]
fn equal_seeds_give_equal_traces_of_a_channel() {
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn the_bytes_of_a_channel_are_in_its_trace() {
    let hash = |byte| {
        let chunk = vec![byte; 100];
        run(Caller::new().sending([chunk]), Caller::new(), [clean(), clean()]).trace_hash()
    };
    assert_ne!(hash(1), hash(2));
}
