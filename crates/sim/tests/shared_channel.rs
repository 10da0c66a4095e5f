//! A control stream beside a bulk transfer on one channel, in virtual time.

use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::probe::StableConfig;
use farhaul_proto::{Config, Entropy, Mode, Protocol, SharedChannel, Stats, controller_factory};
use farhaul_sim::agent::bulk::{BulkReceiver, BulkSender};
use farhaul_sim::agent::shared::{SharedSink, SharedSource};
use farhaul_sim::agent::source::{Sink, Source, Timing};
use farhaul_sim::topology::graph::Graph;
use farhaul_sim::{Agent, TransportAgent, World};
use farhaul_units::{Duration, Instant, Rate};

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
    /// Bit/s of traffic without any control, and its times.
    cross: Option<(u64, Duration, Duration)>,
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
            cross: None,
            seed,
        }
    }

    fn path(&self) -> PathSpec {
        let packets = self.queue * self.rate as f64 * self.round_trip.as_secs_f64() / 12_000.0;
        PathSpec {
            rate: Some(Rate::from_bits_per_second(self.rate)),
            delay: self.round_trip / 2,
            queue: QueueSize::Packets(packets.max(2.0) as u32),
            loss: (self.loss > 0.0).then_some(LossSpec::Bernoulli(self.loss)),
            lossless_below: 100,
            ..PathSpec::default()
        }
    }

    fn world(&self) -> World<Box<dyn Agent>> {
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
                ..Config::default()
            }
            .flow_window(1_000_000);
            protocol.endpoint(config, Entropy { cookie_key: [seed as u8; 16], seed })
        };
        let numbering = protocol.entry().numbering;
        let (caller, mut listener) = (endpoint(2 * self.seed), endpoint(2 * self.seed + 1));
        listener.listen(Mode::Stream).expect("every protocol has streams");
        let to = graph.address(1, 9);
        let sender = BulkSender::new(to, Instant::ZERO + self.bulk_begins);
        let bulk = TransportAgent::new(SharedChannel::new(caller), sender).numbering(numbering);
        let stable = StableConfig::new(Rate::from_bits_per_second(self.target));
        let times = (Instant::ZERO, Instant::ZERO + Duration::from_secs(3_600));
        let flow = graph.next_flow();
        graph.add(0, 9, flow, Box::new(SharedSource::new(bulk, to, stable, times, self.seed)));
        let sink = TransportAgent::new(listener, BulkReceiver::new()).numbering(numbering);
        graph.add(1, 9, flow, Box::new(SharedSink::new(sink)));
        if let Some((rate, begin, end)) = self.cross {
            let flow = graph.next_flow();
            let timing = Timing::Poisson { begin: Instant::ZERO + begin, end: Instant::ZERO + end };
            let source = Source::new(graph.address(1, 10), Rate::from_bits_per_second(rate), timing, self.seed);
            graph.add(0, 10, flow, Box::new(source));
            graph.add(1, 10, flow, Box::new(Sink::new()));
        }
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
    bulk: Stats,
    received: Stats,
    control: Stats,
    control_received: Stats,
}

impl Look {
    fn at(world: &World<Box<dyn Agent>>) -> Self {
        let stats = |agent: usize| {
            let mut stats = Vec::new();
            world.agent(agent).sample(world.now(), &mut stats);
            stats.pop().map(|(_, stats)| stats).unwrap_or_default()
        };
        let control = |agent: usize| world.agent(agent).control(world.now()).unwrap_or_default();
        Self { bulk: stats(0), received: stats(1), control: control(0), control_received: control(1) }
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
            delay: mean,
            bulk: rate(&self.received, &later.received) / (case.rate as f64 - wire),
            sent: later.bulk.totals.packets_sent - self.bulk.totals.packets_sent,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Figures {
    /// Goodput of the control stream as a share of its target.
    target: f64,
    /// Standard deviation of the control stream's delay as a share of its mean.
    jitter: f64,
    /// Its mean, seconds.
    delay: f64,
    /// Goodput of the bulk as a share of the capacity that the control stream leaves, headers included.
    bulk: f64,
    /// Packets of the bulk.
    sent: u64,
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
#[ignore]
fn table() {
    let seed: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let set = std::env::var("SET").unwrap_or("paths".into());
    let ms = Duration::from_millis;
    let mut cases = Vec::new();
    let paper = |protocol| Case::new(protocol, seed);
    match set.as_str() {
        "protocols" => {
            for protocol in ["hurricane", "tsunami", "rbudp", "fobs", "sabul", "udt"] {
                for loss in [0.0, 1e-4, 1e-2] {
                    cases.push(Case { loss, ..paper(protocol) });
                }
            }
        }
        "queues" => {
            for protocol in ["hurricane", "udt"] {
                for queue in [0.1, 0.5, 2.0] {
                    cases.push(Case { queue, ..paper(protocol) });
                }
            }
        }
        "one" => {
            let get =
                |name: &str, default: f64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
            let protocol: &'static str = Box::leak(std::env::var("P").unwrap().into_boxed_str());
            cases.push(Case {
                rate: (get("MBIT", 1000.0) * 1e6) as u64,
                round_trip: Duration::from_secs_f64(get("RTT", 11.0) / 1e3),
                queue: get("Q", 1.0),
                loss: get("LOSS", 0.0),
                target: (get("TARGET", 1.0) * 1e6) as u64,
                ..paper(protocol)
            });
        }
        _ => {
            for protocol in ["hurricane", "udt"] {
                for (rate, round_trip) in [(100_000_000, ms(50)), (500_000_000, ms(2)), (1_000_000_000, ms(100))] {
                    for queue in [0.1, 1.0, 2.0] {
                        cases.push(Case { rate, round_trip, queue, ..paper(protocol) });
                    }
                }
            }
        }
    }
    for case in cases {
        let (from, to) = (seconds(10), seconds(30));
        let f = case.run(from, to);
        println!(
            "{:10} {:5} Mbit {:4} ms queue {:3} loss {:6} seed {}: target {:.4} jitter {:6.3} % delay {:7.3} ms bulk {:.4}",
            case.protocol,
            case.rate / 1_000_000,
            case.round_trip.as_millis(),
            case.queue,
            case.loss,
            case.seed,
            f.target,
            f.jitter * 100.0,
            f.delay * 1e3,
            f.bulk
        );
    }
}
