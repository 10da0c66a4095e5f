//! Groups of options that several verbs share.

mod files;
mod names;
mod originals;
mod path;
mod probing;
mod protocol;
mod rules;
mod security;
mod ssh;
mod transport;

pub(crate) use files::FilesOptions;
pub(crate) use names::NamesOptions;
pub(crate) use originals::is_original_stream;
pub(crate) use path::{PathOptions, loss_share, path_record};
pub(crate) use probing::Probing;
pub(crate) use protocol::{ProtocolChoice, SECRET};
pub(crate) use rules::RulesOptions;
pub(crate) use security::{ClientKeys, SecurityOptions, ServerKeys};
pub(crate) use ssh::{SshOptions, SshProgramOptions};
pub(crate) use transport::Transport;
