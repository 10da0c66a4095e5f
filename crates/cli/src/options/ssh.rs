//! Options of copies and commands over SSH.

use std::path::PathBuf;

use clap::Args;
use farhaul_transfer::Ssh;

/// The words of a command. A type of its own, since clap takes a list for several values.
#[derive(Clone, Debug)]
struct Words(Vec<String>);

/// How ssh reaches a remote host.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "SSH")]
pub(crate) struct SshOptions {
    /// Command that reaches the remote host, with its options: 'ssh -p 2222'
    #[arg(long, env = "FARHAUL_SSH", value_name = "COMMAND", default_value = "ssh", value_parser = words, hide_short_help = true)]
    ssh: Words,
    /// Port of the SSH server
    #[arg(short = 'P', value_name = "PORT")]
    port: Option<u16>,
    /// Private key for ssh
    #[arg(short = 'i', value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Jump hosts on the way, with commas
    #[arg(short = 'J', value_name = "HOST", hide_short_help = true)]
    jump: Option<String>,
    /// Option for ssh, as in its configuration file
    #[arg(short = 'o', value_name = "NAME=VALUE", hide_short_help = true)]
    option: Vec<String>,
    /// Program on the remote host [default: the copy of --install, then farhaul on its PATH]
    #[arg(long, env = "FARHAUL_REMOTE_PATH", value_name = "PATH", hide_short_help = true)]
    remote_path: Option<String>,
    /// UDP ports for the remote program: 50000-50100 [default: any]
    #[arg(long, env = "FARHAUL_PORT_RANGE", value_name = "LOW-HIGH", value_parser = ports, hide_short_help = true)]
    port_range: Option<(u16, u16)>,
}

/// How ssh reaches a program of this version on a remote host.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "SSH")]
pub(crate) struct SshProgramOptions {
    #[command(flatten)]
    options: SshOptions,
    /// Copy this program to the remote host, if it lacks one of this version
    ///
    /// It goes into the cache folder of the user there.
    #[arg(long)]
    install: bool,
    /// Fail if UDP is blocked, instead of going through the SSH connection
    #[arg(long, hide_short_help = true)]
    no_fallback: bool,
}

impl SshOptions {
    /// How ssh reaches the remote host.
    pub(crate) fn to_ssh(&self) -> Ssh {
        let mut ssh = Ssh::default();
        ssh.command.clone_from(&self.ssh.0);
        ssh.port = self.port;
        ssh.identity.clone_from(&self.identity);
        ssh.jump.clone_from(&self.jump);
        ssh.options.clone_from(&self.option);
        ssh.remote_path.clone_from(&self.remote_path);
        ssh.port_range = self.port_range;
        ssh
    }
}

impl SshProgramOptions {
    /// How ssh reaches the remote host. This program is the one to install.
    pub(crate) fn to_ssh(&self) -> Ssh {
        let mut ssh = self.options.to_ssh();
        ssh.install = self.install.then(std::env::current_exe).and_then(Result::ok);
        ssh.no_fallback = self.no_fallback;
        ssh
    }
}

/// Divides a command into words, as a shell does.
fn words(text: &str) -> Result<Words, String> {
    let words = shlex::split(text).ok_or_else(|| format!("a quote in {text} does not end"))?;
    if words.is_empty() { Err("it is empty".to_owned()) } else { Ok(Words(words)) }
}

fn ports(text: &str) -> Result<(u16, u16), String> {
    let both = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|&port| port > 0);
    match port(both.0).zip(port(both.1)) {
        Some((low, high)) if low <= high => Ok((low, high)),
        _ => Err(format!("'{text}' is no range of ports; write 50000-50100")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        ssh: SshOptions,
    }

    #[test]
    fn the_options_of_scp_reach_ssh() {
        let words = ["x", "--ssh", "ssh -F 'my config'", "-P", "22", "-i", "a key", "-J", "jump", "-o", "A=b"];
        let ssh = Only::try_parse_from(words).map_err(|error| error.to_string()).unwrap().ssh.to_ssh();
        assert_eq!(ssh.command, ["ssh", "-F", "my config"]);
        assert_eq!((ssh.port, ssh.identity), (Some(22), Some("a key".into())));
        assert_eq!((ssh.jump.as_deref(), ssh.options), (Some("jump"), vec!["A=b".to_owned()]));
    }

    #[test]
    fn ranges_of_ports_are_read() {
        assert_eq!((ports("50000-50100"), ports("7")), (Ok((50_000, 50_100)), Ok((7, 7))));
        assert!(["", "0", "9-8", "1-70000", "a-b"].iter().all(|text| ports(text).is_err()));
    }
}
