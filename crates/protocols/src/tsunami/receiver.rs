//! The receiving end between two Farhaul ends.

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};
use farhaul_wire::tsunami::{HEADER_LEN, Header, Kind, Request};

use super::error_rate::ErrorRate;
use super::horizon::Horizon;
use super::lately::Lately;
use super::{MAX_REQUESTS, Options, REPORT_SPACING, ROUND_BLOCKS};
use crate::blast::engine::{self, Setup};
use crate::blast::receiving::{ReceiverState, packets_in};
use farhaul_proto::buffer::Insert;
use farhaul_proto::stats::Stats;

/// Shortest time between prompt requests. Fewer and longer looks at what is missing cost less.
const PROMPT_SPACING: Duration = Duration::from_millis(10);
/// Addition to the RTT before a block is asked for again promptly: two rounds.
const PROMPT_SLACK: Duration = Duration::from_millis(20);
/// Blocks in flight when a restart is asked for: those of this time (tsunami-udp 1.1).
const ON_WIRE: Duration = Duration::from_millis(500);
/// Bytes of requests that wait for the channel, beyond which no others are added.
const MAX_WAITING: usize = MAX_REQUESTS as usize * Request::LEN;
/// Additional blocks that the buffer holds, because blocks before a pause may be short.
const SHORT_BLOCKS: u32 = 1_024;
/// Most blocks that the buffer may hold: a quarter of the number space, as far as numbers have an order.
const MAX_BLOCKS: u32 = 1 << 29;

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Receiver {
    options: Options,
    state: ReceiverState,
    horizon: Horizon,
    /// Blocks that were asked for less than an RTT ago.
    asked: Lately,
    error_rate: ErrorRate,
    /// Blocks since the last look at what is missing.
    blocks: u32,
    round: Instant,
    /// The last block arrived, so whatever is missing is asked for at once.
    urgent: bool,
    /// Since the last report of the error rate: when it was, blocks that arrived, and blocks asked for.
    report: Instant,
    reported_blocks: u32,
    requests: u32,
    /// Records for the sender.
    out: Vec<u8>,
}

impl Receiver {
    /// A receiver that expects the block `first`.
    pub(crate) fn new(first: SeqNo, options: &Options, setup: &Setup<'_>) -> Self {
        let payload = setup.payload_size(HEADER_LEN);
        let by_memory = packets_in(setup.config.recv_buffer, payload);
        let capacity = by_memory.saturating_add(SHORT_BLOCKS).min(MAX_BLOCKS);
        Self {
            options: *options,
            state: ReceiverState::new(first, payload, capacity, setup),
            horizon: Horizon::new(first),
            asked: Lately::new(first, setup.now),
            error_rate: ErrorRate::new(options.history),
            blocks: 0,
            round: setup.now,
            urgent: false,
            report: setup.now,
            reported_blocks: 0,
            requests: 0,
            out: Vec::new(),
        }
    }

    fn send(&mut self, request: Request) {
        self.out.extend_from_slice(&request.bytes());
        self.state.counts.naks += 1;
    }

    /// The blocks that are taken for lost.
    fn missing(&self) -> SeqRange {
        SeqRange::new(self.state.buffer.ack_point(), self.horizon.next().minus(1))
    }

    /// Asks for what is missing.
    fn look(&mut self, now: Instant) {
        self.blocks = 0;
        self.round = now;
        self.urgent = false;
        let range = self.missing();
        if range.is_empty() || self.out.len() >= MAX_WAITING {
            return;
        }
        self.asked.turn(now, self.state.round_trip + self.state.round_trip / 4 + PROMPT_SLACK);
        if self.options.gaps { self.ask_for_gaps(range) } else { self.ask_for_blocks(now, range) }
    }

    /// A record per gap.
    fn ask_for_gaps(&mut self, range: SeqRange) {
        let mut from = range.first;
        for _ in 0..MAX_REQUESTS {
            let Some(run) = self.next_to_ask(SeqRange::new(from, range.last)) else { return };
            let (first, last) = (run.first.value(), run.last.value());
            self.send(if first == last {
                Request::Retransmit(first)
            } else {
                Request::RetransmitRange { first, last }
            });
            self.note_asked(run);
            from = run.last.next();
        }
    }

