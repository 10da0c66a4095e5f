//! `bootstrap`: the remote program of a copy or a command over SSH. Ssh starts it, and talks to it on stdin and stdout.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::{Args, Parser};
use farhaul_transfer::internal::bootstrap::{self, Host};
use farhaul_transfer::internal::rsh::CommandHost;
use farhaul_transfer::{CopyJob, Settings};
use farhaul_units::parse_duration;

use super::Context;
use super::copy::{View, carry_out};
use crate::exit::Fault;
use crate::options::Transport;
use crate::output::{JsonTo, Output};
use crate::{reloading, sys};

/// Serve one copy or command over SSH; `farhaul copy` and `farhaul rsh` start it on the remote host
#[derive(Args, Debug)]
pub(crate) struct BootstrapArgs {
    /// Run the command that the local program names. A login with a fixed command lacks this word, and so runs none
    #[arg(long)]
    commands: bool,
}

impl BootstrapArgs {
    /// Whether it may run commands.
    pub(crate) const fn runs_commands(&self) -> bool {
        self.commands
    }
}

/// Settings from the local program.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Words {
    #[command(flatten)]
    transport: Transport,
    /// Interval of progress records
    #[arg(long, value_parser = parse_duration)]
    interval: Option<Duration>,
}

impl Words {
    fn parse_from_near(words: &[String]) -> Result<Self, String> {
        let first_line = |error: clap::Error| error.to_string().lines().next().unwrap_or_default().to_owned();
        Self::try_parse_from(words).map_err(first_line)
    }
}

/// Runs it. A failure is told to the local program, and nobody else.
pub(crate) fn run(args: &BootstrapArgs, context: &Context) -> Result<(), Fault> {
    let environment = context.environment(|_: &farhaul_transfer::Event<'_>| {});
    bootstrap::run(&ThisHost { context, runs_commands: args.commands }, &environment)
}

/// This host, for the local program.
struct ThisHost<'a> {
    context: &'a Context,
    runs_commands: bool,
}

impl CommandHost for ThisHost<'_> {
    fn may_run_commands(&self) -> bool {
        self.runs_commands
    }

    fn login_shell(&self) -> io::Result<PathBuf> {
        sys::login_shell()
    }

    fn at_start_of_command(&self) -> fn(&mut Command) {
        sys::hang_up_with_thread
    }
}

impl Host for ThisHost<'_> {
    fn settings(&self, words: &[String]) -> Result<Settings, String> {
        let words = Words::parse_from_near(words)?;
        if words.transport.background {
            sys::lower_priority();
        }
        Ok(words.transport.settings())
    }

    fn home_of(&self, user: &OsStr) -> io::Result<Option<PathBuf>> {
        sys::home_of(user)
    }

    fn leave_session(&self) -> Result<(), Fault> {
        // The program may lead the session already. Then the signal remains.
        let _ = rustix::process::setsid();
        Ok(reloading::survive()?)
    }

    fn forward(&self, copy: CopyJob, words: &[String]) -> Result<(), Fault> {
        let words = Words::parse_from_near(words).map_err(Fault::usage)?;
        let mut start = words.transport.start("copy");
        start.only_sends = true;
        start.settings.insert("sources".into(), copy.sources().into());
        start.settings.insert("recursive".into(), copy.is_recursive().into());
        let view = View {
            transport: &words.transport,
            interval: words.interval,
            is_quiet: true,
            lists: false,
            manifest: None,
        };
        carry_out(&copy, (start, &view), self.context, &Output::new(JsonTo::Messages))
    }
}
