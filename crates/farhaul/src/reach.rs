//! Why nobody answers a connection attempt, as far as the network says so.
//!
//! The port's own socket is deaf to ICMP: anybody can forge such messages, and an established connection must not care for
//! them (attack B17). So a second socket asks, only while nobody answers, and what it hears changes an error's words only.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use crate::endpoint::any_port_for;

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
    pub(crate) fn verdict(self) -> Option<io::Error> {
        let error = match self.socket {
            Ok(socket) => socket.recv(&mut [0]).err()?,
            Err(error) => error,
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
