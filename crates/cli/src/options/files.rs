//! Options of the verbs that work on files of another host.

use clap::Args;

use super::{ServerKeys, SshProgramOptions, Transport};

/// How the other host is reached, and the connection.
#[derive(Args, Clone, Debug)]
pub(crate) struct FilesOptions {
    #[command(flatten)]
    pub(crate) ssh: SshProgramOptions,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) server_keys: ServerKeys,
}
