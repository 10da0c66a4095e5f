//! A UDP port with any number of connections on it.

mod connect;
#[cfg(feature = "tokio")]
mod connect_async;

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Weak};

use farhaul_proto::probe::StableConfig;
use farhaul_proto::secure::Protection;

use crate::addresses::{first_that_works, resolve};
use crate::builder::Builder;
use crate::canceller::Canceller;
use crate::control_stream::ControlStream;
use crate::driver::UdpPort;
use crate::error::Error;
use crate::listener::Listener;
use crate::message::MessageSocket;
use crate::other_clients::OtherClients;
use crate::port::Port;
use crate::probe::ProbePayload;
use crate::security::{Network, PublicKey, Security};

pub use connect::ConnectOptions;

/// The warning about a port that writes down secrets.
const SECRETS: &str = "the secrets of all connections are written down: whoever has them can read and forge everything; use this for \
                       debugging alone, and delete them";

/// A UDP port that opens and accepts any number of connections, in both directions.
///
/// A clone is a second handle of the same port. The port stays open while any handle of it lives: endpoint, listener,
/// stream or message socket. Dropping the last one returns at once. The port's thread tells the peers, which takes
/// about two RTTs, and then closes the port: see [`wait_idle`](crate::wait_idle).
#[derive(Clone)]
pub struct Endpoint {
    port: Arc<Port>,
}

/// A handle of a port that does not keep it open.
#[derive(Clone)]
pub struct WeakEndpoint {
    port: Weak<Port>,
}

impl WeakEndpoint {
    /// The endpoint. `None` once its last handle is gone.
    pub fn upgrade(&self) -> Option<Endpoint> {
        self.port.upgrade().map(|port| Endpoint { port })
    }
}

impl Endpoint {
    /// A handle that does not keep the port open.
    pub fn downgrade(&self) -> WeakEndpoint {
        WeakEndpoint { port: Arc::downgrade(&self.port) }
    }

    /// Settings for a port, before it is opened.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Opens the UDP port at `address` with default settings, and encrypts all its connections, as [`Builder::secure`]; port
    /// 0 lets the system choose.
    ///
    /// # Errors
    /// The address cannot be resolved, or its port not be opened.
    pub fn secure(address: impl ToSocketAddrs, security: Security) -> Result<Self, Error> {
        first_that_works(&resolve(address)?, |to| Self::builder().secure(security.clone()).bind(to.peer))
    }

    /// Opens the UDP port at `address` with default settings and without encryption, as [`Builder::plain`]; port 0 lets
    /// the system choose.
    ///
    /// # Errors
    /// The address cannot be resolved, or its port not be opened.
    pub fn plain(address: impl ToSocketAddrs) -> Result<Self, Error> {
        first_that_works(&resolve(address)?, |to| Self::builder().plain().bind(to.peer))
    }

    fn open(builder: Builder, port: UdpPort) -> Result<Self, Error> {
        Ok(Self { port: Arc::new(builder.open(port)?) })
    }

    /// The address of the UDP port.
    pub fn local_addr(&self) -> SocketAddr {
        self.port.driver.local_addr()
    }

