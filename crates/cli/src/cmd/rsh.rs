//! `rsh`: a command on a remote host, in the place of ssh: for rsync, git, borg, sshfs and others that start one.

pub(crate) mod args;
pub(crate) mod order;
mod standard;

use std::io;
use std::process::{Stdio, exit};
use std::thread;
use std::time::Duration;

use farhaul_session::{CommandExit, escape};
use farhaul_transfer::internal::event::Moved;
use farhaul_transfer::internal::rsh::{Rsh, Streams};
use farhaul_transfer::{Event, Ssh};

use super::Context;
use crate::ctl;
use crate::exit::{Fault, RSH_FAILED, exit_code_at_signal};
use crate::output::tracker::Tracker;
use crate::output::{JsonTo, Output};
use crate::values::SshPlace;
use args::RshArgs;
use serde_json::{Map, Value};
use standard::Standard;

/// Added to the number of the signal that ended the command, as shells do (POSIX, section 2.8.2).
const SIGNALLED: u8 = 128;
/// Most characters of a command that are shown.
const MOST_SHOWN: usize = 60;
/// Time to end after a signal. A program that takes no output could keep this one for ever.
const LAST: Duration = Duration::from_secs(1);

/// Runs it. Returns the exit code of the command.
pub(crate) fn run(args: &RshArgs, context: &Context) -> Result<u8, Fault> {
    args.check()?;
    let host = args.host.to_string_lossy();
    if args.settings_only {
        return print_settings(&args.to_ssh(), &host);
    }
    let rsh = match args.subsystem {
        true => Rsh::subsystem(&host, &args.command),
        false => Rsh::command(&host, &args.command),
    }?;
    let rsh = rsh.with(args.transport.settings()).over(args.to_ssh());
    let (output, is_quiet) = (Output::new(JsonTo::Nowhere), args.quiet);
    let environment = context.environment(move |event: &Event<'_>| match event {
        Event::Warning(message) if !is_quiet => output.warn(message),
        // What ssh says.
        Event::Note(line) => output.print_line(line),
        _ => {}
    });
    let interrupt = context.interrupt.clone();
    context.interrupt.on_stop(move || {
        let interrupt = interrupt.clone();
        // Without a thread, the end takes as long as it takes.
        let _ = thread::Builder::new().name("last".into()).spawn(move || {
            thread::park_timeout(LAST);
            if let Some(code) = interrupt.fault().as_ref().and_then(exit_code_at_signal) {
                exit(code.into());
            }
        });
    });
    let _control = ctl::listen(context.controlled("rsh", (what(args), args.transport.rate()), amounts(context)));
    let (input, output, error) = (Standard::take_stdin()?, Standard::take_stdout()?, Standard::stderr()?);
    let streams = match args.no_input {
        true => Streams::new(io::empty(), output, error),
        false => Streams::new(input, output, error),
    };
    Ok(match rsh.run(&environment, streams)? {
        CommandExit::Code(code) => code,
        CommandExit::Signal(signal) => SIGNALLED.saturating_add(signal),
    })
}

/// The command in a few words.
fn what(args: &RshArgs) -> String {
    let words: Vec<_> = args.command.iter().map(|word| escape(word.as_encoded_bytes())).collect();
    let mut command = words.join(" ");
    if let Some((end, _)) = command.char_indices().nth(MOST_SHOWN) {
        command.replace_range(end.., "…");
    }
    format!("{} on {}", command, args.host.to_string_lossy())
}

/// The amounts of a command, in both directions together.
fn amounts(context: &Context) -> impl Fn() -> Map<String, Value> + Send + 'static {
    let (throttle, tracker) = (context.throttle.clone(), Tracker::default());
    move || {
        let connections = throttle.connections();
        let elapsed = connections.first().map_or(Duration::ZERO, |stats| stats.elapsed);
        tracker.moved_both_ways(&Moved { elapsed, connections: &connections, sends: true, is_last: false });
        let mut record = tracker.snapshot().record();
        record.retain(|field, _| !field.starts_with("files"));
        record
    }
}

/// Has ssh print its settings for the host. Returns its exit code.
fn print_settings(ssh: &Ssh, host: &str) -> Result<u8, Fault> {
    let host = SshPlace::host_of(host.as_bytes()).map_err(Fault::usage)?;
    let status =
        ssh.settings(&host)?.stdin(Stdio::null()).stdout(Stdio::inherit()).stderr(Stdio::inherit()).status()?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(RSH_FAILED))
}

impl RshArgs {
    /// How ssh reaches the host.
    fn to_ssh(&self) -> Ssh {
        let mut ssh = self.ssh.to_ssh();
        ssh.command.extend(self.passed_on.words());
        ssh.command.extend(self.quiet.then(|| "-q".to_owned()));
        ssh
    }
}
