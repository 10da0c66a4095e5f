//! The verbs, one file each, and their shared parts.

pub(crate) mod bench;
pub(crate) mod bootstrap;
mod capacity;
pub(crate) mod clean;
pub(crate) mod controllers;
pub(crate) mod copy;
pub(crate) mod ctl;
pub(crate) mod demo;
pub(crate) mod doctor;
mod drawing;
pub(crate) mod emulate;
pub(crate) mod files;
mod kernel_file;
pub(crate) mod key;
pub(crate) mod lab;
mod link_report;
mod listing;
pub(crate) mod manual;
mod measured;
#[cfg(feature = "originals")]
pub(crate) mod original;
pub(crate) mod pipe;
pub(crate) mod profile;
pub(crate) mod protocols;
pub(crate) mod relay;
pub(crate) mod rsh;
pub(crate) mod serve;
pub(crate) mod stream;
pub(crate) mod verify;
pub(crate) mod version;

use std::fmt::Display;
use std::time::Duration;

use farhaul::{Endpoint, Error, Stats};
use farhaul_emu::EmulateError;
use farhaul_transfer::internal::Limit;
use farhaul_transfer::internal::Trouble;
use farhaul_transfer::internal::bond::BondedStream;
use farhaul_transfer::internal::report::{ControlReport, Report};
use farhaul_transfer::{Environment, Observer, Throttle};
use farhaul_udp::Clock;
use farhaul_units::{ByteSize, Rate};
use serde_json::{Map, Value};

use crate::ctl::Controlled;
use crate::exit::Fault;
use crate::interrupt::{AtSignals, Interrupt};
use crate::output::human::{count, percent, time};
use crate::output::json::{End, ErrorRecord, Flow, Record, Start};
use crate::output::{self, Output};

/// Shared by all verbs: the clock, the signals, the right to emulate.
pub(crate) struct Context {
    pub(crate) clock: Clock,
    pub(crate) interrupt: Interrupt,
    /// Caps and pauses what the verb does.
    pub(crate) throttle: Throttle,
    /// Whether this process may create networks. Known only to verbs that create or examine some.
    pub(crate) networks: Result<(), EmulateError>,
}

/// Acquires or checks the right to create networks.
pub(crate) type NetworkRights = fn() -> Result<(), EmulateError>;

impl Context {
    /// Call it while the program has a single thread.
    pub(crate) fn begin(rights: NetworkRights, at_signals: AtSignals) -> Result<Self, Fault> {
        // Rights apply to all later threads, and the reaction to signals starts the first one.
        let networks = rights();
        let (clock, interrupt) = (Clock::start(), Interrupt::install(at_signals)?);
        Ok(Self { clock, interrupt, throttle: Throttle::default(), networks })
    }

    /// What copies and servers share, with this observer of their events.
    pub(crate) fn environment(&self, observer: impl Observer + 'static) -> Environment {
        let mut environment = Environment::reporting_to(observer)
            .with_cancellation(self.interrupt.cancellation())
            .with_throttle(self.throttle.clone());
        environment.clock = self.clock;
        environment
    }

    /// The fault of a failed session with `peer`: a signal if one came, otherwise `trouble`.
    pub(crate) fn fault(&self, trouble: &Trouble, peer: &dyn Display) -> Fault {
        self.interrupt.fault().unwrap_or_else(|| trouble.error(peer))
    }

    /// The fault of a failed library call: a signal if one came, otherwise `error`.
    pub(crate) fn connection_fault(&self, error: &Error, peer: &dyn Display) -> Fault {
        self.interrupt.fault().unwrap_or_else(|| Fault::of_connection(error, peer))
    }

    /// A verb that `farhaul ctl` controls.
    pub(crate) fn controlled(
        &self,
        verb: &'static str,
        (what, cap): (String, Option<Rate>),
        amounts: impl Fn() -> Map<String, Value> + Send + 'static,
    ) -> Controlled {
        let (throttle, cancellation) = (self.throttle.clone(), self.interrupt.cancellation());
        Controlled { verb, what, cap, throttle, cancellation, amounts: Box::new(amounts) }
    }

    /// Ends the printing on SIGUSR1, and releases its clone of the stream. The program can then wait for the shutdown.
    pub(crate) fn hide_state(&self) {
        self.interrupt.shows(|| {});
    }

    /// Prints the state of each of `streams` on SIGUSR1.
    pub(crate) fn show_state(&self, output: &Output, streams: Vec<BondedStream>) {
        let output = output.clone();
        self.interrupt.shows(move || {
            for stats in streams.iter().filter_map(|stream| stream.stats().ok()) {
                output.state(&state(&stats));
            }
        });
    }
}

/// The state of a connection in one line.
fn state(stats: &Stats) -> String {
    let totals = &stats.totals;
    format!(
        "after {}: {} acknowledged, {} received; {} packets sent, {} of them retransmitted; RTT {}, {} packets in flight, window {}",
        time(stats.elapsed),
        ByteSize(totals.bytes_acked),
        ByteSize(totals.bytes_read),
        count(totals.packets_sent),
        count(totals.packets_retransmitted),
        time(stats.rtt),
        count(stats.in_flight.into()),
        count(stats.cwnd.into()),
    )
}

/// Writes the `start` record of a listener, warns of limits to speed, and lets signals cancel waiting calls.
fn announce(context: &Context, output: &Output, endpoint: &Endpoint, mut start: Start) {
    context.interrupt.cancellation().cancels(endpoint.canceller());
    start.local = Some(endpoint.local_addr().to_string());
    output.record(&Record::Start(Box::new(start)));
    endpoint.warnings().iter().for_each(|warning| output.warn(warning));
}

/// Prints the last record of a verb.
fn report_end(output: &Output, report: Report, result: Result<(), Fault>) -> Result<(), Fault> {
    report_flows(output, report, Vec::new(), result)
}

/// The same for a measurement with these flows.
fn report_flows(output: &Output, report: Report, flows: Vec<Flow>, result: Result<(), Fault>) -> Result<(), Fault> {
    output.detach();
    // Without a `start` record so far, the end of the program writes both.
    if result.is_err() && report.session.is_none() && !output::has_begun() {
        return result;
    }
    if let Some(warning) = crate::output::human::drops(&report) {
        output.warn(&warning);
    }
    let flows = if flows.is_empty() { (1..).zip(&report.flows).map(Flow::of).collect() } else { flows };
    let mut end = End { report, flows, ..End::default() };
    if let Err(fault) = &result {
        end.exit_code = fault.code.exit();
        end.error = Some(ErrorRecord::from(fault));
        end.report.verified = false;
    }
    output.record(&Record::End(Box::new(end)));
    result
}

/// The figures of a control stream in one line.
fn control_line(control: &ControlReport) -> String {
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

/// The limit of a transfer in words.
fn limited_by(limit: Limit, share: f64) -> String {
    format!("limited by {} ({} of the time)", crate::output::human::limit(limit), percent(share))
}

/// Refuses what only the crate of original programs can do, in a program without it.
fn without_originals() -> Fault {
    Fault::usage("this program was built without its feature `originals`: sessions with original programs")
}
