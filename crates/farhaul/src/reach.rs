//! Why nobody answers a connection attempt, as far as the network reports it.
//!
//! The port's own socket ignores ICMP, because anybody can forge such messages, and established connections must not
//! react to them (attack B17). So a second socket probes, only while nobody answers. Its result affects only the text
//! of an error.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use farhaul_proto::{Channels, ConnectionId, ConnectionLost, Streams};
use farhaul_units::Instant;

use crate::driver::Core;
use crate::endpoint::any_port_for;
use crate::error::Error;

/// Time until a peer with other addresses is probed. Most live peers have answered by then, and users do not notice it.
/// Each further check comes after twice the time.
const FIRST_LOOK: Duration = Duration::from_millis(20);

/// A connection attempt in progress, in the view of its waiting caller.
#[derive(Debug)]
pub(crate) struct Reaching {
    peer: SocketAddr,
    begun: Instant,
    /// The next check without an event, and the interval to it.
    next: (Instant, Duration),
    has_alternative: bool,
    probe: Option<Probe>,
}

impl Reaching {
    /// An attempt that started at `now` and may take `longest`.
    ///
    /// With an alternative, it ends once the network reports that the peer is unreachable. Without one, it continues,
    /// because a listener may start meanwhile, and anybody can forge such messages.
    pub(crate) fn begin(peer: SocketAddr, now: Instant, longest: Duration, has_alternative: bool) -> Self {
        let first = if has_alternative { FIRST_LOOK } else { longest / 2 };
        Self { peer, begun: now, next: (now + first, first), has_alternative, probe: None }
    }

    /// Whether the connection is established. An attempt for [`Place::Settle`](crate::driver::Place::Settle).
    pub(crate) fn look<T: Streams + Channels>(
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

    /// The network's report after this time.
    fn verdict(&mut self, time: Duration) -> Option<Error> {
        let source = self.probe.as_mut()?.verdict()?;
        Some(Error::Unreachable { peer: self.peer, time, source })
    }
}

/// A datagram to a peer, and the response.
#[derive(Debug)]
pub(crate) struct Probe {
    /// `Err` if the system did not send it.
    socket: io::Result<UdpSocket>,
}

impl Probe {
    /// Sends an empty datagram, which no UDT program answers.
    pub(crate) fn send(peer: SocketAddr) -> Self {
        let sent = || {
            let socket = UdpSocket::bind(any_port_for(peer))?;
            socket.set_nonblocking(true)?;
            // Connected, so that the system reports ICMP messages about this peer.
            socket.connect(peer)?;
            socket.send(&[])?;
            Ok(socket)
        };
        Self { socket: sent() }
    }

    /// The network's report until now; `None` without one.
    pub(crate) fn verdict(&mut self) -> Option<io::Error> {
        let error = match &mut self.socket {
            Ok(socket) => socket.recv(&mut [0]).err()?,
            Err(error) => std::mem::replace(error, io::ErrorKind::WouldBlock.into()),
        };
        (error.kind() != io::ErrorKind::WouldBlock).then_some(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_port_is_named_and_an_open_one_is_not() {
        let socket = UdpSocket::bind("127.0.0.78:0").unwrap();
        let address = socket.local_addr().unwrap();
        // On the loopback interface the answer has arrived when the send call returns.
        assert!(Probe::send(address).verdict().is_none());
        drop(socket);
        let error = Probe::send(address).verdict().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_send_that_the_system_refuses_is_named() {
        // Broadcasts need a socket option.
        let error = Probe::send(SocketAddr::from(([255, 255, 255, 255], 9))).verdict().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}
