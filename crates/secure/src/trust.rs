//! Which keys a side accepts.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::public_key::PublicKey;

/// Decides about the keys of peers, in the middle of a handshake. It must not block for long.
pub trait Trust: Send + Sync + fmt::Debug {
    /// Whether the host at `peer`, which this side calls, may have this key. In a rendezvous both sides call, so each asks this
    /// about the other one.
    fn admits_server(&self, peer: SocketAddr, key: PublicKey) -> bool;

    /// Whether the client at `from`, which calls this side, may have this key.
    fn admits_client(&self, from: SocketAddr, key: PublicKey) -> bool;
}

impl<T: Trust + ?Sized> Trust for Arc<T> {
    fn admits_server(&self, peer: SocketAddr, key: PublicKey) -> bool {
        (**self).admits_server(peer, key)
    }

    fn admits_client(&self, from: SocketAddr, key: PublicKey) -> bool {
        (**self).admits_client(from, key)
    }
}

/// Accepts these keys of servers and of clients.
#[derive(Clone, Debug, Default)]
pub struct Pinned {
    /// Keys of servers.
    pub servers: Vec<PublicKey>,
    /// Keys of clients.
    pub clients: Vec<PublicKey>,
}

impl Trust for Pinned {
    fn admits_server(&self, _peer: SocketAddr, key: PublicKey) -> bool {
        self.servers.contains(&key)
    }

    fn admits_client(&self, _from: SocketAddr, key: PublicKey) -> bool {
        self.clients.contains(&key)
    }
}

/// Accepts every key, so anybody on the path can read and change everything. For tests and measurements alone.
#[derive(Clone, Copy, Debug)]
pub struct AcceptAll;

impl Trust for AcceptAll {
    fn admits_server(&self, _peer: SocketAddr, _key: PublicKey) -> bool {
        true
    }

    fn admits_client(&self, _from: SocketAddr, _key: PublicKey) -> bool {
        true
    }
}
