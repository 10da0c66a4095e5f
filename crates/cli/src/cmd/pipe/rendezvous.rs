//! `--rendezvous`: both sides call. Each judges the key of the other one as a client judges that of its server.

use farhaul::security::SecurityFault;
use farhaul::{ConnectOptions, ConnectionLost, Error, Stream};

use farhaul_transfer::internal::keys::Server;
use farhaul_transfer::internal::session::measure::Meter;

use super::Pipe;
use crate::cmd::announce;
use crate::exit::{Code, Fault};
use crate::output::json::Start;
use crate::values::HostPort;

impl Pipe<'_> {
    /// Meets the peer, and starts a meter with the first call.
    pub(super) fn meet(&self, listen: &HostPort, mut start: Start) -> Result<(Stream, Meter), Fault> {
        let to = self.args.connect.as_ref().ok_or_else(|| Fault::usage("--rendezvous needs --connect PEER"))?;
        let peer = to.first()?;
        let host = self.settings.security.server(to.to_string(), &self.events)?;
        start.key = host.as_ref().map(Server::own_fingerprint);
        let endpoint = self.settings.bind_with(listen.listening()?, host.as_ref().map(Server::security))?;
        if let Some(key) = &start.key {
            let local = endpoint.local_addr();
            self.output.print_line(&format!("calling {peer} from {local}; encrypted, the key of this side is {key}"));
        }
        start.address = Some(peer.to_string());
        announce(self.context, &self.output, &endpoint, start);
        let meter = Meter::start(self.context.clock);
        match (endpoint.connect_with(peer, ConnectOptions::stream().rendezvous()), &host) {
            (Ok(stream), host) => {
                if let Some(host) = host {
                    host.remember(&self.events);
                }
                Ok((stream, meter))
            }
            (Err(Error::Lost(ConnectionLost::Insecure(SecurityFault::UnknownKey))), Some(host)) => {
                let accepted = host.fetch_key()?;
                host.remember(&self.events);
                // The other side was refused, and has ended.
                Err(Fault::new(
                    Code::HostKeyUnknown,
                    format!("start both sides again: {to} is known with the key {} now", accepted.fingerprint()),
                ))
            }
            (Err(error), _) => Err(self.explained(self.context.connection_fault(&error, &peer))),
        }
    }

    /// A fault with the next step of a rendezvous, in which the other side has no authorized keys.
    pub(super) fn explained(&self, fault: Fault) -> Fault {
        if !self.args.rendezvous || fault.code != Code::NotAdmitted {
            return fault;
        }
        Fault::new(
            Code::NotAdmitted,
            "the other side does not know the key of this one: `farhaul key fingerprint` here prints what its --host-key needs",
        )
    }
}
