//! A stream whose goodput settles at a target and stays there: the stabilised control stream of paper:ornl §3.2.
//!
//! The source sends a burst of W_c datagrams and sleeps T_s. The responder acknowledges each datagram. Each burst is one
//! step of the law, with the goodput that the acknowledgements of the last step show.

use core::net::SocketAddr;
use std::collections::VecDeque;

use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::probe::{ANSWER_LEN, Acknowledge, Counts, HEADER_LEN, Kind, Probe};

use super::delays::Delays;
use super::outstanding::Outstanding;
use super::robbins_monro::{EXPONENT, FIRST_SLEEP, GAIN, RobbinsMonro};
use super::{Probing, most_of};
use crate::transport::{Batch, Transmit};

/// The window in which the goodput is measured, and its fewest bursts.
const MEASURE: Duration = Duration::from_secs(2);
const MEASURED_BURSTS: u32 = 8;
/// The stream has converged when the measured goodput is within this share of the target. Source: the paper's figure
/// shows no larger deviation.
const CONVERGED: f64 = 0.02;
/// A peer that acknowledges nothing for so long is not there. Together with the first sleep of 100 ms that is 3 s, in
/// which a blocked path must be named.
const SILENCE: Duration = Duration::from_millis(2_900);

/// Settings of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StableConfig {
    /// Target goodput: bits of UDP payload per second.
    pub target: Rate,
    /// Bytes of a datagram, UDP payload. Default 1472, at least 80.
    pub datagram: u16,
    /// W_c: datagrams per burst. Default 2.
    pub window: u32,
    /// Whether the datagrams of a burst are spread over the sleep. Default false, as in the paper.
    pub spaced: bool,
    /// The first T_s. Default 100 ms, as in the paper.
    pub first_sleep: Duration,
    /// a. Default 0.8, as in the paper.
    pub gain: f64,
    /// α. Default 0.8, as in the paper; above 0.5 and at most 1.
    pub exponent: f64,
}

impl StableConfig {
    /// The paper's settings for this target.
    pub fn new(target: Rate) -> Self {
        let (datagram, window) = (1_472, 2);
        Self { target, datagram, window, spaced: false, first_sleep: FIRST_SLEEP, gain: GAIN, exponent: EXPONENT }
    }
}

/// The figures of a stream so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StableFigures {
    /// Goodput of the latest seconds, bit/s of UDP payload.
    pub goodput: Rate,
    /// Rate of the source, the same unit.
    pub rate: Rate,
    /// The present T_s.
    pub sleep: Duration,
    /// Steps of the law.
    pub steps: u64,
    /// Datagrams sent, and acknowledged.
    pub sent: u64,
    /// See [`sent`](Self::sent).
    pub acknowledged: u64,
    /// Time from the start until the goodput came within 2 % of the target and stayed; `None` while it has not.
    pub converged_after: Option<Duration>,
    /// Round trip: mean and standard deviation.
    pub delay: Duration,
    /// See [`delay`](Self::delay).
    pub deviation: Duration,
    /// Datagrams that had arrived at the responder, by the latest acknowledgement.
    pub arrived: u64,
    /// Mean deviation of the one-way delay (RFC 3550), by the latest acknowledgement.
    pub jitter: Duration,
}

/// Writes what an application sends in a stream. Gets the number of the datagram and its payload.
type Fill = dyn FnMut(u64, &mut [u8]) + Send;

/// The sending end of a stable stream.
pub struct StableStream {
    config: StableConfig,
    to: SocketAddr,
    session: u64,
    law: RobbinsMonro,
    start: Instant,
    next_burst: Instant,
    /// When the present step began, and the acknowledgements since.
    step: Instant,
    in_step: u64,
    sent: u64,
    acknowledged: u64,
    outstanding: Outstanding,
    heard: Instant,
    /// Acknowledgements of the latest seconds: when and how many.
    recent: VecDeque<(Instant, u64)>,
    converged: Option<Instant>,
    delays: Delays,
    /// Round trips since somebody took them.
    latest_delays: Delays,
    /// The latest round trip: when its datagram left, and the time.
    round_trip: Option<(Instant, Duration)>,
    /// Of the latest acknowledgement.
    counts: Counts,
    fill: Option<Box<Fill>>,
    stopped: bool,
}

