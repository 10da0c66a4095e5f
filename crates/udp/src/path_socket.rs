//! A UDP socket to one peer whose datagrams never travel in fragments, for the examination of a path.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket as StdSocket};
use std::time::Duration;

use crate::sys;

/// A socket to one peer. A datagram passes whole, or not at all.
///
/// The system reports ICMP messages about the peer as errors of later calls. Anybody can forge such messages.
#[derive(Debug)]
pub struct PathSocket {
    socket: StdSocket,
    peer: SocketAddr,
}

impl PathSocket {
    /// A socket to `peer`, from a port of the system's choice.
    ///
    /// # Errors
    /// There is no route, or the system has no more sockets.
    pub fn towards(peer: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = StdSocket::bind(any)?;
        sys::forbid_fragments(&socket, peer.is_ipv6())?;
        socket.connect(peer)?;
        Ok(Self { socket, peer })
    }

    /// The peer.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// This side's address towards the peer.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The largest packet towards the peer that the system expects to pass, in bytes, IP header included: the MTU of the
    /// interface, or less if a router has reported less.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn mtu(&self) -> io::Result<u32> {
        sys::path_mtu(&self.socket, self.peer.is_ipv6())
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// `EMSGSIZE`: the datagram is larger than the interface permits. `ECONNREFUSED`: the peer's host said that nothing
    /// listens there.
    pub fn send(&self, datagram: &[u8]) -> io::Result<()> {
        self.socket.send(datagram).map(drop)
    }

    /// Receives one datagram within `wait`, and returns its length. A longer one than `buffer` is cut.
    ///
    /// # Errors
    /// `WouldBlock` if nothing came, or as [`send`](Self::send).
    pub fn recv(&self, buffer: &mut [u8], wait: Duration) -> io::Result<usize> {
        // Zero would mean for ever.
        self.socket.set_read_timeout(Some(wait.max(Duration::from_micros(1))))?;
        self.socket.recv(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_port_is_an_error_of_a_later_call() {
        let closed = StdSocket::bind("127.0.0.79:0").unwrap();
        let socket = PathSocket::towards(closed.local_addr().unwrap()).unwrap();
        drop(closed);
        socket.send(&[1]).unwrap();
        let error = socket.recv(&mut [0], Duration::from_secs(5)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn what_fits_the_interface_arrives_and_silence_is_no_error_of_the_network() {
        let peer = StdSocket::bind("127.0.0.1:0").unwrap();
        let socket = PathSocket::towards(peer.local_addr().unwrap()).unwrap();
        let mtu = socket.mtu().unwrap();
        assert!(mtu >= 1_280, "{mtu}");
        socket.send(&[7; 1_000]).unwrap();
        let mut buffer = [0; 2_000];
        assert_eq!(peer.recv(&mut buffer).unwrap(), 1_000);
        let error = socket.recv(&mut buffer, Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
