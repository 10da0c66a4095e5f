//! The far end of measured streams: counts, acknowledges, reports.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use farhaul_units::{Duration, Instant};
use farhaul_wire::probe::{Acknowledge, Counts, Kind, Probe};

/// Streams that are remembered. Beyond, a new one takes the place of the one that was silent longest, if that was long.
const MAX_SESSIONS: usize = 256;
/// A stream this silent may be forgotten for another.
const IDLE: Duration = Duration::from_secs(10);
/// Answers that wait to be sent. More are lost, as on a line.
const MAX_ANSWERS: usize = 1_024;

/// Counts streams and answers them. It needs no memory for strangers beyond its bounds, and sends no more bytes than it
/// gets (attack A11).
///
/// It tells senders apart by `S`: the address of a plain one, or the connection of one inside.
#[derive(Debug)]
pub struct Responder<S = SocketAddr> {
    sessions: BTreeMap<(S, u64), Session>,
    answers: VecDeque<(S, Probe)>,
    refused: u64,
    /// Data datagrams of all streams, and their bytes.
    totals: (u64, u64),
}

#[derive(Debug)]
struct Session {
    counts: Counts,
    heard: Instant,
    /// One after the highest number so far.
    next: u64,
    /// The group that is arriving: its number, and how many of it are here.
    group: (u64, u16),
    /// The delay of the last datagram by both clocks, microseconds; only differences mean something.
    transit: Option<i128>,
    /// Nanoseconds.
    jitter: f64,
}

impl<S> Default for Responder<S> {
    fn default() -> Self {
        Self { sessions: BTreeMap::new(), answers: VecDeque::new(), refused: 0, totals: (0, 0) }
    }
}

impl<S: Copy + Ord> Responder<S> {
    /// A responder without streams.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a datagram that [`is_probe`](super::is_probe) and arrived at `arrived`. Returns the header of a data
    /// datagram that counts. An application may want its [`payload`](super::payload).
    pub fn handle_datagram(&mut self, arrived: Instant, from: S, datagram: &[u8]) -> Option<Probe> {
        let Ok(probe) = Probe::decode(datagram) else {
            self.refused += 1;
            return None;
        };
        let answer = match probe.kind {
            Kind::Data { group, acknowledge } => {
                let session = self.session(arrived, from, probe.session)?;
                session.count(arrived, &probe, datagram.len());
                let due = match acknowledge {
                    Acknowledge::None => false,
                    Acknowledge::Each => true,
                    Acknowledge::Group => session.completes(probe.number, group),
                };
                let counts = session.counts;
                self.totals.0 += 1;
                self.totals.1 += datagram.len() as u64;
                due.then_some(Kind::Acknowledgement(counts))
            }
            Kind::Query => {
                let counts = self.sessions.get(&(from, probe.session)).map(|session| session.counts);
                Some(Kind::Report(counts.unwrap_or_default()))
            }
            // Somebody answers what was never asked.
            Kind::Acknowledgement(_) | Kind::Report(_) => {
                self.refused += 1;
                None
            }
        };
        if let Some(kind) = answer
            && self.answers.len() < MAX_ANSWERS
        {
            self.answers.push_back((from, Probe { kind, ..probe }));
        }
        matches!(probe.kind, Kind::Data { .. }).then_some(probe)
    }

    /// The next answer to send, appended to `out`.
    pub fn poll_answer(&mut self, out: &mut Vec<u8>) -> Option<S> {
        self.poll_answers(out, 1)
    }

    /// The next answers to one sender, `most` at most, appended to `out`. Each has
    /// [`ANSWER_LEN`](farhaul_wire::probe::ANSWER_LEN) bytes.
    pub fn poll_answers(&mut self, out: &mut Vec<u8>, most: usize) -> Option<S> {
        let to = self.answers.front()?.0;
        for _ in 0..most {
            match self.answers.front() {
                Some((other, answer)) if *other == to => answer.encode(out),
                _ => break,
            }
            self.answers.pop_front();
        }
        Some(to)
    }

    /// Forgets the answers that wait: the network takes none.
    pub fn lose_answers(&mut self) {
        self.answers.clear();
    }

    /// Whether an answer waits.
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Data datagrams of all streams so far, and their bytes.
    pub fn totals(&self) -> (u64, u64) {
        self.totals
    }

    /// Datagrams that were no probes, or came although all places were taken.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn session(&mut self, now: Instant, from: S, id: u64) -> Option<&mut Session> {
        if !self.sessions.contains_key(&(from, id)) && self.sessions.len() >= MAX_SESSIONS {
            let silent = self.sessions.iter().min_by_key(|(_, session)| session.heard);
            let (&key, session) = silent?;
            if now.saturating_since(session.heard) < IDLE {
                self.refused += 1;
                return None;
            }
            self.sessions.remove(&key);
        }
        Some(self.sessions.entry((from, id)).or_insert_with(|| Session::new(now)))
    }
}

impl Session {
    fn new(now: Instant) -> Self {
        let counts = Counts { first: now.as_micros(), ..Counts::default() };
        Self { counts, heard: now, next: 0, group: (u64::MAX, 0), transit: None, jitter: 0.0 }
    }

    fn count(&mut self, now: Instant, probe: &Probe, bytes: usize) {
        self.heard = self.heard.max(now);
        self.counts.datagrams += 1;
        self.counts.bytes += bytes as u64;
        self.counts.last = self.heard.as_micros();
        if probe.number < self.next {
            self.counts.late += 1;
        }
        self.next = self.next.max(probe.number.saturating_add(1));
        //= paper:rfc3550 §6.4.1: J += (|D| − J)/16
        let transit = i128::from(now.as_micros()) - i128::from(probe.clock);
        if let Some(before) = self.transit.replace(transit) {
            let difference = (transit - before).unsigned_abs() as f64 * 1e3;
            self.jitter += (difference - self.jitter) / 16.0;
            self.counts.jitter = self.jitter as u64;
        }
    }

