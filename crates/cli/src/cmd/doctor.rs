//! `doctor`: examines this machine and the path to a host, and names the command that fixes each finding.

mod buffers;
mod clock;
mod examined;
mod finding;
mod firewall;
mod handshake;
mod host;
mod interface;
mod keys;
mod path;
mod processor;
mod reach;
mod ssh;
mod system;
mod target;
mod tcp;

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Args, Command};
use serde_json::json;

use super::Context;
use crate::exit::{Code, Fault};
use crate::options::SshOptions;
use crate::output::human::{Style, columns_of_stdout};
use crate::output::json::{end_record, start_record};
use crate::output::{Output, print};
use examined::Examined;
use finding::{Finding, FindingState, summary};
pub(crate) use target::Examinee;

/// Find what is in the way of fast transfers, and the command that fixes it
///
/// Without a host it examines this machine: socket buffers, offloads, clock, processors, interface, firewall, keys. With
/// the address of a running `farhaul serve` or `farhaul bench --listen` it also examines the path there, in about 6 s at
/// most: name, route, packet size, round trip, whether UDP gets through, and the key of the server.
///
/// With a colon behind the host, ssh starts a program there, and the path to that is examined, as a copy over SSH would use it.
///
///     farhaul doctor
///     farhaul doctor far.example:9000
///     farhaul doctor far.example:         as `farhaul copy FILE far.example:` goes
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct DoctorArgs {
    /// Examine the path to this host, too; with nothing behind the colon over SSH, without one its name, route and SSH port alone
    #[arg(value_name = "HOST[:[PORT]]")]
    host: Option<Examinee>,
    /// Private key of this side [default: ~/.config/farhaul/key]
    #[arg(long, env = "FARHAUL_KEY", value_name = "FILE")]
    key: Option<PathBuf>,
    /// Print one JSON record per line
    #[arg(long, env = "FARHAUL_JSON", value_parser = BoolishValueParser::new())]
    pub(crate) json: bool,
    #[command(flatten)]
    ssh: SshOptions,
}

/// Returns the exit code: 1 if there is a problem. `command` has the options that a settings file may have.
pub(crate) fn run(args: &DoctorArgs, context: &Context, command: &Command) -> Result<u8, Fault> {
    let mut report = Report::begin(args);
    let examined = Examined::new(args.key.as_deref(), context, command);
    report.title("this machine");
    host::examine(&examined, |finding| report.add(&finding));
    let unreachable = match &args.host {
        Some(host) if !context.interrupt.is_stopping() => {
            report.title(&format!("the path to {host}"));
            let output = report.output.clone();
            let examined = match host {
                Examinee::Host(target) => path::examine(target, &examined, |finding| report.add(&finding)),
                Examinee::OverSsh { host, .. } => {
                    ssh::examine((host, &args.ssh.to_ssh()), &examined, &output, |finding| report.add(&finding))
                }
            };
            examined.unwrap_or_else(Some)
        }
        _ => None,
    };
    // For people, the findings have said it all.
    let unreachable = unreachable.map(|fault| if args.json { fault } else { fault.quietly() });
    report.conclude(context.interrupt.fault().or(unreachable))
}

/// The findings so far, as they are reported.
struct Report {
    output: Output,
    style: Style,
    problems: u64,
    advice: u64,
}

impl Report {
    fn begin(args: &DoctorArgs) -> Self {
        let output = Output::from_flag(args.json);
        let host = args.host.as_ref().map(ToString::to_string);
        output.record_value(&start_record("doctor", json!({ "host": host })));
        Self { output, style: Style::of_stdout(), problems: 0, advice: 0 }
    }

    fn title(&self, words: &str) {
        self.print(&format!("{}\n", self.style.bold(words)));
    }

    fn add(&mut self, finding: &Finding) {
        match finding.state {
            FindingState::Ok => {}
            FindingState::Advice => self.advice += 1,
            FindingState::Problem => self.problems += 1,
        }
        self.output.record_value(&finding.record());
        self.print(&finding.lines(self.style, columns_of_stdout()));
    }

    /// Prints for people. Findings are the result, so they go to stdout.
    fn print(&self, text: &str) {
        if !self.output.is_json() {
            print(text);
        }
    }

    /// Returns the exit code. `fault`: a host that cannot be reached, or a signal.
    fn conclude(self, fault: Option<Fault>) -> Result<u8, Fault> {
        self.print(&format!("{}\n", self.style.bold(&summary(self.problems, self.advice))));
        let failed = u8::from(self.problems > 0) * Code::Failed.exit();
        let end = json!({ "problems": self.problems, "advice": self.advice });
        self.output.record_value(&end_record(end, failed, fault.as_ref()));
        fault.map_or(Ok(failed), Err)
    }
}
