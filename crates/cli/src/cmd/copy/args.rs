//! The command line of `copy`.

use std::time::Duration;

use clap::Args;
use farhaul_transfer::Ssh;
use farhaul_transfer::internal::bond::Flows;
use farhaul_units::{Rate, parse_duration};

use crate::options::{NamesOptions, RulesOptions, ServerKeys, SshProgramOptions, Transport};
use crate::values::{Location, location, some_rate};

/// Copy files and directories between hosts, verified and encrypted
///
/// An end is a path on this machine, [user@]host:path over SSH, or udt://host:port/path below the root of a running `farhaul
/// serve`. Over SSH, ssh starts the program on the remote host and exchanges keys; the data goes over UDP. A file gets its name
/// once it is complete, synced to the disk, and its BLAKE3 digest matches. Until then it is .NAME.RANDOM.fhpart in the same
/// directory.
///
///     farhaul copy big.iso far.example:           to the home directory there
///     farhaul copy -r far.example:/data/run42 .   a tree from there
///     farhaul copy 'far.example:logs/*.gz' .      what matches: *, ?, [a-z]
///     farhaul copy far.example:~bob/notes.txt .   from the home of the user bob
///     farhaul copy -r one:run42 two:/data/        past this machine
///     farhaul copy big.iso udt://host:9000/       %XX stands for any byte
///     tar c data | farhaul copy - far.example:data.tar
///     farhaul copy far.example:data.tar - | tar x
///
/// Original programs serve, too: tsunami://host/NAME, where * is all names, and rbudp://host/NAME. They carry no digest, so nothing is
/// verified.
///
///     farhaul copy --plain --protocol tsunami:secret=kitten tsunami://host/a.iso .
///     farhaul copy --plain --protocol tsunami:secret=kitten --list tsunami://host/
///
/// A copy to stdout writes bytes before they are verified. Only exit code 0 confirms them. JSON records then go to stderr.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment, override_usage = "farhaul copy [OPTIONS] SRC… DST")]
pub(crate) struct CopyArgs {
    /// Sources, then the target: a path, [user@]host:path over SSH, or udt://host:port/path
    #[arg(required = true, num_args = 1.., value_names = ["SRC", "DST"], value_parser = location())]
    pub(crate) places: Vec<Location>,
    /// Copy directories with their contents
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// List the files of a Tsunami server
    #[arg(long, hide_short_help = true)]
    pub(crate) list: bool,
    /// Print no progress and no summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// List each entry that is made or changed
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Keep a stable control stream of this goodput beside a copy to a server, on the same port: 1mbit
    ///
    /// The copy takes the rest of the path, as far as no queue delays the stream.
    #[arg(long, value_name = "RATE", value_parser = some_rate, hide_short_help = true)]
    pub(crate) control_stream: Option<Rate>,
    /// Report progress at this interval: 1s [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, hide_short_help = true)]
    pub(crate) interval: Option<Duration>,
    /// Carry the copy over N connections, each with a port and a thread of its own: from 1 to 16, or auto
    ///
    /// For a path where one connection, or one core, is the limit. auto begins with one. On more than two cores it opens up to
    /// four, while the processor of this side is the limit.
    #[arg(long, value_name = "N", default_value_t = Flows::Auto, hide_short_help = true)]
    pub(crate) flows: Flows,
    /// After the connection was lost, try again until nothing more arrived for this long; 0s fails at once
    ///
    /// Each attempt goes on where the last one ended. Streams on stdin and stdout cannot, and a copy between two other hosts has
    /// one attempt.
    #[arg(long, env = "FARHAUL_GIVE_UP", value_name = "TIME", default_value = "15min", value_parser = parse_duration, hide_short_help = true)]
    pub(crate) give_up: Duration,
    #[command(flatten)]
    pub(crate) rules: RulesOptions,
    #[command(flatten)]
    pub(crate) names: NamesOptions,
    #[command(flatten)]
    ssh: SshProgramOptions,
    /// Go on when ssh ends in the middle of the copy; needs UDP
    ///
    /// Without it, the end of ssh ends the copy on both hosts. The remote program ends with the copy in any case, or if it has heard
    /// nothing for --timeout.
    #[arg(long, help_heading = "SSH", hide_short_help = true)]
    detach: bool,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) server_keys: ServerKeys,
}

impl CopyArgs {
    /// Whether directories are copied with their contents.
    pub(crate) const fn is_recursive(&self) -> bool {
        self.recursive || self.rules.archive
    }

    /// How ssh reaches the remote host, and what the copy does there.
    pub(crate) fn to_ssh(&self) -> Ssh {
        let mut ssh = self.ssh.to_ssh();
        ssh.detach = self.detach;
        ssh
    }

    /// Whether the remote end is an original program.
    pub(crate) fn has_original(&self) -> bool {
        self.list || self.places.iter().any(|place| matches!(place, Location::Original(_)))
    }

    /// Whether stdout carries data.
    pub(crate) fn is_to_stdout(&self) -> bool {
        self.places.last() == Some(&Location::Standard)
    }
}
