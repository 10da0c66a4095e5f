//! A server of original clients, on the port of an endpoint: one directory, read only.

use farhaul::OtherClients;
use farhaul_disk::Directory;

use super::rbudp_sender::RbudpSender;
use super::serve::serve_all;
use super::{Failure, Stop, Watch, tsunami_server};
use crate::rbudp::Terms;
use crate::tsunami::ServerOptions;

/// A server for `tsunami` of tsunami-udp 1.1, or for `recvfile` of QUANTA.
#[derive(Debug)]
pub struct OriginalServer {
    clients: OtherClients,
    root: Directory,
    dialogue: Dialogue,
}

#[derive(Debug)]
enum Dialogue {
    Tsunami(ServerOptions),
    Rbudp(RbudpSender),
}

impl OriginalServer {
    /// Gives the files in `root` and below it to `tsunami` clients. A list names only those in `root` itself.
    pub const fn tsunami(clients: OtherClients, root: Directory, options: ServerOptions) -> Self {
        Self { clients, root, dialogue: Dialogue::Tsunami(options) }
    }

    /// Gives the files in `root` and below it to `recvfile` clients. A client is refused if all sessions together would hold
    /// more than 4 GiB of their files in memory.
    ///
    /// # Errors
    /// The endpoint's port is the last one, and a receiver would need the one after it.
    pub fn rbudp(clients: OtherClients, root: Directory, terms: Terms) -> Result<Self, Failure> {
        let dialogue = Dialogue::Rbudp(RbudpSender::new(&clients, terms)?);
        Ok(Self { clients, root, dialogue })
    }

    /// Bounds the bytes of files that all sessions hold in memory together.
    #[cfg(test)]
    pub(super) fn hold_at_most(mut self, bytes: u64) -> Self {
        if let Dialogue::Rbudp(sender) = &mut self.dialogue {
            sender.hold_at_most(bytes);
        }
        self
    }

    /// Serves at most `most` clients at a time, until a stop and the end of the endpoint's listener.
    ///
    /// # Errors
    /// [`Failure::Stopped`].
    pub fn run(&self, most: usize, stop: &Stop, watch: &dyn Watch) -> Result<(), Failure> {
        serve_all(&self.clients, most, stop, watch, |line, tell| match &self.dialogue {
            Dialogue::Tsunami(options) => tsunami_server::serve(line, &self.root, options, tell),
            Dialogue::Rbudp(sender) => sender.serve(line, &self.root, tell),
        })
    }
}
