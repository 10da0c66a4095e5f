//! A control stream beside a bulk transfer on one channel, in virtual time.

use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::probe::StableConfig;
use farhaul_proto::{Config, Entropy, Mode, Stats, controller_factory};
use farhaul_protocols::Protocol;
use farhaul_sim::agent::bulk::{BulkReceiver, BulkSender};
use farhaul_sim::agent::shared::{SharedSink, SharedSource};
use farhaul_sim::topology::graph::Graph;
use farhaul_sim::{Agent, TransportAgent, World};
use farhaul_units::{Duration, Instant, Rate, Rng};

/// A path, and what shares it.
#[derive(Clone, Debug)]
struct Case {
    protocol: &'static str,
    /// Bit/s.
    rate: u64,
    round_trip: Duration,
    /// Bandwidth-delay products.
    queue: f64,
    loss: f64,
    /// Bit/s of the control stream.
    target: u64,
    /// When the bulk begins.
    bulk_begins: Duration,
    /// When the stream begins.
    control_begins: Duration,
    seed: u64,
}

impl Case {
    /// The channel of the paper.
    fn new(protocol: &'static str, seed: u64) -> Self {
        Self {
            protocol,
            rate: 1_000_000_000,
            round_trip: Duration::from_millis(11),
            queue: 1.0,
            loss: 0.0,
            target: 1_000_000,
            bulk_begins: Duration::from_secs(1),
            control_begins: Duration::ZERO,
            seed,
        }
    }

    fn path(&self) -> PathSpec {
        let packets = self.queue * self.rate as f64 * self.round_trip.as_secs_f64() / 12_000.0;
        PathSpec {
            rate: Some(Rate::from_bits_per_second(self.rate)),
            delay: self.round_trip / 2,
            // The ceiling tolerates two. A queue without room for more loses packets of the stream whatever the ceiling.
            queue: QueueSize::Packets(packets.max(4.0) as u32),
            loss: (self.loss > 0.0).then_some(LossSpec::Bernoulli(self.loss)),
            lossless_below: 100,
            ..PathSpec::default()
        }
    }

    fn world(&self) -> World<dyn Agent> {
        let mut graph = Graph::new(2);
        graph.duplex(0, 1, &self.path());
        let protocol: Protocol = self.protocol.parse().expect("a protocol of the registry");
        let endpoint = |seed: u64| {
            let default = Config::default();
            let controller = protocol.controller().map_or(default.controller, controller_factory);
            let long = Duration::from_secs(3_600);
            let config = Config {
                send_buffer: 1 << 28,
                recv_buffer: 1 << 28,
                peer_timeout: long,
                controller,
                max_flow_window: 1_000_000,
                ..Config::default()
            };
            protocol.endpoint(config, Entropy { cookie_key: [seed as u8; 16], seed })
        };
        let numbering = protocol.entry().numbering;
        let (caller, mut listener) = (endpoint(2 * self.seed), endpoint(2 * self.seed + 1));
        listener.listen(Mode::Stream).expect("every protocol has streams");
        let to = graph.address(1, 9);
        let sender = BulkSender::new(to, Instant::ZERO + self.bulk_begins);
        let bulk = TransportAgent::new(caller, sender).numbering(numbering);
        let stable = StableConfig::new(Rate::from_bits_per_second(self.target));
        let times = (Instant::ZERO + self.control_begins, Instant::ZERO + Duration::from_secs(3_600));
        let flow = graph.next_flow();
        graph.add(0, 9, flow, Box::new(SharedSource::new(bulk, to, stable, times, self.seed)));
        let sink = TransportAgent::new(listener, BulkReceiver::new()).numbering(numbering);
        graph.add(1, 9, flow, Box::new(SharedSink::new(sink)));
        graph.start(self.seed)
    }

    /// Figures of the time from `from` to `to`.
    fn run(&self, from: Duration, to: Duration) -> Figures {
        let mut world = self.world();
        world.run_until(Instant::ZERO + from);
        let before = Look::at(&world);
        world.run_until(Instant::ZERO + to);
        before.until(&Look::at(&world), (to - from).as_secs_f64(), self)
    }
}

/// Counters at a moment.
struct Look {
    received: Stats,
    control: Stats,
    control_received: Stats,
}

impl Look {
    fn at(world: &World<dyn Agent>) -> Self {
        let stats = |agent: usize| {
            let mut stats = Vec::new();
            world.agent(agent).sample(world.now(), &mut stats);
            stats.pop().map(|(_, stats)| stats).unwrap_or_default()
        };
        let control = |agent: usize| world.agent(agent).control(world.now()).unwrap_or_default();
        Self { received: stats(1), control: control(0), control_received: control(1) }
    }