impl StableStream {
    /// A stream to a responder at `to` that begins now. `session` is a random number that strangers do not guess.
    pub fn new(config: StableConfig, to: SocketAddr, session: u64, now: Instant) -> Self {
        let datagram = config.datagram.max(ANSWER_LEN as u16);
        let config = StableConfig { datagram, window: config.window.clamp(1, u32::from(u16::MAX)), ..config };
        let target = config.target.bits_per_second() as f64 / (f64::from(datagram) * 8.0);
        let law = RobbinsMonro::new(config.window, target, config.first_sleep, config.gain, config.exponent);
        Self {
            config,
            to,
            session,
            law,
            start: now,
            next_burst: now,
            step: now,
            in_step: 0,
            sent: 0,
            acknowledged: 0,
            outstanding: Outstanding::default(),
            heard: now,
            recent: VecDeque::new(),
            converged: None,
            delays: Delays::default(),
            latest_delays: Delays::default(),
            round_trip: None,
            counts: Counts::default(),
            fill: None,
            stopped: false,
        }
    }

    /// The settings.
    pub const fn config(&self) -> &StableConfig {
        &self.config
    }

    /// Sends nothing more.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether the peer has acknowledged nothing for three seconds, although datagrams left.
    pub fn is_alone(&self, now: Instant) -> bool {
        self.sent > 0 && now.saturating_since(self.heard) >= SILENCE + self.law.sleep()
    }

    /// The figures so far.
    pub fn figures(&self, now: Instant) -> StableFigures {
        let bits = f64::from(self.config.datagram) * 8.0;
        StableFigures {
            goodput: Rate::from_bits_per_second((self.goodput(now).unwrap_or(0.0) * bits) as u64),
            rate: Rate::from_bits_per_second((self.law.rate() * bits) as u64),
            sleep: self.law.sleep(),
            steps: self.law.steps(),
            sent: self.sent,
            acknowledged: self.acknowledged,
            converged_after: self.converged.map(|at| at - self.start),
            delay: self.delays.mean(),
            deviation: self.delays.deviation(),
            arrived: self.counts.datagrams,
            jitter: Duration::from_nanos(self.counts.jitter),
        }
    }

    /// Has `fill` write the payload of each datagram from now on. It gets the number of the datagram in the stream, and
    /// [`payload_len`](Self::payload_len) bytes of zero.
    ///
    /// Datagrams may be lost, and are not repeated. The far end receives them by
    /// [`payload`](super::payload).
    pub fn fill_with(&mut self, fill: impl FnMut(u64, &mut [u8]) + Send + 'static) {
        self.fill = Some(Box::new(fill));
    }

    /// Bytes of payload in each datagram.
    pub fn payload_len(&self) -> usize {
        usize::from(self.config.datagram) - HEADER_LEN
    }

    /// The round trips since the last call.
    pub fn take_delays(&mut self) -> Delays {
        std::mem::take(&mut self.latest_delays)
    }

    /// The round trip of the latest acknowledgement, and when its datagram left. `None` if nothing was acknowledged since
    /// the last call.
    pub(crate) fn take_round_trip(&mut self) -> Option<(Instant, Duration)> {
        self.round_trip.take()
    }

    /// The round trips so far.
    pub fn delays(&self) -> &Delays {
        &self.delays
    }

    /// One burst and its sleep are over.
    fn end_step(&mut self, now: Instant) {
        let time = (now - self.step).as_secs_f64();
        if self.is_alone(now) {
            self.law.fall_to_target();
        } else if time > 0.0 {
            self.law.update(self.in_step as f64 / time);
        }
        (self.step, self.in_step) = (now, 0);
        self.forget(now);
        self.note_convergence(now);
    }

    /// Time over which the goodput is measured: whole bursts.
    fn window(&self) -> Duration {
        MEASURE.max(self.law.sleep() * MEASURED_BURSTS)
    }

    /// Time from what leaves together to what leaves next.
    fn pause(&self) -> Duration {
        if self.config.spaced { self.law.sleep() / self.config.window } else { self.law.sleep() }
    }

