//! The TCP port beside a UDP port: reserved from the start, open while the endpoint listens.

use std::io;
use std::net::{Ipv6Addr, Shutdown, SocketAddr};
use std::sync::Arc;

use farhaul_udp::UdpSocket;
use socket2::{Domain, Protocol, Socket, Type};

/// Connections that the kernel holds until the driver thread accepts them. That thread is never long in coming.
const BACKLOG: i32 = 128;

/// How many UDP ports are tried until one has a free TCP port. On a host with half of its TCP ports taken, one attempt
/// in 65 000 finds none.
const ATTEMPTS: usize = 16;

/// The TCP port of an endpoint. While it is reserved but closed, the kernel refuses callers.
#[derive(Debug)]
pub(crate) struct ChannelPort {
    address: SocketAddr,
    /// `None` if the port was taken when it was last tried.
    socket: Option<Arc<Socket>>,
    is_open: bool,
}

impl ChannelPort {
    /// Reserves the TCP port at `address`, if it is free.
    pub(super) fn at(address: SocketAddr) -> Self {
        Self { address, socket: reserve(address).ok().map(Arc::new), is_open: false }
    }

    /// Accepts callers from now on.
    ///
    /// # Errors
    /// Another program has the port.
    pub(super) fn open(&mut self) -> io::Result<()> {
        let socket = match &self.socket {
            Some(socket) => socket,
            None => self.socket.insert(Arc::new(reserve(self.address)?)),
        };
        socket.listen(BACKLOG)?;
        self.is_open = true;
        Ok(())
    }

    /// Refuses callers, those that the kernel holds included. The port stays reserved.
    pub(super) fn close(&mut self) {
        self.is_open = false;
        // The kernel refuses it only if the socket does not listen.
        let _ = self.socket.as_ref().map(|socket| socket.shutdown(Shutdown::Both));
    }

    /// The address of the port.
    pub(in crate::driver) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The socket, while it accepts callers.
    pub(super) fn listener(&self) -> Option<&Arc<Socket>> {
        self.socket.as_ref().filter(|_| self.is_open)
    }

    /// The socket. Channels that it accepts inherit its buffers.
    #[cfg(test)]
    pub(super) fn socket(&self) -> Option<&Socket> {
        self.socket.as_deref()
    }
}

/// Opens a UDP port by `bind`, and reserves the TCP port of the same number. If the system chose the number and TCP has
/// it taken, another is tried.
///
/// # Errors
/// Those of `bind`. A taken TCP port is none, because only listeners need it.
pub(in crate::driver) fn open_pair(
    address: SocketAddr,
    mut bind: impl FnMut(SocketAddr) -> io::Result<UdpSocket>,
) -> io::Result<(UdpSocket, ChannelPort)> {
    let mut attempts = if address.port() == 0 { ATTEMPTS } else { 1 };
    loop {
        let socket = bind(address)?;
        let port = ChannelPort::at(socket.local_addr());
        attempts -= 1;
        if port.socket.is_some() || attempts == 0 {
            return Ok((socket, port));
        }
    }
}

/// A TCP socket at `address` that does not listen yet. As for UDP, `[::]` is dual-stack.
fn reserve(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(address.ip() != Ipv6Addr::UNSPECIFIED)?;
    }
    // Connections of an endpoint that was here before may still wait for late segments. In return, a program that sets
    // the option too may take the port as long as this socket does not listen.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use farhaul_udp::Options;

    use super::*;

    const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
        UdpSocket::bind(address, Options::default())
    }

    /// A UDP port whose TCP port is taken.
    fn half_taken() -> (UdpSocket, TcpListener) {
        loop {
            let taken = TcpListener::bind(ANY).unwrap();
            if let Ok(socket) = bind(taken.local_addr().unwrap()) {
                return (socket, taken);
            }
        }
    }

    #[test]
    fn a_number_that_tcp_has_taken_is_given_back_for_another() {
        let (socket, taken) = half_taken();
        let mut first = Some(socket);
        let (socket, port) = open_pair(ANY, |address| first.take().map_or_else(|| bind(address), Ok)).unwrap();
        assert_ne!(socket.local_addr(), taken.local_addr().unwrap());
        assert_eq!(socket.local_addr(), port.address());
        assert!(port.socket().is_some());
    }

    #[test]
    fn a_given_number_is_kept_and_listening_waits_until_tcp_has_it_free() {
        let (socket, taken) = half_taken();
        let address = socket.local_addr();
        drop(socket);
        let (socket, mut port) = open_pair(address, bind).unwrap();
        assert_eq!(socket.local_addr(), address);
        assert_eq!(port.open().unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert!(port.listener().is_none());
        drop(taken);
        port.open().unwrap();
        TcpStream::connect(address).unwrap();
    }

    #[test]
    fn callers_are_refused_unless_the_port_is_open_and_it_opens_again() {
        let (_socket, mut port) = open_pair(ANY, bind).unwrap();
        for _ in 0..3 {
            let refused = TcpStream::connect(port.address()).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
            port.open().unwrap();
            TcpStream::connect(port.address()).unwrap();
            port.close();
            let rival = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            assert!(rival.bind(&port.address().into()).is_err(), "it stays reserved");
        }
    }
}
