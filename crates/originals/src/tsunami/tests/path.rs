//! A client and a server over a path in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;

use farhaul_units::{Duration, Instant, Rate, Rng};
use farhaul_wire::tsunami::PORT;

use super::super::{
    Client, ClientEvent, ClientOptions, Fault, Listed, NameRefused, Server, ServerEvent, ServerOptions, TransferCounts,
};
use super::{challenge, start};
use crate::session::testing::content;
use crate::session::testing::{Watched, said};
use crate::session::{DatagramOutcome, OriginalSession as _};

/// Bytes of IPv4 and UDP headers.
const HEADERS: usize = 28;
/// Virtual time after which a test fails.
const LIMIT: Duration = Duration::from_secs(300);
/// Blocks that are read from the path at once.
const BATCH: usize = 8;

/// The files of a server.
pub(super) struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    pub(super) fn new(files: &[(&str, usize)]) -> Self {
        Self(files.iter().map(|(name, size)| ((*name).to_owned(), content(*size))).collect())
    }

    /// The bytes of a file; none if there is no such file.
    pub(super) fn content(&self, name: &str) -> Vec<u8> {
        self.0.get(name).cloned().unwrap_or_default()
    }
}

/// The path between the sessions.
pub(super) struct Link {
    pub(super) rate: Rate,
    /// One way.
    pub(super) delay: Duration,
    pub(super) queue: usize,
    pub(super) loss: f64,
}

impl Default for Link {
    /// 10 Gbit/s, an RTT of 10 ms, a queue of 1000 datagrams, no loss.
    fn default() -> Self {
        let rate = Rate::from_megabits_per_second(10_000);
        Self { rate, delay: Duration::from_millis(5), queue: 1_000, loss: 0.0 }
    }
}

/// Both sessions.
pub(super) struct Pair {
    pub(super) now: Instant,
    pub(super) client: Watched<Client>,
    pub(super) server: Watched<Server>,
    pub(super) files: Files,
    /// The file as the client has it.
    pub(super) received: Vec<u8>,
    /// Counts of the last transfer that the client stopped.
    pub(super) stopped: Option<TransferCounts>,
    events: VecDeque<ClientEvent>,
    link: Link,
    rng: Rng,
    asked: String,
    free: Instant,
    queued: VecDeque<Instant>,
    datagrams: VecDeque<(Instant, Vec<u8>)>,
    to_client: VecDeque<(Instant, Vec<u8>)>,
    to_server: VecDeque<(Instant, Vec<u8>)>,
}

impl Pair {
    pub(super) fn new(client: ClientOptions, server: ServerOptions, files: Files, link: Link, seed: u64) -> Self {
        let now = start();
        Self {
            now,
            client: Watched::new(Client::new(client, now)),
            server: Watched::new(Server::new(server, challenge(), now)),
            files,
            received: Vec::new(),
            stopped: None,
            events: VecDeque::new(),
            link,
            rng: Rng::new(seed),
            asked: String::new(),
            free: now,
            queued: VecDeque::new(),
            datagrams: VecDeque::new(),
            to_client: VecDeque::new(),
            to_server: VecDeque::new(),
        }
    }

    /// Gets a file and returns how it ended.
    pub(super) fn get(&mut self, name: &str) -> ClientEvent {
        self.received.clear();
        self.stopped = None;
        self.ask(|client, now| client.get(now, name.as_bytes(), 46_224));
        let result = self.result();
        while self.stopped.is_none() && matches!(result, ClientEvent::Done { .. }) {
            self.step();
        }
        result
    }

    /// Makes a request as soon as the client takes one.
    pub(super) fn ask(&mut self, request: impl Fn(&mut Client, Instant) -> Result<(), NameRefused>) {
        while request(&mut self.client, self.now).is_err() {
            self.step();
        }
    }

    /// The next event of the client, other than admission and grants.
    pub(super) fn result(&mut self) -> ClientEvent {
        let begin = self.now;
        loop {
            self.note_events();
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            self.step();
            assert!(self.now - begin < LIMIT, "no end");
        }
    }

    /// Why the client's session and the server's failed.
    pub(super) fn faults(&mut self) -> [Option<Fault>; 2] {
        while self.client.fault.is_none() || self.server.fault.is_none() {
            assert!(self.now - start() < LIMIT, "no fault");
            self.step();
        }
        [self.client.fault, self.server.fault]
    }

    /// Lets everything arrive that is in flight.
    pub(super) fn deliver_all(&mut self) {
        let end = self.now + self.link.delay * 4;
        while self.now < end {
            self.step();
        }
    }

