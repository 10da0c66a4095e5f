//! Why nobody answers a connection attempt, as far as the network says so.
//!
//! The port's own socket is deaf to ICMP: anybody can forge such messages, and an established connection must not care for
//! them (attack B17). So a second socket asks, only while nobody answers, and what it hears changes an error's words only.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use farhaul_proto::{ConnectionId, ConnectionLost, Streams};
use farhaul_units::Instant;

use crate::driver::Core;
use crate::endpoint::any_port_for;
use crate::error::Error;

/// How long a peer with other addresses may take to answer before the network is asked: most that are there have
/// answered by then, and people do not notice it. Each further look comes after twice the time.
const FIRST_LOOK: Duration = Duration::from_millis(20);

/// A connection attempt under way, as whoever waits for it sees it.
#[derive(Debug)]
pub(crate) struct Reaching {
    peer: SocketAddr,
    begun: Instant,
    /// When to look next although nothing happened, and how long after that again.
    next: (Instant, Duration),
    has_alternative: bool,
    probe: Option<Probe>,
}

impl Reaching {
    /// An attempt that began at `now` and may take `longest`. With an alternative it ends as soon as the network says that
    /// the peer cannot be reached. Without, it goes on: a listener may start meanwhile, and anybody can forge such messages.
    pub(crate) fn begin(peer: SocketAddr, now: Instant, longest: Duration, has_alternative: bool) -> Self {
        let first = if has_alternative { FIRST_LOOK } else { longest / 2 };
        Self { peer, begun: now, next: (now + first, first), has_alternative, probe: None }
    }

    /// Whether the connection is established: an attempt for [`Place::Settle`](crate::driver::Place::Settle).
    pub(crate) fn look<T: Streams>(
        &mut self,
        core: &mut Core<T>,
        now: Instant,
        id: ConnectionId,
    ) -> Result<Option<()>, Error> {
        let status = core.status(id).ok_or(Error::Lost(ConnectionLost::ClosedLocally))?;
        match status.lost {
            _ if status.connected => return Ok(Some(())),
            Some(lost @ ConnectionLost::ConnectTimeout(time)) => {
                return Err(self.verdict(time).unwrap_or(Error::Lost(lost)));
            }
            Some(lost) => return Err(lost.into()),
            None => {}
        }
        let (next, interval) = self.next;
        if now >= next {
            self.probe.get_or_insert_with(|| Probe::send(self.peer));
            if self.has_alternative
                && let Some(error) = self.verdict(now - self.begun)
            {
                return Err(error);
            }
            self.next = (now + interval * 2, interval * 2);
        }
        core.look_again_at(self.next.0, id);
        Ok(None)
    }

    /// What the network said, after so long.
    fn verdict(&mut self, time: Duration) -> Option<Error> {
        let source = self.probe.as_mut()?.verdict()?;
        Some(Error::Unreachable { peer: self.peer, time, source })
    }
}

/// A datagram on its way to a peer, and what comes back.
#[derive(Debug)]
pub(crate) struct Probe {
    /// `Err`: the system did not even send it.
    socket: io::Result<UdpSocket>,
}

impl Probe {
    /// Sends an empty datagram, which no UDT program answers.
    pub(crate) fn send(peer: SocketAddr) -> Self {
        let sent = || {
            let socket = UdpSocket::bind(any_port_for(peer))?;
            socket.set_nonblocking(true)?;
            // Connected, so that the system hands in what ICMP says about this peer.
            socket.connect(peer)?;
            socket.send(&[])?;
            Ok(socket)
        };
        Self { socket: sent() }
    }

    /// What the network said until now; `None` if nothing.
    pub(crate) fn verdict(&mut self) -> Option<io::Error> {
        let error = match &mut self.socket {
            Ok(socket) => socket.recv(&mut [0]).err()?,
            Err(error) => std::mem::replace(error, io::ErrorKind::WouldBlock.into()),
        };
        (error.kind() != io::ErrorKind::WouldBlock).then_some(error)
    }
}

/// What to do about an error of the network, for people.
pub(crate) fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "its host says that nothing listens on this UDP port; start the listening side first, and check the port"
        }
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "no route leads there; check the address, and that the network is up"
        }
        io::ErrorKind::PermissionDenied => "this machine may not send there; check its firewall and the address",
        _ => "the system cannot send there; check the address",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_port_is_named_and_an_open_one_is_not() {
        let socket = UdpSocket::bind("127.0.0.78:0").unwrap();
        let address = socket.local_addr().unwrap();
        // On the loopback interface the answer is there when the send call returns.
        assert!(Probe::send(address).verdict().is_none());
        drop(socket);
        let error = Probe::send(address).verdict().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn what_the_system_refuses_to_send_is_named() {
        // Nobody may send to all hosts without having asked for it.
        let error = Probe::send(SocketAddr::from(([255, 255, 255, 255], 9))).verdict().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(advice(&error).contains("firewall"));
    }

    #[test]
    fn a_missing_route_says_what_to_check() {
        for errno in [rustix::io::Errno::NETUNREACH, rustix::io::Errno::HOSTUNREACH] {
            assert!(advice(&errno.into()).contains("route"), "{errno}");
        }
    }
}
