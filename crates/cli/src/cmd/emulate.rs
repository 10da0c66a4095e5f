//! `emulate`: two hosts on this machine, an emulated path between them, and programs on both.

mod far;
mod live;
mod near;
mod report;

use std::ffi::OsString;
use std::fs::File;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use clap::Args;
use farhaul_emu::{DEFAULT_MTU, Emulation, HostId, NetworkSpec};
use farhaul_netem::PathSpec;
use farhaul_units::Rate;
use serde_json::{Value, json};

use super::{Context, capacity};
use crate::exit::{Code, Fault};
use crate::fault;
use crate::options::PathOptions;
use crate::output::human::{percent, reason, time};
use crate::output::json::start_record;
use crate::output::{JsonTo, Output};
use far::Served;
use live::Live;
use near::{Ended, Near};
pub(super) use report::{figures, verdict};

/// Smallest MTU: every IPv4 host accepts such packets (RFC 791, section 3.1).
const LEAST_MTU: i64 = 576;
/// Usual size of jumbo frames on Ethernet.
const JUMBO: u32 = 9_000;
/// Largest packet of a Linux TUN device.
const LARGEST_MTU: i64 = 65_535;

/// Run a command or a shell on a host behind an emulated long, narrow or lossy path
///
/// Creates a near and a far host on this machine, with the path between them, for any IP traffic. The command, or your
/// shell, runs on the near host. $FARHAUL_PEER is the address of the far host, where --serve starts servers. The final
/// report tells whether the emulator kept up with the path. Needs root or user namespaces. `farhaul relay` needs neither,
/// and carries UDP only.
///
/// Example: the kernel's TCP and Farhaul over 1 Gbit/s with an RTT of 100 ms and 0.1 % loss:
///
///     farhaul emulate --rate 1gbit --delay 50ms --loss 0.1% --queue bdp \
///         --serve 'iperf3 -s' --serve 'farhaul bench --plain --listen :9000'
///     iperf3 -c $FARHAUL_PEER
///     farhaul bench --plain --connect $FARHAUL_PEER:9000
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct EmulateArgs {
    /// Command on the near host [default: $SHELL]
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    command: Vec<OsString>,
    /// Start this on the far host with `sh -c`, and wait until it listens; may be repeated
    #[arg(long, value_name = "COMMAND")]
    serve: Vec<String>,
    /// Largest packet in bytes, IP header included
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MTU, value_parser = clap::value_parser!(u32).range(LEAST_MTU..=LARGEST_MTU))]
    mtu: u32,
    /// Write the near host's packets to this file, for Wireshark and tshark
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write the far host's packets to this file
    #[arg(long, value_name = "FILE")]
    pcap_far: Option<PathBuf>,
    /// Print nothing but errors and the command's own output
    #[arg(long)]
    quiet: bool,
    /// Print JSON on stderr: a start record and an end record
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    path: PathOptions,
}

/// The two hosts of an emulation.
struct Hosts<'a> {
    emulation: &'a Emulation,
    near: HostId,
    far: HostId,
}

/// One of the two hosts, as its programs know it.
struct Side {
    host: HostId,
    name: &'static str,
    peer: (Ipv4Addr, Ipv6Addr),
}

/// Runs the emulation. Returns the command's exit code.
pub(crate) fn run(args: &EmulateArgs, context: &Context) -> Result<u8, Fault> {
    context.networks.as_ref().map_err(fault::of_emulation)?;
    let output = Output::new(if args.json { JsonTo::Stderr } else { JsonTo::Nowhere });
    let (up, down) = args.path.specs();
    let (network, [near, far]) = NetworkSpec::pair(&up, &down, args.mtu);
    let captures = [(near, &args.pcap), (far, &args.pcap_far)];
    let captures: Vec<_> = captures.iter().filter_map(|(host, file)| Some((*host, file.as_deref()?))).collect();
    captures.iter().try_for_each(|(_, file)| writable(file))?;
    if let [(_, near), (_, far)] = captures[..]
        && is_same(near, far)
    {
        return Err(Fault::usage("--pcap and --pcap-far are the same file; each host needs its own"));
    }
    let asked = capacity::faster([&up, &down]);
    let carries = capacity::carried(asked, args.mtu).map_err(|error| fault::of_emulation(&error))?;
    let emulation = Emulation::start_capturing(&network, &captures).map_err(|error| fault::of_emulation(&error))?;
    let hosts = Hosts { emulation: &emulation, near, far };
    let command = near::CommandLine::of(&args.command);
    output.record_value(&begin(args, &hosts, &command, carries));
    let larger = if args.mtu < JUMBO { format!(" or larger packets (--mtu {JUMBO})") } else { String::new() };
    let advice = format!("use a lower --rate{larger}, and check the verdict at the end");
    if let Some(warning) = carries.and_then(|carries| capacity::too_fast(asked, carries, args.mtu, &advice)) {
        output.warn(&warning);
    }
    let ended = play(args, context, &hosts, &output, &command);
    let report = emulation.stop().map_err(|error| fault::of_emulation(&error));
    let (ended, report) = (ended?, report?);
    let interrupted = context.interrupt.fault();
    report.broken_captures.iter().for_each(|broken| output.warn(&report::broken(broken)));
    if args.json {
        output.record_value(&report::record(&report, &ended, interrupted.as_ref()));
    } else if !args.quiet {
        report::lines(&report).iter().for_each(|line| output.print_line(line));
    } else if !report.valid {
        output.warn(&report::verdict(&report));
    }
    interrupted.map_or(Ok(ended.exit_code()), Err)
}

