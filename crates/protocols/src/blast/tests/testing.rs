//! A sending and a receiving engine over a path in virtual time, for the tests of every blast protocol.
//!
//! ```text
//! write ─▶ Sender ─ datagrams ─▶ queue ─▶ link (rate, delay, loss) ─▶ Receiver ─▶ read
//!             ▲◀────────────── control records, both ways, delayed and in order ──▶▲
//! ```

mod engines;

use std::collections::{BTreeSet, VecDeque};

use farhaul_units::{Duration, Instant, Rate, Rng};

pub(crate) use self::engines::{field_out_of_range, is_out_of_turn, megabits, setup, transfer_whole};
use crate::blast::engine::{Feedback, Prefix, Protocol, Receiver, RoundTrips, Sender, Setup, Transmission};
use farhaul_proto::config::Config;
use farhaul_proto::error::PeerMisbehaved;
use farhaul_proto::stats::Stats;

/// Bytes of IPv4 and UDP headers, which occupy the link.
const HEADERS: usize = 28;
/// Bytes that the application writes or reads per call.
const CHUNK: usize = 64 << 10;
/// The spacing of feedback records.
const FEEDBACK_SPACING: Duration = Duration::from_millis(10);

/// The path between the engines.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// Rate of the link; `None` for no limit.
    pub(crate) rate: Option<Rate>,
    /// One-way delay, of datagrams and control records alike.
    pub(crate) delay: Duration,
    /// Datagrams that wait before the link; more are lost.
    pub(crate) queue: usize,
    /// Most bytes of a datagram, tag included.
    pub(crate) datagram: usize,
    /// Probability that a datagram is lost, whatever the queue.
    pub(crate) loss: f64,
    /// Probability that a datagram arrives twice.
    pub(crate) twice: f64,
    /// Probability that a datagram arrives late, and by how much.
    pub(crate) late: (f64, Duration),
    /// Datagrams lost in addition, counted from zero in the order of sending.
    pub(crate) lost: BTreeSet<u64>,
    /// Bytes per second that the application reads; `None` for all at once.
    pub(crate) reader: Option<u64>,
    /// Whether the peer's connection sends feedback. Original programs send none.
    pub(crate) feedback: bool,
}

impl Default for Path {
    /// 1 Gbit/s, an RTT of 20 ms, a queue of 1000 datagrams, packets of 1500 bytes, no loss.
    fn default() -> Self {
        Self {
            rate: Some(Rate::from_bits_per_second(1_000_000_000)),
            delay: Duration::from_millis(10),
            queue: 1_000,
            datagram: 1_472,
            loss: 0.0,
            twice: 0.0,
            late: (0.0, Duration::ZERO),
            lost: BTreeSet::new(),
            reader: None,
            feedback: true,
        }
    }
}

/// The result of a transfer.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The bytes that the reader got.
    pub(crate) received: Vec<u8>,
    /// Time until the sender knew that everything was delivered.
    pub(crate) time: Duration,
    /// Datagrams that left, and those that the link or its queue lost.
    pub(crate) datagrams: u64,
    pub(crate) lost: u64,
    /// Control bytes to the receiver and to the sender.
    pub(crate) control: [u64; 2],
    pub(crate) sender: Stats,
    pub(crate) receiver: Stats,
}

impl Outcome {
    /// Payload bits per second, from the first write to the confirmation.
    pub(crate) fn goodput(&self) -> f64 {
        self.received.len() as f64 * 8.0 / self.time.as_secs_f64()
    }
}

/// Bytes of a transfer, different at each place.
pub(crate) fn content(bytes: usize) -> Vec<u8> {
    let mut rng = Rng::new(bytes as u64);
    let mut content: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(|_| rng.next_u64().to_be_bytes()).collect();
    content.truncate(bytes);
    content
}

/// Two engines, and everything in flight between them.
pub(crate) struct Wire<P: Protocol> {
    pub(crate) now: Instant,
    pub(crate) sender: P::Sender,
    pub(crate) receiver: P::Receiver,
    path: Path,
    rng: Rng,
    /// When the link is free again.
    free: Instant,
    /// Datagrams that have not arrived, by time.
    flight: VecDeque<(Instant, Vec<u8>)>,
    /// Departures from the queue, to know how many wait.
    queued: VecDeque<Instant>,
    forward: VecDeque<(Instant, Vec<u8>)>,
    backward: VecDeque<(Instant, Vec<u8>)>,
    /// Counts and delivered bytes in flight to the sender.
    feedbacks: VecDeque<(Instant, (Feedback, u64))>,
    next_feedback: Instant,
    counts: Feedback,
    sent: u64,
    lost: u64,
    control: [u64; 2],
    scratch: Vec<u8>,
    chunk: Vec<u8>,
    /// Bytes that the reader may have had by now.
    read: u64,
    start: Instant,
    /// The instant of the last step.
    handled: Instant,
}

