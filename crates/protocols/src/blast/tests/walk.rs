//! Random walks: two endpoints, hosts and applications whose habits, path and faults follow from one number.
//!
//! ```text
//! application ─▶ endpoint ─ datagrams: rate, queue, loss, outages, duplicates, reordering ─▶ endpoint ─▶ application
//!                    ▲◀──────────── channel: delayed, in order, sometimes held up ─────────────▶▲
//! ```
//!
//! An application writes and reads only after the event that it was promised, so a lost wake-up stops a walk. A walk ends
//! when both sides have every byte and the end of the stream. A host that wakes again and again without an effect fails.

mod habits;

use core::fmt;
use core::marker::PhantomData;
use core::net::SocketAddr;
use core::ops::Range;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use farhaul_units::{Duration, Instant, Rng};

pub(crate) use self::habits::{Habits, some_rate};

use super::testing::content;
use crate::blast::endpoint;
use crate::blast::engine::Protocol;
use farhaul_proto::channel::{ChannelEnd, ChannelOutput, Channels};
use farhaul_proto::endpoint::Endpoint;
use farhaul_proto::error::ConnectionLost;
use farhaul_proto::event::{ConnectionId, Event};
use farhaul_proto::transport::{Batch, Read, Streams, Transport};
use farhaul_proto::{Config, Entropy, Mode};

/// Virtual time in which each walk must end. The slowest path takes a tenth of it.
const LIMIT: Duration = Duration::from_secs(1_500);
/// Instants in a row without any effect, and the time in which so many show that a host is busy for nothing.
const MOST_IDLE: (u32, Duration) = (200, Duration::from_millis(20));
/// The first number of further walks.
const FURTHER: u64 = 1_000;
/// Bytes of IPv4 and UDP headers, which occupy the link.
const HEADERS: usize = 28;

/// Both ends and what lies between them.
struct Walk<P: Protocol> {
    protocol: PhantomData<P>,
    habits: Habits,
    now: Instant,
    rng: Rng,
    ends: [Endpoint; 2],
    ids: [Option<ConnectionId>; 2],
    apps: [App; 2],
    /// When the link from each side is free again.
    free: [Instant; 2],
    /// Datagrams to a side, by time and order.
    datagrams: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    order: u64,
    /// Messages to each side, and when the last of them arrives.
    messages: [VecDeque<(Instant, Message)>; 2],
    last_message: [Instant; 2],
    drained: [Option<Instant>; 2],
    /// Something was sent, read or written at this instant.
    effect: bool,
}

#[derive(Debug)]
enum Message {
    Call,
    Opened,
    Bytes(Vec<u8>),
    End(ChannelEnd),
}

/// One application.
#[derive(Debug)]
struct App {
    content: Vec<u8>,
    written: usize,
    received: Vec<u8>,
    expected: usize,
    /// The event that permits the next write and read; the time after which the application does it.
    may_write: bool,
    may_read: bool,
    write_at: Instant,
    read_at: Instant,
    connected: bool,
    finished: bool,
    ended: bool,
}

impl App {
    fn new(content: Vec<u8>, expected: usize) -> Self {
        Self {
            content,
            written: 0,
            received: Vec::new(),
            expected,
            may_write: true,
            may_read: true,
            write_at: Instant::ZERO,
            read_at: Instant::ZERO,
            connected: false,
            finished: false,
            ended: false,
        }
    }

    fn writes(&self) -> bool {
        self.written < self.content.len()
    }
}

impl fmt::Display for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (written, all) = (self.written, self.content.len());
        write!(f, "{written} of {all} written, {} of {} read", self.received.len(), self.expected)
    }
}

fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, side as u8 + 1], 9_000))
}

