//! One point of a throughput profile: W_c datagrams every T_s for a while, then the responder's counts (paper:ornl §2.2).
//!
//! With groups it measures messages instead. The responder acknowledges each group once it is whole. The round trip of
//! a group is the delay of a message (§2.2, jitter).

use core::net::SocketAddr;

use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::probe::{ANSWER_LEN, Acknowledge, Counts, Kind, Probe};

use super::delays::Delays;
use super::{Probing, most_of};
use crate::transport::{Batch, Transmit};

/// Time between two questions for the counts, and the number of questions before the peer counts as silent. Together
/// they are a little less than 3 s, in which a blocked path must be named.
const ASK_AGAIN: Duration = Duration::from_millis(250);
const QUESTIONS: u32 = 11;
/// Time from an answer to the question that confirms it. Two equal answers end the point: the first question may have
/// overtaken datagrams on the path.
const CONFIRM: Duration = Duration::from_millis(100);
/// Most datagrams of one train.
const TRAIN: u64 = 64;

/// One point of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlasterConfig {
    /// Bytes of a datagram, UDP payload; at least 80.
    pub datagram: u16,
    /// W_c: datagrams per burst, at least one.
    pub window: u32,
    /// T_s: time from the beginning of a burst to that of the next. A burst that takes longer delays the next one.
    pub sleep: Duration,
    /// Whether the datagrams of a burst are spread over the sleep.
    pub spaced: bool,
    /// Whether each burst is a message whose arrival the responder acknowledges.
    pub messages: bool,
    /// How long to send.
    pub time: Duration,
}

/// The figures of a point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BlasterFigures {
    /// Datagrams sent, and arrived.
    pub sent: u64,
    /// See [`sent`](Self::sent).
    pub arrived: u64,
    /// Of those that arrived: behind a later one.
    pub late: u64,
    /// UDP payload per second that left, from the first datagram to the end of the last sleep.
    pub rate: Rate,
    /// UDP payload per second that arrived, from the first to the last.
    pub goodput: Rate,
    /// Share that was lost, 0 to 1.
    pub loss: f64,
    /// Mean deviation of the one-way delay (RFC 3550).
    pub jitter: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlasterState {
    Sending,
    /// `seen`: the latest answer, by the number of its question.
    Asking {
        next: Instant,
        asked: u32,
        seen: Option<(u64, Counts)>,
    },
    Done(Option<Counts>),
}

/// The sending end of one point.
#[derive(Debug)]
pub struct Blaster {
    config: BlasterConfig,
    to: SocketAddr,
    session: u64,
    start: Instant,
    next: Instant,
    ended: Instant,
    sent: u64,
    state: BlasterState,
    /// When the present message began.
    message: u64,
    delays: Delays,
}

impl Blaster {
    /// A point that begins now. `session` is a random number that strangers do not guess.
    pub fn new(config: BlasterConfig, to: SocketAddr, session: u64, now: Instant) -> Self {
        let datagram = config.datagram.max(ANSWER_LEN as u16);
        let config = BlasterConfig { datagram, window: config.window.clamp(1, u32::from(u16::MAX)), ..config };
        let (state, delays) = (BlasterState::Sending, Delays::default());
        Self { config, to, session, start: now, next: now, ended: now, sent: 0, state, message: 0, delays }
    }

