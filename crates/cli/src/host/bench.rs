//! One side of a measurement, with the stream's figures at hand when they are asked for.

use farhaul::Stream;
use farhaul_session::{Abort, AbortCode, Bench, BenchEvent, Figures, SessionError};
use farhaul_units::Instant;

use super::Session;
use super::measure::Meter;
use super::watch::Watch;

/// A measurement on a stream.
pub(crate) struct BenchJob<'a> {
    session: Bench,
    sends: bool,
    stream: &'a Stream,
    watch: &'a Watch,
    meter: Meter,
    /// Sender's and receiver's figures, and when they were known.
    pub(crate) outcome: Option<(Figures, Figures, Instant)>,
}

impl<'a> BenchJob<'a> {
    pub(crate) fn new(session: Bench, sends: bool, stream: &'a Stream, watch: &'a Watch, meter: Meter) -> Self {
        Self { session, sends, stream, watch, meter, outcome: None }
    }
}

impl Session for BenchJob<'_> {
    fn sends(&self) -> bool {
        self.sends
    }

    fn poll_write(&mut self) -> &[u8] {
        self.session.poll_write(self.meter.now())
    }

    fn handle_written(&mut self, count: usize) {
        self.session.handle_written(self.meter.now(), count);
    }

    fn handle_received(&mut self, bytes: &[u8]) -> Result<usize, SessionError> {
        self.session.handle_received(self.meter.now(), bytes)?;
        Ok(bytes.len())
    }

    fn handle_end(&mut self) -> Result<(), SessionError> {
        self.session.handle_end()
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.session.poll_event() {
            match event {
                BenchEvent::FiguresWanted => {
                    let stats = self.stream.stats().unwrap_or_default();
                    self.session.handle_figures(self.meter.figures(&stats, self.watch.rtt()));
                }
                BenchEvent::Done { sender, receiver } => self.outcome = Some((sender, receiver, self.meter.now())),
                _ => {}
            }
        }
    }

    fn cancel(&mut self) {
        self.session.cancel(Abort { code: AbortCode::Cancelled, message: "it was stopped there".into() });
    }

    fn is_over(&self) -> bool {
        self.session.is_over()
    }

    fn error(&self) -> Option<&SessionError> {
        self.session.error()
    }
}
