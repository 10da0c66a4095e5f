//! Options of the verbs that work on files of another host.

use clap::Args;
use farhaul_transfer::Ssh;

use super::{ServerKeys, SshOptions, Transport};

/// The way to the other host, and the connection.
#[derive(Args, Clone, Debug)]
pub(crate) struct FilesOptions {
    #[command(flatten)]
    way: SshOptions,
    /// If the remote host lacks the program of this version, copy this one into the cache folder of the user there
    #[arg(long, help_heading = "SSH")]
    install: bool,
    /// Fail if UDP is blocked, instead of going through the SSH connection
    #[arg(long, help_heading = "SSH")]
    no_fallback: bool,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) server_keys: ServerKeys,
}

impl FilesOptions {
    /// How ssh reaches a host. This program is the one to install.
    pub(crate) fn way(&self) -> Ssh {
        let mut way = self.way.way();
        way.install = self.install.then(std::env::current_exe).and_then(Result::ok);
        way.no_fallback = self.no_fallback;
        way
    }
}
