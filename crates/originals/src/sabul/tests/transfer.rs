//! Both sessions against each other, with loss, delay and reordering.

use std::collections::VecDeque;

use farhaul_units::Rng;

use super::*;
use crate::sabul::StreamEnd;
use crate::session::testing::content;
use farhaul_proto::channel::ChannelEnd;

const DELAY: Duration = Duration::from_millis(5);

/// A path between the sessions.
struct Path {
    now: Instant,
    rng: Rng,
    loss: f64,
    /// Share of datagrams that take 3 ms longer.
    late: f64,
    datagrams: VecDeque<(Instant, Vec<u8>)>,
    forth: VecDeque<(Instant, Vec<u8>)>,
    back: VecDeque<(Instant, Vec<u8>)>,
}

fn take<T>(queue: &mut VecDeque<(Instant, T)>, now: Instant) -> Option<T> {
    let at = queue.iter().position(|(at, _)| *at <= now)?;
    queue.remove(at).map(|(_, item)| item)
}

impl Path {
    fn new(loss: f64, late: f64) -> Self {
        let empty = VecDeque::new;
        Self { now: at(0), rng: Rng::new(5), loss, late, datagrams: empty(), forth: empty(), back: empty() }
    }

    /// Moves what is due, then the time to the next event.
    fn step(&mut self, sender: &mut Sender, receiver: &mut Receiver) {
        let now = self.now;
        sender.handle_timeout(now);
        receiver.handle_timeout(now);
        while let Some((size, bytes)) = train(&mut **sender, now) {
            for datagram in bytes.chunks(size) {
                if self.rng.unit() >= self.loss {
                    let late = if self.rng.unit() < self.late { Duration::from_millis(3) } else { Duration::ZERO };
                    self.datagrams.push_back((now + DELAY + late, datagram.to_vec()));
                }
            }
        }
        while let Some(datagram) = take(&mut self.datagrams, now) {
            receiver.handle_datagram(now, PEER_PORT.port(), &datagram);
            receiver.end_batch(now);
        }
        while let Some(bytes) = take(&mut self.forth, now) {
            receiver.handle_channel(now, &bytes);
        }
        while let Some(bytes) = take(&mut self.back, now) {
            sender.handle_channel(now, &bytes);
        }
        for (queue, out) in [
            (&mut self.forth, channel(|out| sender.poll_channel(now, out))),
            (&mut self.back, channel(|out| receiver.poll_channel(now, out))),
        ] {
            if !out.is_empty() {
                queue.push_back((now + DELAY, out));
            }
        }
        let queues = [&self.datagrams, &self.forth, &self.back].into_iter().flatten().map(|(at, _)| *at);
        let next = queues.chain(sender.deadline()).chain(receiver.deadline()).min();
        self.now = next.unwrap_or(now).max(now + Duration::from_nanos(1));
    }
}

fn channel(poll: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    poll(&mut out);
    out
}

fn transfer(options: &Options, loss: f64, late: f64, bytes: usize) {
    let content = content(bytes);
    let mut path = Path::new(loss, late);
    let mut sender = new_sender(options);
    let mut receiver = new_receiver();
    let (mut written, mut received) = (0, Vec::new());
    while !sender.ends_sending() || !path.forth.is_empty() {
        assert_eq!(sender.fault, None);
        written += sender.write(path.now, &content[written..]);
        if written == content.len() {
            sender.finish(path.now);
        }
        path.step(&mut sender, &mut receiver);
        let mut out = [0; 20_000];
        while let length @ 1.. = receiver.read(&mut out) {
            received.extend_from_slice(&out[..length]);
        }
        assert!(path.now < at(120_000), "{} bytes arrived", received.len());
    }
    receiver.channel_ended(path.now, ChannelEnd::Finished);
    sender.channel_ended(path.now, ChannelEnd::Finished);
    assert!(sender.is_over());
    assert_eq!((sender.fault, receiver.fault, receiver.end()), (None, None, Some(StreamEnd::Closed)));
    assert!(received == content, "{} of {} bytes", received.len(), content.len());
}

#[test]
fn a_stream_arrives_with_the_rules_of_the_original() {
    transfer(&Options::original(), 0.0, 0.0, 5_000_000);
}

#[test]
fn a_stream_arrives_with_a_bounded_start() {
    transfer(&Options::default(), 0.0, 0.0, 5_000_000);
}

#[test]
fn a_stream_arrives_with_loss_and_reordering() {
    transfer(&Options::original(), 0.01, 0.02, 3_000_000);
    transfer(&Options::default(), 0.001, 0.02, 3_000_000);
}

#[test]
fn an_empty_stream_ends_without_a_datagram() {
    transfer(&Options::default(), 0.0, 0.0, 0);
}
