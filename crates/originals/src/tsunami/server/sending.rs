//! One file that is sent to a client of the original.

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant, Rate, SendPeriod};
use farhaul_wire::tsunami::{HEADER_LEN, Header, Kind, Parameters, Request, Sizes};

use farhaul_proto::pacer::Pacer;
use farhaul_protocols::tsunami::delay::{self, Delay, Law};
use farhaul_protocols::tsunami::silence::Silence;

use super::Fault;

/// Requests that wait. A client keeps as many at most (32 · 2048), and asks again for those that are dropped here.
const MAX_WAITING: usize = 65_536;
/// Most bytes of a train: the largest payload of UDP over IPv4.
const MAX_TRAIN_BYTES: usize = 65_507;
/// Most datagrams of a train: Linux' limit (UDP_MAX_SEGMENTS).
const MAX_TRAIN: u32 = 64;
/// Pause between repetitions of the last block, to which the present delay is added: ten times the longest delay
/// (tsunami-udp 1.1).
const LAST_SPACING: Duration = Duration::from_millis(100);
/// The RTT for the pacer, which then catches up 2 ms of lateness. The server measures none.
const ROUND_TRIP: Duration = Duration::ZERO;

/// Consecutive blocks that may leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Train {
    /// Where its bytes begin in the file.
    pub(super) offset: u64,
    /// How many bytes of the file it carries.
    pub(super) length: usize,
    first: u32,
    blocks: u32,
    /// On request.
    again: bool,
}

/// Counts of one transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferCounts {
    /// Blocks sent, repetitions included.
    pub sent: u64,
    /// Blocks sent on request.
    pub retransmitted: u64,
    /// Times that the client went back.
    pub restarts: u64,
    /// Requests for blocks that the file does not have, or beyond the number that may wait.
    pub refused: u64,
}

/// The state of a transfer.
#[derive(Debug)]
pub(super) struct Sending {
    /// The client's.
    port: u16,
    sizes: Sizes,
    delay: Delay,
    pacer: Pacer,
    silence: Silence,
    /// Blocks asked for, oldest first.
    waiting: VecDeque<u32>,
    /// The last block that left in its turn.
    counter: u32,
    /// When the last block leaves again.
    repeat: Instant,
    /// When the last record came.
    heard: Instant,
    counts: TransferCounts,
}

impl Sending {
    pub(super) fn new(port: u16, sizes: Sizes, parameters: &Parameters, rate: Rate, now: Instant) -> Self {
        let law = Law::new(parameters.error_threshold, parameters.slower, parameters.faster);
        let target = delay::whole_target(sizes.block as usize, rate);
        let mut sending = Self {
            port,
            sizes,
            delay: Delay::new(law, target, delay::START_FACTOR),
            pacer: Pacer::default(),
            silence: Silence::new(now),
            waiting: VecDeque::new(),
            counter: 0,
            repeat: now,
            heard: now,
            counts: TransferCounts::default(),
        };
        sending.pace();
        sending
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    pub(super) const fn counts(&self) -> TransferCounts {
        self.counts
    }

    pub(super) const fn heard(&self) -> Instant {
        self.heard
    }

    fn pace(&mut self) {
        self.pacer.set_period(SendPeriod::from_micros(self.delay.micros()), ROUND_TRIP);
    }

    /// Handles a record other than a stop.
    pub(super) fn handle_request(&mut self, now: Instant, request: Request) -> Result<(), Fault> {
        self.heard = now;
        self.silence.on_record(now);
        match request {
            Request::Retransmit(block) if self.has(block) && self.waiting.len() < MAX_WAITING => {
                self.waiting.push_back(block);
            }
            Request::Restart(block) if self.has(block) => {
                // Blocks asked for before lie behind this one, and leave again in their turn.
                self.waiting.clear();
                self.counter = block;
                self.counts.restarts += 1;
                self.repeat = now;
            }
            Request::Retransmit(_) | Request::Restart(_) => self.counts.refused += 1,
            Request::ErrorRate(error) => {
                self.delay.on_report(error);
                self.pace();
            }
            // No client of the original sends a range.
            Request::RetransmitRange { .. } | Request::Stop => return Err(Fault::OutOfTurn),
        }
        Ok(())
    }

    const fn has(&self, block: u32) -> bool {
        block >= 1 && block <= self.sizes.count
    }

    /// Whether a block other than the last one or its repetition can leave. An empty file has the last block alone, whose
    /// number is 0: the original client ends a file only once a last block has come.
    fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || self.counter < self.sizes.count
    }

    pub(super) fn plan(&mut self, now: Instant) -> Option<Train> {
        if !self.is_busy() && now < self.repeat {
            return None;
        }
        let datagram = HEADER_LEN + self.sizes.block as usize;
        let fits = u32::try_from(MAX_TRAIN_BYTES / datagram).unwrap_or(1).clamp(1, MAX_TRAIN);
        let most = self.pacer.allowance(now).min(fits);
        if most == 0 {
            return None;
        }
        let (first, blocks, again) = if let Some(&first) = self.waiting.front() {
            let run = self.waiting.iter().zip(first..=u32::MAX).take(most as usize);
            (first, run.take_while(|(block, expected)| **block == *expected).count() as u32, true)
        } else {
            let first = self.counter.saturating_add(1).min(self.sizes.count);
            (first, most.min(self.sizes.count - first + 1), false)
        };
        if self.sizes.count == 0 {
            return Some(Train { offset: 0, length: 0, first, blocks, again });
        }
        let (offset, _) = self.sizes.place(first)?;
        let (last, last_length) = self.sizes.place(first + (blocks - 1))?;
        let length = usize::try_from(last - offset).ok()? + last_length;
        Some(Train { offset, length, first, blocks, again })
    }

    pub(super) fn emit(&mut self, now: Instant, train: Train, content: &[u8], out: &mut Vec<u8>) -> usize {
        let size = self.sizes.block as usize;
        let mut content = content.chunks(size);
        for block in train.first..=train.first + (train.blocks - 1) {
            let kind = match train.again {
                true => Kind::Retransmission,
                false if block == self.sizes.count => Kind::Last,
                false => Kind::Original,
            };
            out.extend_from_slice(&Header { block, kind }.bytes());
            let content = content.next().unwrap_or_default();
            out.extend_from_slice(content);
            out.resize(out.len() + size - content.len(), 0);
        }
        self.counts.sent += u64::from(train.blocks);
        if train.again {
            self.counts.retransmitted += u64::from(train.blocks);
            self.waiting.drain(..self.waiting.len().min(train.blocks as usize));
        } else {
            self.counter = train.first + (train.blocks - 1);
        }
        self.pacer.on_sent(now, train.blocks);
        if self.silence.on_sent(now, train.blocks) {
            self.delay.on_report(delay::ALL);
            self.pace();
        }
        if self.counter == self.sizes.count && !train.again {
            self.repeat = now + LAST_SPACING + Duration::from_nanos((self.delay.micros() * 1e3) as u64);
        }
        HEADER_LEN + size
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let paced = self.pacer.deadline();
        if self.is_busy() { paced } else { paced.map(|paced| paced.max(self.repeat)) }
    }
}
