//! Connecting, at once or in the background, to a listener or by rendezvous.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use farhaul::{ConnectOptions, ConnectionLost, Endpoint};

use super::link::{Handle, Link};
use super::{Kind, Phase, Socket};
use crate::controller;
use crate::failure::{Code, Failure, Result};
use crate::port::Port;
use crate::sockaddr::Family;
use crate::wait;

impl Socket {
    /// Connects to `peer`. A socket that blocks waits until it is connected.
    ///
    /// # Errors
    /// The socket listens, connects or is connected. A rendezvous needs a bound socket. Nobody answers, or the peer refuses.
    pub(crate) fn connect(&self, peer: SocketAddr) -> Result<()> {
        let options = self.options().clone();
        let mut begun = None;
        self.advance(|phase| {
            let port = match phase {
                Phase::Init if options.rendezvous => return Err(Code::RendezvousNotBound.into()),
                Phase::Init => Port::bind(self.family.any(), &options)?,
                Phase::Bound(port) => Arc::clone(port),
                // Another thread has closed it since this call found it.
                Phase::Closed => return Err(Code::InvalidSocket.into()),
                _ => return Err(Code::AlreadyConnected.into()),
            };
            let endpoint = port.endpoint(&options, None)?;
            let peer = reachable(peer, port.address());
            let handle = self.begin(&endpoint, peer, options.rendezvous)?;
            let link = begun.insert(Arc::new(Link { handle, port }));
            Ok(Phase::Linked(Arc::clone(link)))
        })?;
        let Some(link) = begun.filter(|_| options.recv_blocks) else { return Ok(()) };
        let now = wait::until(&mut link.connection().watch(), None, |now| now.connected || now.ended)?;
        if now.connected {
            self.set_up(&link);
            return Ok(());
        }
        let why = link.connection().ending()?.unwrap_or(ConnectionLost::ClosedLocally);
        // It may be tried again, unless another thread has closed the socket.
        self.advance(|phase| match phase {
            Phase::Linked(failed) if Arc::ptr_eq(failed, &link) => Ok(Phase::Bound(Arc::clone(&link.port))),
            other => Ok(other.clone()),
        })?;
        Err(match why {
            ConnectionLost::ClosedLocally => Code::SetupFailed.into(),
            why => Failure::from(why),
        })
    }

    fn begin(&self, endpoint: &Endpoint, peer: SocketAddr, rendezvous: bool) -> Result<Handle> {
        Ok(match (self.kind, rendezvous) {
            (Kind::Stream, false) => Handle::Stream(endpoint.begin_connect(peer, ConnectOptions::stream())?),
            (Kind::Stream, true) => {
                Handle::Stream(endpoint.begin_connect(peer, ConnectOptions::stream().rendezvous())?)
            }
            (Kind::Messages, false) => Handle::Messages(endpoint.begin_connect(peer, ConnectOptions::messages())?),
            (Kind::Messages, true) => {
                Handle::Messages(endpoint.begin_connect(peer, ConnectOptions::messages().rendezvous())?)
            }
        })
    }

    /// Gives a connection that is established what belongs to this socket alone: its controller and its cap. Whoever sees
    /// first that it is established calls this, before anything is sent.
    pub(crate) fn set_up(&self, link: &Link) {
        if self.set_up.load(Ordering::Acquire) {
            return;
        }
        // Others wait here until the connection has its controller.
        let mut installed = self.installed.lock().unwrap_or_else(PoisonError::into_inner);
        if self.set_up.load(Ordering::Acquire) {
            return;
        }
        let options = self.options();
        let (factory, rate) = (options.factory.clone(), options.max_rate());
        drop(options);
        if let Some(rate) = rate {
            // It ends meanwhile, at worst.
            let _ = link.connection().set_max_rate(Some(rate));
        }
        *installed = factory.and_then(|factory| controller::install(self.id, link.connection(), &factory));
        self.set_up.store(true, Ordering::Release);
    }
}

/// A peer at no address is one at this host, as the system takes it.
fn reachable(peer: SocketAddr, local: SocketAddr) -> SocketAddr {
    if !peer.ip().is_unspecified() {
        return peer;
    }
    let here = match Family::of(local) {
        Family::V4 => SocketAddr::from(([127, 0, 0, 1], 0)),
        Family::V6 => SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 0)),
    };
    SocketAddr::new(here.ip(), peer.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_another_thread_has_closed_is_none_any_more() {
        let socket = Socket::new(1, Family::V4, Kind::Stream);
        socket.end();
        let failure = socket.connect(SocketAddr::from(([127, 0, 0, 1], 9))).unwrap_err();
        assert_eq!(failure.code, Code::InvalidSocket);
        assert_eq!(socket.listen(1).unwrap_err().code, Code::InvalidSocket);
    }
}
