//! UDP ports that sockets share: UDT_REUSEADDR.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use farhaul::Endpoint;

use crate::failure::{Code, Failure, Result};
use crate::options::Options;
use crate::sockaddr::Family;

/// The ports of this process that sockets may share. Ports without sockets are removed when the next one is opened.
static PORTS: Mutex<Vec<Weak<Port>>> = Mutex::new(Vec::new());

/// A UDP port, held by each of its sockets.
#[derive(Debug)]
pub(crate) struct Port {
    address: SocketAddr,
    /// The number of the program's descriptor that it took over.
    adopted: Option<RawFd>,
    mss: i32,
    reusable: bool,
    state: Mutex<PortState>,
}

#[derive(Debug)]
enum PortState {
    /// Bound. Settings that a program may change until it listens or connects are still open.
    Bound(UdpSocket),
    Open(Endpoint),
    /// It could not be opened.
    Broken,
}

fn ports() -> MutexGuard<'static, Vec<Weak<Port>>> {
    let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    ports.retain(|port| port.strong_count() > 0);
    ports
}

impl Port {
    /// The port at `address` for a socket with these options: one that another socket has, if both permit it, or a new one.
    ///
    /// # Errors
    /// The system refuses the address.
    pub(crate) fn bind(address: SocketAddr, options: &Options) -> Result<Arc<Self>> {
        let mut ports = ports();
        let shared = ports.iter().filter_map(Weak::upgrade).find(|port| port.can_share(address, options));
        if let Some(port) = shared {
            return Ok(port);
        }
        let socket = options.builder(None).socket(address)?;
        let port = Self::of_socket(socket, None, options)?;
        ports.push(Arc::downgrade(&port));
        Ok(port)
    }

    /// The port of a socket of the program, which `take` takes over.
    ///
    /// # Errors
    /// `take` fails. Another port has the descriptor. The system does not tell its address.
    pub(crate) fn adopt(
        descriptor: RawFd,
        take: impl FnOnce() -> Result<UdpSocket>,
        options: &Options,
    ) -> Result<Arc<Self>> {
        let mut ports = ports();
        if ports.iter().filter_map(Weak::upgrade).any(|port| port.adopted == Some(descriptor)) {
            return Err(Code::InvalidParameter.into());
        }
        let port = Self::of_socket(take()?, Some(descriptor), options)?;
        ports.push(Arc::downgrade(&port));
        Ok(port)
    }

    fn of_socket(socket: UdpSocket, adopted: Option<RawFd>, options: &Options) -> Result<Arc<Self>> {
        let address = socket.local_addr().map_err(|error| Failure::of_system(Code::NoUdpSocket, &error))?;
        let state = Mutex::new(PortState::Bound(socket));
        Ok(Arc::new(Self { address, adopted, mss: options.mss, reusable: options.reuse_address, state }))
    }

    fn can_share(&self, address: SocketAddr, options: &Options) -> bool {
        let same = (self.address.port(), self.mss) == (address.port(), options.mss);
        same && self.reusable && options.reuse_address && Family::of(self.address) == Family::of(address)
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The endpoint. The first socket that listens or connects opens it, with its options.
    ///
    /// # Errors
    /// The options contradict each other, or the system has no thread.
    pub(crate) fn endpoint(&self, options: &Options, backlog: Option<usize>) -> Result<Endpoint> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let socket = match &mut *state {
            PortState::Open(endpoint) => return Ok(endpoint.clone()),
            PortState::Broken => return Err(Code::NoUdpSocket.into()),
            bound @ PortState::Bound(_) => match std::mem::replace(bound, PortState::Broken) {
                PortState::Bound(socket) => socket,
                _ => return Err(Code::NoUdpSocket.into()),
            },
        };
        let endpoint = options.builder(backlog).adopt(socket)?;
        *state = PortState::Open(endpoint.clone());
        Ok(endpoint)
    }
}

/// The address from which packets to `peer` leave, for a port at all addresses.
pub(crate) fn source_towards(peer: SocketAddr, local: SocketAddr) -> SocketAddr {
    if !local.ip().is_unspecified() {
        return local;
    }
    let connected = UdpSocket::bind(Family::of(peer).any()).and_then(|probe| {
        probe.connect(peer)?;
        probe.local_addr()
    });
    // Without a route, the address of the port is all that is known.
    connected.map_or(local, |source| SocketAddr::new(source.ip(), local.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_share_a_port_if_both_permit_it_and_their_packets_have_one_size() {
        let options = Options::default();
        let first = Port::bind(([127, 0, 0, 1], 0).into(), &options).unwrap();
        assert!(Arc::ptr_eq(&first, &Port::bind(first.address(), &options).unwrap()));
        let (mut alone, mut larger) = (options.clone(), options);
        alone.reuse_address = false;
        larger.mss = 9000;
        for options in [alone, larger] {
            let failure = Port::bind(first.address(), &options).unwrap_err();
            assert_eq!(failure, Failure { code: Code::NoUdpSocket, errno: libc::EADDRINUSE });
        }
    }

    #[test]
    fn a_port_at_all_addresses_has_that_of_the_path_to_its_peer() {
        let source = source_towards(([127, 0, 0, 9], 9).into(), ([0, 0, 0, 0], 5).into());
        assert_eq!(source, ([127, 0, 0, 1], 5).into());
    }
}
