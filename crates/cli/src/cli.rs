//! The command line: all verbs, and the code that runs each one.

mod early;
mod help;
pub(crate) mod modes;
pub(crate) mod refusal;

use clap::{Parser, Subcommand};
use farhaul_transfer::Report;
use serde_json::{Value, json};

use crate::cmd::files::use_ssh;
use crate::cmd::{self, Context, NetworkRights};
use crate::exit::Fault;
use crate::interrupt::AtSignals;
use crate::options::Transport;
use crate::output::JsonTo;
use crate::output::json::{End, Record, start_record};
pub(crate) use early::Early;
pub(crate) use help::command;

/// The identifier of `--show-config`.
pub(crate) const SHOW_CONFIG: &str = "show_config";

const UNITS: &str = "\
Units: link rates in bits (10gbit, 950mbit), sizes in bytes (64MiB, 4GB), times with a unit (50ms, 2s).

Settings: the environment sets options of connections and of `serve`, for instance FARHAUL_TIMEOUT=1min.
~/.config/farhaul/config.toml sets lasting options, such as timeout = \"1min\". Sections: [VERB] and [host.\"NAME\"].

Exit codes: 0 done and verified, 1 failed, 2 usage, 3 some files failed, 4 network or UDP path dead,
5 not allowed, 6 integrity mismatch, 7 local disk, 8 peer lost or timed out, 9 protocol mismatch, 126/127 the command of
`emulate` not runnable or not found, 130/143 signals. `rsh` ends with the code of its command, or 255.";

/// Reliable bulk data transfer over UDP for long fat networks.
#[derive(Parser)]
#[command(name = "farhaul", version, after_long_help = UNITS, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    /// Print the effective settings with their sources, and exit
    #[arg(long, global = true, hide_short_help = true)]
    show_config: bool,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    Copy(cmd::copy::args::CopyArgs),
    Serve(cmd::serve::args::ServeArgs),
    Rsh(cmd::rsh::args::RshArgs),
    Ls(cmd::files::ls::LsArgs),
    Cat(cmd::files::cat::CatArgs),
    Rm(cmd::files::rm::RmArgs),
    Mv(cmd::files::mv::MvArgs),
    Mkdir(cmd::files::mkdir::MkdirArgs),
    #[command(hide = true)]
    Bootstrap(cmd::bootstrap::BootstrapArgs),
    Pipe(cmd::pipe::args::PipeArgs),
    Bench(cmd::bench::BenchArgs),
    Profile(cmd::profile::ProfileArgs),
    Doctor(cmd::doctor::DoctorArgs),
    Stream(cmd::stream::StreamArgs),
    Relay(cmd::relay::RelayArgs),
    Emulate(cmd::emulate::EmulateArgs),
    Demo(cmd::demo::DemoArgs),
    Lab(cmd::lab::LabArgs),
    Ctl(cmd::ctl::CtlArgs),
    Key(cmd::key::KeyArgs),
    Verify(cmd::verify::VerifyArgs),
    Clean(cmd::clean::CleanArgs),
    Controllers(cmd::controllers::ControllersArgs),
    Protocols(cmd::protocols::ProtocolsArgs),
    Version(cmd::version::VersionArgs),
    Completions(cmd::manual::CompletionsArgs),
    Man(cmd::manual::ManArgs),
}

impl Verb {
    /// Runs the verb. Returns the exit code: the command's for `emulate` and `rsh`, 1 for a `doctor` with a problem, otherwise 0.
    pub(crate) fn run(self, context: &Context) -> Result<u8, Fault> {
        let done = match self {
            Self::Emulate(args) => return cmd::emulate::run(&args, context),
            Self::Rsh(args) => return cmd::rsh::run(&args, context),
            Self::Doctor(args) => return cmd::doctor::run(&args, context, command()),
            #[cfg(feature = "originals")]
            Self::Copy(args) if args.has_original() => cmd::original::copy::run(&args, context),
            Self::Copy(args) => cmd::copy::run(&args, context),
            Self::Serve(args) => cmd::serve::run(&args, context),
            Self::Ls(args) => cmd::files::ls::run(&args, context),
            Self::Cat(args) => cmd::files::cat::run(&args, context),
            Self::Rm(args) => cmd::files::rm::run(&args, context),
            Self::Mv(args) => cmd::files::mv::run(&args, context),
            Self::Mkdir(args) => cmd::files::mkdir::run(&args, context),
            Self::Bootstrap(args) => cmd::bootstrap::run(&args, context),
            #[cfg(feature = "originals")]
            Self::Pipe(args) if args.has_original() => cmd::original::pipe::run(&args, context),
            Self::Pipe(args) => cmd::pipe::run(&args, context),
            Self::Bench(args) => cmd::bench::run(&args, context),
            Self::Profile(args) => cmd::profile::run(&args, context),
            Self::Stream(args) => cmd::stream::run(&args, context),
            Self::Relay(args) => cmd::relay::run(&args, context),
            Self::Demo(args) => cmd::demo::run(&args, context),
            Self::Lab(args) => cmd::lab::run(&args, context),
            Self::Ctl(args) => cmd::ctl::run(&args),
            Self::Key(args) => cmd::key::run(&args),
            Self::Verify(args) => cmd::verify::run(&args),
            Self::Clean(args) => cmd::clean::run(&args),
            Self::Controllers(args) => cmd::controllers::run(&args),
            Self::Protocols(args) => cmd::protocols::run(&args),
            Self::Version(args) => cmd::version::run(&args),
            Self::Completions(args) => cmd::manual::completions(&args, help::whole()),
            Self::Man(args) => cmd::manual::man(&args, help::whole()),
        };
        done.map(|()| 0)
    }