    fn until(&self, later: &Self, seconds: f64, case: &Case) -> Figures {
        let rate =
            |first: &Stats, last: &Stats| (last.totals.bytes_read - first.totals.bytes_read) as f64 * 8.0 / seconds;
        let moments = |stats: &Stats| {
            let count = stats.totals.acks_received as f64;
            let (mean, deviation) = (stats.rtt.as_secs_f64(), stats.rtt_var.as_secs_f64());
            (count, count * mean, (count - 1.0).max(0.0) * deviation * deviation + count * mean * mean)
        };
        let (first, last) = (moments(&self.control), moments(&later.control));
        let count = last.0 - first.0;
        let mean = (last.1 - first.1) / count;
        let deviation = ((last.2 - first.2) / count - mean * mean).max(0.0).sqrt();
        let wire = case.target as f64 * 1_500.0 / 1_472.0;
        Figures {
            target: rate(&self.control_received, &later.control_received) / case.target as f64,
            jitter: deviation / mean,
            bulk: rate(&self.received, &later.received) / (case.rate as f64 - wire),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Figures {
    /// Goodput of the control stream as a share of its target.
    target: f64,
    /// Standard deviation of the control stream's delay as a share of its mean.
    jitter: f64,
    /// Goodput of the bulk as a share of the capacity that the control stream leaves, headers included.
    bulk: f64,
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Checks the promise: the target within 2 %, and a jitter of at most 2 % of the delay. The bulk has at least 95 % of the
/// rest, its headers counted against it.
fn check(case: &Case, from: u64, to: u64) {
    let figures = case.run(seconds(from), seconds(to));
    assert!((figures.target - 1.0).abs() <= 0.02, "{case:?}: {figures:?}");
    assert!(figures.jitter <= 0.02, "{case:?}: {figures:?}");
    assert!(figures.bulk >= 0.95, "{case:?}: {figures:?}");
}

#[test]
fn beside_each_bulk_the_stream_keeps_target_and_jitter() {
    for protocol in ["hurricane", "tsunami", "rbudp", "fobs", "udt"] {
        check(&Case { rate: 200_000_000, ..Case::new(protocol, 101) }, 8, 16);
    }
}

#[test]
fn on_other_channels_too() {
    let ms = Duration::from_millis;
    for (rate, round_trip, queue) in [(100, ms(50), 0.1), (500, ms(2), 2.0), (50, ms(100), 1.0)] {
        check(&Case { rate: rate * 1_000_000, round_trip, queue, ..Case::new("hurricane", 102) }, 10, 18);
    }
}

#[test]
fn a_queue_of_eight_packets_starves_no_bulk() {
    let round_trip = Duration::from_millis(2);
    // Before, the stream recovers from what the start of the bulk cost it.
    check(&Case { rate: 500_000_000, round_trip, queue: 0.1, ..Case::new("hurricane", 201) }, 20, 40);
}

#[test]
fn random_loss_is_no_queue() {
    for loss in [1e-4, 1e-2] {
        check(&Case { rate: 200_000_000, loss, ..Case::new("hurricane", 103) }, 10, 40);
    }
}

/// A stream that begins while `protocol` fills the queue.
fn check_stream_in_the_middle_of(protocol: &'static str) {
    let case = Case {
        rate: 200_000_000,
        queue: 2.0,
        bulk_begins: Duration::ZERO,
        control_begins: seconds(4),
        ..Case::new(protocol, 104)
    };
    check(&case, 10, 18);
}

#[test]
fn a_stream_that_begins_in_the_middle_of_a_bulk_empties_its_queue() {
    check_stream_in_the_middle_of("udt");
}

#[test]
fn a_stream_that_begins_in_the_middle_of_a_hurricane_empties_its_queue() {
    check_stream_in_the_middle_of("hurricane");
}

#[test]
fn neither_starves_the_other_on_random_channels() {
    let mut rng = Rng::new(105);
    for seed in 0..10 {
        let case = Case {
            rate: (20e6 * libm::pow(10.0, rng.unit())) as u64,
            round_trip: Duration::from_secs_f64(0.002 * libm::pow(50.0, rng.unit())),
            queue: 0.1 * libm::pow(20.0, rng.unit()),
            loss: if rng.chance(0.5) { 0.0 } else { 1e-2 * rng.unit() },
            target: 500_000,
            ..Case::new(["hurricane", "tsunami", "udt"][seed % 3], seed as u64)
        };
        let figures = case.run(seconds(10), seconds(25));
        println!("{case:?}\n    {figures:?}");
        assert!(figures.target >= 0.9, "{case:?}: {figures:?}");
        assert!(figures.bulk >= 0.5, "{case:?}: {figures:?}");
    }
}