    /// Configuration problems that cost speed on this machine, and [secrets](Security::unsafe_key_log) that are written down. Each
    /// line names one and what helps. Empty if there are none.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.port.driver.warnings();
        if self.port.logs_secrets {
            warnings.push(SECRETS.to_owned());
        }
        warnings
    }

    /// Datagrams that the system dropped since the port was opened, because this process was too slow to receive them.
    /// A train that the system has merged counts as one. `None` if the system does not tell. Wraps at 2^32.
    pub fn recv_drops(&self) -> Option<u32> {
        self.port.driver.recv_drops()
    }

    /// Datagrams that arrived since the port was opened and were invalid or belonged to no connection. Empty datagrams
    /// do not count. Some are harmless, such as those of a peer that has not yet learned of the end of its connection.
    /// Many suggest an attacker who guesses or scans.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn invalid_datagrams(&self) -> Result<u64, Error> {
        Ok(self.port.driver.lock()?.transport.invalid_datagrams())
    }

    /// Admits plain clients from these networks alone from now on, instead of those of [`Builder::plain_clients`]. Plain
    /// connections from other networks end at once.
    ///
    /// # Errors
    /// The port was opened without plain clients. The endpoint's driver thread is gone.
    pub fn admit_plain(&self, networks: impl IntoIterator<Item = Network>) -> Result<(), Error> {
        let networks: Vec<Network> = networks.into_iter().collect();
        let has_plain = self.port.under_lock(|core, now| core.transport.admit_plain(now, &networks))?;
        if has_plain { Ok(()) } else { Err(Error::NoPlainClients) }
    }

    /// Aborts the encrypted connections of clients that `admits` refuses, and returns their number. Its arguments are the address
    /// from which a client called, and its key. A [`Trust`](crate::security::Trust) whose answers have changed decides about
    /// new connections alone, so call this after the change.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn end_clients(&self, mut admits: impl FnMut(SocketAddr, PublicKey) -> bool) -> Result<usize, Error> {
        let is_welcome = |from, protection: &Protection| {
            PublicKey::from_spki(&protection.peer_key).is_some_and(|key| admits(from, key))
        };
        self.port.under_lock(|core, now| core.transport.end_callers(now, is_welcome))
    }

    /// Answers measured streams from now on, as [`Builder::answer_probes`].
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn answer_probes(&self) -> Result<(), Error> {
        self.port.driver.learn_destinations()?;
        self.port.driver.lock()?.answer_probes();
        Ok(())
    }

    /// Answers measured streams from now on, as [`Builder::answer_probes`], and gives their payloads to the caller. The
    /// latest call receives them.
    ///
    /// They come as datagrams come: not at all, twice, or in another order. While 1024 wait, further ones are lost.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn probe_payloads(&self) -> Result<Receiver<ProbePayload>, Error> {
        self.port.driver.learn_destinations()?;
        Ok(self.port.driver.lock()?.answer_probes().payloads())
    }

    /// The clients of other programs that open a TCP connection to this port, from now on until its listener is closed.
    /// The latest call receives them. A protocol without a control channel has none, and neither has a secure port.
    ///
    /// Call it before [`listen`](Self::listen), which opens the TCP port: a client that comes in between is refused.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn other_clients(&self) -> Result<OtherClients, Error> {
        let callers = self.port.driver.lock()?.other_clients();
        // Without a sender, a receiver is at its end.
        let callers = callers.unwrap_or_else(|| sync_channel(0).1);
        Ok(OtherClients::new(callers, Arc::clone(&self.port.driver.socket)))
    }

    /// Datagrams of measured streams that this port has counted since it answers them, and their bytes of UDP payload.
    /// Questions for the counts are none. Zero while the port answers no streams.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn probe_totals(&self) -> Result<(u64, u64), Error> {
        Ok(self.port.driver.lock()?.answering.as_ref().map_or((0, 0), |answering| answering.totals()))
    }

    /// Begins a control stream to `peer`, beside the connections of this endpoint and on the same port.
    ///
    /// For plain ports. On a port with encryption, a stream needs a secure connection:
    /// [`Connection::control_stream`](crate::Connection::control_stream).
    ///
    /// # Errors
    /// The port has encryption ([`Error::NeedsConnection`]). The endpoint has a control stream. Its driver thread is gone. The system has no randomness.
    pub fn control_stream(&self, peer: SocketAddr, config: StableConfig) -> Result<ControlStream, Error> {
        ControlStream::begin(&self.port, peer, None, config)
    }

    /// Accepts streams that peers open to this port.
    ///
    /// # Errors
    /// This endpoint already has a listener.
    pub fn listen(&self) -> Result<Listener, Error> {
        Listener::open(&self.port)
    }

    /// Accepts message sockets that peers open to this port.
    ///
    /// # Errors
    /// This endpoint already has a listener.
    pub fn listen_for_messages(&self) -> Result<Listener<MessageSocket>, Error> {
        Listener::open(&self.port)
    }

    /// Returns a handle that ends every blocked call of this endpoint, its listener and its connections. Until
    /// [`reset`](Canceller::reset), later calls that would wait end too.
    pub fn canceller(&self) -> Canceller {
        self.port.canceller()
    }
}

impl Builder {
    /// Opens the UDP port at `address`; port 0 lets the system choose.
    ///
    /// # Errors
    /// Neither [`secure`](Self::secure) nor [`plain`](Self::plain) was called, a setting is out of its range, or the port cannot
    /// be opened. [`plain_clients`](Self::plain_clients) was called without [`secure`](Self::secure), or with another protocol than
    /// UDT4.
    pub fn bind(self, address: SocketAddr) -> Result<Endpoint, Error> {
        Endpoint::open(self, address.into())
    }

    /// Takes a UDP port that somebody else has bound, for instance the service manager (socket activation).
    ///
    /// # Errors
    /// As [`bind`](Self::bind); or the socket is none of UDP.
    pub fn adopt(self, socket: UdpSocket) -> Result<Endpoint, Error> {
        let unknown = |source| Error::System { what: "the address of the socket", source };
        let address = socket.local_addr().map_err(unknown)?;
        Endpoint::open(self, UdpPort::Socket(address, socket))
    }
}

impl Listener {
    /// Opens the UDP port at `address` and accepts streams there, with default settings and without encryption. For other
    /// settings, see [`Endpoint::builder`] and [`Endpoint::listen`].
    ///
    /// # Errors
    /// The address cannot be resolved, or its port not be opened.
    pub fn plain(address: impl ToSocketAddrs) -> Result<Self, Error> {
        first_that_works(&resolve(address)?, |to| Endpoint::plain(to.peer)?.listen())
    }
}

impl fmt::Debug for WeakEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakEndpoint").finish_non_exhaustive()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("local", &self.local_addr()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(builder: Builder) -> Result<Endpoint, Error> {
        builder.bind(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    #[test]
    fn a_port_is_never_plain_by_oversight() {
        let error = Endpoint::builder().bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap_err();
        assert!(matches!(error, Error::NoProtection), "{error}");
    }

    #[test]
    fn an_unknown_controller_is_refused_with_the_known_ones() {
        let message = bind(Endpoint::builder().plain().controller("warp")).unwrap_err().to_string();
        assert!(message.contains("warp") && message.contains("udt"), "{message}");
    }

    #[test]
    fn a_taken_port_is_an_error_that_names_it() {
        let first = bind(Endpoint::builder().plain()).unwrap();
        let error = Endpoint::builder().plain().bind(first.local_addr()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
        assert!(error.to_string().contains(&first.local_addr().to_string()), "{error}");
    }
}
