//! Options of the verbs that work on files of another host.

use clap::Args;

use super::{ServerKeys, SshProgramOptions, Transport};

/// The way to the other host, and the connection.
#[derive(Args, Clone, Debug)]
pub(crate) struct FilesOptions {
    #[command(flatten)]
    pub(crate) ssh: SshProgramOptions,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) server_keys: ServerKeys,
}
