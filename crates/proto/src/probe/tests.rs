//! Measured streams over a path in virtual time: a link of 1 Gbit/s with an RTT of 11 ms, as in paper:ornl.

use std::collections::VecDeque;

use core::net::SocketAddr;
use farhaul_units::{Duration, Instant, Rate, Rng};

use super::{Blaster, BlasterConfig, Probing, Responder, StableConfig, StableStream};
use crate::transport::Batch;

const ONE_WAY: Duration = Duration::from_micros(5_500);
const LINK: f64 = 1e9;
/// UDP payload of a packet of 9000 bytes.
const JUMBO: u16 = 8_972;

/// A responder behind a path.
struct Path {
    now: Instant,
    free: Instant,
    loss: f64,
    rng: Rng,
    responder: Responder,
    to_responder: VecDeque<(Instant, Vec<u8>)>,
    to_sender: VecDeque<(Instant, Vec<u8>)>,
}

fn near() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 5_000))
}

fn remote() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 2], 9_000))
}

impl Path {
    fn new(loss: f64, seed: u64) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let (to_responder, to_sender) = (VecDeque::new(), VecDeque::new());
        Self { now, free: now, loss, rng: Rng::new(seed), responder: Responder::new(), to_responder, to_sender }
    }

    fn send(&mut self, bytes: &[u8], size: usize) {
        for datagram in bytes.chunks(size) {
            let time = (datagram.len() + 28) as f64 * 8.0 / LINK;
            self.free = self.free.max(self.now) + Duration::from_secs_f64(time);
            if self.rng.unit() >= self.loss {
                self.to_responder.push_back((self.free + ONE_WAY, datagram.to_vec()));
            }
        }
    }

    /// Moves time on to the next event, at most to `limit`. Returns the datagrams for the sender.
    fn advance(&mut self, limit: Option<Instant>) -> Vec<Vec<u8>> {
        let next = [limit, self.to_responder.front().map(|(at, _)| *at), self.to_sender.front().map(|(at, _)| *at)];
        self.now = next.into_iter().flatten().min().unwrap_or(self.now).max(self.now);
        while self.to_responder.front().is_some_and(|(at, _)| *at <= self.now) {
            let Some((_, datagram)) = self.to_responder.pop_front() else { break };
            self.responder.handle_datagram(self.now, near(), &datagram);
            let mut answer = Vec::new();
            while self.responder.poll_answer(&mut answer).is_some() {
                // Acknowledgements may be lost as well.
                if self.rng.unit() >= self.loss {
                    self.to_sender.push_back((self.now + ONE_WAY, std::mem::take(&mut answer)));
                }
                answer.clear();
            }
        }
        let mut arrived = Vec::new();
        while self.to_sender.front().is_some_and(|(at, _)| *at <= self.now) {
            arrived.extend(self.to_sender.pop_front().map(|(_, datagram)| datagram));
        }
        arrived
    }
}

/// Runs a stream. Returns goodput and source rate in bit/s after each burst, by the time since the start.
fn stable(config: StableConfig, loss: f64, time: Duration, seed: u64) -> Vec<(Duration, f64, f64)> {
    let mut path = Path::new(loss, seed);
    let start = path.now;
    let mut stream = StableStream::new(config, remote(), 7, start);
    let (mut batch, mut points, mut steps) = (Batch::new(), Vec::new(), 0);
    while path.now - start < time {
        while let Some(transmit) = stream.poll_transmit(path.now, &mut batch) {
            path.send(transmit.bytes, transmit.segment_size);
        }
        for datagram in path.advance(stream.poll_timeout()) {
            assert!(stream.handle_datagram(path.now, remote(), &datagram));
        }
        let figures = stream.figures(path.now);
        if figures.steps > steps {
            steps = figures.steps;
            let [goodput, rate] = [figures.goodput, figures.rate].map(|rate| rate.bits_per_second() as f64);
            points.push((path.now - start, goodput, rate));
        }
    }
    points
}