/// Walks with each of these numbers, and with as many more as the environment variable `FARHAUL_WALKS` said at the build. `options`
/// are those of both sides.
///
/// # Panics
/// Bytes are lost or differ, a connection ends early, or a host is busy for nothing.
pub(crate) fn walks<P: Protocol>(seeds: &[Range<u64>], options: impl Fn(&mut Rng, &mut Habits) -> P::Options) {
    let more = option_env!("FARHAUL_WALKS").and_then(|more| more.parse().ok()).unwrap_or(0);
    let mut failed = Vec::new();
    for seed in seeds.iter().cloned().flatten().chain(FURTHER..FURTHER + more) {
        let mut habits = Habits::of(seed);
        let options = options(&mut Rng::new(seed), &mut habits);
        let told = format!("walk {seed}: {habits:?} with {options:?}");
        let walk = AssertUnwindSafe(|| Walk::<P>::new(&options, habits, seed).run());
        if catch_unwind(walk).is_err() {
            println!("{told}");
            failed.push(seed);
        }
    }
    assert!(failed.is_empty(), "walks {failed:?} failed");
}

impl<P: Protocol> Walk<P> {
    fn new(options: &P::Options, habits: Habits, seed: u64) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let end = |side: usize| {
            let config = Config {
                mss: habits.mss[side],
                send_buffer: habits.buffers[side],
                recv_buffer: habits.buffers[1 - side],
                ..Config::default()
            };
            let seed = seed ^ side as u64;
            endpoint::<P>(config, options.clone(), Entropy { cookie_key: [side as u8; 16], seed })
        };
        let mut ends = [end(0), end(1)];
        ends[1].listen(Mode::Stream).unwrap();
        let app = |side: usize| App::new(content(habits.bytes[side]), habits.bytes[1 - side]);
        let apps = [app(0), app(1)];
        Self {
            protocol: PhantomData,
            habits,
            now,
            rng: Rng::new(!seed),
            ends,
            ids: [None; 2],
            apps,
            free: [now; 2],
            datagrams: BTreeMap::new(),
            order: 0,
            messages: [VecDeque::new(), VecDeque::new()],
            last_message: [now; 2],
            drained: [None; 2],
            effect: false,
        }
    }

    fn run(mut self) {
        let end = self.now + LIMIT;
        self.ids[0] = Some(self.ends[0].connect(self.now, address(1)).expect("a call"));
        let (mut idle, mut since) = (0, self.now);
        while !self.apps.iter().all(|app| app.ended) {
            self.effect = false;
            for side in 0..2 {
                if !self.sleeps(side) {
                    self.serve(side);
                }
            }
            (idle, since) = if self.effect { (0, self.now) } else { (idle + 1, since) };
            let busy = idle % MOST_IDLE.0 == 0 && idle > 0 && self.now - since < MOST_IDLE.1;
            assert!(!busy, "{idle} times nothing to do at {}: {}; {}", self.now, self.apps[0], self.apps[1]);
            if idle > 0 && idle % MOST_IDLE.0 == 0 {
                since = self.now;
            }
            assert!(self.now < end, "not done: {}; {}", self.apps[0], self.apps[1]);
            self.now = self.next_instant();
        }
    }

    fn sleeps(&self, side: usize) -> bool {
        self.awake(side, self.now) > self.now
    }

    /// When a side is awake that has something to do at `at`.
    fn awake(&self, side: usize, at: Instant) -> Instant {
        let mut at = at;
        for &(who, from, to) in &self.habits.sleeps {
            if who == side && from <= at && at < to {
                at = to;
            }
        }
        at
    }

    fn next_instant(&self) -> Instant {
        let mut next = self.now + Duration::from_secs(1);
        let mut consider = |side: usize, at: Option<Instant>| {
            if let Some(at) = at {
                next = next.min(self.awake(side, at.max(self.now)));
            }
        };
        if let Some((&(at, _), &(side, _))) = self.datagrams.first_key_value() {
            consider(side, Some(at));
        }
        for side in 0..2 {
            consider(side, self.messages[side].front().map(|(at, _)| *at));
            consider(side, self.ends[side].poll_timeout());
            consider(side, self.drained[side]);
            let app = &self.apps[side];
            let open = app.connected;
            consider(side, (open && app.may_write && app.writes()).then_some(app.write_at));
            consider(side, (open && app.may_read && !app.ended).then_some(app.read_at));
        }
        next.max(self.now + Duration::from_nanos(1))
    }

    // ---- a host, as the driver does it ----

    fn serve(&mut self, side: usize) {
        self.arrive(side);
        if self.ends[side].poll_timeout().is_some_and(|due| due <= self.now) {
            self.ends[side].handle_timeout(self.now);
        }
        self.outputs(side);
        self.apply(side);
        self.outputs(side);
    }

    fn outputs(&mut self, side: usize) {
        self.transmit(side);
        self.serve_channel(side);
        while let Some(event) = self.ends[side].poll_event() {
            self.on_event(side, event);
        }
    }

    fn on_event(&mut self, side: usize, event: Event) {
        self.effect = true;
        let app = &mut self.apps[side];
        match event {
            Event::Connected(_) | Event::Accepted(_) => app.connected = true,
            Event::Readable(_) => app.may_read = true,
            Event::Writable(_) => app.may_write = true,
            Event::Closed(_, reason) => {
                let clean = reason == ConnectionLost::ClosedByPeer;
                assert!(clean, "{reason} at {} on side {side}: {}; {}", self.now, self.apps[0], self.apps[1]);
            }
            _ => {}
        }
    }

    fn transmit(&mut self, side: usize) {
        let mut batch = Batch::new();
        let mut datagrams = Vec::new();
        while let Some(transmit) = self.ends[side].poll_transmit(self.now, &mut batch) {
            assert_eq!(transmit.to, address(1 - side));
            datagrams.extend(transmit.datagrams().map(<[u8]>::to_vec));
            assert!(datagrams.len() < 100_000, "endless work");
        }
        self.effect |= !datagrams.is_empty();
        for datagram in datagrams {
            self.put(side, datagram);
        }
    }

    /// Puts a datagram on the link from `side`.
    fn put(&mut self, side: usize, datagram: Vec<u8>) {
        let most = self.habits.mss[0].max(self.habits.mss[1]) as usize;
        assert!(datagram.len() + HEADERS <= most, "{} bytes", datagram.len());
        let bits =
            |bytes: usize| Duration::from_secs_f64(bytes as f64 * 8.0 / self.habits.rate.bits_per_second() as f64);
        let begin = self.free[side].max(self.now);
        let out = self.habits.outages.iter().any(|&(who, from, to)| who == side && from <= self.now && self.now < to);
        if out || begin - self.now > bits(self.habits.queue) || self.rng.chance(self.habits.loss) {
            return;
        }
        let left = begin + bits(datagram.len() + HEADERS);
        self.free[side] = left;
        let late = if self.rng.chance(self.habits.late) { self.habits.late_by } else { Duration::ZERO };
        let copies = 1 + u64::from(self.rng.chance(self.habits.twice));
        for _ in 0..copies {
            self.order += 1;
            self.datagrams.insert((left + self.habits.delay + late, self.order), (1 - side, datagram.clone()));
        }
    }

    fn serve_channel(&mut self, side: usize) {
        if self.drained[side].is_some_and(|at| at <= self.now) {
            self.drained[side] = None;
            self.ends[side].channel_drained(self.now, self.ids[side].expect("an open channel"));
        }
        loop {
            let message = match self.ends[side].poll_channel(self.now) {
                None => return,
                Some(ChannelOutput::Open(..)) => Message::Call,
                Some(ChannelOutput::Send(id, bytes)) => {
                    self.ids[side].get_or_insert(id);
                    Message::Bytes(bytes.to_vec())
                }
                Some(ChannelOutput::Finish(_)) => Message::End(ChannelEnd::Finished),
                Some(ChannelOutput::Reset(_)) => Message::End(ChannelEnd::Failed),
            };
            self.effect = true;
            let sends = matches!(message, Message::Bytes(_));
            let arrival = self.tell(1 - side, message);
            if sends && self.habits.slow_host {
                self.drained[side] = Some(arrival);
            } else if sends {
                self.ends[side].channel_drained(self.now, self.ids[side].expect("an open channel"));
            }
        }
    }

    /// Sends a message to a side, and returns when it arrives.
    fn tell(&mut self, to: usize, message: Message) -> Instant {
        let stall = if self.rng.chance(self.habits.stall) { self.habits.stall_by } else { Duration::ZERO };
        let arrival = (self.now + self.habits.delay + stall).max(self.last_message[to]);
        self.last_message[to] = arrival;
        self.messages[to].push_back((arrival, message));
        arrival
    }

    fn arrive(&mut self, side: usize) {
        let now = self.now;
        let due: Vec<_> = self
            .datagrams
            .range(..=(now, u64::MAX))
            .filter_map(|(&key, (to, _))| (*to == side).then_some(key))
            .collect();
        for key in due {
            let Some((_, mut datagram)) = self.datagrams.remove(&key) else { continue };
            let stride = datagram.len();
            self.ends[side].handle_datagrams(now, now, address(1 - side), &mut datagram, stride);
            self.effect = true;
        }
        while self.messages[side].front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, message)) = self.messages[side].pop_front() else { return };
            self.effect = true;
            match message {
                Message::Call => {
                    let from = SocketAddr::from(([10, 0, 0, 1], 45_678));
                    self.ids[side] = self.ends[side].accept_channel(now, from);
                    self.tell(1 - side, Message::Opened);
                }
                Message::Opened => self.ends[side].channel_opened(now, self.ids[side].expect("a call")),
                Message::Bytes(bytes) => {
                    self.ends[side].handle_channel(now, self.ids[side].expect("a channel"), &bytes)
                }
                Message::End(end) => self.ends[side].channel_ended(now, self.ids[side].expect("a channel"), end),
            }
        }
    }

    // ---- the applications ----

    fn apply(&mut self, side: usize) {
        let Some(id) = self.ids[side].filter(|_| self.apps[side].connected) else { return };
        while self.write(side, id) {}
        while self.read(side, id) {}
        self.finish(side, id);
    }

    /// A pause of an application, rarely.
    fn pause(&mut self, side: usize) -> Option<Instant> {
        let (chance, time) = self.habits.pauses[side];
        self.rng.chance(chance).then_some(self.now + time)
    }

    fn write(&mut self, side: usize, id: ConnectionId) -> bool {
        let app = &mut self.apps[side];
        if !app.may_write || !app.writes() || self.now < app.write_at {
            return false;
        }
        let most = 1 + self.rng.below(self.habits.writes[side] as u64) as usize;
        let part = &app.content[app.written..app.content.len().min(app.written + most)];
        let taken = self.ends[side].write(self.now, id, part).expect("an open stream");
        app.written += taken;
        app.may_write = taken == part.len();
        self.effect |= taken > 0;
        if let Some(at) = self.pause(side) {
            self.apps[side].write_at = at;
        }
        true
    }

    fn read(&mut self, side: usize, id: ConnectionId) -> bool {
        let app = &mut self.apps[side];
        if !app.may_read || app.ended || self.now < app.read_at {
            return false;
        }
        let mut part = vec![0; 1 + self.rng.below(self.habits.reads as u64) as usize];
        match self.ends[side].read(self.now, id, &mut part) {
            Ok(Read::Data(bytes)) => {
                assert!(bytes > 0);
                app.received.extend_from_slice(&part[..bytes]);
                self.effect = true;
                if let Some(at) = self.pause(side) {
                    self.apps[side].read_at = at;
                }
            }
            Ok(Read::Pending) => app.may_read = false,
            Ok(Read::End) => self.end(side),
            Err(error) => panic!("{error} at {}: {}; {}", self.now, self.apps[0], self.apps[1]),
        }
        true
    }

    fn end(&mut self, side: usize) {
        let (app, content) = (&self.apps[side], &self.apps[1 - side].content);
        assert!(app.received == *content, "side {side} has other bytes: {app}");
        self.apps[side].ended = true;
    }

    /// One side finishes once it has everything, as sessions do: the only writer, or else the caller.
    fn finish(&mut self, side: usize, id: ConnectionId) {
        let app = &self.apps[side];
        let finisher = usize::from(self.habits.bytes[0] == 0 && self.habits.bytes[1] > 0);
        if side == finisher && !app.finished && !app.writes() && app.received.len() == app.expected {
            self.ends[side].finish(self.now, id);
            self.apps[side].finished = true;
            self.effect = true;
        }
    }
}
