//! Endpoints, paths and exchanges for the tests of this folder.

use std::ops::Range;

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, Stats, Streams, controller_factory};
use farhaul_protocols::udt2004::{self, Options, default_config};
use farhaul_sim::measure::throughput::goodput;
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_sim::{Simulation, Workload};
use farhaul_units::{Duration, Instant, Rate, Rng};

/// Bytes sent by each side of an exchange.
pub(crate) const LENGTH: u64 = 2 << 20;

/// Longest virtual time of an exchange, on any path.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);

/// An endpoint with randomness derived from `seed`.
pub(crate) fn endpoint(seed: u64, config: Config) -> Endpoint {
    udt2004::endpoint(Options::default(), config, Entropy { cookie_key: [seed as u8; 16], seed })
}

/// The same, but it accepts connections.
pub(crate) fn listener(seed: u64, config: Config) -> Endpoint {
    let mut endpoint = endpoint(seed, config);
    endpoint.listen(Mode::Stream).expect("the protocol has streams");
    endpoint
}

/// The paper's settings with packets that leave one by one, as in its simulations.
pub(crate) fn paper() -> Config {
    Config { burst_time: Duration::ZERO, ..default_config() }
}

/// The same with other settings of the controller.
pub(crate) fn paper_with(controller: &str) -> Config {
    let spec = controller.parse().expect("the tests name controllers that exist");
    Config { controller: controller_factory(spec), ..paper() }
}

/// Settings with buffers that an exchange fills several times.
pub(crate) fn small_buffers() -> Config {
    Config { recv_buffer: 1 << 20, send_buffer: 1 << 20, ..default_config() }
}

/// A caller and a listener that accepts, both with `config`.
pub(crate) fn pair(seed: u64, config: impl Fn() -> Config) -> Pair<Endpoint> {
    Pair::new(endpoint(2 * seed, config()), listener(2 * seed + 1, config())).seed(seed)
}

/// `megabits` per second and an RTT of `round_trip` milliseconds, with a queue of `packets`.
pub(crate) fn path(megabits: u64, round_trip: u64, packets: u32) -> PathSpec {
    PathSpec {
        rate: Some(Rate::from_megabits_per_second(megabits)),
        delay: Duration::from_millis(round_trip) / 2,
        queue: QueueSize::Packets(packets),
        ..PathSpec::default()
    }
}

/// 100 Mbit/s and an RTT of 20 ms, with a queue of about one bandwidth-delay product.
pub(crate) fn clean_path() -> PathSpec {
    path(100, 20, 170)
}

/// A path of random rate, delay and queue: 20 to 500 Mbit/s, 1 to 40 ms each way, 60 to 500 packets.
pub(crate) fn some_path(rng: &mut Rng) -> PathSpec {
    PathSpec {
        rate: Some(Rate::from_megabits_per_second(20 + rng.below(480))),
        delay: Duration::from_micros(1_000 + rng.below(39_000)),
        queue: QueueSize::Packets(60 + rng.below(440) as u32),
        ..PathSpec::default()
    }
}

/// Both sides send [`LENGTH`] bytes at once, over paths that `impair` draws for each seed and direction. Each receives
/// the other's data byte by byte.
pub(crate) fn exchanges_arrive_whole(seeds: Range<u64>, impair: impl Fn(&mut Rng) -> PathSpec) {
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let (up, down) = (impair(&mut rng), impair(&mut rng));
        let run = exchange(pair(seed, small_buffers).up(up.clone()).down(down.clone()));
        let missing = [run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat();
        assert!(missing.is_empty(), "seed {seed}, {} s: {missing:#?}\nup {up:?}\ndown {down:?}", run.now());
    }
}

/// Runs until both sides have everything, or give up.
pub(crate) fn exchange(pair: Pair<Endpoint>) -> Simulation<Endpoint> {
    let mut run = pair.caller(Workload::exchange(LENGTH)).listener(Workload::exchange(LENGTH)).start();
    run.run_until_done(LIMIT);
    run
}

/// The counters of a host's first connection.
pub(crate) fn stats(run: &Simulation<Endpoint>, host: usize) -> Stats {
    run.transport(host).stats(run.now(), run.flows(host)[0].id()).expect("it was not released")
}

/// Payload rate at the receiver of an endless transfer over `path` from `from` to `to` seconds, and the run.
pub(crate) fn throughput(
    config: impl Fn() -> Config,
    path: PathSpec,
    times: (u64, u64),
) -> (Rate, Simulation<Endpoint>) {
    throughput_of(pair(1, config), path, times)
}

/// The same between these ends.
pub(crate) fn throughput_of(
    pair: Pair<Endpoint>,
    path: PathSpec,
    (from, to): (u64, u64),
) -> (Rate, Simulation<Endpoint>) {
    let mut run = pair.path(path).caller(Workload::send_without_end()).start();
    run.sample_every(Duration::from_millis(100));
    run.run_for(Duration::from_secs(to));
    let id = run.flows(LISTENER)[0].id();
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let rate = goodput(run.samples().expect("asked for"), LISTENER, id, at(from), at(to)).expect("it was sampled");
    (rate, run)
}

/// Share of the link taken by `rate` of payload with its headers: utilisation in the paper's sense.
pub(crate) fn utilisation(rate: Rate, megabits: u64) -> f64 {
    rate.bits_per_second() as f64 * 1_500.0 / 1_468.0 / (megabits as f64 * 1e6)
}

/// The instant `millis` milliseconds after the start.
pub(crate) fn at_millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}
