//! Measurement of a path. One side sends filler bytes as fast as it can, the other counts them, and both learn both
//! figures.
//!
//! Frames go in the direction that the connecting side chose: DATA\*, END(sender's figures) → REPORT(receiver's
//! figures) → TOTALS(sender's figures again). TOTALS is needed because retransmissions of the last bytes are known only
//! then.
//!
//! The content is ignored. Each DATA frame is sent from the same memory. Frames are as long as the format allows. If
//! time ends the measurement, a frame is a share of the bytes before it.

mod backlog;
mod filler;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use farhaul_units::{Duration, Instant};

use crate::course::Course;
use crate::error::{Abort, SessionError, Violation};
use crate::figures::Figures;
use crate::frame_kind::FrameKind;
use crate::framing::{Decoded, Decoder, decode_whole};
use crate::handshake::{Accept, Open};
use crate::outbox::Outbox;
use crate::refusal::{put_abort, received_abort};
use crate::request::Request;
use crate::request::measurement::{BenchSpec, Direction};
use backlog::Backlog;
use filler::Filler;

/// Events of a measurement for its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "a measurement has only three events")]
pub enum BenchEvent {
    /// The accepting side takes part. Reported only on the connecting side.
    Accepted,
    /// The driver must answer with [`Bench::handle_figures`].
    ///
    /// A sender asks once the transport has the last byte, and again once the receiver has confirmed all bytes. A
    /// receiver asks once all bytes and the sender's figures have arrived.
    FiguresWanted,
    /// Both figures are known. The connecting side finishes the stream once everything pending is written.
    Done {
        /// Of the sending side.
        sender: Figures,
        /// Of the receiving side, which determines goodput.
        receiver: Figures,
    },
}

/// One side of a measurement.
///
/// **Contract.** Sans-IO: bytes and time come in, bytes and events go out. Time never goes back. After any input, the
/// driver does the following:
///
/// 1. It writes the bytes of [`poll_write`](Self::poll_write) as far as the stream takes them.
/// 2. It reports the number of bytes by [`handle_written`](Self::handle_written).
/// 3. It repeats this until nothing is pending or the stream is full.
/// 4. It drains [`poll_event`](Self::poll_event).
///
/// A sender has bytes pending until its time has passed, and checks that in each poll. If time ends the measurement, a
/// driver also tells the sender the bytes that left, by [`handle_left`](Self::handle_left). The sender then pauses when
/// the transport has data for the rest of the time, and the driver polls again soon: [`is_paused`](Self::is_paused).
#[derive(Debug)]
pub struct Bench {
    decoder: Decoder,
    state: BenchState,
}

#[derive(Debug, Default)]
struct BenchState {
    course: Course<BenchPhase>,
    awaits_accept: bool,
    out: Outbox,
    events: std::collections::VecDeque<BenchEvent>,
    filler: Option<Filler>,
    backlog: Backlog,
    /// The transport has data for the rest of the time.
    is_paused: bool,
    /// Payload bytes written or received.
    bytes: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    sender: Option<Figures>,
    receiver: Option<Figures>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BenchPhase {
    Sending,
    #[default]
    Receiving,
    /// The driver must supply this side's figures.
    WantsFigures,
    /// END is queued, and the report is missing.
    AwaitsReport,
    /// The report has arrived, and the driver must supply the sender's figures again.
    WantsTotals,
    /// The report is queued, and the sender's last figures are missing.
    AwaitsTotals,
}

impl Bench {
    /// The connecting side of a measurement. The opening frame is pending at once.
    pub fn connect(spec: BenchSpec) -> Self {
        let mut bench = Self::new(spec, spec.direction == Direction::Forward, true);
        Open::new(Request::Bench(spec), 0).put(bench.state.out.bytes());
        bench
    }

    /// The accepting side of a measurement. The driver has checked its request.
    pub fn accept(spec: BenchSpec) -> Self {
        let mut bench = Self::new(spec, spec.direction == Direction::Reverse, false);
        Accept::new(0).put(bench.state.out.bytes());
        bench
    }

    fn new(spec: BenchSpec, sends: bool, awaits_accept: bool) -> Self {
        let state = BenchState {
            course: Course::At(if sends { BenchPhase::Sending } else { BenchPhase::Receiving }),
            awaits_accept,
            filler: sends.then(|| Filler::new(spec.stop)),
            ..BenchState::default()
        };
        Self { decoder: Decoder::default(), state }
    }

