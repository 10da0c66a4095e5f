//! `relay`: an emulated path in user space, between clients and one server.

use clap::Args;
use farhaul_emu::{DirectionReport, Relay, RelayReport};
use farhaul_transfer::internal::report::CpuSeconds;
use serde_json::{Value, json};

use super::{Context, link_report};
use crate::exit::Fault;
use crate::options::PathOptions;
use crate::output::Output;
use crate::output::human::time;
use crate::output::json::start_record;
use crate::values::HostPort;

/// Relay UDP to a server over an emulated long, narrow or lossy path, without privileges
///
/// Clients connect to the relay instead of the server. The final report tells whether the relay kept up with the path.
/// Example: 1 Gbit/s with an RTT of 100 ms:
///
///     farhaul relay --listen 127.0.0.1:7000 --to 127.0.0.1:9000 \
///         --rate 1gbit --delay 50ms --loss 0.01% --queue bdp
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct RelayArgs {
    /// Address for clients
    #[arg(long, value_name = "ADDR")]
    listen: HostPort,
    /// Address of the server
    #[arg(long, value_name = "ADDR")]
    to: HostPort,
    /// Print JSON: a start record and an end record
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    path: PathOptions,
}

pub(crate) fn run(args: &RelayArgs, context: &Context) -> Result<(), Fault> {
    let output = Output::from_flag(args.json);
    output.do_not_wait();
    let (listen, to) = (args.listen.listening()?, args.to.first()?);
    let (up, down) = args.path.specs();
    let mut relay = Relay::bind(listen, to, up, down).map_err(|error| Fault::of_bind(listen, &error))?;
    let local = relay.local_addr().to_string();
    let fields = json!({ "local": local, "to": to.to_string(), "settings": args.path.record() });
    output.record_value(&start_record("relay", fields));
    relay.warnings().for_each(|warning| output.warn(&warning));
    output.print_line(&format!("relaying {} to {to}; Ctrl-C ends it and prints the report", relay.local_addr()));
    let began = CpuSeconds::of_thread();
    let report = relay.run(&context.interrupt.stopping())?;
    if args.json {
        output.record_value(&record(&report, CpuSeconds::of_thread() - began));
    } else {
        lines(&report).iter().for_each(|line| output.print_line(line));
    }
    context.interrupt.fault().map_or(Ok(()), Err)
}

/// The report for people.
fn lines(report: &RelayReport) -> Vec<String> {
    let line = |name: &str, of: &DirectionReport| link_report::line(name, &of.path, of.sent);
    let late = link_report::lateness(&report.lateness);
    vec![
        line("to the server  ", &report.up),
        line("to the clients ", &report.down),
        format!("lateness         {late}; processor {}", time(report.cpu)),
        verdict(report),
    ]
}

/// The verdict in words: whether the relay kept up with the path.
pub(super) fn verdict(report: &RelayReport) -> String {
    link_report::verdict("relay", &report.flaws)
}

pub(super) fn record(report: &RelayReport, cpu: CpuSeconds) -> Value {
    json!({
        "event": "end",
        "seconds": report.elapsed.as_secs_f64(),
        "clients": report.clients,
        "up": link_report::record(&report.up.path, report.up.sent),
        "down": link_report::record(&report.down.path, report.down.sent),
        "lateness_us": link_report::lateness_record(&report.lateness),
        "cpu_seconds": cpu,
        "valid": report.valid,
        "flaws": link_report::words(&report.flaws),
    })
}
