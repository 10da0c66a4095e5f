//! A TCP port that this side opens itself, and its callers.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use farhaul_udp::{Interest, Token, UdpSocket, Waiter};

use super::line::bind_udp;
use super::stop::Woken;
use super::{Failure, Stop};

/// Pause after the system refused a connection, for instance for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// Attempts to find a number that is free for both TCP and UDP.
const ATTEMPTS: usize = 16;

/// A TCP port that listens.
#[derive(Debug)]
pub(super) struct Port {
    listener: TcpListener,
    address: SocketAddr,
}

impl Port {
    /// Opens the port. 0 lets the system choose. `[::]` takes IPv4 as well.
    ///
    /// # Errors
    /// The address is in use, or is none of this machine.
    pub(super) fn bind(address: SocketAddr) -> Result<Self, Failure> {
        let bind = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) = bind().map_err(|source| Failure::Bind { transport: "TCP", address, source })?;
        Ok(Self { listener, address })
    }

    /// The address, with the port chosen by the system.
    pub(super) const fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

/// The clients of a port, until a stop.
#[derive(Debug)]
pub(super) struct PortCallers<'a> {
    port: &'a Port,
    waiter: Waiter,
    woken: Woken,
}

impl<'a> PortCallers<'a> {
    pub(super) fn of(port: &'a Port, stop: &Stop) -> Result<Self, Failure> {
        let waiter = Waiter::new()?;
        waiter.watch(&port.listener, Token(0), Interest::Readable)?;
        let woken = stop.wakes(waiter.waker());
        Ok(Self { port, waiter, woken })
    }

    /// Waits for a client or a stop.
    pub(super) fn next(&mut self) -> Result<(TcpStream, SocketAddr), Failure> {
        while !self.woken.is_stopped() {
            self.waiter.wait(None)?;
            let error = match self.port.listener.accept() {
                Ok(accepted) => return Ok(accepted),
                Err(error) => error.kind(),
            };
            if !matches!(
                error,
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
            ) {
                // Without a descriptor for it, the connection would end every wait at once.
                Waiter::new().and_then(|mut pause| pause.wait(Some(PAUSE)).map(|_| ()))?;
            }
        }
        Err(Failure::Stopped)
    }
}

/// A TCP and a UDP port of one number.
pub(super) fn bind_both(address: SocketAddr) -> Result<(Port, UdpSocket), Failure> {
    let mut attempts = 1;
    loop {
        let port = Port::bind(address)?;
        match bind_udp(port.local_addr()) {
            Ok(socket) => return Ok((port, socket)),
            // The system chose a number that is free for TCP alone.
            Err(_) if address.port() == 0 && attempts < ATTEMPTS => attempts += 1,
            Err(failure) => return Err(failure),
        }
    }
}