/// Checks that `file` is writable before anything starts.
fn writable(file: &Path) -> Result<(), Fault> {
    File::create(file).map(drop).map_err(|error| {
        Fault::new(Code::LocalIo, format!("cannot write packets to {}: {}", file.display(), reason(&error)))
    })
}

/// Whether two names refer to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |file: &Path| file.metadata().ok().map(|it| (it.dev(), it.ino()));
    identity(one).is_some_and(|it| identity(other) == Some(it))
}

/// Runs the servers and the command.
fn play(
    args: &EmulateArgs,
    context: &Context,
    hosts: &Hosts<'_>,
    output: &Output,
    command: &near::CommandLine,
) -> Result<Ended, Fault> {
    let speaks = !args.quiet && !args.json;
    if speaks {
        hints(&args.path.specs(), hosts, output);
    }
    let mut served = Vec::new();
    for line in &args.serve {
        let (server, listens) = Served::start(hosts, context, line)?;
        if speaks && !listens {
            output.print_line(&format!("`{line}` has not opened a port within {}; continuing", time(far::PATIENCE)));
        }
        served.push(server);
    }
    if speaks && command.is_interactive {
        output.print_line("this shell runs on the near host; the report follows its `exit`");
    }
    let near = Near::start(hosts, context, command)?;
    let ended = thread::scope(|scope| {
        let shown = speaks && !command.is_interactive;
        let _live = Live::begin(scope, hosts, &args.path.specs(), output, shown, near.target());
        near.wait()
    })?;
    served.into_iter().filter_map(Served::end).for_each(|complaint| output.warn(&complaint));
    Ok(ended)
}

/// Prints the addresses and the path.
fn hints((up, down): &(PathSpec, PathSpec), hosts: &Hosts<'_>, output: &Output) {
    let (emulation, style) = (hosts.emulation, output.style());
    let there = if words(up) == words(down) { format!("{} each way", words(up)) } else { words(up) };
    output.print_line(&format!(
        "near host {}, far host {} ($FARHAUL_PEER): {there}",
        style.bold(&emulation.ipv4(hosts.near).to_string()),
        style.bold(&emulation.ipv4(hosts.far).to_string()),
    ));
    if words(up) != words(down) {
        output.print_line(&format!("from the far host to the near one: {}", words(down)));
    }
}

/// Rate, delay and loss of a path in words.
fn words(path: &PathSpec) -> String {
    let rate = path.nominal_rate().map_or_else(|| "unlimited rate".to_owned(), |rate| rate.to_string());
    let loss = match &path.loss {
        None => "no loss".to_owned(),
        Some(loss) => match crate::options::loss_share(loss) {
            Some(share) => format!("{} loss", percent(share)),
            None => "losses".to_owned(),
        },
    };
    let delay = if path.delay.is_zero() { "no delay".to_owned() } else { time(path.delay) };
    format!("{rate}, {delay}, {loss}")
}

/// The `start` record.
fn begin(args: &EmulateArgs, hosts: &Hosts<'_>, command: &near::CommandLine, carries: Option<Rate>) -> Value {
    let emulation = hosts.emulation;
    let host = |host| json!({ "ipv4": emulation.ipv4(host), "ipv6": emulation.ipv6(host) });
    let mut settings = args.path.record();
    settings["mtu_bytes"] = args.mtu.into();
    settings["pcap"] = json!(args.pcap.as_ref().map(|file| file.to_string_lossy()));
    settings["pcap_far"] = json!(args.pcap_far.as_ref().map(|file| file.to_string_lossy()));
    settings["serve"] = json!(args.serve);
    settings["command"] = json!(command.words());
    let fields = json!({
        "near": host(hosts.near),
        "far": host(hosts.far),
        // Capacity of this machine, if it was checked.
        "capacity_bps": carries.map(Rate::bits_per_second),
        "settings": settings,
    });
    start_record("emulate", fields)
}

impl Hosts<'_> {
    fn near(&self) -> Side {
        self.side("near", self.near, self.far)
    }

    fn far(&self) -> Side {
        self.side("far", self.far, self.near)
    }

    fn side(&self, name: &'static str, host: HostId, peer: HostId) -> Side {
        Side { host, name, peer: (self.emulation.ipv4(peer), self.emulation.ipv6(peer)) }
    }
}

impl Side {
    /// Tells `command` its host and its peer.
    fn introduce(&self, command: &mut Command) {
        let (ipv4, ipv6) = self.peer;
        command.env("FARHAUL_HOST", self.name);
        command.env("FARHAUL_PEER", ipv4.to_string()).env("FARHAUL_PEER6", ipv6.to_string());
    }
}
