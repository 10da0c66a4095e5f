//! `relay`: an emulated path in user space, between clients and one server.

use clap::Args;
use farhaul_emu::{DirectionReport, Relay, RelayReport};
use farhaul_transfer::limit::share;
use farhaul_transfer::report::CpuSeconds;
use serde_json::{Value, json};

use super::Context;
use crate::exit::Fault;
use crate::options::PathOptions;
use crate::output::human::{count, percent, time};
use crate::output::{Output, has_written, print};
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
    let (listen, to) = (args.listen.listening()?, args.to.first()?);
    let (up, down) = args.path.specs();
    let mut relay = Relay::bind(listen, to, up, down).map_err(|error| Fault::of_bind(listen, &error))?;
    if args.json {
        has_written("start");
        print(&format!(
            "{}\n",
            json!({
                "event": "start",
                "verb": "relay",
                "version": env!("CARGO_PKG_VERSION"),
                "process_id": std::process::id(),
                "local": relay.local_addr().to_string(),
                "to": to.to_string(),
                "settings": args.path.record(),
            })
        ));
    }
    relay.warnings().for_each(|warning| output.warn(&warning));
    output.say(&format!("relaying {} to {to}; Ctrl-C ends it and prints the report", relay.local_addr()));
    let began = CpuSeconds::of_thread();
    let report = relay.run(&context.interrupt.stopping())?;
    if args.json {
        has_written("end");
        print(&format!("{}\n", record(&report, CpuSeconds::of_thread() - began)));
    } else {
        lines(&report).iter().for_each(|line| output.say(line));
    }
    context.interrupt.fault().map_or(Ok(()), Err)
}

/// The report for people.
fn lines(report: &RelayReport) -> Vec<String> {
    let way = |name: &str, way: &DirectionReport| {
        let lost = way.path.dropped();
        let policed = way.path.dropped_policer.packets;
        let policed = if policed > 0 { format!(", {} by the policer", count(policed)) } else { String::new() };
        format!(
            "{name}  {} packets in, {} out, {} lost on the link, {} dropped by the queue{policed} ({})",
            count(way.path.pushed.packets),
            count(way.sent),
            count(way.path.dropped_loss.packets),
            count(way.path.dropped_queue.packets),
            percent(share(lost as f64, way.path.pushed.packets as f64)),
        )
    };
    let late = &report.lateness;
    let mut lines = vec![
        way("to the server  ", &report.up),
        way("to the clients ", &report.down),
        format!(
            "lateness         half of the packets up to {}, 99 % up to {}, the last {}; processor {}",
            time(late.p50),
            time(late.p99),
            time(late.max),
            time(report.cpu)
        ),
    ];
    lines.push(verdict(report));
    lines
}

/// The verdict in words: whether the relay kept up with the path.
pub(super) fn verdict(report: &RelayReport) -> String {
    if report.valid {
        return "the relay kept up: the measurements are the path's".into();
    }
    let flaws: Vec<String> = report.flaws.iter().map(ToString::to_string).collect();
    format!("the relay did not keep up, so do not trust the measurements: {}", flaws.join("; "))
}

pub(super) fn record(report: &RelayReport, cpu: CpuSeconds) -> Value {
    let way = |way: &DirectionReport| {
        json!({
            "packets_in": way.path.pushed.packets,
            "packets_out": way.sent,
            "lost": way.path.dropped_loss.packets,
            "refused_by_queue": way.path.dropped_queue.packets,
            "refused_early": way.path.dropped_early.packets,
            "refused_by_policer": way.path.dropped_policer.packets,
            "duplicated": way.path.duplicated.packets,
            "reordered": way.path.reordered.packets,
            "corrupted": way.path.corrupted.packets,
            "queue_high_water_packets": way.path.queue.high_water.packets,
        })
    };
    let micros = farhaul_transfer::report::micros;
    json!({
        "event": "end",
        "seconds": report.elapsed.as_secs_f64(),
        "clients": report.clients,
        "up": way(&report.up),
        "down": way(&report.down),
        "lateness_us": { "p50": micros(report.lateness.p50), "p99": micros(report.lateness.p99), "max": micros(report.lateness.max) },
        "cpu_seconds": cpu,
        "valid": report.valid,
        "flaws": report.flaws.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
