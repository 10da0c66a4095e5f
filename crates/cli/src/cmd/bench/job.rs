//! One side of a measurement, with the figures of its stream.

use std::rc::Rc;
use std::time::Duration;

use farhaul::{Bytes, Stream};
use farhaul_session::{Abort, AbortCode, Bench, BenchEvent, Figures, SessionError};
use farhaul_transfer::internal::keys::{Exhausted, Permit};
use farhaul_transfer::internal::limit::Caps;
use farhaul_transfer::internal::session::measure::{self, Meter, Sender};
use farhaul_transfer::internal::session::watch::Watch;
use farhaul_transfer::internal::session::{Session, WaitTimes, Waits};
use farhaul_units::Instant;

/// Time between two looks at what has left.
const TELL_LEFT: Duration = Duration::from_millis(1);

/// A measurement on a stream.
pub(crate) struct BenchJob<'a> {
    session: Bench,
    sends: bool,
    stream: &'a Stream,
    watch: &'a Watch,
    meter: Meter,
    caps: Caps,
    permit: Permit,
    /// Time for which the rate of the peer's key held it back.
    held_back: Duration,
    wait_times: Option<Rc<WaitTimes>>,
    /// When the session was last told what has left.
    told_left: Instant,
    /// When the session first requested this side's figures. A receiver then has all data.
    complete: Option<Instant>,
    /// The peer's key may move no more.
    pub(crate) exhausted: Option<Exhausted>,
    /// Figures of the sender and of the receiver, and the time of their arrival.
    pub(crate) outcome: Option<(Figures, Figures, Instant)>,
}

impl<'a> BenchJob<'a> {
    pub(crate) fn new(session: Bench, sends: bool, stream: &'a Stream, watch: &'a Watch, meter: Meter) -> Self {
        let (caps, permit, wait_times) = (Caps::default(), Permit::default(), None);
        Self {
            session,
            sends,
            stream,
            watch,
            meter,
            caps,
            permit,
            held_back: Duration::ZERO,
            wait_times,
            told_left: Instant::ZERO,
            complete: None,
            exhausted: None,
            outcome: None,
        }
    }

    /// The job under these caps, which may limit it.
    pub(crate) fn under(self, caps: Caps) -> Self {
        Self { caps, ..self }
    }

    /// The job of a peer whose key has these caps.
    pub(crate) fn within(self, permit: Permit) -> Self {
        Self { permit, ..self }
    }

    /// Facts about this side as the sender.
    pub(crate) fn sender(&self, waits: Waits) -> Sender {
        Sender { held_back: self.held_back.as_secs_f64(), ..self.caps.sender(waits) }
    }

    /// Charges the peer's key for bytes, and waits for as long as its rate gives them.
    fn charge(&mut self, bytes: usize) {
        match self.permit.charge(bytes, self.meter.clock()) {
            Ok(waited) => self.held_back += waited,
            Err(exhausted) => {
                self.exhausted = Some(exhausted);
                self.session.cancel(Abort { code: AbortCode::Refused, message: exhausted.0.into() });
            }
        }
    }

    /// Tells the session the bytes that have left this computer.
    fn report_left(&mut self, now: Instant) {
        let Ok(stats) = self.stream.stats() else { return };
        let once = stats.totals.packets_sent.saturating_sub(stats.totals.packets_retransmitted);
        let left = (once * u64::from(stats.payload_size)).min(stats.totals.bytes_written);
        self.session.handle_left(now, left.max(stats.totals.bytes_acked));
    }

    fn give_figures(&mut self) {
        self.complete.get_or_insert(self.meter.now());
        let stats = self.stream.stats().unwrap_or_default();
        let mut figures = self.meter.figures(&stats, self.watch.rtt());
        if let Some(wait_times) = self.wait_times.as_ref().filter(|_| self.sends) {
            measure::write_limit(&mut figures, self.meter, &stats, &self.sender(wait_times.waits()));
        }
        self.session.handle_figures(figures);
    }
}

impl Session for BenchJob<'_> {
    fn begin(&mut self, wait_times: &Rc<WaitTimes>) {
        self.wait_times = Some(Rc::clone(wait_times));
    }

    fn sends(&self) -> bool {
        self.sends
    }

    fn poll_write(&mut self) -> &[u8] {
        let now = self.meter.now();
        if self.sends && now.saturating_since(self.told_left) >= TELL_LEFT {
            self.told_left = now;
            self.report_left(now);
        }
        let pending = self.session.poll_write(now);
        &pending[..pending.len().min(self.permit.portion())]
    }

    fn pending_block(&mut self) -> Option<Bytes> {
        self.session.pending_block()
    }

    fn is_paused(&self) -> bool {
        self.session.is_paused()
    }

    fn handle_written(&mut self, count: usize) {
        self.session.handle_written(self.meter.now(), count);
        self.charge(count);
    }

    fn handle_received(&mut self, bytes: &[u8]) -> Result<usize, SessionError> {
        self.charge(bytes.len());
        self.session.handle_received(self.meter.now(), bytes)?;
        Ok(bytes.len())
    }

    fn looks_at_data(&self) -> bool {
        false
    }

    fn awaits_disk(&self) -> bool {
        false
    }

    fn handle_end(&mut self) -> Result<(), SessionError> {
        self.session.handle_end()
    }

    fn handle_events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.session.poll_event() {
            any = true;
            match event {
                BenchEvent::FiguresWanted => self.give_figures(),
                BenchEvent::Done { sender, receiver } => {
                    let complete = self.complete.filter(|_| !self.sends);
                    self.outcome = Some((sender, receiver, complete.unwrap_or(self.meter.now())));
                }
                _ => {}
            }
        }
        any
    }

    fn cancel(&mut self, why: Abort) {
        self.session.cancel(why);
    }

    fn is_over(&self) -> bool {
        self.session.is_over()
    }

    fn error(&self) -> Option<&SessionError> {
        self.session.error()
    }
}
