//! A copy between two other hosts: ssh starts a program on each, and the data takes the way between them. Where UDP is blocked
//! there, this side passes the encrypted datagrams on from one SSH connection to the other.
//!
//! Neither host trusts the other one. The receiver learns from this side what to take, and success is what both ends tell alike.

mod accounts;

use std::time::Duration;

use farhaul_udp::Clock;
use farhaul_units::ByteSize;
use serde_json::{Value, json};

use super::plan::BetweenPlan;
use super::{CopyArgs, empty_end, start_record};
use crate::cmd::over_ssh::{CARRIER, OverSsh};
use crate::cmd::{Context, report_end};
use crate::exit::{Code, Fault};
use crate::far::FarProgram;
use crate::far::messages::{Call, FarSays, Near, PathText, Stored, Task, code_there, printable};
use crate::far::tunnel::pass_on;
use crate::output::human::{is_terminal, plural, rate, time};
use crate::output::json::{Direction, End, Record};
use crate::output::{Output, has_written, progress};
use crate::session::measure::Meter;
use accounts::{Told, correct};

/// Time for the receiving program to say what it has stored, after the end of the sending one: more than the 10 s that it waits
/// for the sender to close the connection.
const ACCOUNT: Duration = Duration::from_secs(15);
/// Interval of progress from the sending host.
const INTERVAL: &str = "--interval=500ms";

/// Copies from one host to another one.
pub(super) fn run(args: &CopyArgs, context: &Context, plan: &BetweenPlan) -> Result<(), Fault> {
    if args.transport.security.plain {
        return Err(Fault::usage("copies over SSH are always encrypted: leave out --plain"));
    }
    if args.control_stream.is_some() || args.transport.trace.is_some() || args.transport.logs_secrets() {
        return Err(Fault::usage(
            "--control-stream, --trace and --unsafe-keylog do not reach a copy between two other hosts",
        ));
    }
    let output = Output::from_flag(args.transport.json);
    let over = OverSsh { context, output: &output, transport: &args.transport, options: &args.ssh };
    let meter = Meter::start(context.clock);
    let ended = started(args, &over, plan).and_then(|mut from| watch(args, &output, plan, &mut from));
    output.detach();
    match ended.map_err(|fault| context.interrupt.fault().unwrap_or(fault)) {
        Ok(ended) => conclude(args, &output, plan, &ended),
        Err(fault) => {
            // Of two such records, the first is written.
            let start = start_record(args, json!({ "target": plan.to.to_string() }));
            output.record(&Record::Start(Box::new(start)));
            let end = empty_end(args, Direction::Both, plan.to.to_string());
            report_end(&output, End { seconds: meter.elapsed().as_secs_f64(), ..end }, Err(fault))
        }
    }
}

/// Both far programs, which live as long as the copy.
struct Both {
    from: FarProgram,
    to: FarProgram,
    clock: Clock,
}

impl Both {
    /// Passes datagrams on between the two.
    fn tie(&mut self) -> Result<(), Fault> {
        let (from, into_from, hear_from) = self.from.datagrams()?.divided();
        let (to, into_to, hear_to) = self.to.datagrams()?.divided();
        pass_on(from, into_to, hear_from)?;
        pass_on(to, into_from, hear_to)?;
        Ok(())
    }

    /// What the receiving program says that it has stored.
    fn stored(&mut self) -> Option<Stored> {
        let deadline = self.clock.now() + ACCOUNT;
        loop {
            let left = deadline.saturating_since(self.clock.now());
            if let FarSays::Stored(stored) = self.to.next_within(left)? {
                return Some(stored);
            }
        }
    }
}

fn started(args: &CopyArgs, over: &OverSsh<'_>, plan: &BetweenPlan) -> Result<Both, Fault> {
    let task = Task::Forward { paths: plan.paths.clone(), recursive: args.recursive };
    let mut hello = over.hello(None, task);
    hello.options.push(INTERVAL.to_owned());
    let (mut from, sender, _) = over.start(&plan.from, &hello)?;
    let (target, wanted) = (PathText::new(&plan.to.path), plan.wanted.clone());
    let task = Task::Receive { target, is_directory: plan.is_directory, wanted };
    let mut hello = over.hello(None, task);
    // The sending program alone is admitted.
    hello.key = Some(sender.key);
    let (to, receiver, addresses) = over.start(&plan.to.host, &hello)?;
    let (is_directory, takes_one, name) = (plan.is_directory, receiver.takes_one, plan.to.host.clone());
    from.say(&Near::Call(Call { key: receiver.key, addresses, is_directory, takes_one, name }))?;
    Ok(Both { from, to, clock: over.context.clock })
}

/// The last record of the copy.
struct Ended {
    record: Value,
    /// What carried the data, if it was not UDP.
    carrier: Option<String>,
    fault: Option<Fault>,
}

