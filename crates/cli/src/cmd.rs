//! The verbs, one file each, and their shared parts.

pub(crate) mod bench;
pub(crate) mod bootstrap;
mod capacity;
mod connect;
mod control;
pub(crate) mod controllers;
pub(crate) mod copy;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod emulate;
mod hosting;
pub(crate) mod key;
pub(crate) mod lab;
mod listing;
pub(crate) mod manual;
mod measured;
mod missing;
mod original;
mod over_ssh;
mod partial;
pub(crate) mod pipe;
pub(crate) mod profile;
pub(crate) mod protocols;
pub(crate) mod relay;
pub(crate) mod serve;
mod server;
pub(crate) mod stream;
pub(crate) mod version;

use std::fmt::Display;

use farhaul::{Error, Stats, Stream};
use farhaul_emu::EmulateError;
use farhaul_udp::Clock;
use farhaul_units::ByteSize;

use crate::exit::Fault;
use crate::fault;
use crate::interrupt::{AtSignals, Interrupt};
use crate::limit::Limit;
use crate::options::Transport;
use crate::output::human::{count, percent, time};
use crate::output::json::{Direction, End, ErrorRecord, Record};
use crate::output::{self, Output};
use crate::session::Trouble;

/// Shared by all verbs: the clock, the signals, the right to emulate.
pub(crate) struct Context {
    pub(crate) clock: Clock,
    pub(crate) interrupt: Interrupt,
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
        Ok(Self { clock: Clock::start(), interrupt: Interrupt::install(at_signals)?, networks })
    }

    /// The fault of a failed session with `peer`: a signal if one came, otherwise `trouble`.
    pub(crate) fn fault(&self, trouble: &Trouble, peer: &dyn Display) -> Fault {
        self.interrupt.fault().unwrap_or_else(|| trouble.fault(peer))
    }

    /// The fault of a failed library call: a signal if one came, otherwise `error`.
    pub(crate) fn connection_fault(&self, error: &Error, peer: &dyn Display) -> Fault {
        self.interrupt.fault().unwrap_or_else(|| fault::of_connection(error, peer))
    }

    /// Ends the printing on SIGUSR1, and releases its clone of the stream. The program can then wait for the shutdown.
    pub(crate) fn hide_state(&self) {
        self.interrupt.shows(|| {});
    }

    /// Prints the state of each of `streams` on SIGUSR1.
    pub(crate) fn show_state(&self, output: &Output, streams: &[Stream]) {
        let (output, streams) = (output.clone(), streams.to_vec());
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

/// The `end` record of a session that has moved no data yet.
fn end_record(transport: &Transport, direction: Direction) -> End {
    End {
        direction: Some(direction),
        controller: transport.controller_name(),
        protocol: transport.protocol().to_string(),
        security: Some(transport.security.name()),
        ..End::default()
    }
}

/// Prints the last record of a verb.
fn report_end(output: &Output, mut end: End, result: Result<(), Fault>) -> Result<(), Fault> {
    output.detach();
    // Without a `start` record so far, the end of the program writes both.
    if result.is_err() && end.session.is_none() && !output::has_begun() {
        return result;
    }
    if let Err(fault) = &result {
        end.exit_code = fault.code.exit();
        end.error = Some(ErrorRecord::from(fault));
        end.verified = false;
    }
    output.record(&Record::End(Box::new(end)));
    result
}

/// The limit of a transfer in words.
fn limited_by(limit: Limit, share: f64) -> String {
    format!("limited by {} ({} of the time)", crate::output::human::limit(limit), percent(share))
}
