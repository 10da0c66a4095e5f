//! Encrypted connections: keys, and which of them a side accepts.
//!
//! Each side has a [`KeyPair`]. [`Trust`] decides about the keys of peers:
//!
//! | a program that … | uses |
//! | --- | --- |
//! | knows the keys of its peers | [`Pinned`] |
//! | remembers the keys of servers in a file, as ssh does | [`HostTrust`] with [`KnownHosts`] |
//! | reads a file of clients and their permissions | [`AuthorizedKeys`] in its own [`Trust`] |
//! | also serves plain UDT4 clients of some networks | [`PlainClients`] beside one of these |
//! | is a test | [`AcceptAll`], against which anybody on the path can read and change everything |

mod plain_clients;

use std::fmt;
use std::sync::Arc;

pub use farhaul_proto::SecurityFault;
use farhaul_proto::{Config, Endpoint, Entropy, secure};
use farhaul_protocols::Protocol;
use farhaul_secure::Tls;
pub use farhaul_secure::{
    AcceptAll, AuthorizedKeys, Choices, Cipher, FirstContact, Grant, HostTrust, IdentityError, KeyPair, Known,
    KnownHosts, LineError, NotAdmitted, PathGrant, Pinned, PublicKey, PublicKeyError, Sealer, SecretLog, Trust,
};

pub use farhaul_units::Network;
pub use farhaul_wire::secure::VERSION as PROTECTION_VERSION;

pub use self::plain_clients::PlainClients;
use crate::error::Error;

/// Smallest packet of a port with encryption, bytes: the first packets of a handshake have 1232 bytes of UDP payload. Every
/// path that carries IPv6 carries as much (RFC 8200).
const LEAST_MSS: u32 = 1280;

/// How a port protects its connections.
#[derive(Clone)]
pub struct Security {
    identity: KeyPair,
    trust: Arc<dyn Trust>,
    cipher: Cipher,
    secrets: Option<Arc<dyn SecretLog>>,
}

impl Security {
    /// A port with this identity, which trusts these peers.
    pub fn new(identity: KeyPair, trust: impl Trust + 'static) -> Self {
        Self { identity, trust: Arc::new(trust), cipher: Cipher::default(), secrets: None }
    }

    /// The same with another cipher. Default: the fastest on this processor.
    #[must_use]
    pub const fn cipher(mut self, cipher: Cipher) -> Self {
        self.cipher = cipher;
        self
    }

    /// The same, and writes down the secrets of all connections, for debugging: whoever has them can read and forge everything.
    /// [`Endpoint::warnings`](crate::Endpoint::warnings) says so.
    #[must_use]
    pub fn unsafe_key_log(mut self, log: impl SecretLog + 'static) -> Self {
        self.secrets = Some(Arc::new(log));
        self
    }

    pub(crate) const fn logs_secrets(&self) -> bool {
        self.secrets.is_some()
    }

    /// An endpoint whose connections are all protected so, beside those of `plain` clients.
    pub(crate) fn endpoint(
        self,
        protocol: &Protocol,
        config: Config,
        plain: Option<PlainClients>,
        entropy: Entropy,
    ) -> Result<Endpoint, Error> {
        if config.mss < LEAST_MSS {
            return Err(Error::InvalidOption { option: "mss", range: "at least 1280 bytes on a port with encryption" });
        }
        let tls = Tls::new(self.identity, self.trust, self.cipher)
            .map_err(|error| Error::System { what: "keys", source: std::io::Error::other(error) })?;
        let tls = match self.secrets {
            Some(log) => tls.unsafe_key_log(log),
            None => tls,
        };
        match plain {
            None => Ok(protocol.secure_endpoint(config, entropy, Box::new(tls))),
            Some(plain) => plain.endpoint(protocol, config, entropy, Box::new(tls)),
        }
    }
}

/// The protection of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Protection {
    /// Version of TLS, key exchange and cipher, such as `TLS1.3 X25519MLKEM768 AES128-GCM`.
    pub suite: String,
    /// The key of the peer.
    pub peer_key: Option<PublicKey>,
}

impl Protection {
    pub(crate) fn of(protection: &secure::Protection) -> Self {
        Self { suite: protection.suite.clone(), peer_key: PublicKey::from_spki(&protection.peer_key) }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.suite)?;
        match &self.peer_key {
            Some(key) => write!(f, ", key {}", key.fingerprint()),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security")
            .field("identity", &self.identity)
            .field("trust", &self.trust)
            .field("cipher", &self.cipher)
            .finish()
    }
}
