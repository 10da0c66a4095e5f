//! A stable control stream beside a transfer, on the same port.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use std::net::SocketAddr;

use farhaul::probe::{Delays, PROTECTION_OVERHEAD, StableConfig, StableFigures};
use farhaul::{ControlStream, Stream};
use farhaul_udp::Clock;
use farhaul_units::{Instant, Rate};
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::event::Events;
use crate::report::{ControlReport, bits_per_second, micros};
use crate::settings::Settings;

/// Headers of IP and UDP in a packet (RFC 791, RFC 8200, RFC 768).
const IPV4_HEADERS: u32 = 28;
const IPV6_HEADERS: u32 = 48;
/// Largest UDP payload of IPv4.
const LONGEST: u32 = 65_507;
/// The largest packet of most paths: that of Ethernet.
const USUAL_PACKET: u32 = 1_500;
/// The stream's convergence is looked at so often.
const SLICE: Duration = Duration::from_millis(50);
/// The stream keeps its target if its goodput is within this share of it.
const KEPT: f64 = 0.02;

/// A control stream while a transfer runs.
pub struct Control {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    stream: ControlStream,
    is_plain: bool,
    target: Rate,
    /// Bits of payload in a datagram.
    bits: u64,
    events: Events,
    clock: Clock,
    state: Mutex<ControlState>,
    bell: Condvar,
}

#[derive(Default)]
struct ControlState {
    stopped: bool,
    /// When the goodput reached the target for the first time, and the datagrams acknowledged until then. Deviations after
    /// that are the stream's, and count.
    settled: Option<(Instant, u64)>,
    warned: bool,
}

impl Control {
    /// Begins a stream with this target to the peer of `bulk`.
    ///
    /// # Errors
    /// The connection is gone, or the system gives no thread.
    pub fn begin(environment: &Environment, settings: &Settings, bulk: &Stream, target: Rate) -> Result<Self, Error> {
        let peer = bulk.peer_addr();
        let is_plain = settings.security.plain;
        let datagram = datagram_in(settings.mtu.unwrap_or(USUAL_PACKET), peer, is_plain);
        let config = StableConfig { datagram, ..StableConfig::new(target) };
        let stream = bulk.control_stream(config).map_err(|error| environment.connection_error(&error, &peer))?;
        let shared = Arc::new(Shared {
            stream,
            is_plain,
            target,
            bits: u64::from(datagram) * 8,
            events: environment.events.clone(),
            clock: environment.clock,
            state: Mutex::default(),
            bell: Condvar::new(),
        });
        let its = Arc::clone(&shared);
        let thread = thread::Builder::new().name("control".into()).spawn(move || its.watch())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Ends the stream, and tells what it was.
    pub fn finish(mut self) -> Option<ControlReport> {
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
    fn state(&self) -> MutexGuard<'_, ControlState> {
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
                self.events.warn(&format!(
                    "the control stream has {}",
                    Error::of_unanswered_stream(self.stream.peer_addr(), self.is_plain)
                ));
            }
        }
    }

    /// Delays count from the convergence on.
    fn note_convergence(&self, state: &mut ControlState, figures: &StableFigures) {
        let first = figures.converged_after.is_some() && state.settled.is_none();
        if first && self.stream.take_delays().is_ok() {
            state.settled = Some((self.clock.now(), figures.acknowledged));
        }
    }

    fn record(&self) -> Result<ControlReport, farhaul::Error> {
        let figures = self.stream.figures()?;
        let delays = self.stream.take_delays()?;
        let ceiling = self.stream.ceiling()?;
        let settled = self.state().settled;
        let goodput = settled.map(|(since, acknowledged)| {
            bits_per_second((figures.acknowledged - acknowledged) * self.bits / 8, self.clock.now() - since)
        });
        let target = self.target.bits_per_second();
        let error = goodput.map(|goodput| (goodput as f64 / target as f64 - 1.0).abs());
        Ok(ControlReport {
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

/// The figures of delays in reports, microseconds.
pub fn delay_record(delays: &Delays) -> Value {
    let quantile = |part| delays.quantile(part).map(micros);
    json!({
        "count": delays.count(),
        "mean": micros(delays.mean()),
        "deviation": micros(delays.deviation()),
        "p50": quantile(0.5),
        "p99": quantile(0.99),
    })
}

/// The datagram of a measured stream in a packet of `mtu` bytes to `peer`: its UDP payload, and with encryption what the
/// packet protection leaves of that.
pub fn datagram_in(mtu: u32, peer: SocketAddr, is_plain: bool) -> u16 {
    let headers = if peer.is_ipv4() { IPV4_HEADERS } else { IPV6_HEADERS };
    let overhead = if is_plain { 0 } else { PROTECTION_OVERHEAD as u32 };
    u16::try_from(mtu.saturating_sub(headers).min(LONGEST).saturating_sub(overhead)).unwrap_or(u16::MAX)
}

impl Error {
    /// Nobody answers measured streams at `peer`.
    pub fn of_unanswered_stream(peer: SocketAddr, is_plain: bool) -> Self {
        let plain = if is_plain { " --plain" } else { "" };
        Self::new(
            Code::ConnectTimeout,
            format!(
                "no answer from {peer} within 3 s: nothing there answers measured streams, or UDP is blocked on the way"
            ),
        )
        .remedy(format!(
            "start `farhaul bench{plain} --listen :{}` there, and check that firewalls let this UDP port through",
            peer.port()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_its_headers_and_the_longest_one_fits() {
        let of = |mtu, peer: &str| datagram_in(mtu, peer.parse().unwrap(), true);
        assert_eq!((of(1_500, "1.2.3.4:5"), of(9_000, "[::1]:5"), of(65_535, "1.2.3.4:5")), (1_472, 8_952, 65_507));
        let enclosed = |mtu, peer: &str| datagram_in(mtu, peer.parse().unwrap(), false);
        assert_eq!(enclosed(1_500, "1.2.3.4:5"), 1_472 - PROTECTION_OVERHEAD as u16);
        assert_eq!(
            enclosed(65_535, "1.2.3.4:5"),
            65_507 - PROTECTION_OVERHEAD as u16,
            "packet protection fits as well"
        );
    }
}
