//! Sessions with original RBUDP programs, each fed with what a peer could send, and both with one another.

use bolero::check;
use farhaul_originals::rbudp::{PORT, ReceivingSession, SendingSession, Terms};
use farhaul_originals::{DatagramOutcome, OriginalSession};
use farhaul_proto::ChannelEnd;
use farhaul_units::{Duration, Instant, Rng};

use crate::original::train;
use crate::proto::script::Script;

/// Longest input: some hundreds of steps.
const MAX_INPUT: usize = 1_500;
/// Payload bytes of the packets.
const PAYLOAD: u16 = 64;
/// Most bytes of memory of a session whose buffers hold 64 KiB.
const MAX_MEMORY: u64 = 2 << 20;
/// Largest file.
const LARGEST: u64 = 1 << 16;
/// Most times that a session may ask for the same instant.
const MOST_CALLS: usize = 5_000;

fn terms() -> Terms {
    let round_trip = Duration::from_millis(8);
    Terms { payload: PAYLOAD, buffer: 1 << 16, largest: LARGEST, round_trip, ..Terms::default() }
}

/// Bytes of a record with a small number in it, or any bytes.
fn record(script: &mut Script<'_>) -> Vec<u8> {
    let number = u64::from(script.byte()) << (script.byte() % 12);
    match script.byte() % 5 {
        0 => number.to_be_bytes().to_vec(),
        1 => [number as u8, 0, 0, 0, b'E', b'E', b'E', number as u8].to_vec(),
        2 => [&[number as u8 & 1][..], &vec![0xFF; number as usize % 140]].concat(),
        3 => [b"name\0".as_slice(), &[number as u8; 251]].concat(),
        _ => {
            let count = script.byte().into();
            script.bytes(count).to_vec()
        }
    }
}

fn end_of(script: &mut Script<'_>) -> ChannelEnd {
    if script.byte().is_multiple_of(2) { ChannelEnd::Finished } else { ChannelEnd::Failed }
}

/// A receiver, and a peer that sends anything.
#[test]
fn receiver() {
    check!().with_max_len(MAX_INPUT).with_iterations(1_000).for_each(|input: &[u8]| {
        let mut script = Script::new(input);
        let mut now = Instant::from_nanos(1_000_000_000);
        let mut receiver = match script.byte() % 2 {
            0 => ReceivingSession::file(now, terms(), b"name"),
            _ => ReceivingSession::stream(now, terms()),
        }
        .expect("terms in range");
        let (mut out, mut read, mut taken) = (Vec::new(), vec![0; 1 << 12], 0);
        while !script.is_over() {
            let step = match script.byte() % 6 {
                0 => receiver.handle_channel(now, &record(&mut script)),
                1 => {
                    let (index, length) = (u32::from(script.byte()), usize::from(script.byte()) % 66);
                    receiver.handle_datagram(now, PORT, &[&index.to_le_bytes()[..], &vec![7; length]].concat());
                    receiver.end_batch(now);
                    Ok(())
                }
                2 => {
                    for index in 0..u32::from(script.byte()) {
                        receiver.handle_datagram(
                            now,
                            PORT,
                            &[&index.to_le_bytes()[..], &[7; PAYLOAD as usize]].concat(),
                        );
                    }
                    Ok(())
                }
                3 => {
                    now += Duration::from_millis(u64::from(script.byte()));
                    receiver.handle_timeout(now)
                }
                4 => {
                    let most = usize::from(script.byte()) * 16;
                    taken += receiver.read(&mut read[..most]);
                    receiver.ask(now, &vec![b'n'; most / 16]).map_or(Ok(()), Ok)
                }
                _ => {
                    let end = end_of(&mut script);
                    let _ = receiver.channel_ended(now, end);
                    return;
                }
            };
            if step.is_err() {
                return;
            }
            receiver.poll_channel(now, &mut out);
            let stats = receiver.stats(now);
            assert!(stats.memory <= MAX_MEMORY, "{} bytes", stats.memory);
            assert_eq!(stats.totals.bytes_received, (taken + receiver.available()) as u64);
            assert!(receiver.size().is_none_or(|size| size <= LARGEST));
        }
    });
}

