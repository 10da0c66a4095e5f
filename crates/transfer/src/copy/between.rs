//! A copy between two other hosts: ssh starts a program on each, and the data takes the way between them. Where UDP is blocked
//! there, this side passes the stream on from one SSH connection to the other.
//!
//! Neither host trusts the other one. The receiver learns from this side what to take, and success is what both ends tell alike.

use std::time::Duration;

use farhaul_session::Rules;
use farhaul_udp::Clock;
use serde_json::Value;

use super::CopyJob;
use super::accounts::{Told, correct};
use super::plan::BetweenPlan;
use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::event::Event;
use crate::remote::messages::{Call, FromRemote, Stored, Task, ToRemote, code_there, printable};
use crate::remote::reach::{ONE_FLOW, Opening, OverSsh};
use crate::remote::scope::PathText;
use crate::remote::{RemoteMux, RemoteProgram};
use crate::report::Report;
use crate::throttle::Change;

/// Time for the receiving program to say what it has stored, after the end of the sending one: more than the 10 s that it waits
/// for the sender to close the connection.
const ACCOUNT: Duration = Duration::from_secs(15);
/// Why nothing is throttled before the programs have begun.
const NOT_BEGUN: &str = "the programs on the two hosts have not begun: try again in a moment";
/// Interval of progress from the sending host.
const INTERVAL: &str = "--interval=500ms";

/// Copies from one host to another one.
pub(super) fn run(
    copy: &CopyJob,
    environment: &Environment,
    plan: &BetweenPlan,
    report: &mut Report,
) -> Result<(), Error> {
    let over = OverSsh {
        environment,
        settings: &copy.settings,
        ssh: &copy.ssh,
        only_sends: false,
        needs_udp: false,
        flows: ONE_FLOW,
        opening: Opening::None,
    };
    environment.throttle.reaches_nothing(NOT_BEGUN);
    let ended = started(copy, &over, plan).and_then(|mut both| watch(copy, environment, plan, &mut both));
    let ended = ended.map_err(|error| environment.cancellation.reason().unwrap_or(error))?;
    fill(report, &ended.record);
    environment.events.send(&Event::Remote(&plan.from, &ended.record));
    // The programs there tell of the end that a cancellation here made.
    ended.error.map_or(Ok(()), |error| Err(environment.cancellation.reason().unwrap_or(error)))
}

/// Fills in what the last record of the sender says.
fn fill(report: &mut Report, record: &Value) {
    let number = |key: &str| record[key].as_u64();
    report.bytes = number("bytes").unwrap_or(0);
    report.files = number("files");
    (report.kept, report.kept_bytes) = (number("kept"), number("kept_bytes"));
    (report.links, report.deleted) = (number("links"), number("deleted"));
    report.directories = number("directories");
    report.failed = number("failed");
    report.seconds = record["seconds"].as_f64().unwrap_or(0.0);
    report.goodput_bps = number("goodput_bps");
    report.packets_sent = number("packets_sent").unwrap_or(0);
    report.packets_retransmitted = number("packets_retransmitted").unwrap_or(0);
    report.packets_received = number("packets_received").unwrap_or(0);
    report.verified = record["verified"].as_bool().unwrap_or(false);
    let text = |key: &str| record[key].as_str().map(printable);
    (report.suite, report.peer_key) = (text("suite"), text("peer_key"));
}

/// Both remote programs, which live as long as the copy.
struct Both {
    from: RemoteProgram,
    to: RemoteProgram,
    clock: Clock,
}

impl Both {
    /// Passes the stream on between the two.
    fn tie(&self) -> Result<(), Error> {
        self.from.tie(&self.to)?;
        self.from.send(&ToRemote::Through)
    }

    /// What the receiving program says that it has stored.
    fn stored(&mut self) -> Option<Stored> {
        let deadline = self.clock.now() + ACCOUNT;
        loop {
            let left = deadline.saturating_since(self.clock.now());
            if let FromRemote::Stored(stored) = self.to.next_within(left)? {
                return Some(stored);
            }
        }
    }
}

