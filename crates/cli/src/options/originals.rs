//! The original programs whose streams `pipe` takes and gives.

use clap::ValueEnum;
use farhaul::Protocol;

use crate::exit::Fault;

/// The original program at the other end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OriginalStream {
    /// Programs of SABUL 2.1, built with 32-bit words
    Sabul,
}

impl OriginalStream {
    /// The program whose format `pipe` speaks with this protocol.
    pub(crate) fn of(protocol: &Protocol) -> Result<Option<Self>, Fault> {
        let found = Self::from_str(protocol.entry().name, false).ok();
        if found.is_some() && protocol.to_string() != protocol.entry().name {
            return Err(Fault::usage(format!(
                "pipe speaks the format of the original {}, which takes no options; copy and bench take them",
                protocol.entry().name
            )));
        }
        Ok(found)
    }
}
