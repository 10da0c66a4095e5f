//! Measuring: one side sends bytes of no meaning as fast as it can, the other counts them, both learn both figures.
//!
//! DATA\*, END(sender's figures) → REPORT(receiver's figures) → TOTALS(sender's figures again: what was sent again for the last
//! bytes is known only now), in the direction that the connecting side chose. The content is not looked at; DATA is sent again
//! and again from the same memory, as long as frames allow, or where time ends it a share of what went before.

mod filler;
#[cfg(test)]
mod tests;

use farhaul_units::{Duration, Instant};

use crate::course::Course;
use crate::error::{Abort, Malformed, SessionError, Violation};
use crate::field::{Fields, decode_whole};
use crate::figures::Figures;
use crate::framing::{Decoder, FrameKind, Piece};
use crate::opening::{Accept, Open, Request, put_abort, received_abort};
use crate::outbox::Outbox;
use filler::Filler;

/// What is to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchSpec {
    /// Who sends.
    pub direction: Direction,
    /// When the sender stops.
    pub stop: Stop,
}

/// Which way the data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the connecting to the accepting side.
    Forward,
    /// From the accepting to the connecting side (`--reverse`).
    Reverse,
}

/// When a measurement ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After this time, counted by the sender from its first byte; frames under way are completed.
    After(Duration),
    /// After this many bytes.
    Bytes(u64),
}

/// What a measurement tells its host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "there are three of them in a measurement")]
pub enum BenchEvent {
    /// The accepting side takes part. Only on the connecting side.
    Accepted,
    /// Data is over; the host answers with [`Bench::handle_figures`]. A sender asks when the last byte was handed to
    /// the transport, and again when the receiver has confirmed all of them; a receiver when all bytes and the sender's
    /// figures have come.
    FiguresWanted,
    /// Both figures are known; the connecting side finishes the stream once everything pending is written.
    Done {
        /// Of the side that sent.
        sender: Figures,
        /// Of the side that received: the truth about goodput.
        receiver: Figures,
    },
}

/// One side of a measurement.
///
/// **Contract.** Sans-IO: bytes and time come in, bytes and events go out. After any input the host writes
/// [`poll_write`](Self::poll_write)'s bytes as far as the stream takes them, tells how many by
/// [`handle_written`](Self::handle_written), repeats until nothing is pending or the stream is full, then drains
/// [`poll_event`](Self::poll_event). Time never goes back. A sender always has bytes pending until its time is over,
/// and notices that when it is polled.
#[derive(Debug)]
pub struct Bench {
    decoder: Decoder,
    state: State,
}

#[derive(Debug)]
struct State {
    course: Course<Phase>,
    awaits_accept: bool,
    out: Outbox,
    events: std::collections::VecDeque<BenchEvent>,
    filler: Option<Filler>,
    /// Payload bytes written or received.
    bytes: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    sender: Option<Figures>,
    receiver: Option<Figures>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Sending,
    Receiving,
    /// The host is asked for this side's figures.
    WantsFigures,
    /// END is written; the report is missing.
    AwaitsReport,
    /// The report has come, and the host is asked for the sender's figures again.
    WantsTotals,
    /// The report is written; the sender's last figures are missing.
    AwaitsTotals,
}

impl Bench {
    /// The connecting side of a measurement; the opening frame is pending at once.
    pub fn connect(spec: BenchSpec) -> Self {
        let mut bench = Self::new(spec, spec.direction == Direction::Forward, true);
        Open::new(Request::Bench(spec), 0).put(bench.state.out.bytes());
        bench
    }

    /// The accepting side of a measurement whose request the host has checked.
    pub fn accept(spec: BenchSpec) -> Self {
        let mut bench = Self::new(spec, spec.direction == Direction::Reverse, false);
        Accept::new(0).put(bench.state.out.bytes());
        bench
    }

    fn new(spec: BenchSpec, sends: bool, awaits_accept: bool) -> Self {
        let state = State {
            course: Course::At(if sends { Phase::Sending } else { Phase::Receiving }),
            awaits_accept,
            out: Outbox::default(),
            events: std::collections::VecDeque::new(),
            filler: sends.then(|| Filler::new(spec.stop)),
            bytes: 0,
            first: None,
            last: None,
            sender: None,
            receiver: None,
        };
        Self { decoder: Decoder::default(), state }
    }

