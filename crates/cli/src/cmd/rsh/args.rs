//! The command line of `rsh`: the options that programs pass to ssh, and Farhaul's own.

use std::ffi::OsString;

use clap::Args;

use crate::exit::Fault;
use crate::options::{SshProgramOptions, Transport};

/// Run a command on a remote host over UDP, in the place of ssh
///
/// Ssh logs in and starts the program on the remote host. The command's stdin, stdout, stderr and exit code then go over one
/// encrypted UDP connection, which is fast on long and lossy paths. Where UDP is blocked, they go through ssh.
///
///     rsync -a -e 'farhaul rsh' data/ far.example:data/
///     GIT_SSH_COMMAND='farhaul rsh' git clone me@far.example:project.git
///     BORG_RSH='farhaul rsh' borg create ssh://far.example/./backup::today data
///     sshfs -o ssh_command='farhaul rsh' far.example:data /mnt
///
/// Options may stand before and behind the host, as with ssh. The command begins with the first word behind the host that is none, and
/// its words are joined by blanks. The exit code is that of the command, 128 and its number for a signal, and 255 if rsh fails. There
/// is no terminal: use ssh for a login.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    args_override_self = true,
    mut_arg("port", |port| port.short('p')),
    override_usage = "farhaul rsh [OPTIONS] [USER@]HOST COMMAND…"
)]
pub(crate) struct RshArgs {
    /// Remote host, as ssh knows it
    #[arg(value_name = "HOST")]
    pub(super) host: OsString,
    /// Command for the login shell there
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(super) command: Vec<OsString>,
    /// The command is the name of a subsystem of sshd, such as sftp
    #[arg(short = 's')]
    pub(super) subsystem: bool,
    /// Read nothing from stdin
    #[arg(short = 'n')]
    pub(super) no_input: bool,
    /// Print the settings of ssh for the host, and run nothing. Git learns from it that this program takes the options of ssh
    #[arg(short = 'G', hide_short_help = true)]
    pub(super) settings_only: bool,
    /// No warnings, neither of rsh nor of ssh
    #[arg(short = 'q')]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) ssh: SshProgramOptions,
    #[command(flatten)]
    pub(super) passed_on: PassedOn,
    #[command(flatten)]
    without_effect: WithoutEffect,
    #[command(flatten)]
    pub(crate) transport: Transport,
}

/// Options that ssh gets as they are.
#[derive(Args, Debug)]
#[command(next_help_heading = "SSH")]
pub(super) struct PassedOn {
    /// User to log in as
    #[arg(short = 'l', value_name = "USER")]
    user: Option<String>,
    /// Settings of ssh, in place of those of this user
    #[arg(short = 'F', value_name = "FILE", hide_short_help = true)]
    settings: Option<String>,
    /// Address to call from
    #[arg(short = 'b', value_name = "ADDRESS", hide_short_help = true)]
    bind: Option<String>,
    /// Ciphers of ssh
    #[arg(short = 'c', value_name = "NAMES", hide_short_help = true)]
    ciphers: Option<String>,
    /// Authentication codes of ssh
    #[arg(short = 'm', value_name = "NAMES", hide_short_help = true)]
    codes: Option<String>,
    /// Log in over IPv4 alone
    #[arg(short = '4', hide_short_help = true)]
    ipv4: bool,
    /// Log in over IPv6 alone
    #[arg(short = '6', hide_short_help = true)]
    ipv6: bool,
    /// Forward the agent of ssh
    #[arg(short = 'A', hide_short_help = true)]
    agent: bool,
    /// Forward no agent
    #[arg(short = 'a', hide_short_help = true)]
    no_agent: bool,
    /// Forward credentials of GSSAPI
    #[arg(short = 'K', hide_short_help = true)]
    credentials: bool,
    /// Forward no credentials
    #[arg(short = 'k', hide_short_help = true)]
    no_credentials: bool,
    /// Have ssh say what it does; repeat for more
    #[arg(short = 'v', action = clap::ArgAction::Count)]
    verbose: u8,
}

/// Options that programs pass to ssh, and that change nothing here.
#[derive(Args, Debug)]
struct WithoutEffect {
    /// No terminal, as always
    #[arg(short = 'T', hide_short_help = true)]
    no_terminal: bool,
    /// No X11, as always
    #[arg(short = 'x', hide_short_help = true)]
    no_x11: bool,
    /// Version 2 of the protocol of ssh, as always
    #[arg(short = '2', hide_short_help = true)]
    version_2: bool,
    /// Compression, which has no effect: the data does not go through ssh
    #[arg(short = 'C', hide_short_help = true)]
    compression: bool,
    /// No escape character, as always
    #[arg(short = 'e', value_name = "CHARACTER", hide_short_help = true)]
    escape: Option<String>,
    /// A terminal, which is refused
    #[arg(short = 't', hide_short_help = true, action = clap::ArgAction::Count)]
    terminal: u8,
}

impl RshArgs {
    /// Refuses what only ssh has.
    pub(super) fn check(&self) -> Result<(), Fault> {
        match self.without_effect.terminal {
            0 => Ok(()),
            _ => Err(Fault::usage("rsh has no terminal to give").remedy("leave out -t, or use ssh")),
        }
    }
}

impl PassedOn {
    /// The words for ssh.
    pub(super) fn words(&self) -> Vec<String> {
        let values = [
            ("-F", &self.settings),
            ("-l", &self.user),
            ("-b", &self.bind),
            ("-c", &self.ciphers),
            ("-m", &self.codes),
        ];
        let flags = [
            ("-4", self.ipv4),
            ("-6", self.ipv6),
            ("-A", self.agent),
            ("-a", self.no_agent),
            ("-K", self.credentials),
            ("-k", self.no_credentials),
        ];
        let given = values.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value.clone()?]));
        let set = flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.to_owned());
        let verbose = (0..self.verbose).map(|_| "-v".to_owned());
        given.flatten().chain(set).chain(verbose).collect()
    }
}