    /// Takes all received bytes.
    ///
    /// # Errors
    /// The measurement has failed. The pending bytes tell the peer why. Later calls ignore everything.
    pub fn handle_received(&mut self, now: Instant, bytes: &[u8]) -> Result<(), SessionError> {
        let mut rest = bytes;
        while !self.is_over() {
            let handled = match self.decoder.next(&mut rest) {
                Ok(None) => break,
                Ok(Some(Decoded::Data(data))) => self.state.on_data(now, data.len()),
                Ok(Some(Decoded::Frame(kind, body))) => self.state.on_frame(kind, body),
                Err(violation) => Err(violation.into()),
            };
            handled.map_err(|error| self.state.fail(error))?;
        }
        Ok(())
    }

    /// The peer's stream ended.
    ///
    /// # Errors
    /// It ended before both figures were known.
    pub fn handle_end(&mut self) -> Result<(), SessionError> {
        if self.state.course.is_at(BenchPhase::AwaitsTotals) {
            self.state.complete();
        }
        if self.is_over() { Ok(()) } else { Err(self.state.fail(SessionError::PeerLeft)) }
    }

    /// Bytes to write, at most 1 MiB at a time. They are borrowed from memory that is filled once.
    pub fn poll_write(&mut self, now: Instant) -> &[u8] {
        self.state.poll_write(now)
    }

    /// The bytes of the last [`poll_write`](Self::poll_write) as a block to keep; `None` if they are in no block.
    pub fn pending_block(&self) -> Option<Bytes> {
        self.state.filler.as_ref().filter(|filler| filler.is_under_way()).map(Filler::pending_block)
    }

    /// The transport took the first `count` pending bytes.
    ///
    /// # Panics
    /// If fewer were pending.
    pub fn handle_written(&mut self, now: Instant, count: usize) {
        self.state.handle_written(now, count);
    }

    /// The transport has sent the first `bytes` payload bytes, not counting repetitions. The rest of the written bytes
    /// waits in it. Without this call, the measurement lasts until a full buffer of the transport has left, too.
    pub fn handle_left(&mut self, now: Instant, bytes: u64) {
        self.state.backlog.sample(now, bytes);
    }

    /// Whether the last poll gave nothing because the transport has data for the rest of the time. A rate that rises
    /// ends the pause early, so the driver polls again within milliseconds.
    pub const fn is_paused(&self) -> bool {
        self.state.is_paused
    }

    /// The next event since the last call, oldest first.
    pub fn poll_event(&mut self) -> Option<BenchEvent> {
        self.state.events.pop_front()
    }

    /// The driver's answer to [`BenchEvent::FiguresWanted`]. The session fills in `bytes` and `elapsed`. Ignored if no
    /// figures are wanted.
    pub fn handle_figures(&mut self, figures: Figures) {
        if self.state.course.is_at(BenchPhase::WantsFigures) || self.state.course.is_at(BenchPhase::WantsTotals) {
            self.state.on_figures(figures);
        }
    }

    /// Stops the measurement. The pending bytes tell the peer, after a frame that is half written.
    pub fn cancel(&mut self, abort: Abort) {
        if !self.is_over() {
            self.state.fail(SessionError::Cancelled(abort));
        }
    }

    /// Payload bytes handed to the transport or received so far, for interval reports.
    pub const fn bytes(&self) -> u64 {
        self.state.bytes
    }

    /// Whether the measurement has ended. Pending bytes may remain to be written.
    pub const fn is_over(&self) -> bool {
        self.state.course.is_over()
    }

    /// Why the measurement failed, if it did.
    pub const fn error(&self) -> Option<&SessionError> {
        self.state.course.error()
    }
}

impl BenchState {
    fn on_data(&mut self, now: Instant, count: usize) -> Result<(), SessionError> {
        if !self.course.is_at(BenchPhase::Receiving) || self.awaits_accept {
            return Err(Violation::OutOfPlace(FrameKind::Data).into());
        }
        self.bytes += count as u64;
        self.first.get_or_insert(now);
        self.last = Some(now);
        Ok(())
    }