    /// The connection options of a verb that has some, and its name.
    const fn connection(&self) -> Option<(&'static str, &Transport)> {
        match self {
            Self::Copy(args) => Some(("copy", &args.transport)),
            Self::Serve(args) => Some(("serve", &args.transport)),
            Self::Ls(args) => Some(("ls", &args.options.transport)),
            Self::Cat(args) => Some(("cat", &args.options.transport)),
            Self::Rm(args) => Some(("rm", &args.options.transport)),
            Self::Mv(args) => Some(("mv", &args.options.transport)),
            Self::Mkdir(args) => Some(("mkdir", &args.options.transport)),
            Self::Pipe(args) => Some(("pipe", &args.transport)),
            Self::Bench(args) => Some(("bench", &args.transport)),
            _ => None,
        }
    }

    /// Whether the verb runs in the background: other programs and traffic go first.
    pub(crate) fn is_background(&self) -> bool {
        self.connection().is_some_and(|(_, transport)| transport.background)
    }

    /// How the verb gets the right to create emulated networks. Verbs without networks need none.
    pub(crate) fn network_rights(&self) -> NetworkRights {
        match self {
            Self::Emulate(_) | Self::Demo(_) => farhaul_emu::acquire_rights,
            Self::Lab(args) if args.emulates() => farhaul_emu::acquire_rights,
            // Files and sockets must be examined as those of the user.
            Self::Doctor(_) => farhaul_emu::check_rights,
            _ => || Ok(()),
        }
    }

    /// How the verb needs its reaction to signals.
    pub(crate) fn at_signals(&self) -> AtSignals {
        let starts_children = match self {
            Self::Emulate(_) | Self::Demo(_) | Self::Lab(_) | Self::Doctor(_) => true,
            Self::Rsh(_) => true,
            Self::Bootstrap(args) => args.runs_commands(),
            Self::Copy(args) => use_ssh(&args.places),
            Self::Ls(args) => use_ssh(&args.places),
            Self::Cat(args) => use_ssh(&args.places),
            Self::Rm(args) => use_ssh(&args.places),
            Self::Mv(args) => use_ssh(&args.places),
            Self::Mkdir(args) => use_ssh(&args.places),
            _ => false,
        };
        let gives_up_capabilities = matches!(self, Self::Serve(args) if args.gives_up_capabilities());
        AtSignals { starts_children, gives_up_capabilities }
    }

    /// Destination of the records of the verb, which has this name.
    pub(crate) fn json_to(&self, name: &str) -> JsonTo {
        let wants = match self {
            Self::Profile(args) => args.probing.json,
            Self::Stream(args) => args.probing.json,
            Self::Relay(args) => args.json,
            Self::Doctor(args) => args.json,
            Self::Emulate(args) => args.json,
            Self::Demo(args) => args.json,
            Self::Lab(args) => args.json(),
            _ => self.connection().is_some_and(|(_, transport)| transport.json),
        };
        json_to(name, wants, matches!(self, Self::Copy(args) if args.is_to_stdout()))
    }

    /// The `start` record for a verb of this name that fails before it writes its own.
    pub(crate) fn start(&self, name: &str) -> Value {
        match self.connection() {
            Some((verb, transport)) => json!(Record::Start(Box::new(transport.start(verb)))),
            None => start_record(name, json!({})),
        }
    }

    /// The `end` record for a verb that fails before it writes its own.
    pub(crate) fn end(&self) -> End {
        let transport = self.connection().map(|(_, transport)| transport);
        let report = Report {
            controller: transport.map_or_else(String::new, Transport::controller_name),
            protocol: transport.map(|transport| transport.protocol()).unwrap_or_default().to_string(),
            security: transport.map(|transport| transport.security.name()),
            ..Report::default()
        };
        End { report, ..End::default() }
    }
}

/// Destination of the records of `verb`, if it `wants` any. Stdout is not available if it carries data.
fn json_to(verb: &str, wants: bool, has_data_on_stdout: bool) -> JsonTo {
    match verb {
        _ if !wants => JsonTo::Nowhere,
        // It has no records, and its callers read what it prints.
        "rsh" => JsonTo::Nowhere,
        "pipe" | "emulate" | "cat" => JsonTo::Stderr,
        _ if has_data_on_stdout => JsonTo::Stderr,
        _ => JsonTo::Stdout,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        command().clone().debug_assert();
    }

    #[test]
    fn every_verb_and_option_is_explained() {
        for verb in Cli::command().get_subcommands() {
            assert!(verb.get_about().is_some(), "{}", verb.get_name());
            for option in verb.get_arguments() {
                assert!(option.get_help().is_some(), "{} {}", verb.get_name(), option.get_id());
            }
        }
    }

    #[test]
    fn a_bare_number_is_refused_with_both_readings() {
        let parsed = Cli::try_parse_from(["farhaul", "bench", "--connect", "h:1", "--rate", "100"]);
        let message = parsed.err().unwrap().to_string();
        assert!(message.contains("100mbit") && message.contains("100MB/s"), "{message}");
    }
}