fn started(copy: &CopyJob, over: &OverSsh<'_>, plan: &BetweenPlan) -> Result<Both, Error> {
    let mut hello = over.hello(None, Task::Forward(plan.scope.clone().under_rules(&copy.rules)));
    hello.options.push(INTERVAL.to_owned());
    let (from, sender, _) = over.start(&plan.from, &hello)?;
    // The part of the files concerns the sender alone.
    let rules = Rules { shard: None, ..copy.rules.clone() };
    let (target, scope) = (PathText::new(&plan.to.path), plan.arriving.clone().under_rules(&rules));
    let mut hello = over.hello(None, Task::Receive { target, is_directory: plan.is_directory, scope });
    // The sending program alone is admitted.
    hello.key = Some(sender.key);
    let (to, receiver, addresses) = over.start(&plan.to.host, &hello)?;
    throttle_there(copy, over.environment, (plan, from.throttle()));
    let (is_directory, takes_one, name) = (plan.is_directory, receiver.takes_one, plan.to.host.clone());
    from.send(&ToRemote::Call(Call { key: receiver.key, addresses, is_directory, takes_one, name }))?;
    Ok(Both { from, to, clock: over.environment.clock })
}

/// Has the throttle of this program work on the sending one.
fn throttle_there(copy: &CopyJob, environment: &Environment, (plan, sender): (&BetweenPlan, Option<RemoteMux>)) {
    let Some(sender) = sender else {
        return environment.throttle.reaches_nothing(format!(
            "farhaul on {} is too old for that: give ‹rate› or ‹background› at the start",
            plan.from
        ));
    };
    let (host, has_cap) = (plan.from.clone(), copy.settings.effective_controller().is_some());
    let protocol = copy.settings.protocol.to_string();
    environment.throttle.reaches(move |change| {
        if matches!(change, Change::Rate(_)) && !has_cap {
            return Err(format!("the protocol {protocol} cannot change its rate; pause, resume and stop work"));
        }
        sender.tell(change, &host)
    });
}

/// The last record of the copy.
struct Ended {
    record: Value,
    error: Option<Error>,
}

/// The failure that the last record of the sending program names.
fn named_error(record: &Value, plan: &BetweenPlan) -> Option<Error> {
    let code = code_there(record["error"]["code"].as_str()?);
    Some(Error::new(code, format!("{}: {}", plan.from, text(&record["error"]["message"]))))
}

/// Passes on what the sending program reports until its end.
fn watch(copy: &CopyJob, environment: &Environment, plan: &BetweenPlan, both: &mut Both) -> Result<Ended, Error> {
    let mut told = Told::default();
    while let Some(said) = both.from.next() {
        let record = match said {
            FromRemote::Record(record) => record,
            FromRemote::Failed(failed) => return Err(failed.error(&plan.from)),
            FromRemote::Blocked(why) => {
                let why = why.error(&plan.from);
                if copy.ssh.no_fallback {
                    return Err(why);
                }
                environment.events.warn(&format!(
                    "{why}; the data goes through both SSH connections and this machine, which is slower"
                ));
                both.tie()?;
                continue;
            }
            FromRemote::Ready(_) | FromRemote::Stored(_) => continue,
        };
        match record["event"].as_str().unwrap_or_default() {
            "end" => return ended(record, told, both, plan),
            "file" if record["status"] == "verified" => told.verified(&record),
            _ => {}
        }
        environment.events.send(&Event::Remote(&plan.from, &record));
    }
    let lost = Error::new(Code::PeerLost, format!("{} left before the copy was complete", plan.from));
    Err(both.from.explained(lost))
}

/// The end as both programs saw it, unless the receiving one ended because of its ssh.
fn ended(mut record: Value, told: Told, both: &mut Both, plan: &BetweenPlan) -> Result<Ended, Error> {
    let mut fault = named_error(&record, plan);
    if let Some(lost) = fault.clone().filter(|fault| fault.code == Code::PeerLost)
        && let ssh @ Error { code: Code::SshFailed, .. } = both.to.explained(lost)
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
    Ok(Ended { record, error: fault })
}

/// A text of another host.
fn text(value: &Value) -> String {
    printable(value.as_str().unwrap_or_default())
}
