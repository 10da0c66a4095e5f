//! The cryptography that packet protection needs, behind traits. The pure zone has none of its own: `farhaul-secure` has that of
//! TLS 1.3, and `Null` of tests and simulations has none.

use core::net::SocketAddr;

use farhaul_wire::secure::{CloseCode, PacketNumber, TAG_LEN};

use crate::transport::Protection;

/// A side of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side that called.
    Client,
    /// The side that was called.
    Server,
}

/// A key of one direction and epoch.
pub trait PacketKey: Send {
    /// Encrypts `body` in place. The tag authenticates it together with `header` and the number. A number must not be used
    /// twice with one key.
    fn seal(&self, number: PacketNumber, header: &[u8], body: &mut [u8]) -> [u8; TAG_LEN];

    /// Verifies and decrypts `body`, whose last bytes are the tag, in place. Returns false if anything of it was changed.
    /// Then the content of `body` is undefined.
    fn open(&self, number: PacketNumber, header: &[u8], body: &mut [u8]) -> bool;

    /// Packets that may be sealed with the key.
    fn confidentiality_limit(&self) -> u64;

    /// Failed openings after which the key must not be used any more.
    fn integrity_limit(&self) -> u64;
}

/// The keys of both directions of one epoch.
pub struct Keys {
    /// Seals what this side sends.
    pub local: Box<dyn PacketKey>,
    /// Opens what the peer sends.
    pub remote: Box<dyn PacketKey>,
}

/// Makes the keys of one epoch after the other.
pub trait Generations: Send {
    /// The keys of the next epoch.
    fn next(&mut self) -> Keys;
}

/// New keys that a handshake has made. Further messages of the handshake belong to them.
pub enum KeyChange {
    /// The keys of the rest of the handshake.
    Handshake(Keys),
    /// The first keys of the application, and how to make those that follow.
    Application(Keys, Box<dyn Generations>),
}

/// Why a handshake failed at this side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What to tell the peer.
    pub code: CloseCode,
    /// The reason, for a person. It is not sent.
    pub reason: String,
}

/// A handshake in progress.
pub trait Handshake: Send {
    /// Takes messages of the peer, in order and all of one epoch.
    ///
    /// # Errors
    /// The peer cannot be trusted, or violates TLS.
    fn read(&mut self, bytes: &[u8]) -> Result<(), Failure>;

    /// Appends messages for the peer. After new keys, call again: what follows belongs to them.
    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange>;

    /// The peer's transport parameters, once they are authentic.
    fn peer_parameters(&self) -> Option<&[u8]>;

    /// Whether both sides have proved who they are.
    fn is_complete(&self) -> bool;

    /// The protection of the connection, once the handshake is complete.
    fn protection(&self) -> Protection;
}

/// Makes handshakes and keys.
pub trait Provider: Send {
    /// The Initial keys, which follow from the client's random bytes.
    fn initial(&self, client_id: &[u8], side: Side) -> Keys;

    /// Begins to call `peer`, with this side's transport parameters.
    ///
    /// # Errors
    /// Nothing is known that the peer's key could be compared with.
    fn call(&mut self, peer: SocketAddr, parameters: Vec<u8>) -> Result<Box<dyn Handshake>, Failure>;

    /// Begins to answer a caller, with this side's transport parameters.
    ///
    /// # Errors
    /// This side has no key of its own.
    fn answer(&mut self, from: SocketAddr, parameters: Vec<u8>) -> Result<Box<dyn Handshake>, Failure>;

    /// Begins to answer the call of `peer` in a rendezvous, with this side's transport parameters. The peer's key must be one
    /// that [`call`](Self::call) accepts, because this side has called it, too.
    ///
    /// # Errors
    /// This side has no key of its own. Nothing is known that the peer's key could be compared with.
    fn meet(&mut self, peer: SocketAddr, parameters: Vec<u8>) -> Result<Box<dyn Handshake>, Failure>;

    /// Encrypts the content of a token, which only this endpoint can read.
    fn seal_token(&self, content: &[u8]) -> Vec<u8>;

    /// The content of a token of this endpoint; `None` if it is none.
    fn open_token(&self, token: &[u8]) -> Option<Vec<u8>>;
}
