//! One file that comes from a server of the original.

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};
use farhaul_wire::tsunami::{HEADER_LEN, Header, Kind, Request, Sizes};

use super::options::{ClientOptions, Losses};
use crate::session::Placed;
use farhaul_proto::seq_set::{MAX_CAPACITY, SeqSet};
use farhaul_protocols::tsunami::error_rate::ErrorRate;
use farhaul_protocols::tsunami::horizon::Horizon;
use farhaul_protocols::tsunami::{FIRST_BLOCK, MAX_REQUESTS, REPORT_SPACING, ROUND_BLOCKS};

/// Blocks in flight when a restart is asked for: those of this time at the target rate (tsunami-udp 1.1).
const ON_WIRE: Duration = Duration::from_millis(500);
/// The share of the present rate that a window of losses counts with (tsunami-udp 1.1).
const WINDOW_SHARE: f64 = 0.8;

/// Blocks that wait to be written. The host writes each one as it comes.
const UNWRITTEN: u32 = 0;

/// The state of a transfer.
#[derive(Debug)]
pub(super) struct Receiving {
    sizes: Sizes,
    losses: Losses,
    /// Blocks after the first missing one that arrived. The numbers are those of the blocks modulo 2^31.
    present: SeqSet,
    /// The first missing block.
    missing: u32,
    /// One after the furthest block that arrived.
    end: SeqNo,
    received: u32,
    horizon: Horizon,
    error_rate: ErrorRate,
    /// Blocks that may be in flight.
    on_wire: u32,
    /// Since the last look at what is missing: when it was, and blocks that arrived.
    round: Instant,
    blocks: u32,
    /// Blocks per second in the last interval, at first the target.
    speed: f64,
    /// The last block arrived, so whatever is missing is asked for at once.
    urgent: bool,
    /// Blocks asked for since the last report.
    requests: u32,
    /// When the last datagram came.
    heard: Option<Instant>,
}

impl Receiving {
    pub(super) fn new(sizes: Sizes, options: &ClientOptions, now: Instant) -> Self {
        let on_wire = options.rate.bytes_in(ON_WIRE) / u64::from(sizes.block);
        Self {
            sizes,
            losses: options.losses,
            present: SeqSet::new(FIRST_BLOCK),
            missing: 1,
            end: FIRST_BLOCK,
            received: 0,
            horizon: Horizon::new(FIRST_BLOCK),
            error_rate: ErrorRate::new(options.history),
            on_wire: u32::try_from(on_wire).unwrap_or(MAX_CAPACITY).min(MAX_CAPACITY),
            round: now,
            blocks: 0,
            speed: options.rate.bits_per_second() as f64 / 8.0 / f64::from(sizes.block),
            urgent: false,
            requests: 0,
            heard: None,
        }
    }

    pub(super) const fn heard(&self) -> Option<Instant> {
        self.heard
    }

    /// The block if it is new.
    pub(super) fn handle_datagram<'d>(&mut self, now: Instant, datagram: &'d [u8]) -> Option<Placed<'d>> {
        let (Header { block, kind }, bytes) = Header::split(datagram).ok()?;
        let (offset, length) = self.sizes.place(block)?;
        if datagram.len() != HEADER_LEN + self.sizes.block as usize {
            return None;
        }
        self.heard = Some(now);
        self.blocks = self.blocks.saturating_add(1);
        // Numbers modulo 2^31 have no order further away. Blocks far ahead are asked for later.
        if block < self.missing || block - self.missing >= MAX_CAPACITY {
            return None;
        }
        let seq = SeqNo::new(block);
        self.urgent |= kind == Kind::Last;
        self.horizon.on_block(seq, kind);
        if !self.present.insert(seq) {
            return None;
        }
        self.end = self.end.later(seq.next());
        self.received += 1;
        if block == self.missing {
            let next = self.present.next_absent(seq, self.end);
            self.missing = self.missing.saturating_add(next.distance_from(seq).unsigned_abs());
            self.present.advance(next);
        }
        Some(Placed { offset, bytes: bytes.get(..length)? })
    }

    /// Asks for missing blocks if it is time. Returns how many are missing once the transfer is over.
    pub(super) fn end_batch(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<u32> {
        if self.received == self.sizes.count {
            return Some(0);
        }
        let urgent = std::mem::take(&mut self.urgent);
        if urgent && self.losses != Losses::Repair && self.lost().is_empty() {
            return Some(self.sizes.count - self.received);
        }
        let due = self.blocks >= ROUND_BLOCKS && now - self.round >= REPORT_SPACING;
        if due {
            self.speed = f64::from(self.blocks) / (now - self.round).as_secs_f64();
        }
        if due || urgent {
            self.ask(out);
        }
        if due {
            let error = self.error_rate.report(self.requests, self.blocks, UNWRITTEN);
            out.extend_from_slice(&Request::ErrorRate(error).bytes());
            (self.round, self.blocks, self.requests) = (now, 0, 0);
        }
        None
    }

    /// The blocks among which the missing ones are asked for.
    fn lost(&self) -> SeqRange {
        let (first, last) = (SeqNo::new(self.missing), self.horizon.next().minus(1));
        let all = SeqRange::new(first, last);
        match self.losses {
            Losses::Repair => all,
            Losses::Accept => SeqRange::new(last.next(), last),
            Losses::Window(time) => {
                let blocks = (time.as_secs_f64() * WINDOW_SHARE * self.speed) as u32;
                let recent = SeqRange::new(last.next().minus(blocks.min(all.len())), last);
                let first = self.present.next_absent(recent.first, last.next());
                SeqRange::new(first, last)
            }
        }
    }

    /// Asks for missing blocks, or for a restart if they are too many (paper:survey, Tsunami).
    fn ask(&mut self, out: &mut Vec<u8>) {
        let range = self.lost();
        if range.is_empty() {
            return;
        }
        let end = range.last.next();
        let missing: u32 = self.present.absent_runs(range.first, end).map(SeqRange::len).sum();
        if missing >= MAX_REQUESTS && self.losses == Losses::Repair {
            self.horizon.restart(range.first, self.on_wire);
            self.requests = self.requests.saturating_add(MAX_REQUESTS);
            out.extend_from_slice(&Request::Restart(self.missing).bytes());
            return;
        }
        let mut left = MAX_REQUESTS;
        for run in self.present.absent_runs(range.first, end) {
            let asked = run.len().min(left);
            for number in 0..asked {
                let ahead = run.first.plus(number).distance_from(SeqNo::new(self.missing)).unsigned_abs();
                out.extend_from_slice(&Request::Retransmit(self.missing + ahead).bytes());
            }
            self.requests = self.requests.saturating_add(asked);
            left -= asked;
        }
    }
}