    fn burst<'a>(&mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        if now < self.next {
            return None;
        }
        let window = u64::from(self.config.window);
        let in_burst = self.sent % window;
        if in_burst == 0 && now - self.start >= self.config.time {
            self.ended = now;
            self.state = BlasterState::Asking { next: now, asked: 0, seen: None };
            return self.ask(now, scratch);
        }
        if in_burst == 0 {
            self.message = now.as_micros();
        }
        let size = usize::from(self.config.datagram);
        let train = (most_of(size) as u64).min(TRAIN);
        let packets = if self.config.spaced { 1 } else { train.min(window - in_burst) };
        let out = scratch.cleared();
        let acknowledge = if self.config.messages { Acknowledge::Group } else { Acknowledge::None };
        let group = if self.config.messages { self.config.window as u16 } else { 1 };
        let kind = Kind::Data { group, acknowledge };
        let clock = match self.config.messages {
            true => self.message,
            false => now.as_micros(),
        };
        for number in self.sent..self.sent + packets {
            let at = out.len();
            Probe { kind, session: self.session, number, clock }.encode(out);
            out.resize(at + size, 0);
        }
        self.sent += packets;
        let pause = if self.config.spaced {
            self.config.sleep / self.config.window
        } else if self.sent.is_multiple_of(window) {
            self.config.sleep
        } else {
            Duration::ZERO
        };
        // A host that was late does not catch up: the path would see another rate than the profile says.
        self.next = (self.next + pause).max(now);
        Some(Transmit::between(self.to.into(), size, scratch.bytes()))
    }

    /// Asks for the counts, if that is due.
    fn ask<'a>(&mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        let BlasterState::Asking { next, asked, seen } = self.state else { return None };
        if now < next {
            return None;
        }
        if asked == QUESTIONS {
            // A path that still moves after so long will not stop.
            self.state = BlasterState::Done(seen.map(|(_, counts)| counts));
            return None;
        }
        self.state = BlasterState::Asking { next: now + ASK_AGAIN, asked: asked + 1, seen };
        let out = scratch.cleared();
        Probe { kind: Kind::Query, session: self.session, number: u64::from(asked), clock: 0 }.encode(out);
        let bytes = scratch.bytes();
        Some(Transmit::between(self.to.into(), bytes.len(), bytes))
    }

    /// Whether the point is over. `None` until then, `Some(None)` if the peer never answered.
    pub fn result(&self) -> Option<Option<BlasterFigures>> {
        let BlasterState::Done(counts) = self.state else { return None };
        Some(counts.map(|counts| self.figures(counts)))
    }

    fn figures(&self, counts: Counts) -> BlasterFigures {
        let size = u64::from(self.config.datagram);
        let rate = Rate::from_bytes_in(self.sent * size, self.ended - self.start).unwrap_or(Rate::ZERO);
        // The first datagram opens the period and does not count in it.
        let bytes = counts.bytes.saturating_sub(size);
        let time = Duration::from_micros(counts.last.saturating_sub(counts.first));
        BlasterFigures {
            sent: self.sent,
            arrived: counts.datagrams,
            late: counts.late,
            rate,
            goodput: Rate::from_bytes_in(bytes, time).unwrap_or(Rate::ZERO),
            loss: self.sent.saturating_sub(counts.datagrams) as f64 / self.sent.max(1) as f64,
            jitter: Duration::from_nanos(counts.jitter),
        }
    }

    /// Round trips of messages.
    pub fn delays(&self) -> &Delays {
        &self.delays
    }
}

impl Probing for Blaster {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> bool {
        let Ok(answer) = Probe::decode(datagram) else { return false };
        if from != self.to || answer.session != self.session {
            return false;
        }
        match (answer.kind, self.state) {
            (Kind::Report(counts), BlasterState::Asking { asked, seen, .. }) if answer.number < u64::from(asked) => {
                self.state = match seen {
                    Some((number, _)) if answer.number <= number => return false,
                    Some((_, before)) if counts.datagrams == before.datagrams => BlasterState::Done(Some(counts)),
                    _ => {
                        let seen = Some((answer.number, counts));
                        BlasterState::Asking { next: now + CONFIRM, asked, seen }
                    }
                };
            }
            (Kind::Acknowledgement(_), _) if answer.number < self.sent => {
                self.delays.add(now.saturating_since(Instant::ZERO + Duration::from_micros(answer.clock)));
            }
            _ => return false,
        }
        true
    }

    fn poll_transmit<'a>(&mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        match self.state {
            BlasterState::Sending => self.burst(now, scratch),
            BlasterState::Asking { .. } => self.ask(now, scratch),
            BlasterState::Done(_) => None,
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            BlasterState::Sending => Some(self.next),
            BlasterState::Asking { next, .. } => Some(next),
            BlasterState::Done(_) => None,
        }
    }

    fn sent(&self) -> u64 {
        self.sent
    }
}