#[test]
fn the_goodput_settles_at_the_target_whatever_the_window() {
    for target in [1e6, 10e6] {
        for window in [2, 6, 12] {
            let slow = window == 12 && target == 1e6;
            let from = Duration::from_secs(if slow { 30 } else { 10 });
            let config = StableConfig {
                datagram: JUMBO,
                window,
                ..StableConfig::new(Rate::from_bits_per_second(target as u64))
            };
            let points = stable(config, 0.0, Duration::from_secs(60), 1);
            // Without loss each burst arrives as it left. The measured goodput looks back over eight bursts.
            let back = Duration::from_secs_f64(8.0 * f64::from(window) * f64::from(JUMBO) * 8.0 / target);
            let off = |value: f64| (value / target - 1.0).abs();
            let late = |after: Duration| points.iter().filter(move |(at, ..)| *at >= from + after);
            let rate = late(Duration::ZERO).map(|(.., rate)| off(*rate)).fold(0.0, f64::max);
            let goodput = late(back).map(|(_, goodput, _)| off(*goodput)).fold(0.0, f64::max);
            assert!(rate <= 0.02 && goodput <= 0.02, "target {target}, window {window}: {rate} {goodput}");
        }
    }
}

#[test]
fn even_spacing_settles_at_the_same_goodput() {
    for window in [2, 6] {
        let target = Rate::from_bits_per_second(10_000_000);
        let config = StableConfig { datagram: JUMBO, window, spaced: true, ..StableConfig::new(target) };
        let points = stable(config, 0.0, Duration::from_secs(20), 1);
        let late = points.iter().filter(|(at, ..)| *at >= Duration::from_secs(10));
        let worst = late.map(|(_, goodput, _)| (goodput / 10e6 - 1.0).abs()).fold(0.0, f64::max);
        assert!(worst <= 0.02, "window {window}: {worst}");
    }
}

#[test]
fn one_per_cent_of_loss_does_not_move_the_mean_goodput() {
    for (target, window) in [(1e6, 2), (10e6, 2), (10e6, 6), (10e6, 12)] {
        for seed in 1..4 {
            let config = StableConfig {
                datagram: JUMBO,
                window,
                ..StableConfig::new(Rate::from_bits_per_second(target as u64))
            };
            let points = stable(config, 0.01, Duration::from_secs(60), seed);
            let late: Vec<f64> = points
                .iter()
                .filter(|(at, ..)| *at >= Duration::from_secs(30))
                .map(|(_, goodput, _)| *goodput)
                .collect();
            let mean = late.iter().sum::<f64>() / late.len() as f64;
            assert!((mean / target - 1.0).abs() <= 0.02, "target {target}, window {window}, seed {seed}: {mean}");
        }
    }
}

#[test]
fn a_stream_reports_its_convergence_and_its_delay() {
    let mut path = Path::new(0.0, 1);
    let start = path.now;
    let config = StableConfig { datagram: JUMBO, ..StableConfig::new(Rate::from_bits_per_second(10_000_000)) };
    let mut stream = StableStream::new(config, remote(), 7, start);
    let mut batch = Batch::new();
    while path.now - start < Duration::from_secs(20) {
        while let Some(transmit) = stream.poll_transmit(path.now, &mut batch) {
            path.send(transmit.bytes, transmit.segment_size);
        }
        for datagram in path.advance(stream.poll_timeout()) {
            stream.handle_datagram(path.now, remote(), &datagram);
        }
    }
    let figures = stream.figures(path.now);
    let converged = figures.converged_after.expect("it has converged");
    assert!(converged >= Duration::from_secs(2) && converged < Duration::from_secs(10), "{converged:?}");
    assert!(figures.delay.as_secs_f64() > 0.011 && figures.delay.as_secs_f64() < 0.0113, "{:?}", figures.delay);
    assert!(stream.delays().jitter() < 0.02);
    assert!(!stream.is_alone(path.now) && stream.is_alone(path.now + Duration::from_secs(4)));
    assert!(!stream.handle_datagram(path.now, near(), &[0; 80]), "a stranger's answer");
    stream.stop();
    assert_eq!((stream.poll_timeout(), stream.poll_transmit(path.now, &mut batch)), (None, None));
}

