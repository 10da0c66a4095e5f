//! Two endpoints on the simplest network: a fixed delay, and a fate for each datagram. Tests of `farhaul-protocols` include
//! this file, too.

use core::net::SocketAddr;
use std::collections::VecDeque;

use farhaul_units::{Duration, Instant};

use farhaul_proto::{Batch, ConnectionId, ConnectionLost, Endpoint, Event, Mode, Read, Streams, Transport};

pub(crate) const DELAY: Duration = Duration::from_millis(10);

/// The network's treatment of a datagram of one end: how often it arrives, and changes to it.
pub(crate) type Fate = Box<dyn FnMut(usize, &mut Vec<u8>) -> u32>;

/// Two endpoints and the network between them.
pub(crate) struct Pair {
    pub(crate) ends: [Endpoint; 2],
    pub(crate) now: Instant,
    pub(crate) wire: VecDeque<(Instant, usize, Vec<u8>)>,
    pub(crate) events: [Vec<Event>; 2],
    /// When the last event came.
    pub(crate) news: Instant,
    pub(crate) fate: Fate,
    pub(crate) sent: [Vec<usize>; 2],
}

pub(crate) fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 5000 + end as u16))
}

impl Pair {
    /// The second one listens.
    pub(crate) fn between(ends: [Endpoint; 2]) -> Self {
        let mut pair = Self {
            ends,
            now: Instant::from_nanos(1),
            wire: VecDeque::new(),
            events: [Vec::new(), Vec::new()],
            news: Instant::ZERO,
            fate: Box::new(|_, _| 1),
            sent: [Vec::new(), Vec::new()],
        };
        pair.ends[1].listen(Mode::Stream).unwrap();
        pair
    }

    /// Everything due now happens, then time advances. Returns false when nothing will ever happen again.
    pub(crate) fn step(&mut self) -> bool {
        let mut batch = Batch::new();
        for end in 0..2 {
            self.ends[end].handle_timeout(self.now);
            while let Some(transmit) = self.ends[end].poll_transmit(self.now, &mut batch) {
                for datagram in transmit.datagrams() {
                    self.sent[end].push(datagram.len());
                    let mut datagram = datagram.to_vec();
                    for _ in 0..(self.fate)(end, &mut datagram) {
                        self.wire.push_back((self.now + DELAY, 1 - end, datagram.clone()));
                    }
                }
            }
        }
        self.note_events();
        let next = [self.wire.front().map(|(at, ..)| *at), self.ends[0].poll_timeout(), self.ends[1].poll_timeout()];
        let Some(next) = next.into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        while self.wire.front().is_some_and(|(at, ..)| *at <= self.now) {
            let (_, to, mut datagram) = self.wire.pop_front().unwrap();
            let len = datagram.len();
            self.ends[to].handle_datagrams(self.now, self.now, address(1 - to), &mut datagram, len);
        }
        true
    }

    pub(crate) fn note_events(&mut self) {
        for end in 0..2 {
            while let Some(event) = self.ends[end].poll_event() {
                self.events[end].push(event);
                self.news = self.now;
            }
        }
    }

    pub(crate) fn run_until(&mut self, seconds: u64, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.now + Duration::from_secs(seconds);
        while !done(self) {
            let goes_on = self.step() && self.now < end;
            assert!(goes_on || done(self), "not done at {}: {:?}", self.now, self.events);
        }
    }

    pub(crate) fn call(&mut self) -> ConnectionId {
        self.ends[0].connect(self.now, address(1)).unwrap()
    }

    pub(crate) fn connect(&mut self) -> [ConnectionId; 2] {
        let caller = self.call();
        self.run_until(5, |pair| pair.events[0].contains(&Event::Connected(caller)) && !pair.events[1].is_empty());
        [caller, self.events[1][0].connection()]
    }

    pub(crate) fn transfer(&mut self, [from, to]: [ConnectionId; 2], data: &[u8]) -> Vec<u8> {
        let (mut written, mut got, mut buffer) = (0, Vec::new(), vec![0; 100_000]);
        self.run_until(120, |pair| {
            written += pair.ends[0].write(pair.now, from, &data[written..]).unwrap();
            while let Ok(Read::Data(n)) = pair.ends[1].read(pair.now, to, &mut buffer) {
                got.extend_from_slice(&buffer[..n]);
            }
            got.len() == data.len()
        });
        got
    }

    /// The end of a call that fails.
    pub(crate) fn failure(&mut self, seconds: u64) -> ConnectionLost {
        self.call();
        let closed = |events: &[Event]| {
            events.iter().find_map(|event| if let Event::Closed(_, reason) = event { Some(*reason) } else { None })
        };
        self.run_until(seconds, |pair| closed(&pair.events[0]).is_some());
        closed(&self.events[0]).unwrap()
    }
}
