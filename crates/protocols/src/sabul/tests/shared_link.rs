//! Several flows over one link in virtual time. Each has its own RTT and its own first rate.
//!
//! ```text
//! Sender 1 ─┐                              ┌─▶ Receiver 1
//! Sender 2 ─┼─▶ queue ─▶ link ─▶ delay ─────┼─▶ Receiver 2      control records: delay, no loss
//! Sender 3 ─┘                              └─▶ Receiver 3
//! ```

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::blast::{TAG_LEN, Tag};

use crate::blast::engine::{Prefix, Protocol, Receiver, Sender, Setup};
use crate::sabul::{Options, Sabul};
use farhaul_proto::config::Config;

/// Bytes of IPv4 and UDP headers, which occupy the link.
const HEADERS: usize = 28;
const START: Instant = Instant::from_nanos(1_000_000_000);

/// The link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) rate: Rate,
    /// Datagrams that wait; more are lost.
    pub(super) queue: usize,
}

/// A transfer without end.
struct Flow {
    sender: <Sabul as Protocol>::Sender,
    receiver: <Sabul as Protocol>::Receiver,
    delay: Duration,
    datagrams: VecDeque<(Instant, Vec<u8>)>,
    control: VecDeque<(Instant, Vec<u8>)>,
    next: Instant,
}

/// The flows and their link.
pub(super) struct SharedLink {
    link: Link,
    flows: Vec<Flow>,
    /// When the link is free again, and when each waiting datagram leaves the queue.
    free: Instant,
    queued: VecDeque<Instant>,
    now: Instant,
    scratch: Vec<u8>,
}

impl SharedLink {
    /// Flows with these options and round-trip times. They begin one after another within a millisecond.
    pub(super) fn new(link: Link, flows: &[(Options, Duration)]) -> Self {
        let config = Config::default();
        let make = |(number, (options, round_trip)): (usize, &(Options, Duration))| {
            let now = START + Duration::from_micros(137) * number as u32;
            let setup = || Setup {
                config: &config,
                datagram: 1_472,
                prefix: Prefix::Tag(Tag(number as u64)),
                round_trip: *round_trip,
                now,
            };
            Flow {
                sender: Sabul::sender(options, setup()),
                receiver: Sabul::receiver(options, &Sabul::hello(options), setup()).expect("its own hello"),
                delay: *round_trip / 2,
                datagrams: VecDeque::new(),
                control: VecDeque::new(),
                next: now,
            }
        };
        let flows = flows.iter().enumerate().map(make).collect();
        Self { link, flows, free: START, queued: VecDeque::new(), now: START, scratch: Vec::new() }
    }

    /// Runs until `time` after the start. Returns the bytes that each flow has delivered so far.
    pub(super) fn run_until(&mut self, time: Duration) -> Vec<u64> {
        let end = START + time;
        while let Some(next) = self.flows.iter().map(|flow| flow.next).min().filter(|next| *next <= end) {
            self.now = next;
            for number in 0..self.flows.len() {
                if self.flows[number].next <= next {
                    self.step(number);
                }
            }
        }
        self.flows.iter().map(|flow| flow.receiver.state().delivered()).collect()
    }

    fn step(&mut self, number: usize) {
        let now = self.now;
        let flow = &mut self.flows[number];
        while flow.control.front().is_some_and(|(at, _)| *at <= now) {
            let (_, bytes) = flow.control.pop_front().expect("there is a first");
            flow.sender.handle_control(now, &bytes).expect("its own receiver");
        }
        while flow.datagrams.front().is_some_and(|(at, _)| *at <= now) {
            let (_, datagram) = flow.datagrams.pop_front().expect("there is a first");
            assert!(flow.receiver.handle_datagram(now, &datagram[TAG_LEN..]), "its own sender");
            flow.receiver.end_batch(now);
        }
        flow.receiver.handle_timeout(now);
        flow.sender.handle_timeout(now);
        let mut out = [0; 4_096];
        while flow.receiver.read(&mut out) > 0 {}
        while flow.sender.room() >= out.len() && flow.sender.write(now, &out) > 0 {}
        let mut records = Vec::new();
        flow.receiver.poll_control(now, &mut records);
        if !records.is_empty() {
            flow.control.push_back((now + flow.delay, records));
        }
        self.send(number);
        let flow = &mut self.flows[number];
        let due = [&flow.datagrams, &flow.control].map(|queue| queue.front().map(|(at, _)| *at));
        let due = due.into_iter().chain([flow.sender.deadline(), flow.receiver.deadline()]).flatten().min();
        flow.next = due.unwrap_or(now + Duration::from_millis(1)).max(now + Duration::from_nanos(1));
    }

    fn send(&mut self, number: usize) {
        let Self { link, flows, free, queued, now, scratch } = self;
        let flow = &mut flows[number];
        while let Some(plan) = flow.sender.plan(*now) {
            let Some((size, bytes)) = flow.sender.emit(*now, plan, scratch) else { break };
            for datagram in bytes.chunks(size) {
                while queued.front().is_some_and(|left| left <= now) {
                    queued.pop_front();
                }
                if queued.len() < link.queue {
                    *free = (*free).max(*now) + link.rate.time_for((datagram.len() + HEADERS) as u64);
                    queued.push_back(*free);
                    flow.datagrams.push_back((*free + flow.delay, datagram.to_vec()));
                }
            }
        }
    }
}

/// Jain's index of fairness (paper:jain-1984): 1 if all are equal, 1/n if one has everything.
pub(super) fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 0.0 }
}