#[test]
fn a_stream_whose_peer_is_gone_sends_at_its_target_at_most() {
    let target = Rate::from_megabits_per_second(10);
    let mut path = Path::new(0.0, 1);
    let start = path.now;
    let config = StableConfig { datagram: JUMBO, ..StableConfig::new(target) };
    let mut stream = StableStream::new(config, remote(), 7, start);
    let (mut batch, mut until) = (Batch::new(), [0; 2]);
    for (index, end) in [20, 30].map(Duration::from_secs).into_iter().enumerate() {
        while path.now - start < end {
            if path.now - start >= Duration::from_secs(5) {
                path.loss = 1.0;
            }
            while let Some(transmit) = stream.poll_transmit(path.now, &mut batch) {
                path.send(transmit.bytes, transmit.segment_size);
            }
            for datagram in path.advance(stream.poll_timeout()) {
                assert!(stream.handle_datagram(path.now, remote(), &datagram));
            }
        }
        until[index] = stream.figures(path.now).sent;
    }
    assert!(stream.figures(path.now).rate <= target);
    let bits = (until[1] - until[0]) * u64::from(JUMBO) * 8;
    assert!(bits as f64 <= 10.1 * target.bits_per_second() as f64, "{bits} bits in ten seconds");
}

#[test]
fn the_application_fills_the_payload_of_each_datagram() {
    let start = Instant::from_nanos(1);
    let mut stream = StableStream::new(StableConfig::new(Rate::from_bits_per_second(1_000_000)), remote(), 7, start);
    stream.fill_with(|number, payload| payload[..8].copy_from_slice(&(number + 40).to_be_bytes()));
    let (mut responder, mut batch) = (Responder::new(), Batch::new());
    let transmit = stream.poll_transmit(start, &mut batch).expect("a burst is due");
    let mut numbers = Vec::new();
    for datagram in transmit.bytes.chunks(transmit.segment_size) {
        let probe = responder.handle_datagram(start, near(), datagram).expect("it counts");
        let payload = super::payload(datagram);
        assert!(payload[8..].iter().all(|byte| *byte == 0) && payload.len() == 1_440);
        numbers.push((probe.number, payload[7]));
    }
    assert_eq!((numbers, stream.payload_len()), (vec![(0, 40), (1, 41)], 1_440));
}

/// Runs one point of a profile.
fn point(config: BlasterConfig, loss: f64) -> Blaster {
    let mut path = Path::new(loss, 3);
    let mut blaster = Blaster::new(config, remote(), 9, path.now);
    let mut batch = Batch::new();
    while blaster.result().is_none() {
        while let Some(transmit) = blaster.poll_transmit(path.now, &mut batch) {
            path.send(transmit.bytes, transmit.segment_size);
        }
        for datagram in path.advance(blaster.poll_timeout()) {
            blaster.handle_datagram(path.now, remote(), &datagram);
        }
    }
    blaster
}

const POINT: BlasterConfig = BlasterConfig {
    datagram: 1_472,
    window: 10,
    sleep: Duration::from_micros(500),
    spaced: false,
    messages: false,
    time: Duration::from_secs(2),
};

#[test]
fn a_point_measures_rate_goodput_and_loss() {
    for spaced in [false, true] {
        let figures = point(BlasterConfig { spaced, ..POINT }, 0.01).result().flatten().expect("the peer answers");
        let expected = 10.0 * 1_472.0 * 8.0 / 0.000_5;
        let within = |rate: Rate, of: f64| (rate.bits_per_second() as f64 / of - 1.0).abs() < 0.01;
        assert!(within(figures.rate, expected), "{figures:?}");
        assert!(within(figures.goodput, expected * 0.99), "{figures:?}");
        assert!((figures.loss - 0.01).abs() < 0.002 && figures.late == 0, "{figures:?}");
    }
}

#[test]
fn the_delay_of_a_message_is_that_of_its_last_datagram() {
    // 10 kB in seven datagrams.
    let config = BlasterConfig { window: 7, sleep: Duration::from_millis(20), messages: true, ..POINT };
    let blaster = point(config, 0.0);
    let wire = Duration::from_secs_f64(7.0 * 1_500.0 * 8.0 / LINK);
    let mean = blaster.delays().mean();
    assert!(mean.abs_diff(ONE_WAY * 2 + wire) < Duration::from_micros(20), "{mean:?}");
    assert!(blaster.delays().count() >= 99, "{}", blaster.delays().count());
}

#[test]
fn a_peer_that_never_answers_is_no_result() {
    let mut blaster = Blaster::new(POINT, remote(), 9, Instant::from_nanos(1));
    let (mut now, mut batch) = (Instant::from_nanos(1), Batch::new());
    while let Some(next) = blaster.poll_timeout() {
        now = next.max(now);
        while blaster.poll_transmit(now, &mut batch).is_some() {}
    }
    assert_eq!(blaster.result(), Some(None));
}