    /// The work of the client's host.
    fn note_events(&mut self) {
        while let Some(event) = self.client.poll_event() {
            match event {
                ClientEvent::Admitted => {}
                ClientEvent::Granted { size } => self.received = vec![0; size as usize],
                event => self.events.push_back(event),
            }
        }
    }

    fn step(&mut self) {
        self.exchange();
        self.answer();
        self.send();
        self.receive();
        self.exchange();
        let next = [
            self.datagrams.front().map(|(at, _)| *at),
            self.to_client.front().map(|(at, _)| *at),
            self.to_server.front().map(|(at, _)| *at),
            self.client.deadline(),
            self.server.deadline(),
        ];
        let next = next.into_iter().flatten().min().unwrap_or(self.now + Duration::from_millis(1));
        self.now = next.max(self.now + Duration::from_nanos(1));
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
    }

    fn exchange(&mut self) {
        let arrival = self.now + self.link.delay;
        let (up, down) = (said(&mut *self.client, self.now), said(&mut *self.server, self.now));
        for (bytes, queue) in [(up, &mut self.to_server), (down, &mut self.to_client)] {
            if !bytes.is_empty() {
                queue.push_back((arrival, bytes));
            }
        }
        while self.to_server.front().is_some_and(|(at, _)| *at <= self.now) {
            let (_, bytes) = self.to_server.pop_front().unwrap();
            // In two pieces, so that records are divided anywhere.
            let (one, two) = bytes.split_at(bytes.len() / 2);
            self.server.handle_channel(self.now, one);
            self.server.handle_channel(self.now, two);
        }
        while self.to_client.front().is_some_and(|(at, _)| *at <= self.now) {
            let (_, bytes) = self.to_client.pop_front().unwrap();
            self.client.handle_channel(self.now, &bytes);
        }
    }

    /// The work of the server's host.
    fn answer(&mut self) {
        while let Some(event) = self.server.poll_event() {
            match event {
                ServerEvent::Asked(name) => {
                    self.asked = String::from_utf8(name).unwrap();
                    match self.files.0.get(&self.asked) {
                        Some(content) => self.server.grant(self.now, content.len() as u64, 0),
                        None => self.server.refuse(self.now),
                    }
                }
                ServerEvent::ListAsked => {
                    let files = self.files.0.iter();
                    let listed = |(name, content): (&String, &Vec<u8>)| Listed {
                        name: name.clone().into_bytes(),
                        size: content.len() as u64,
                    };
                    let files: Vec<Listed> = files.map(listed).collect();
                    self.server.give_list(self.now, &files);
                }
                ServerEvent::Stopped(counts) => self.stopped = Some(counts),
                _ => {}
            }
        }
    }

    fn send(&mut self) {
        loop {
            let (files, asked) = (&self.files, &self.asked);
            let content = |offset: u64, out: &mut [u8]| {
                let from = offset as usize;
                out.copy_from_slice(&files.0[asked][from..from + out.len()]);
                Ok::<_, Infallible>(())
            };
            let mut scratch = Vec::new();
            let Ok(train) = self.server.poll_datagrams(self.now, content, &mut scratch);
            let Some((size, train)) = train.map(|(size, train)| (size, train.to_vec())) else { break };
            for datagram in train.chunks(size) {
                assert_eq!(datagram.len(), size, "all datagrams have the size of a block");
                self.put(datagram.to_vec());
            }
        }
    }

    fn put(&mut self, datagram: Vec<u8>) {
        while self.queued.front().is_some_and(|left| *left <= self.now) {
            self.queued.pop_front();
        }
        if self.queued.len() >= self.link.queue || self.rng.chance(self.link.loss) {
            return;
        }
        let bits = (datagram.len() + HEADERS) as f64 * 8.0;
        let time = Duration::from_secs_f64(bits / self.link.rate.bits_per_second() as f64);
        self.free = self.free.max(self.now) + time;
        self.queued.push_back(self.free);
        self.datagrams.push_back((self.free + self.link.delay, datagram));
    }

    fn receive(&mut self) {
        self.note_events();
        while self.datagrams.front().is_some_and(|(at, _)| *at <= self.now) {
            for _ in 0..BATCH {
                if self.datagrams.front().is_none_or(|(at, _)| *at > self.now) {
                    break;
                }
                let Some((_, datagram)) = self.datagrams.pop_front() else { break };
                if let DatagramOutcome::Block(placed) = self.client.handle_datagram(self.now, PORT, &datagram) {
                    let from = placed.offset as usize;
                    self.received[from..from + placed.bytes.len()].copy_from_slice(placed.bytes);
                }
            }
            self.client.end_batch(self.now);
        }
    }
}