/// The failure that the last record of the sending program names.
fn named_fault(record: &Value, plan: &BetweenPlan) -> Option<Fault> {
    let code = code_there(record["error"]["code"].as_str()?);
    Some(Fault::new(code, format!("{}: {}", plan.from, text(&record["error"]["message"]))))
}

/// Shows what the sending program reports until its end.
fn watch(args: &CopyArgs, output: &Output, plan: &BetweenPlan, both: &mut Both) -> Result<Ended, Fault> {
    let shown = !args.quiet && !output.is_json() && is_terminal();
    let bar = shown.then(|| {
        let bar = progress::bar(None);
        output.attach(bar.clone());
        bar
    });
    let (mut carrier, mut told) = (None, Told::default());
    while let Some(said) = both.from.next() {
        let record = match said {
            FarSays::Record(record) => record,
            FarSays::Failed(failed) => return Err(failed.fault(&plan.from)),
            FarSays::Blocked(why) => {
                let why = why.fault(&plan.from);
                if args.ssh.no_fallback {
                    return Err(why);
                }
                output.warn(&format!(
                    "{why}; the data goes through both SSH connections and this machine, which is slower"
                ));
                both.tie()?;
                continue;
            }
            FarSays::Ready(_) | FarSays::Tunneling | FarSays::Stored(_) => continue,
        };
        let event = record["event"].as_str().unwrap_or_default();
        if event == "start" {
            has_written("start");
            carrier = record["settings"][CARRIER].as_str().map(ToOwned::to_owned);
        }
        match event {
            "end" => return ended((record, carrier), told, both, plan),
            "interval" if args.interval().is_none() => {}
            _ => output.write(&record.to_string()),
        }
        match event {
            "warning" => output.say(&format!("{}: {}", plan.from, text(&record["message"]))),
            "file" if record["status"] == "verified" => told.verified(&record),
            "file" if record["status"] == "failed" => {
                output.say(&format!("{} was not copied: {}", text(&record["path"]), text(&record["error"])));
            }
            "interval" => {
                if let Some(bar) = &bar {
                    bar.set_position(record["bytes_total"].as_u64().unwrap_or(0));
                }
            }
            _ => {}
        }
    }
    let lost = Fault::new(Code::PeerLost, format!("{} left before the copy was complete", plan.from));
    Err(both.from.explained(lost))
}

/// The end as both programs saw it, unless the receiving one ended because of its ssh.
fn ended(
    (mut record, carrier): (Value, Option<String>),
    told: Told,
    both: &mut Both,
    plan: &BetweenPlan,
) -> Result<Ended, Fault> {
    let mut fault = named_fault(&record, plan);
    if let Some(lost) = fault.clone().filter(|fault| fault.code == Code::PeerLost)
        && let ssh @ Fault { code: Code::SshFailed, .. } = both.to.explained(lost)
    {
        return Err(ssh);
    }
    // A copy that broke off has a reason, and confirms nothing.
    if fault.as_ref().is_none_or(|fault| fault.code == Code::FilesFailed) {
        let stored = both.stored();
        let differs = told.compared_with(&record, stored.as_ref(), (&plan.from, &plan.to.host));
        if let Some(fault) = &differs {
            correct(&mut record, stored.as_ref(), fault);
        }
        fault = differs.or(fault);
    }
    Ok(Ended { record, carrier, fault })
}

/// Reports the end of the copy.
fn conclude(args: &CopyArgs, output: &Output, plan: &BetweenPlan, ended: &Ended) -> Result<(), Fault> {
    let end = &ended.record;
    // Of two such records, the first is written: the sender's, unless it keeps silent about it.
    let start = start_record(args, json!({ "target": plan.to.to_string() }));
    output.record(&Record::Start(Box::new(start)));
    has_written("end");
    output.write(&end.to_string());
    if let Some(fault) = &ended.fault {
        return Err(fault.clone());
    }
    if !args.quiet {
        let number = |key: &str| end[key].as_u64().unwrap_or(0);
        let style = output.style();
        let way = if ended.carrier.is_some() { "through ssh and this machine" } else { "directly" };
        output.say(&format!(
            "{} {}, {} in {}: {}\n{}",
            style.green("copied and verified:"),
            plural(number("files"), "file"),
            ByteSize(number("bytes")),
            time(Duration::try_from_secs_f64(end["seconds"].as_f64().unwrap_or(0.0)).unwrap_or_default()),
            style.bold(&rate(end["goodput_bps"].as_u64())),
            style.dim(&format!(
                "from {} to {} {way}; {}, key {}",
                plan.from,
                plan.to.host,
                text(&end["suite"]),
                text(&end["peer_key"])
            )),
        ));
    }
    Ok(())
}

/// A text of another host.
fn text(value: &Value) -> String {
    printable(value.as_str().unwrap_or_default())
}
