//! The verbs, one file each, and what they share.

pub(crate) mod bench;
mod capacity;
mod connect;
pub(crate) mod controllers;
pub(crate) mod copy;
pub(crate) mod demo;
pub(crate) mod emulate;
pub(crate) mod lab;
pub(crate) mod manual;
mod partial;
pub(crate) mod pipe;
pub(crate) mod relay;
pub(crate) mod serve;
mod server;
pub(crate) mod version;

use std::fmt::Display;

use farhaul::{Error, Stats, Stream};
use farhaul_emu::EmulateError;
use farhaul_udp::Clock;
use farhaul_units::ByteSize;

use crate::exit::Fault;
use crate::fault;
use crate::host::Trouble;
use crate::interrupt::Interrupt;
use crate::limit::Limit;
use crate::options::Transport;
use crate::output::human::{count, percent, time};
use crate::output::json::{Direction, End, ErrorRecord, Record};
use crate::output::{self, Output};

/// What every verb gets: the clock and the signals.
pub(crate) struct Context {
    pub(crate) clock: Clock,
    pub(crate) interrupt: Interrupt,
    /// Why no networks can be made here; found out only for verbs that make some.
    pub(crate) networks: Result<(), EmulateError>,
}

impl Context {
    /// To be called while the program has a single thread. `makes_networks`: the verb may have use for some.
    pub(crate) fn begin(makes_networks: bool) -> Result<Self, Fault> {
        // Signals have a thread, and rights are for all threads or none.
        let networks = if makes_networks { farhaul_emu::acquire_rights() } else { Ok(()) };
        Ok(Self { clock: Clock::start(), interrupt: Interrupt::install()?, networks })
    }

    /// Why something with `peer` failed: a signal, or the trouble itself.
    pub(crate) fn fault(&self, trouble: &Trouble, peer: &dyn Display) -> Fault {
        self.interrupt.fault().unwrap_or_else(|| trouble.fault(peer))
    }

    /// The same for a call of the library.
    pub(crate) fn connection_fault(&self, error: &Error, peer: &dyn Display) -> Fault {
        self.interrupt.fault().unwrap_or_else(|| fault::of_connection(error, peer))
    }

    /// SIGUSR1 has nothing to print any more. Releases the stream, so that its end is told to the peer before the program
    /// ends.
    pub(crate) fn hide_state(&self) {
        self.interrupt.shows(|| {});
    }

    /// SIGUSR1 prints where each of `streams` stands.
    pub(crate) fn show_state(&self, output: &Output, streams: &[Stream]) {
        let (output, streams) = (output.clone(), streams.to_vec());
        self.interrupt.shows(move || {
            for stats in streams.iter().filter_map(|stream| stream.stats().ok()) {
                output.state(&state(&stats));
            }
        });
    }
}

/// Where a connection stands, in a line.
fn state(stats: &Stats) -> String {
    let totals = &stats.totals;
    format!(
        "after {}: {} acknowledged, {} received; {} packets sent, {} of them again; RTT {}, {} packets in flight, window {}",
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

/// The record of a session that has not begun to move yet.
fn end_record(transport: &Transport, direction: Direction) -> End {
    End {
        direction: Some(direction),
        controller: transport.controller.to_string(),
        protocol: transport.protocol.name(),
        security: "none",
        ..End::default()
    }
}

/// Prints the last record of a verb.
fn report_end(output: &Output, mut end: End, result: Result<(), Fault>) -> Result<(), Fault> {
    output.detach();
    // The program has failed before it began: both records come together at its end.
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

/// What held a transfer back, in words.
fn limited_by(limit: Limit, share: f64) -> String {
    format!("limited by {} ({} of the time)", crate::output::human::limit(limit), percent(share))
}