    fn forget(&mut self, now: Instant) {
        let from = now.saturating_sub(self.window());
        while self.recent.front().is_some_and(|(at, _)| *at < from) {
            self.recent.pop_front();
        }
    }

    /// Datagrams per second of the latest window, from the first burst in it to the last. The last one itself does not
    /// count, because its sleep is not over.
    fn goodput(&self, now: Instant) -> Option<f64> {
        let from = now.saturating_sub(self.window());
        let recent = self.recent.iter().skip_while(|(at, _)| *at < from);
        let first = recent.clone().next()?.0;
        // Acknowledgements of one burst come together. A gap of half the pause is between two.
        let gap = self.pause() / 2;
        let mut bursts: Vec<(Instant, u64)> = Vec::new();
        let mut before = None;
        for &(at, count) in recent {
            match bursts.last_mut() {
                Some((_, in_burst)) if before.is_some_and(|before| at - before < gap) => *in_burst += count,
                _ => bursts.push((at, count)),
            }
            before = Some(at);
        }
        let (end, _) = bursts.pop()?;
        let count: u64 = bursts.iter().map(|(_, count)| count).sum();
        let time = (end - first).as_secs_f64();
        (time > 0.0).then(|| count as f64 / time)
    }

    fn note_convergence(&mut self, now: Instant) {
        let target = self.config.target.bits_per_second() as f64 / (f64::from(self.config.datagram) * 8.0);
        let near = self.goodput(now).is_some_and(|goodput| (goodput / target - 1.0).abs() <= CONVERGED);
        let long = now - self.start >= MEASURE;
        match (near && long, self.converged) {
            (true, None) => self.converged = Some(now),
            (false, Some(_)) => self.converged = None,
            _ => {}
        }
    }
}

impl Probing for StableStream {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> bool {
        let Ok(Probe { kind: Kind::Acknowledgement(counts), session, number, clock }) = Probe::decode(datagram) else {
            return false;
        };
        if from != self.to || session != self.session || number >= self.sent {
            return false;
        }
        self.heard = now;
        // The network may duplicate an acknowledgement, or the datagram.
        if !self.outstanding.acknowledge(number) {
            return true;
        }
        self.acknowledged += 1;
        self.in_step += 1;
        let sent = Instant::ZERO + Duration::from_micros(clock);
        self.delays.add(now.saturating_since(sent));
        self.latest_delays.add(now.saturating_since(sent));
        self.round_trip = Some((sent, now.saturating_since(sent)));
        if counts.datagrams > self.counts.datagrams {
            self.counts = counts;
        }
        match self.recent.back_mut() {
            Some((at, count)) if *at == now => *count += 1,
            _ => self.recent.push_back((now, 1)),
        }
        true
    }

    fn poll_transmit<'a>(&mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        if self.stopped || now < self.next_burst {
            return None;
        }
        let size = usize::from(self.config.datagram);
        let in_burst = self.sent % u64::from(self.config.window);
        if in_burst == 0 && self.sent > 0 {
            self.end_step(now);
        }
        let train = most_of(size).min(64) as u64;
        let packets = if self.config.spaced { 1 } else { train.min(u64::from(self.config.window) - in_burst) };
        let out = scratch.cleared();
        let clock = now.as_micros();
        let kind = Kind::Data { group: 1, acknowledge: Acknowledge::Each };
        for number in self.sent..self.sent + packets {
            let at = out.len();
            Probe { kind, session: self.session, number, clock }.encode(out);
            out.resize(at + size, 0);
            self.outstanding.send();
            if let Some(fill) = &mut self.fill {
                fill(number, &mut out[at + HEADER_LEN..]);
            }
        }
        self.sent += packets;
        if self.config.spaced || self.sent.is_multiple_of(u64::from(self.config.window)) {
            // A host that was late does not catch up: the goodput would jump.
            self.next_burst = (self.next_burst + self.pause()).max(now);
        }
        Some(Transmit::between(self.to.into(), size, scratch.bytes()))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (!self.stopped).then_some(self.next_burst)
    }

    fn sent(&self) -> u64 {
        self.sent
    }
}
