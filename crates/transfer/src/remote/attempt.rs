//! The attempt to reach a remote program over UDP, and what is said if that is blocked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use farhaul::{Endpoint, Stream};
use farhaul_bond::Further;
use farhaul_keys::Server;
use farhaul_units::Instant;

use crate::connect::Calling;
use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::settings::Settings;
use crate::text::time;

/// Time without an answer after which UDP counts as blocked, since TCP works (command-line contract, time-outs).
const UDP_DEAD: Duration = Duration::from_secs(3);

/// How a remote program is called over UDP.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) environment: Environment,
    pub(super) settings: Settings,
    pub(super) server: Arc<Server>,
    pub(super) addresses: Vec<SocketAddr>,
    /// The ports that the user has chosen.
    pub(super) ports: Option<(u16, u16)>,
    /// This side only sends data.
    pub(super) only_sends: bool,
    /// What an error says before and behind the addresses.
    pub(super) words: (String, String),
}

/// A connection over UDP.
#[derive(Debug)]
pub(super) struct OverUdp {
    endpoint: Endpoint,
    pub(super) stream: Stream,
    /// What opens further flows.
    pub(super) further: Further,
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum NoUdp {
    /// UDP is blocked.
    Blocked(Error),
    /// The program refuses, or this side has given up.
    Failed(Error),
}

impl Attempt {
    /// Calls all addresses at once.
    pub(super) fn make(&self) -> Result<OverUdp, NoUdp> {
        let quick = self.settings.connecting_within(UDP_DEAD);
        let (calling, begun) = (self.calling(&quick), self.environment.clock.now());
        match calling.first_of(&self.addresses) {
            Ok((endpoint, stream)) => Ok(OverUdp { further: calling.further(&stream), stream, endpoint }),
            // A handshake that does not end is as good as none.
            Err(error) if error.code != Code::Busy && error.code.exit() != Code::UdpBlocked.exit() => {
                Err(NoUdp::Failed(error))
            }
            Err(error) => Err(NoUdp::Blocked(self.blocked(&error, begun, quick.connect_timeout))),
        }
    }

    /// Tells of a connection that carries all of the stream.
    pub(super) fn announce(&self, udp: &OverUdp) {
        self.calling(&self.settings).announce(&udp.endpoint, udp.stream.peer_addr());
    }

    fn calling<'a>(&'a self, settings: &'a Settings) -> Calling<'a> {
        let Self { environment, only_sends, server, .. } = self;
        Calling {
            only_sends: *only_sends,
            server: Some(Arc::clone(server)),
            ..Calling::with(environment, settings, None)
        }
    }

    /// Begins to call, on a thread of its own.
    pub(super) fn begin(&self) -> Result<Receiver<Result<OverUdp, NoUdp>>, Error> {
        let ((say, heard), its) = (sync_channel(1), self.clone());
        thread::Builder::new().name("udp".into()).spawn(move || drop(say.send(its.make())))?;
        Ok(heard)
    }

    fn blocked(&self, why: &Error, begun: Instant, limit: Duration) -> Error {
        let waited = self.environment.clock.now() - begun;
        let blocked = Blocked { addresses: &self.addresses, why, waited, limit };
        blocked.error(&self.words.0, &self.words.1, self.ports)
    }
}

/// A remote program that UDP does not reach.
struct Blocked<'a> {
    addresses: &'a [SocketAddr],
    why: &'a Error,
    waited: Duration,
    limit: Duration,
}

impl Blocked<'_> {
    /// `intro` stands before the addresses and `name` behind them. `range`: the ports that the user has chosen.
    fn error(&self, intro: &str, name: &str, range: Option<(u16, u16)>) -> Error {
        let tried = match self.addresses {
            [] => "it".to_owned(),
            all => all.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" and "),
        };
        let why = match self.limit {
            // The network or this machine says why.
            limit if self.waited < limit => format!(" ({})", self.why),
            limit if limit.subsec_nanos() == 0 => format!(" within {} s", limit.as_secs()),
            limit => format!(" within {}", time(limit)),
        };
        let blocked = Error::new(Code::UdpBlocked, format!("{intro}{tried}{name}{why}"));
        match range {
            // Open ports lead nowhere, and the reason has its own next step.
            _ if self.why.code == Code::NoRoute => blocked,
            Some((low, high)) => {
                blocked.remedy(format!("let firewalls pass UDP ports {low}-{high}, those of ‹port-range›"))
            }
            None => blocked.remedy(
                "choose ports with ‹port-range›, for instance 50000-50100, and let firewalls pass them, since the port is \
                 new each time",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocked_udp_has_its_true_reason_and_ports_to_open() {
        let addresses = ["192.0.2.7:41000".parse().unwrap()];
        let said = |code, waited, limit, range| {
            let why = Error::new(code, "no route to 192.0.2.7:41000");
            let blocked = Blocked { addresses: &addresses, why: &why, waited, limit };
            blocked.error("UDP does not reach ", " (far)", range).to_string()
        };
        let silent = said(Code::ConnectTimeout, UDP_DEAD, UDP_DEAD, None);
        assert!(silent.contains("192.0.2.7:41000 (far) within 3 s; choose ports with ‹port-range›, for"), "{silent}");
        let silent =
            said(Code::ConnectTimeout, Duration::from_secs(1), Duration::from_millis(500), Some((47_000, 47_001)));
        assert!(silent.contains("within 500 ms; let firewalls pass UDP ports 47000-47001"), "{silent}");
        let unrouted = said(Code::NoRoute, Duration::from_millis(400), UDP_DEAD, None);
        assert_eq!(unrouted, "UDP does not reach 192.0.2.7:41000 (far) (no route to 192.0.2.7:41000)");
    }
}
