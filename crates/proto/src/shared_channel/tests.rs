//! A channel with a bulk of trains, and with a scripted far end.

use core::net::SocketAddr;

use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::probe::{Acknowledge, Counts, Kind, Probe};

use super::*;
use crate::event::Event;

/// Sends trains of 44 datagrams as long as somebody asks.
#[derive(Debug, Default)]
struct Greedy {
    received: usize,
}

const PEER: ([u8; 4], u16) = ([10, 0, 0, 2], 9);
const TRAIN: usize = 44;
const DATAGRAM: usize = 1_472;

impl Transport for Greedy {
    fn handle_datagrams(&mut self, _: Instant, _: Instant, _: impl Into<AddressPair>, bytes: &mut [u8], _: usize) {
        self.received += bytes.len();
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit<'a>(&'a mut self, _: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        scratch.cleared().resize(TRAIN * DATAGRAM, 0);
        Some(Transmit::between(SocketAddr::from(PEER).into(), DATAGRAM, scratch.bytes()))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(Instant::ZERO)
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

fn at(micros: u64) -> Instant {
    Instant::from_nanos(1_000_000_000) + Duration::from_micros(micros)
}

/// A shared channel with its bulk.
#[derive(Default)]
struct Channel {
    bulk: Greedy,
    shared: SharedChannel,
}

impl Channel {
    fn handle(&mut self, now: Instant, bytes: &mut [u8]) {
        self.shared.handle_datagrams(&mut self.bulk, (now, now), SocketAddr::from(PEER).into(), bytes, 80);
    }

    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        self.shared.poll_transmit(&mut self.bulk, now, scratch)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.shared.poll_timeout(&self.bulk)
    }
}

fn channel() -> Channel {
    let mut channel = Channel::default();
    let config = StableConfig::new(Rate::from_megabits_per_second(1));
    let path = ControlPath::Plain(SocketAddr::from(PEER));
    channel.shared.begin(&mut channel.bulk, at(0), path, (config, 7));
    channel
}

/// Drains the channel. Gives the datagrams of the stream and their numbers, and counts those of the bulk.
fn drain(channel: &mut Channel, now: Instant) -> (Vec<Probe>, usize) {
    let (mut batch, mut probes, mut bulk) = (Batch::new(), Vec::new(), 0);
    for _ in 0..1_000 {
        let Some(transmit) = channel.poll_transmit(now, &mut batch) else { return (probes, bulk) };
        for datagram in transmit.datagrams() {
            match is_probe(datagram) {
                true => probes.push(Probe::decode(datagram).unwrap()),
                false => bulk += 1,
            }
        }
    }
    panic!("a channel with a ceiling sends without end")
}

fn answer(probe: &Probe) -> Vec<u8> {
    let mut bytes = Vec::new();
    Probe { kind: Kind::Acknowledgement(Counts::default()), ..*probe }.encode(&mut bytes);
    bytes
}

#[test]
fn without_a_control_stream_everything_passes_as_it_is() {
    let mut channel = Channel::default();
    let mut batch = Batch::new();
    for _ in 0..3 {
        let transmit = channel.poll_transmit(at(0), &mut batch).unwrap();
        assert_eq!((transmit.bytes.len(), transmit.segment_size), (TRAIN * DATAGRAM, DATAGRAM));
    }
    assert_eq!((channel.poll_timeout(), channel.shared.ceiling(at(0))), (Some(Instant::ZERO), None));
    let probe =
        Probe { kind: Kind::Data { group: 1, acknowledge: Acknowledge::Each }, session: 7, number: 0, clock: 0 };
    channel.handle(at(1), &mut answer(&probe));
    assert_eq!(channel.bulk.received, 80, "an answer without a stream is the endpoint's to refuse");
}

#[test]
fn datagrams_of_the_stream_leave_before_those_of_the_bulk() {
    let mut channel = channel();
    let mut batch = Batch::new();
    assert!(is_probe(channel.poll_transmit(at(0), &mut batch).unwrap().bytes));
    let (_, bulk) = drain(&mut channel, at(0));
    assert!((1..TRAIN).contains(&bulk), "then one burst of the bulk: {bulk}");
    // The next pair is due in the middle of the train that waits.
    let due = at(100_000);
    assert!(channel.shared.shaper.is_holding());
    assert!(is_probe(channel.poll_transmit(due, &mut batch).unwrap().bytes));
}

#[test]
fn the_bulk_leaves_at_the_rate_of_the_ceiling_and_in_short_bursts() {
    let mut channel = channel();
    let (mut now, mut bits) = (at(0), 0.0);
    while now < at(90_000) {
        let (_, bulk) = drain(&mut channel, now);
        let burst = channel.shared.ceiling(now).unwrap().burst.as_secs_f64();
        let most = 1.0 + burst * channel.shared.ceiling(now).unwrap().rate.unwrap().bits_per_second() as f64 / 12_000.0;
        assert!(bulk as f64 <= most, "{bulk} of {most}");
        bits += bulk as f64 * 12_000.0;
        now = channel.poll_timeout().unwrap().max(now);
        channel.shared.apply_ceiling(now);
    }
    assert!((bits / 0.09 / 76.8e6 - 1.0).abs() < 0.02, "{bits}");
}

#[test]
fn a_stream_that_nobody_answers_lifts_the_ceiling() {
    let mut channel = channel();
    drain(&mut channel, at(0));
    assert!(channel.shared.ceiling(at(0)).unwrap().rate.is_some());
    let later = at(3_100_000);
    channel.shared.apply_ceiling(later);
    assert_eq!(channel.shared.ceiling(later).unwrap().rate, None);
    let mut batch = Batch::new();
    let mut bulk = 0;
    for _ in 0..50 {
        bulk += channel.poll_transmit(later, &mut batch).unwrap().datagrams().filter(|one| !is_probe(one)).count();
    }
    assert!(bulk > 40 * TRAIN, "{bulk}");
}

#[test]
fn the_end_of_the_stream_frees_the_bulk_and_loses_no_datagram() {
    let mut channel = channel();
    let (_, first) = drain(&mut channel, at(0));
    assert!(channel.shared.shaper.is_holding());
    channel.shared.end(&mut channel.bulk);
    assert_eq!(channel.poll_timeout(), Some(Instant::ZERO));
    let mut batch = Batch::new();
    let rest = channel.poll_transmit(at(1), &mut batch).unwrap().datagrams().count();
    assert_eq!((first + rest) % TRAIN, 0, "the rest of the train that waited");
    assert_eq!(channel.poll_transmit(at(1), &mut batch).unwrap().datagrams().count(), TRAIN);
    assert!(channel.shared.control().is_none() && channel.shared.ceiling(at(1)).is_none());
}

/// The bottleneck of a channel: datagrams of 1500 bytes wait for those before them.
struct Bottleneck {
    /// Bit/s.
    rate: f64,
    round_trip: Duration,
    free: Instant,
    /// When each answer comes.
    answers: Vec<(Instant, Probe)>,
    delays: Vec<Duration>,
}

impl Bottleneck {
    fn take(&mut self, now: Instant, probes: &[Probe], bulk: usize) {
        for &probe in probes {
            self.free = self.free.max(now) + Duration::from_secs_f64(12_000.0 / self.rate);
            self.answers.push((self.free + self.round_trip, probe));
            self.delays.push(self.free - now);
        }
        self.free = self.free.max(now) + Duration::from_secs_f64(12_000.0 * bulk as f64 / self.rate);
    }
}

/// Runs a greedy bulk beside a stream. Gives the bulk's share of the rate and the waits of the last half.
fn run(rate: f64, round_trip: Duration, time: Duration) -> (f64, Vec<Duration>) {
    let mut channel = channel();
    let mut path = Bottleneck { rate, round_trip, free: at(0), answers: Vec::new(), delays: Vec::new() };
    let (mut now, end) = (at(0), at(0) + time);
    let (mut sent, mut seen) = (0, None);
    while now < end {
        while path.answers.first().is_some_and(|(due, _)| *due <= now) {
            let (_, probe) = path.answers.remove(0);
            channel.handle(now, &mut answer(&probe));
        }
        channel.shared.apply_ceiling(now);
        let (probes, bulk) = drain(&mut channel, now);
        path.take(now, &probes, bulk);
        if seen.is_none() && now >= at(0) + time / 2 {
            seen = Some((now, path.delays.len()));
        }
        sent += if seen.is_some() { bulk } else { 0 };
        let next = earliest(channel.poll_timeout(), path.answers.first().map(|(due, _)| *due));
        now = next.unwrap().max(now + Duration::from_nanos(1));
    }
    let (since, delays) = seen.unwrap();
    (sent as f64 * 12_000.0 / (now - since).as_secs_f64() / rate, path.delays.split_off(delays))
}

#[test]
fn the_ceiling_finds_the_capacity_and_leaves_no_queue() {
    for (rate, millis) in [(1e9, 11), (1e8, 50), (5e8, 2)] {
        finds_the_capacity(rate, millis, 20);
    }
}

#[test]
fn the_ceiling_finds_the_capacity_of_a_slow_path() {
    finds_the_capacity(2e7, 20, 60);
}

/// In the second half of so many seconds.
fn finds_the_capacity(rate: f64, millis: u64, seconds: u64) {
    let round_trip = Duration::from_millis(millis);
    let (share, mut delays) = run(rate, round_trip, Duration::from_secs(seconds));
    delays.sort_unstable();
    let control = 1e6 * 1_500.0 / 1_472.0 / rate;
    assert!(share > 0.98 * (1.0 - control) && share < 1.0, "{rate} {millis}: {share}");
    let most = delays[delays.len() * 99 / 100];
    let tolerated = round_trip.mul_f64(0.01).max(Duration::from_secs_f64(24_000.0 / rate));
    assert!(most < tolerated * 3, "{rate} {millis}: {most:?} of {tolerated:?}");
}
