//! Clients of other programs at the port of an endpoint.

use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use farhaul_udp::UdpSocket;

use crate::driver::OtherClient;

/// Clients of other programs that open a TCP connection to the port of an endpoint. They come from
/// [`Endpoint::other_clients`](crate::Endpoint::other_clients).
#[derive(Debug)]
pub struct OtherClients {
    callers: Mutex<Receiver<OtherClient>>,
    socket: Arc<UdpSocket>,
}

impl OtherClients {
    pub(crate) const fn new(callers: Receiver<OtherClient>, socket: Arc<UdpSocket>) -> Self {
        Self { callers: Mutex::new(callers), socket }
    }

    /// The next client and its address, with all its bytes still to be received. Waits until there is one. `None` once the
    /// endpoint's listener is closed.
    pub fn accept(&self) -> Option<(TcpStream, SocketAddr)> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }

    /// The address of the endpoint.
    pub fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    /// The UDP socket of the endpoint, from which datagrams for these clients may leave.
    pub const fn socket(&self) -> &Arc<UdpSocket> {
        &self.socket
    }
}