    fn on_frame(&mut self, kind: FrameKind, body: &[u8]) -> Result<(), SessionError> {
        if self.awaits_accept {
            Accept::awaited(kind, body)?;
            self.awaits_accept = false;
            self.events.push_back(BenchEvent::Accepted);
            return Ok(());
        }
        match (kind, self.course.phase()) {
            (FrameKind::Abort, _) => return Err(received_abort(body)),
            (FrameKind::End, Some(BenchPhase::Receiving)) => {
                self.sender = Some(self.all_of(decode_whole(kind, body, Figures::decode)?)?);
                self.want_figures();
            }
            (FrameKind::Report, Some(BenchPhase::AwaitsReport)) => {
                self.receiver = Some(self.all_of(decode_whole(kind, body, Figures::decode)?)?);
                self.course = Course::At(BenchPhase::WantsTotals);
                self.events.push_back(BenchEvent::FiguresWanted);
            }
            (FrameKind::Totals, Some(BenchPhase::AwaitsTotals)) => {
                self.sender = Some(self.all_of(decode_whole(kind, body, Figures::decode)?)?);
                self.complete();
            }
            _ => return Err(Violation::OutOfPlace(kind).into()),
        }
        Ok(())
    }

    /// Checks that the reported bytes are those of the stream, which lost or added none.
    fn all_of(&self, figures: Figures) -> Result<Figures, SessionError> {
        if figures.bytes == self.bytes { Ok(figures) } else { Err(Violation::Counts.into()) }
    }

    /// Ends the measurement once both sides' figures are known.
    fn complete(&mut self) {
        if let (Some(sender), Some(receiver)) = (self.sender, self.receiver) {
            self.course = Course::Done;
            self.events.push_back(BenchEvent::Done { sender, receiver });
        }
    }

    fn want_figures(&mut self) {
        self.course = Course::At(BenchPhase::WantsFigures);
        self.events.push_back(BenchEvent::FiguresWanted);
    }

    fn on_figures(&mut self, mut figures: Figures) {
        figures.bytes = self.bytes;
        figures.elapsed = match (self.first, self.last) {
            (Some(first), Some(last)) => last.saturating_since(first),
            _ => Duration::ZERO,
        };
        match (self.course.phase(), self.sender) {
            (Some(BenchPhase::WantsTotals), _) => {
                self.out.put(FrameKind::Totals, |out| figures.encode(out));
                self.sender = Some(figures);
                self.complete();
            }
            (_, None) => {
                self.out.put(FrameKind::End, |out| figures.encode(out));
                self.sender = Some(figures);
                self.course = Course::At(BenchPhase::AwaitsReport);
            }
            (_, Some(_)) => {
                self.out.put(FrameKind::Report, |out| figures.encode(out));
                self.receiver = Some(figures);
                self.course = Course::At(BenchPhase::AwaitsTotals);
            }
        }
    }

    /// Small frames come first, unless a DATA frame is half written.
    fn poll_write(&mut self, now: Instant) -> &[u8] {
        self.is_paused = false;
        let Some(filler) = &mut self.filler else { return self.out.pending() };
        if !filler.is_under_way() && self.out.pending().is_empty() && self.course.is_at(BenchPhase::Sending) {
            let spent = self.first.map_or(Duration::ZERO, |first| now.saturating_since(first));
            let rest = filler.time_left(spent);
            self.is_paused = rest.is_some_and(|rest| self.backlog.fills(rest, spent, self.bytes));
            if !self.is_paused && !filler.begin_frame(spent, self.bytes) {
                self.want_figures();
            }
        }
        match &self.filler {
            Some(filler) if filler.is_under_way() => filler.pending(),
            _ => self.out.pending(),
        }
    }

    fn handle_written(&mut self, now: Instant, count: usize) {
        match &mut self.filler {
            Some(filler) if filler.is_under_way() => {
                self.bytes += filler.handle_written(count);
                if count > 0 {
                    self.first.get_or_insert(now);
                    self.last = Some(now);
                }
            }
            _ => self.out.handle_written(count),
        }
    }

    fn fail(&mut self, error: SessionError) -> SessionError {
        self.course.fail(error, |abort| put_abort(self.out.bytes(), abort))
    }
}
