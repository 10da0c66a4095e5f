//! Message mode keeps boundaries, keeps the order where requested, and drops expired messages.

use farhaul_netem::PathSpec;
use farhaul_proto::udt::{ConnectOptions, Message, MessageOptions};
use farhaul_proto::{ConnectionId, Endpoint, Event, Mode, Stats, Streams};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, address};
use farhaul_sim::{Application, Content, Simulation};
use farhaul_units::{Duration, Instant, Rate, Rng};

use crate::behaviour::scenario::{LIMIT, clean_path, endpoint, random_loss, small_buffers};

const MAX_LEN: u64 = 20_000;
const LEN_OF_NUMBER: usize = 8;

/// Sends `count` messages, or receives messages.
struct Mailbox {
    to_send: u64,
    sent: u64,
    options: MessageOptions,
    /// Every other message is too old as soon as it is written.
    every_other_expired: bool,
    opens: Option<Instant>,
    /// The connection opened by this side.
    opened: Option<ConnectionId>,
    /// Numbers of the messages received, in order of arrival.
    received: Vec<u64>,
    ended: bool,
}

impl Mailbox {
    fn sender(count: u64, options: MessageOptions) -> Self {
        Self { to_send: count, options, opens: Some(Instant::ZERO), ..Self::receiver() }
    }

    fn receiver() -> Self {
        let options = MessageOptions::default();
        let (every_other_expired, received) = (false, Vec::new());
        Self { to_send: 0, sent: 0, options, every_other_expired, opens: None, opened: None, received, ended: false }
    }

    fn send(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        while self.sent < self.to_send {
            let mut options = self.options;
            if self.every_other_expired && self.sent % 2 == 1 {
                options.ttl = Some(Duration::ZERO);
            }
            match endpoint.send_message(now, id, &message(self.sent), options) {
                Ok(true) => self.sent += 1,
                Ok(false) | Err(_) => return,
            }
        }
        endpoint.finish(now, id);
    }

    fn recv(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnectionId) {
        let mut out = [0; 2 * MAX_LEN as usize];
        loop {
            match endpoint.recv_message(now, id, &mut out) {
                Ok(Message::Received { len, truncated }) => {
                    assert_eq!(endpoint.readable(id), 0, "a message is not read as a stream");
                    assert!(!truncated && len >= LEN_OF_NUMBER, "{len} bytes");
                    let number = u64::from_le_bytes(out[..LEN_OF_NUMBER].try_into().expect("it has this length"));
                    assert_eq!(out[..len], message(number), "message {number} is what was sent");
                    self.received.push(number);
                }
                Ok(Message::Pending) | Err(_) => return,
                Ok(Message::End) => {
                    self.ended = true;
                    return;
                }
            }
        }
    }
}

/// Message `number`: the number, then derived content of a derived length.
fn message(number: u64) -> Vec<u8> {
    let mut rng = Rng::new(number);
    let longest = if rng.chance(0.7) { 1_400 } else { MAX_LEN };
    let mut bytes = vec![0; LEN_OF_NUMBER + rng.below(longest) as usize];
    Content::new(rng.next_u64()).fill(0, &mut bytes);
    bytes[..LEN_OF_NUMBER].copy_from_slice(&number.to_le_bytes());
    bytes
}

impl Application<Endpoint> for Mailbox {
    fn poll_timeout(&self) -> Option<Instant> {
        self.opens
    }

    fn handle_timeout(&mut self, now: Instant, endpoint: &mut Endpoint) {
        if self.opens.take_if(|at| *at <= now).is_some() {
            let options = ConnectOptions { mode: Mode::Message, ..ConnectOptions::default() };
            self.opened = endpoint.connect_with(now, address(LISTENER), options).ok();
        }
    }

    fn handle_event(&mut self, now: Instant, endpoint: &mut Endpoint, event: Event) {
        match event {
            Event::Connected(id) | Event::Writable(id) => self.send(now, endpoint, id),
            Event::Accepted(id) | Event::Readable(id) | Event::Closed(id, _) => self.recv(now, endpoint, id),
            _ => {}
        }
    }
}

fn deliver(seed: u64, count: u64, options: MessageOptions, path: PathSpec) -> Simulation<Endpoint, Mailbox> {
    deliver_from(seed, Mailbox::sender(count, options), path)
}