impl<P: Protocol> Wire<P> {
    /// Both engines at the ends of `path`.
    pub(crate) fn new(options: &P::Options, config: &Config, path: Path, seed: u64) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let round_trip = path.delay * 2;
        let mut rng = Rng::new(seed);
        // The numbers of known runs count two draws.
        let _ = (rng.fork(), rng.fork());
        let prefix = Prefix::Tag(farhaul_wire::blast::Tag(7));
        let setup = || Setup { config, datagram: path.datagram, prefix, round_trip, now };
        let sender = P::sender(options, setup());
        let receiver = P::receiver(options, &P::hello(options), setup()).expect("its own hello");
        Self {
            now,
            sender,
            receiver,
            path,
            rng,
            free: now,
            flight: VecDeque::new(),
            queued: VecDeque::new(),
            forward: VecDeque::new(),
            backward: VecDeque::new(),
            feedbacks: VecDeque::new(),
            next_feedback: now,
            counts: Feedback {
                path: RoundTrips { least: round_trip, smoothed: round_trip, variation: Duration::ZERO },
                ..Feedback::default()
            },
            sent: 0,
            lost: 0,
            control: [0; 2],
            scratch: Vec::new(),
            chunk: vec![0; CHUNK],
            read: 0,
            start: now,
            handled: now,
        }
    }

    /// Sends `content` and reads it, until the sender knows that it was delivered and the reader has it, or `limit` has
    /// passed.
    ///
    /// # Panics
    /// An engine refuses the other's records or datagrams, or the transfer does not end in time.
    pub(crate) fn transfer(mut self, content: &[u8], limit: Duration) -> Outcome {
        let mut written = 0;
        let mut received = Vec::with_capacity(content.len());
        loop {
            while written < content.len() && self.sender.room() > 0 {
                let end = content.len().min(written + CHUNK);
                let taken = self.sender.write(self.now, &content[written..end]);
                written += taken;
                if taken == 0 {
                    break;
                }
            }
            if written == content.len() {
                self.sender.flush(self.now);
            }
            self.step(&mut received).unwrap_or_else(|fault| panic!("at {}: {fault}", self.now));
            if written == content.len() && self.sender.is_delivered() && received.len() == content.len() {
                break;
            }
            assert!(self.now - self.start < limit, "not done after {limit:?}: {} bytes arrived", received.len());
        }
        let (mut sender, mut receiver) = (Stats::default(), Stats::default());
        self.sender.fill_stats(self.handled, &mut sender);
        self.receiver.fill_stats(self.handled, &mut receiver);
        let (datagrams, lost, control) = (self.sent, self.lost, self.control);
        Outcome { received, time: self.handled - self.start, datagrams, lost, control, sender, receiver }
    }

    /// Handles everything that is due, then moves to the next instant at which something is.
    ///
    /// # Errors
    /// An engine refuses what the other sends.
    pub(crate) fn step(&mut self, received: &mut Vec<u8>) -> Result<(), PeerMisbehaved> {
        self.sender.handle_timeout(self.now);
        self.receiver.handle_timeout(self.now);
        while let Some(plan) = self.sender.plan(self.now) {
            self.transmit(plan);
        }
        let mut arrived = false;
        while self.flight.front().is_some_and(|(at, _)| *at <= self.now) {
            let Some((_, datagram)) = self.flight.pop_front() else { break };
            self.counts.datagrams += 1;
            self.counts.bytes += (datagram.len() - 8) as u64;
            assert!(self.receiver.handle_datagram(self.now, &datagram[8..]), "the receiver refused a datagram");
            arrived = true;
        }
        if arrived {
            self.receiver.end_batch(self.now);
        }
        self.exchange_control()?;
        self.read_into(received);
        self.handled = self.now;
        self.now = self.next_instant();
        Ok(())
    }

    fn transmit(&mut self, plan: Transmission) {
        let (size, bytes) = self.sender.emit(self.now, plan, &mut self.scratch).expect("a plan has datagrams");
        let datagrams: Vec<Vec<u8>> = bytes.chunks(size).map(<[u8]>::to_vec).collect();
        assert_eq!(datagrams.len(), plan.packets as usize, "as many datagrams as planned");
        for datagram in datagrams {
            self.put(datagram);
        }
    }

    /// Puts a datagram on the link.
    fn put(&mut self, datagram: Vec<u8>) {
        let number = self.sent;
        self.sent += 1;
        while self.queued.front().is_some_and(|left| *left <= self.now) {
            self.queued.pop_front();
        }
        let overflows = self.path.rate.is_some() && self.queued.len() >= self.path.queue;
        if overflows || self.path.lost.contains(&number) || self.rng.unit() < self.path.loss {
            self.lost += 1;
            return;
        }
        self.free = self.free.max(self.now);
        if let Some(rate) = self.path.rate {
            let bits = (datagram.len() + HEADERS) as f64 * 8.0;
            self.free += Duration::from_secs_f64(bits / rate.bits_per_second() as f64);
            self.queued.push_back(self.free);
        }
        let late = if self.rng.chance(self.path.late.0) { self.path.late.1 } else { Duration::ZERO };
        let arrival = self.free + self.path.delay + late;
        if self.rng.chance(self.path.twice) {
            self.fly(arrival, datagram.clone());
        }
        self.fly(arrival, datagram);
    }

    /// Puts a datagram among those in flight, after all that arrive no later.
    fn fly(&mut self, arrival: Instant, datagram: Vec<u8>) {
        let place = self.flight.partition_point(|(at, _)| *at <= arrival);
        self.flight.insert(place, (arrival, datagram));
    }

    fn exchange_control(&mut self) -> Result<(), PeerMisbehaved> {
        let arrival = self.now + self.path.delay;
        let mut bytes = Vec::new();
        self.sender.poll_control(self.now, &mut bytes);
        self.control[0] += bytes.len() as u64;
        if !bytes.is_empty() {
            self.forward.push_back((arrival, std::mem::take(&mut bytes)));
        }
        self.receiver.poll_control(self.now, &mut bytes);
        self.control[1] += bytes.len() as u64;
        if !bytes.is_empty() {
            self.backward.push_back((arrival, bytes));
        }
        if self.path.feedback && self.next_feedback <= self.now {
            self.next_feedback = self.now + FEEDBACK_SPACING;
            let feedback = Feedback { clock: self.now - Instant::ZERO, ..self.counts };
            self.feedbacks.push_back((arrival, (feedback, self.receiver.state().delivered())));
        }
        while let Some(bytes) = take_due(&mut self.forward, self.now) {
            self.receiver.handle_control(self.now, &bytes)?;
        }
        while let Some(bytes) = take_due(&mut self.backward, self.now) {
            self.sender.handle_control(self.now, &bytes)?;
        }
        while let Some((feedback, delivered)) = take_due(&mut self.feedbacks, self.now) {
            self.sender.on_feedback(self.now, &feedback);
            self.sender.on_delivered(self.now, delivered);
        }
        Ok(())
    }

    fn read_into(&mut self, received: &mut Vec<u8>) {
        loop {
            let most = match self.path.reader {
                None => CHUNK,
                Some(speed) => {
                    let allowed = ((self.now - self.start).as_secs_f64() * speed as f64) as u64;
                    usize::try_from(allowed.saturating_sub(self.read)).unwrap_or(CHUNK).min(CHUNK)
                }
            };
            let read = self.receiver.read(&mut self.chunk[..most]);
            if read == 0 {
                return;
            }
            self.read += read as u64;
            received.extend_from_slice(&self.chunk[..read]);
        }
    }

    /// The next instant at which something is due, at least a nanosecond from now.
    fn next_instant(&self) -> Instant {
        let reader = self.path.reader.filter(|_| self.receiver.available() > 0);
        let next = [
            self.flight.front().map(|(at, _)| *at),
            self.forward.front().map(|(at, _)| *at),
            self.backward.front().map(|(at, _)| *at),
            self.feedbacks.front().map(|(at, _)| *at),
            self.path.feedback.then_some(self.next_feedback),
            reader.map(|_| self.now + Duration::from_millis(1)),
            self.sender.deadline(),
            self.receiver.deadline(),
        ];
        let next = next.into_iter().flatten().min().unwrap_or(self.now + Duration::from_millis(1));
        next.max(self.now + Duration::from_nanos(1))
    }
}

/// The first of `queue` if its time has come.
fn take_due<T>(queue: &mut VecDeque<(Instant, T)>, now: Instant) -> Option<T> {
    if queue.front().is_some_and(|(at, _)| *at <= now) { queue.pop_front().map(|(_, item)| item) } else { None }
}