    /// Takes all received bytes.
    ///
    /// # Errors
    /// The measurement is over and failed; what is pending tells the peer why. Later calls ignore everything.
    pub fn handle_received(&mut self, now: Instant, bytes: &[u8]) -> Result<(), SessionError> {
        let mut rest = bytes;
        while !self.is_over() {
            let handled = match self.decoder.next(&mut rest) {
                Ok(None) => break,
                Ok(Some(Piece::Data(data))) => self.state.on_data(now, data.len()),
                Ok(Some(Piece::Frame(kind, body))) => self.state.on_frame(kind, body),
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
        if self.state.course.is_at(Phase::AwaitsTotals) {
            self.state.complete();
        }
        if self.is_over() { Ok(()) } else { Err(self.state.fail(SessionError::PeerLeft)) }
    }

    /// Bytes to write, borrowed from memory that is filled once. Up to 1 MiB at a time.
    pub fn poll_write(&mut self, now: Instant) -> &[u8] {
        self.state.poll_write(now)
    }

    /// The first `count` bytes that were pending are with the transport.
    ///
    /// # Panics
    /// If fewer were pending.
    pub fn handle_written(&mut self, now: Instant, count: usize) {
        self.state.handle_written(now, count);
    }

    /// What happened since the last call.
    pub fn poll_event(&mut self) -> Option<BenchEvent> {
        self.state.events.pop_front()
    }

    /// The host's answer to [`BenchEvent::FiguresWanted`]. `bytes` and `elapsed` are filled in here. Ignored if nothing
    /// was asked.
    pub fn handle_figures(&mut self, figures: Figures) {
        if self.state.course.is_at(Phase::WantsFigures) || self.state.course.is_at(Phase::WantsTotals) {
            self.state.on_figures(figures);
        }
    }

    /// Stops; the peer is told by what is then pending, after the frame that is half written.
    pub fn cancel(&mut self, abort: Abort) {
        if !self.is_over() {
            self.state.fail(SessionError::Cancelled(abort));
        }
    }

    /// Payload bytes handed to the transport or received so far, for intervals.
    pub const fn bytes(&self) -> u64 {
        self.state.bytes
    }

    /// Whether nothing more will happen, apart from writing what is pending.
    pub const fn is_over(&self) -> bool {
        self.state.course.is_over()
    }

    /// Why the measurement failed, if it did.
    pub const fn error(&self) -> Option<&SessionError> {
        self.state.course.error()
    }
}

impl State {
    fn on_data(&mut self, now: Instant, count: usize) -> Result<(), SessionError> {
        if !self.course.is_at(Phase::Receiving) || self.awaits_accept {
            return Err(Violation::OutOfPlace(FrameKind::Data).into());
        }
        self.bytes += count as u64;
        self.first.get_or_insert(now);
        self.last = Some(now);
        Ok(())
    }

    fn on_frame(&mut self, kind: FrameKind, body: &[u8]) -> Result<(), SessionError> {
        match (kind, self.course.phase()) {
            (FrameKind::Abort, _) => return Err(received_abort(body)),
            (FrameKind::Accept, _) if self.awaits_accept => {
                Accept::decode(body)?;
                self.awaits_accept = false;
                self.events.push_back(BenchEvent::Accepted);
            }
            _ if self.awaits_accept => return Err(SessionError::NotFarhaul),
            (FrameKind::End, Some(Phase::Receiving)) => {
                self.sender = Some(self.all_of(decode_whole(kind, body, Figures::decode)?)?);
                self.want_figures();
            }
            (FrameKind::Report, Some(Phase::AwaitsReport)) => {
                self.receiver = Some(self.all_of(decode_whole(kind, body, Figures::decode)?)?);
                self.course = Course::At(Phase::WantsTotals);
                self.events.push_back(BenchEvent::FiguresWanted);
            }
            (FrameKind::Totals, Some(Phase::AwaitsTotals)) => {
                self.sender = Some(self.all_of(decode_whole(kind, body, Figures::decode)?)?);
                self.complete();
            }
            _ => return Err(Violation::OutOfPlace(kind).into()),
        }
        Ok(())
    }

    /// What is reported must be what was sent: the stream lost or invented nothing.
    fn all_of(&self, figures: Figures) -> Result<Figures, SessionError> {
        if figures.bytes == self.bytes { Ok(figures) } else { Err(Violation::Counts.into()) }
    }

    /// Both sides' figures are known.
    fn complete(&mut self) {
        if let (Some(sender), Some(receiver)) = (self.sender, self.receiver) {
            self.course = Course::Done;
            self.events.push_back(BenchEvent::Done { sender, receiver });
        }
    }

    fn want_figures(&mut self) {
        self.course = Course::At(Phase::WantsFigures);
        self.events.push_back(BenchEvent::FiguresWanted);
    }

    fn on_figures(&mut self, mut figures: Figures) {
        figures.bytes = self.bytes;
        figures.elapsed = match (self.first, self.last) {
            (Some(first), Some(last)) => last.saturating_since(first),
            _ => Duration::ZERO,
        };
        match (self.course.phase(), self.sender) {
            (Some(Phase::WantsTotals), _) => {
                self.out.put(FrameKind::Totals, |out| figures.encode(out));
                self.sender = Some(figures);
                self.complete();
            }
            (_, None) => {
                self.out.put(FrameKind::End, |out| figures.encode(out));
                self.sender = Some(figures);
                self.course = Course::At(Phase::AwaitsReport);
            }
            (_, Some(_)) => {
                self.out.put(FrameKind::Report, |out| figures.encode(out));
                self.receiver = Some(figures);
                self.course = Course::At(Phase::AwaitsTotals);
            }
        }
    }

    /// Small frames first, unless a DATA frame is half written.
    fn poll_write(&mut self, now: Instant) -> &[u8] {
        let Some(filler) = &mut self.filler else { return self.out.pending() };
        if !filler.is_under_way() && self.out.pending().is_empty() && self.course.is_at(Phase::Sending) {
            let spent = self.first.map_or(Duration::ZERO, |first| now.saturating_since(first));
            if !filler.begin_frame(spent, self.bytes) {
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

impl BenchSpec {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.push(match self.direction {
            Direction::Forward => 0,
            Direction::Reverse => 1,
        });
        let (unit, amount) = match self.stop {
            Stop::After(duration) => (0, u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)),
            Stop::Bytes(bytes) => (1, bytes),
        };
        out.push(unit);
        out.extend_from_slice(&amount.to_be_bytes());
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body);
        let direction = match fields.u8()? {
            0 => Direction::Forward,
            1 => Direction::Reverse,
            _ => return Err(Malformed::Value("direction")),
        };
        let unit = fields.u8()?;
        let amount = fields.u64()?;
        let stop = match unit {
            0 => Stop::After(Duration::from_nanos(amount)),
            1 => Stop::Bytes(amount),
            _ => return Err(Malformed::Value("unit")),
        };
        Ok(Self { direction, stop })
    }
}
