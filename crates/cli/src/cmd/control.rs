//! `--control-stream`: a stable control stream beside a transfer, on the same port.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use farhaul::probe::{Delays, StableConfig, StableFigures};
use farhaul::{ControlStream, Stream};
use farhaul_udp::Clock;
use farhaul_units::{Instant, Rate};

use super::Context;
use super::measured::{delay_record, nobody};
use crate::exit::Fault;
use crate::options::{Transport, datagram_in};
use crate::output::Output;
use crate::output::human::{percent, time};
use crate::output::json::{ControlRecord, bits_per_second};

/// The stream's convergence is looked at so often.
const SLICE: Duration = Duration::from_millis(50);
/// The stream keeps its target if its goodput is within this share of it.
const KEPT: f64 = 0.02;

/// A control stream while a transfer runs.
pub(super) struct Control {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    stream: ControlStream,
    is_plain: bool,
    target: Rate,
    /// Bits of payload in a datagram.
    bits: u64,
    output: Output,
    clock: Clock,
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    stopped: bool,
    /// When the goodput reached the target for the first time, and the datagrams acknowledged until then. Deviations after
    /// that are the stream's, and count.
    settled: Option<(Instant, u64)>,
    warned: bool,
}

impl Control {
    /// Begins a stream with this target to the peer of `bulk`.
    pub(super) fn begin(
        context: &Context,
        output: &Output,
        transport: &Transport,
        bulk: &Stream,
        target: Rate,
    ) -> Result<Self, Fault> {
        let peer = bulk.peer_addr();
        let is_plain = transport.security.plain;
        let datagram = datagram_in(transport.packet(), peer, is_plain);
        let config = StableConfig { datagram, ..StableConfig::new(target) };
        let stream = bulk.control_stream(config).map_err(|error| context.connection_fault(&error, &peer))?;
        let shared = Arc::new(Shared {
            stream,
            is_plain,
            target,
            bits: u64::from(datagram) * 8,
            output: output.clone(),
            clock: context.clock,
            state: Mutex::default(),
            bell: Condvar::new(),
        });
        let its = Arc::clone(&shared);
        let thread = thread::Builder::new().name("control".into()).spawn(move || its.watch())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Ends the stream, and tells what it was.
    pub(super) fn finish(mut self) -> Option<ControlRecord> {
        self.stop();
        self.shared.record().ok()
    }

    fn stop(&mut self) {
        self.shared.state().stopped = true;
        self.shared.bell.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self) {
        let mut state = self.state();
        while !state.stopped {
            state = self.bell.wait_timeout(state, SLICE).unwrap_or_else(PoisonError::into_inner).0;
            let Ok(figures) = self.stream.figures() else { return };
            self.note_convergence(&mut state, &figures);
            if figures.acknowledged == 0 && !state.warned && self.stream.is_alone().unwrap_or(false) {
                state.warned = true;
                self.output.warn(&format!(
                    "the control stream has {}",
                    nobody(self.stream.peer_addr(), self.is_plain).message
                ));
            }
        }
    }

    /// Delays count from the convergence on.
    fn note_convergence(&self, state: &mut State, figures: &StableFigures) {
        let first = figures.converged_after.is_some() && state.settled.is_none();
        if first && self.stream.take_delays().is_ok() {
            state.settled = Some((self.clock.now(), figures.acknowledged));
        }
    }

    fn record(&self) -> Result<ControlRecord, farhaul::Error> {
        let figures = self.stream.figures()?;
        let delays = self.stream.take_delays()?;
        let ceiling = self.stream.ceiling()?;
        let settled = self.state().settled;
        let goodput = settled.map(|(since, acknowledged)| {
            bits_per_second((figures.acknowledged - acknowledged) * self.bits / 8, self.clock.now() - since)
        });
        let target = self.target.bits_per_second();
        let error = goodput.map(|goodput| (goodput as f64 / target as f64 - 1.0).abs());
        Ok(ControlRecord {
            target_bps: target,
            goodput_bps: goodput,
            kept: error.is_some_and(|error| error <= KEPT),
            converged_after_seconds: figures.converged_after.map(|after| after.as_secs_f64()),
            datagrams_sent: figures.sent,
            datagrams_acknowledged: figures.acknowledged,
            jitter: jitter(&delays),
            delay_us: delay_record(&delays),
            ceiling_bps: ceiling.rate.map(Rate::bits_per_second),
        })
    }
}

/// The jitter of delays: deviation over mean; `None` without delays.
fn jitter(delays: &Delays) -> Option<f64> {
    (delays.count() > 1).then(|| delays.jitter())
}

/// The figures of a stream in one line.
pub(super) fn line(control: &ControlRecord) -> String {
    let rate = |bits: u64| Rate::from_bits_per_second(bits).to_string();
    let target = rate(control.target_bps);
    let goodput = match control.goodput_bps {
        Some(goodput) if control.kept => format!("{}, target of {target} kept", rate(goodput)),
        Some(goodput) => format!("{}, target of {target} NOT kept", rate(goodput)),
        None => format!("not settled at its target of {target}"),
    };
    let micros = |name: &str| time(Duration::from_micros(control.delay_us[name].as_u64().unwrap_or(0)));
    let jitter = control.jitter.map_or(String::new(), |jitter| {
        format!("; RTT mean {}, deviation {} (jitter {})", micros("mean"), micros("deviation"), percent(jitter))
    });
    format!("control stream: {goodput}{jitter}")
}
