//! Endpoints, paths and exchanges for the tests of this folder.

use std::ops::Range;

use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, udt};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_sim::{Simulation, Workload};
use farhaul_units::{Duration, Instant, Rate, Rng};

/// Bytes sent by each side of an exchange.
pub(crate) const LENGTH: u64 = 4 << 20;

/// Receive buffer in an exchange. [`LENGTH`] fills it four times.
pub(crate) const SMALL_BUFFER: u64 = 1 << 20;

/// Longest virtual time of an exchange, on any path.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);

/// An endpoint with randomness derived from `seed`.
pub(crate) fn endpoint(seed: u64, config: Config) -> Endpoint {
    udt::endpoint(config, Entropy { cookie_key: [seed as u8; 16], seed })
}

/// The same, but it accepts connections.
pub(crate) fn listener(seed: u64, config: Config) -> Endpoint {
    let mut endpoint = endpoint(seed, config);
    endpoint.listen(Mode::Stream).expect("UDT has the mode");
    endpoint
}

/// Settings with a receive buffer that an exchange fills several times.
pub(crate) fn small_buffers() -> Config {
    Config { recv_buffer: SMALL_BUFFER, send_buffer: SMALL_BUFFER, ..Config::default() }
}

/// A caller and a listener that accepts, both with `config`.
pub(crate) fn pair(seed: u64, config: fn() -> Config) -> Pair<Endpoint> {
    Pair::new(endpoint(2 * seed, config()), listener(2 * seed + 1, config())).seed(seed)
}

/// 100 Mbit/s and an RTT of 20 ms, with a queue of one bandwidth-delay product.
pub(crate) fn clean_path() -> PathSpec {
    let delay = Duration::from_millis(10);
    let rate = Some(Rate::from_megabits_per_second(100));
    PathSpec { rate, delay, queue: QueueSize::Bdp(2 * delay), ..PathSpec::default() }
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

/// Loses each packet with this probability.
pub(crate) fn random_loss(probability: f64) -> Option<LossSpec> {
    Some(LossSpec::Bernoulli(probability))
}

/// Both sides send [`LENGTH`] bytes at once, over paths that `impair` draws for each seed and direction. Each receives
/// the other's data byte by byte.
pub(crate) fn exchanges_arrive_whole(seeds: Range<u64>, impair: impl Fn(&mut Rng) -> PathSpec) {
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let (up, down) = (impair(&mut rng), impair(&mut rng));
        let run = pair(seed, small_buffers).up(up.clone()).down(down.clone());
        let run = exchange(run);
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

/// The instant `millis` milliseconds after the start.
pub(crate) fn at_millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}