fn deliver_from(seed: u64, sender: Mailbox, path: PathSpec) -> Simulation<Endpoint, Mailbox> {
    let mut listener = endpoint(2 * seed + 1, small_buffers());
    listener.listen(Mode::Message).expect("UDT has the mode");
    let pair = Pair::new(endpoint(2 * seed, small_buffers()), listener).path(path).seed(seed);
    let mut run = pair.start_with([sender, Mailbox::receiver()]);
    run.run_until_true(run.now() + LIMIT, |run| run.application(LISTENER).ended);
    run
}

fn lossy(loss: f64) -> PathSpec {
    PathSpec { loss: random_loss(loss), ..clean_path() }
}

const IN_ORDER: MessageOptions = MessageOptions { ttl: None, in_order: true };
const IN_ANY_ORDER: MessageOptions = MessageOptions { ttl: None, in_order: false };

#[test]
fn ordered_messages_arrive_one_by_one_in_order() {
    for seed in 0..20 {
        let run = deliver(seed, 500, IN_ORDER, lossy(0.03));
        assert!(run.application(LISTENER).received.iter().copied().eq(0..500), "seed {seed}");
    }
}

#[test]
fn unordered_messages_arrive_once_each_and_some_overtake() {
    let mut overtaking = 0;
    for seed in 100..120 {
        let run = deliver(seed, 500, IN_ANY_ORDER, lossy(0.03));
        let mut received = run.application(LISTENER).received.clone();
        overtaking += received.windows(2).filter(|pair| pair[0] > pair[1]).count();
        received.sort_unstable();
        assert!(received.iter().copied().eq(0..500), "seed {seed}: {} messages", received.len());
    }
    assert!(overtaking > 0);
}

#[test]
fn expired_messages_are_dropped_and_the_rest_arrives() {
    for seed in 200..240 {
        let ttl = Some(Duration::from_millis(300));
        let slow = PathSpec { rate: Some(Rate::from_megabits_per_second(5)), ..lossy(0.01) };
        let run = deliver(seed, 500, MessageOptions { ttl, in_order: true }, slow);
        let mailbox = run.application(LISTENER);
        assert!(mailbox.ended, "seed {seed}: the end arrives");
        assert!(mailbox.received.is_sorted(), "seed {seed}: in order");
        assert!((10..490).contains(&mailbox.received.len()), "seed {seed}: {} arrived", mailbox.received.len());
    }
}

/// An RTT of 20 ms at any rate, so that packets are lost by chance alone.
fn without_queue(loss: f64) -> PathSpec {
    PathSpec { delay: Duration::from_millis(10), loss: random_loss(loss), ..PathSpec::default() }
}

/// Delivers 500 messages of which every other one expires before it leaves. Returns the received numbers and the
/// sender's counters.
fn deliver_every_other(seed: u64, options: MessageOptions, path: PathSpec) -> (Vec<u64>, Stats) {
    let sender = Mailbox { every_other_expired: true, ..Mailbox::sender(500, options) };
    let run = deliver_from(seed, sender, path);
    let id = run.application(CALLER).opened.expect("the endpoint has room");
    let stats = run.transport(CALLER).stats(run.now(), id).expect("it was not released");
    (run.application(LISTENER).received.clone(), stats)
}

#[test]
fn messages_that_are_given_up_unsent_are_no_losses() {
    for options in [IN_ORDER, IN_ANY_ORDER] {
        let (received, stats) = deliver_every_other(7, options, without_queue(0.0));
        assert!(received.into_iter().eq((0..500).step_by(2)), "{options:?}");
        let totals = stats.totals;
        assert_eq!((totals.messages_dropped, totals.naks_received, totals.packets_lost_sending), (250, 0, 0));
    }
}

#[test]
fn a_lost_drop_request_is_repeated_and_its_message_is_no_loss() {
    for seed in 300..310 {
        let (received, stats) = deliver_every_other(seed, IN_ORDER, without_queue(0.05));
        assert!(received.into_iter().eq((0..500).step_by(2)), "seed {seed}");
        let totals = stats.totals;
        assert_eq!(totals.messages_dropped, 250, "seed {seed}");
        // One packet in twenty, retransmissions included. The expired messages have as many packets as the others.
        let lost = totals.packets_lost_sending as f64 / totals.packets_sent as f64;
        assert!((0.03..0.08).contains(&lost), "seed {seed}: {lost}");
    }
}
