//! Groups of options that several verbs share.

mod hurricane;
mod originals;
mod path;
mod probing;
mod security;
mod ssh;
mod transport;

pub(crate) use hurricane::ByHand;
pub(crate) use originals::{Original, OriginalStream, Originals};
pub(crate) use path::{PathOptions, loss_share, way as path_record};
pub(crate) use probing::Probing;
pub(crate) use security::SecurityOptions;
pub(crate) use ssh::{SshCopyOptions, SshOptions};
pub(crate) use transport::Transport;
