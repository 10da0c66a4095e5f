//! A sender and a receiver over a path that loses and delays.

use std::collections::VecDeque;

use farhaul_units::Rng;

use super::*;
use crate::session::testing::content;

const DELAY: Duration = Duration::from_millis(10);

/// Both programs, and what is in flight.
struct Pair {
    now: Instant,
    sender: SendingSession,
    receiver: ReceivingSession,
    loss: f64,
    lost: u64,
    rng: Rng,
    datagrams: VecDeque<(Instant, Vec<u8>)>,
    forward: VecDeque<(Instant, Vec<u8>)>,
    backward: VecDeque<(Instant, Vec<u8>)>,
    /// Most bytes that the receiver's reader takes per millisecond.
    reader: usize,
    next_read: Instant,
}

impl Pair {
    fn new(sender: SendingSession, receiver: ReceivingSession, loss: f64) -> Self {
        let (datagrams, forward, backward) = Default::default();
        let (now, rng) = (NOW, Rng::new(3));
        Self {
            now,
            sender,
            receiver,
            loss,
            lost: 0,
            rng,
            datagrams,
            forward,
            backward,
            reader: usize::MAX,
            next_read: now,
        }
    }

    /// Transfers `content` and returns what was read.
    fn run(&mut self, content: &[u8], is_stream: bool) -> Vec<u8> {
        let (mut written, mut read) = (0, Vec::new());
        while !(self.receiver.is_complete() && self.sender.is_complete() && self.receiver.available() == 0) {
            assert!(self.now - NOW < Duration::from_secs(100), "{} bytes read", read.len());
            if self.sender.asked().is_some() {
                self.sender.answer(self.now, content.len() as u64).unwrap();
            }
            if written < content.len() {
                written += self.sender.write(self.now, &content[written..]);
            }
            if is_stream && written == content.len() {
                self.sender.finish(self.now);
            }
            while let Some((size, bytes)) = train(&mut self.sender, self.now) {
                for datagram in bytes.chunks(size) {
                    if self.rng.chance(self.loss) {
                        self.lost += 1;
                    } else {
                        self.datagrams.push_back((self.now + DELAY, datagram.to_vec()));
                    }
                }
            }
            self.exchange();
            if self.now >= self.next_read {
                let start = read.len();
                read.resize(start + self.receiver.available().min(self.reader), 0);
                self.receiver.read(&mut read[start..]);
                self.next_read = self.now + Duration::from_millis(1);
            }
            let host_is_next = self.sender.asked().is_some() || written < content.len() && self.sender.room() > 0;
            if !host_is_next {
                self.advance();
            }
        }
        read
    }

    fn exchange(&mut self) {
        let now = self.now;
        while let Some((_, bytes)) = self.forward.pop_front_if(|(at, _)| *at <= now) {
            self.receiver.handle_channel(now, &bytes).unwrap();
        }
        while let Some((_, bytes)) = self.backward.pop_front_if(|(at, _)| *at <= now) {
            self.sender.handle_channel(now, &bytes).unwrap();
        }
        while let Some((_, datagram)) = self.datagrams.pop_front_if(|(at, _)| *at <= now) {
            assert_eq!(self.receiver.handle_datagram(now, PORT, &datagram), DatagramOutcome::Taken);
        }
        self.receiver.end_batch(now);
        self.sender.handle_timeout(now).unwrap();
        self.receiver.handle_timeout(now).unwrap();
        for (queue, bytes) in
            [(&mut self.forward, said(&mut self.sender, now)), (&mut self.backward, said(&mut self.receiver, now))]
        {
            if !bytes.is_empty() {
                queue.push_back((now + DELAY, bytes));
            }
        }
    }

    fn advance(&mut self) {
        let first = |queue: &VecDeque<(Instant, Vec<u8>)>| queue.front().map(|(at, _)| *at);
        let reads = (self.receiver.available() > 0).then_some(self.next_read);
        let next = [
            first(&self.datagrams),
            first(&self.forward),
            first(&self.backward),
            self.sender.deadline(),
            self.receiver.deadline(),
            reads,
        ];
        let next = next.into_iter().flatten().min().unwrap_or(self.now);
        self.now = next.max(self.now + Duration::from_nanos(1));
    }
}

#[test]
fn files_arrive_whatever_is_lost() {
    for (bytes, loss) in [(0, 0.0), (1, 0.3), (1_460, 0.0), (1_461, 0.5), (3_000_000, 0.0), (3_000_000, 0.1)] {
        let content = content(bytes);
        let sender = SendingSession::files(NOW, terms()).unwrap();
        let receiver = ReceivingSession::file(NOW, terms(), b"data").unwrap();
        let mut pair = Pair::new(sender, receiver, loss);
        assert!(pair.run(&content, false) == content, "{bytes} bytes, loss {loss}");
        let (sent, got) = (pair.sender.stats(pair.now), pair.receiver.stats(pair.now));
        assert_eq!((sent.totals.bytes_acked, got.totals.bytes_received), (bytes as u64, bytes as u64));
        assert_eq!(sent.totals.packets_retransmitted, pair.lost, "each lost packet again, and no other");
    }
}

#[test]
fn streams_arrive_whatever_is_lost() {
    for (bytes, loss) in [(1, 0.0), (3_000_000, 0.02)] {
        let content = content(bytes);
        let sender = SendingSession::stream(NOW, Terms { buffer: 1_000_000, ..terms() }).unwrap();
        let mut pair = Pair::new(sender, ReceivingSession::stream(NOW, terms()).unwrap(), loss);
        assert!(pair.run(&content, true) == content, "{bytes} bytes, loss {loss}");
    }
}

#[test]
fn a_file_larger_than_the_receivers_buffer_arrives_at_the_readers_pace() {
    let content = content(2_000_000);
    let sender = SendingSession::files(NOW, terms()).unwrap();
    let receiver = ReceivingSession::file(NOW, Terms { buffer: 100_000, ..terms() }, b"data").unwrap();
    let mut pair = Pair::new(sender, receiver, 0.01);
    pair.reader = 5_000;
    assert!(pair.run(&content, false) == content);
    assert!(pair.receiver.stats(pair.now).memory < 1_000_000);
}