    /// Whether this datagram completes its group.
    fn completes(&mut self, number: u64, size: u16) -> bool {
        let group = number / u64::from(size.max(1));
        if self.group.0 != group {
            self.group = (group, 0);
        }
        self.group.1 = self.group.1.saturating_add(1);
        self.group.1 == size
    }
}

#[cfg(test)]
mod tests {
    use farhaul_wire::probe::{ANSWER_LEN, HEADER_LEN};

    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    fn datagram(kind: Kind, session: u64, number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        Probe { kind, session, number, clock: 5 }.encode(&mut bytes);
        bytes.resize(bytes.len().max(ANSWER_LEN), 0);
        bytes
    }

    fn answers(responder: &mut Responder) -> Vec<Probe> {
        let mut answers = Vec::new();
        loop {
            let mut bytes = Vec::new();
            if responder.poll_answer(&mut bytes).is_none() {
                return answers;
            }
            answers.push(Probe::decode(&bytes).unwrap());
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1_000_000 * millis)
    }

    #[test]
    fn a11_no_answer_is_longer_than_its_question() {
        let mut responder = Responder::new();
        let data = Kind::Data { group: 1, acknowledge: Acknowledge::Each };
        for kind in [data, Kind::Query, Kind::Report(Counts::default()), Kind::Acknowledgement(Counts::default())] {
            let question = datagram(kind, 1, 0);
            responder.handle_datagram(at(1), address(1), &question);
            let mut answer = Vec::new();
            let _ = responder.poll_answer(&mut answer);
            assert!(answer.len() <= question.len() && responder.poll_answer(&mut Vec::new()).is_none());
        }
        let mut short = Vec::new();
        Probe { kind: data, session: 1, number: 1, clock: 1 }.encode(&mut short);
        assert_eq!(short.len(), HEADER_LEN);
        responder.handle_datagram(at(1), address(1), &short);
        assert!(!responder.has_answers() && responder.refused() == 3);
    }

    #[test]
    fn counts_are_those_of_one_stream_and_address() {
        let mut responder = Responder::new();
        let quiet = Kind::Data { group: 1, acknowledge: Acknowledge::None };
        for (millis, number) in [(1, 0), (2, 1), (4, 3), (5, 2)] {
            responder.handle_datagram(at(millis), address(1), &datagram(quiet, 9, number));
        }
        responder.handle_datagram(at(6), address(2), &datagram(quiet, 9, 0));
        responder.handle_datagram(at(7), address(1), &datagram(Kind::Query, 9, 77));
        let [answer] = answers(&mut responder)[..] else { panic!("one question, one answer") };
        let Kind::Report(counts) = answer.kind else { panic!("{answer:?}") };
        assert_eq!((answer.number, counts.datagrams, counts.bytes, counts.late), (77, 4, 320, 1));
        assert_eq!((counts.first, counts.last), (1_000, 5_000));
    }

    #[test]
    fn a_group_is_acknowledged_once_it_is_whole() {
        let mut responder = Responder::new();
        let of_three = Kind::Data { group: 3, acknowledge: Acknowledge::Group };
        // The second group lacks its middle, the third comes in another order.
        for number in [0, 1, 2, 3, 5, 8, 6, 7] {
            responder.handle_datagram(at(number), address(1), &datagram(of_three, 1, number));
        }
        let numbers: Vec<u64> = answers(&mut responder).iter().map(|answer| answer.number).collect();
        assert_eq!(numbers, [2, 7]);
    }

    #[test]
    fn strangers_take_a_bounded_number_of_places() {
        let mut responder = Responder::new();
        let quiet = Kind::Data { group: 1, acknowledge: Acknowledge::None };
        for session in 0..MAX_SESSIONS as u64 + 10 {
            responder.handle_datagram(at(1), address(1), &datagram(quiet, session, 0));
        }
        assert_eq!((responder.sessions.len(), responder.refused()), (MAX_SESSIONS, 10));
        responder.handle_datagram(at(20_000), address(1), &datagram(quiet, 9_999, 0));
        assert_eq!((responder.sessions.len(), responder.refused()), (MAX_SESSIONS, 10));
        for number in 0..MAX_ANSWERS as u64 + 5 {
            responder.handle_datagram(at(20_001), address(1), &datagram(Kind::Query, 9_999, number));
        }
        assert_eq!(answers(&mut responder).len(), MAX_ANSWERS);
    }

    #[test]
    fn answers_to_one_address_leave_together_and_lost_ones_do_not_come_back() {
        let mut responder = Responder::new();
        let each = Kind::Data { group: 1, acknowledge: Acknowledge::Each };
        for (port, number) in [(1, 0), (1, 1), (1, 2), (2, 0), (1, 3)] {
            let counted = responder.handle_datagram(at(1), address(port), &datagram(each, 1, number));
            assert_eq!(counted.map(|probe| probe.number), Some(number));
        }
        let mut next = || {
            let mut bytes = Vec::new();
            responder.poll_answers(&mut bytes, 2).map(|to| (to.port(), bytes.len() / ANSWER_LEN))
        };
        assert_eq!([next(), next(), next()], [Some((1, 2)), Some((1, 1)), Some((2, 1))]);
        responder.lose_answers();
        assert!(!responder.has_answers());
    }
}