/// A sender, and a peer that answers anything.
#[test]
fn sender() {
    check!().with_max_len(MAX_INPUT).with_iterations(1_000).for_each(|input: &[u8]| {
        let mut script = Script::new(input);
        let mut now = Instant::from_nanos(1_000_000_000);
        let mut sender = match script.byte() % 2 {
            0 => SendingSession::files(now, terms()),
            _ => SendingSession::stream(now, terms()),
        }
        .expect("terms in range");
        let (mut out, mut scratch) = (Vec::new(), Vec::new());
        while !script.is_over() {
            let step = match script.byte() % 6 {
                0 => sender.handle_channel(now, &record(&mut script)),
                1 => {
                    let size = u64::from(script.byte()) * 40;
                    sender.answer(now, size).map_or(Ok(()), Ok)
                }
                2 => {
                    let data = vec![7; usize::from(script.byte()) * 40];
                    let room = sender.room();
                    assert_eq!(sender.write(now, &data), room.min(data.len()));
                    sender.flush(now);
                    Ok(())
                }
                3 => {
                    now += Duration::from_millis(u64::from(script.byte()));
                    sender.handle_timeout(now)
                }
                4 => {
                    sender.finish(now);
                    Ok(())
                }
                _ => {
                    let end = end_of(&mut script);
                    let _ = sender.channel_ended(now, end);
                    return;
                }
            };
            if step.is_err() {
                return;
            }
            sender.poll_channel(now, &mut out);
            let mut calls = 0;
            while let Some((size, bytes)) = train(&mut sender, now, &mut scratch) {
                assert!(size == usize::from(PAYLOAD) + 4 && !bytes.is_empty() && bytes.len() <= 65_507);
                calls += 1;
                assert!(calls < MOST_CALLS, "an endless train");
            }
            assert!(sender.stats(now).memory <= MAX_MEMORY);
        }
    });
}

/// A path that loses, copies and swaps datagrams.
struct Path {
    loss: f64,
    copies: f64,
    rng: Rng,
    scratch: Vec<u8>,
}

impl Path {
    fn new(script: &mut Script<'_>) -> Self {
        let (loss, copies) = (f64::from(script.byte() % 128) / 256.0, f64::from(script.byte() % 64) / 256.0);
        Self { loss, copies, rng: Rng::new(script.word().into()), scratch: Vec::new() }
    }

    /// The datagrams that arrive of those that leave now.
    fn carry(&mut self, now: Instant, sender: &mut SendingSession) -> Vec<Vec<u8>> {
        let mut flight = Vec::new();
        while let Some((size, train)) = train(sender, now, &mut self.scratch) {
            for datagram in train.chunks(size) {
                let copies = match (self.rng.chance(self.loss), self.rng.chance(self.copies)) {
                    (true, _) => 0,
                    (false, again) => 1 + usize::from(again),
                };
                flight.extend(std::iter::repeat_n(datagram.to_vec(), copies));
            }
        }
        for at in 1..flight.len() {
            if self.rng.chance(self.copies) {
                flight.swap(at - 1, at);
            }
        }
        flight
    }
}

/// Both sessions over a path that loses, copies and swaps datagrams. Everything arrives, or a session names a fault.
#[test]
fn pair() {
    check!().with_max_len(64).with_iterations(300).for_each(|input: &[u8]| {
        let mut script = Script::new(input);
        let bytes = usize::from(script.byte()) * usize::from(script.byte() % 16);
        let mut path = Path::new(&mut script);
        let content: Vec<u8> = (0..bytes).map(|_| path.rng.next_u32() as u8).collect();
        let mut now = Instant::from_nanos(1_000_000_000);
        let mut sender = SendingSession::files(now, terms()).expect("terms in range");
        let mut receiver = ReceivingSession::file(now, terms(), b"name").expect("terms in range");
        let (mut written, mut received) = (0, Vec::new());
        for _ in 0..100_000 {
            let mut said = Vec::new();
            receiver.poll_channel(now, &mut said);
            if sender.handle_channel(now, &said).is_err() {
                return;
            }
            if sender.asked().is_some() {
                sender.answer(now, bytes as u64).expect("asked");
            }
            written += sender.write(now, &content[written..]);
            let mut said = Vec::new();
            sender.poll_channel(now, &mut said);
            receiver.handle_channel(now, &said).expect("what a sender says");
            let flight = path.carry(now, &mut sender);
            for datagram in &flight {
                assert_eq!(receiver.handle_datagram(now, PORT, datagram), DatagramOutcome::Taken);
            }
            receiver.end_batch(now);
            let start = received.len();
            received.resize(start + receiver.available(), 0);
            receiver.read(&mut received[start..]);
            if sender.is_complete() && receiver.is_complete() {
                assert!(received == content);
                return;
            }
            now += Duration::from_millis(1);
            if sender.handle_timeout(now).is_err() || receiver.handle_timeout(now).is_err() {
                return;
            }
        }
        panic!("neither an end nor a fault");
    });
}