    /// The original's rule: a record per block, and a restart when too many are missing.
    fn ask_for_blocks(&mut self, now: Instant, range: SeqRange) {
        let missing: u32 = self.state.missing(range).map(SeqRange::len).sum();
        if missing >= MAX_REQUESTS {
            let first = self.state.buffer.ack_point();
            let passed = (now - self.report).as_secs_f64().max(PROMPT_SPACING.as_secs_f64());
            let speed = f64::from(self.reported_blocks) / passed;
            self.horizon.restart(first, (speed * ON_WIRE.as_secs_f64()) as u32);
            self.requests = self.requests.saturating_add(MAX_REQUESTS);
            self.send(Request::Restart(first.value()));
            return;
        }
        let mut from = range.first;
        while let Some(run) = self.next_to_ask(SeqRange::new(from, range.last)) {
            for number in 0..run.len() {
                self.send(Request::Retransmit(run.first.plus(number).value()));
            }
            self.note_asked(run);
            from = run.last.next();
        }
    }

    /// The next run of `range` that is missing and, if asked promptly, was not asked for lately.
    fn next_to_ask(&self, range: SeqRange) -> Option<SeqRange> {
        let mut runs = self.state.missing(range);
        if !self.options.prompt {
            return runs.next();
        }
        runs.find_map(|run| self.asked.first_run_without(run))
    }

    fn note_asked(&mut self, run: SeqRange) {
        self.requests = self.requests.saturating_add(run.len());
        self.state.counts.lost += u64::from(run.len());
        if self.options.prompt {
            self.asked.insert(run);
        }
    }

    fn report_error_rate(&mut self, now: Instant) {
        // Credit keeps a slow reader from being overrun, so no ring of blocks fills up.
        let error = self.error_rate.report(self.requests, self.reported_blocks, 0);
        self.send(Request::ErrorRate(error));
        (self.report, self.reported_blocks, self.requests) = (now, 0, 0);
    }
}

impl engine::Receiver for Receiver {
    fn state(&self) -> &ReceiverState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ReceiverState {
        &mut self.state
    }

    fn handle_datagram(&mut self, _now: Instant, datagram: &[u8]) -> bool {
        let Ok((header, payload)) = Header::split(datagram) else { return false };
        let mut block = SeqNo::new(header.block);
        if block.value() != header.block || payload.is_empty() {
            return false;
        }
        if self.state.store(block, payload) == Insert::Rejected {
            if payload.len() > self.state.payload_size {
                return false;
            }
            // Beyond the buffer. It tells at least that all blocks that the buffer could hold were sent.
            block = self.state.room_end().minus(1);
        }
        self.horizon.on_block(block, header.kind);
        self.blocks = self.blocks.saturating_add(1);
        self.reported_blocks = self.reported_blocks.saturating_add(1);
        self.urgent |= header.kind == Kind::Last;
        true
    }

    fn end_batch(&mut self, now: Instant) {
        let spacing = if self.options.prompt { PROMPT_SPACING } else { REPORT_SPACING };
        let enough = self.blocks >= ROUND_BLOCKS;
        if self.urgent || (enough && now - self.round >= spacing) {
            self.look(now);
        }
        if self.reported_blocks >= ROUND_BLOCKS && now - self.report >= REPORT_SPACING {
            self.report_error_rate(now);
        }
    }

    fn poll_control(&mut self, _now: Instant, out: &mut Vec<u8>) {
        out.append(&mut self.out);
    }

    fn read(&mut self, out: &mut [u8]) -> usize {
        let read = self.state.read(out);
        // The buffer holds no block before this, so no set needs to remember it.
        self.asked.advance(self.state.buffer.next_to_read());
        read
    }

    fn fill_stats(&self, _now: Instant, stats: &mut Stats) {
        self.state.fill_stats(stats);
        stats.memory += (self.asked.memory() + self.out.capacity()) as u64;
    }
}
