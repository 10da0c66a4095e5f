//! The provider of keys and handshakes that an endpoint is given.

use std::net::SocketAddr;
use std::sync::Arc;

use farhaul_proto::secure::{Failure, Handshake, Keys, Provider, Side};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::aws_lc_rs::{self, Ticketer, cipher_suite, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::ServerName;
use rustls::quic::{self, ClientConnection, ServerConnection, Version};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage, ProducesTickets};
use rustls::version::TLS13;
use rustls::{ClientConfig, NoKeyLog, ServerConfig, SupportedCipherSuite, Tls13CipherSuite};

use crate::handshake::{TlsHandshake, cipher_name, failure, group_name};
use crate::identity::KeyPair;
use crate::key_log::{Lines, SecretLog};
use crate::packet_key::keys;
use crate::trust::Trust;
use crate::verifier::Verifier;

/// The protocol name in the handshake. A peer with another one is refused.
pub const ALPN: &[u8] = b"farhaul/1";

/// The cipher of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cipher {
    /// AES-128-GCM on processors with AES instructions, ChaCha20-Poly1305 on others.
    #[default]
    Auto,
    /// AES-128-GCM.
    Aes128Gcm,
    /// AES-256-GCM.
    Aes256Gcm,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305,
}

impl Cipher {
    /// All suites, the preferred one first. A peer may prefer another one.
    pub(crate) fn suites(self) -> Vec<SupportedCipherSuite> {
        let aes128 = cipher_suite::TLS13_AES_128_GCM_SHA256;
        let aes256 = cipher_suite::TLS13_AES_256_GCM_SHA384;
        let chacha = cipher_suite::TLS13_CHACHA20_POLY1305_SHA256;
        match self {
            Self::Auto if has_aes() => vec![aes128, aes256, chacha],
            Self::Auto => vec![chacha, aes128, aes256],
            Self::Aes128Gcm => vec![aes128],
            Self::Aes256Gcm => vec![aes256],
            Self::ChaCha20Poly1305 => vec![chacha],
        }
    }
}

/// Whether the processor has instructions for AES.
pub(crate) fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    false
}

/// The groups of the key exchange: a hybrid with ML-KEM, or X25519 alone with a peer that lacks it.
fn groups() -> Vec<&'static dyn SupportedKxGroup> {
    vec![kx_group::X25519MLKEM768, kx_group::X25519]
}

/// The choices that this side has in a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choices {
    /// Groups of the key exchange, the preferred one first.
    pub groups: Vec<String>,
    /// Ciphers, the preferred one first.
    pub ciphers: Vec<&'static str>,
}

impl Choices {
    /// The choices with this cipher.
    pub fn with(cipher: Cipher) -> Self {
        Self {
            groups: groups().iter().map(|group| group_name(group.name())).collect(),
            ciphers: cipher.suites().iter().map(|suite| cipher_name(suite.suite())).collect(),
        }
    }
}

/// TLS 1.3 for one endpoint.
pub struct Tls {
    crypto: Arc<CryptoProvider>,
    initial: (&'static Tls13CipherSuite, &'static dyn quic::Algorithm),
    identity: KeyPair,
    trust: Arc<dyn Trust>,
    tokens: Arc<dyn ProducesTickets>,
    secrets: Option<Arc<Lines>>,
}

/// Why there is no provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The system has no randomness.
    #[error("the system gives no randomness")]
    NoRandomness,
    /// The library lacks the cipher of Initial packets.
    #[error("the TLS library has no cipher for the first packets")]
    NoInitialCipher,
}

impl Tls {
    /// A provider for a side with this identity.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn new(identity: KeyPair, trust: Arc<dyn Trust>, cipher: Cipher) -> Result<Self, TlsError> {
        let crypto =
            CryptoProvider { cipher_suites: cipher.suites(), kx_groups: groups(), ..aws_lc_rs::default_provider() };
        let suite = cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().ok_or(TlsError::NoInitialCipher)?;
        let initial = (suite, suite.quic.ok_or(TlsError::NoInitialCipher)?);
        let tokens = Ticketer::new().map_err(|_| TlsError::NoRandomness)?;
        Ok(Self { crypto: Arc::new(crypto), initial, identity, trust, tokens, secrets: None })
    }

    /// The same, and writes down the secrets of all connections: whoever has the log can read them.
    #[must_use]
    pub fn unsafe_key_log(mut self, log: Arc<dyn SecretLog>) -> Self {
        self.secrets = Some(Arc::new(Lines(log)));
        self
    }

    /// What rustls writes secrets to. It never looks at the environment.
    fn key_log(&self) -> Arc<dyn rustls::KeyLog> {
        match &self.secrets {
            Some(log) => Arc::<Lines>::clone(log),
            None => Arc::new(NoKeyLog {}),
        }
    }

    fn verifier(&self, peer: SocketAddr, meets: bool) -> Arc<Verifier> {
        Arc::new(Verifier { trust: Arc::clone(&self.trust), peer, meets, crypto: Arc::clone(&self.crypto) })
    }

    fn client(&self, peer: SocketAddr) -> Result<ClientConfig, rustls::Error> {
        let config = ClientConfig::builder_with_provider(Arc::clone(&self.crypto)).with_protocol_versions(&[&TLS13])?;
        let resolver = AlwaysResolvesClientRawPublicKeys::new(self.identity.certified());
        let mut config = config
            .dangerous()
            .with_custom_certificate_verifier(self.verifier(peer, false))
            .with_client_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.enable_sni = false;
        config.key_log = self.key_log();
        config.resumption = Resumption::disabled();
        Ok(config)
    }

    /// With `meets`, the client must have the key of the host that this side has called.
    fn server(&self, from: SocketAddr, meets: bool) -> Result<ServerConfig, rustls::Error> {
        let config = ServerConfig::builder_with_provider(Arc::clone(&self.crypto)).with_protocol_versions(&[&TLS13])?;
        let resolver = AlwaysResolvesServerRawPublicKeys::new(self.identity.certified());
        let verifier = self.verifier(from, meets);
        let mut config = config.with_client_cert_verifier(verifier).with_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.key_log = self.key_log();
        Ok(config)
    }
}

/// A handshake of a server.
fn answer_with(
    config: Result<ServerConfig, rustls::Error>,
    parameters: Vec<u8>,
) -> Result<Box<dyn Handshake>, Failure> {
    let server = config.and_then(|config| ServerConnection::new(Arc::new(config), Version::V1, parameters));
    Ok(Box::new(TlsHandshake(server.map_err(|error| failure(&error))?.into())))
}

impl Provider for Tls {
    fn initial(&self, client_id: &[u8], side: Side) -> Keys {
        let side = match side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        let (suite, algorithm) = self.initial;
        keys(quic::Keys::initial(Version::V1, suite, algorithm, client_id, side))
    }

    fn call(&mut self, peer: SocketAddr, parameters: Vec<u8>) -> Result<Box<dyn Handshake>, Failure> {
        let config = self.client(peer).map_err(|error| failure(&error))?;
        let name = ServerName::IpAddress(peer.ip().into());
        let client = ClientConnection::new(Arc::new(config), Version::V1, name, parameters);
        Ok(Box::new(TlsHandshake(client.map_err(|error| failure(&error))?.into())))
    }

    fn answer(&mut self, from: SocketAddr, parameters: Vec<u8>) -> Result<Box<dyn Handshake>, Failure> {
        answer_with(self.server(from, false), parameters)
    }

    fn meet(&mut self, peer: SocketAddr, parameters: Vec<u8>) -> Result<Box<dyn Handshake>, Failure> {
        answer_with(self.server(peer, true), parameters)
    }

    fn seal_token(&self, content: &[u8]) -> Vec<u8> {
        self.tokens.encrypt(content).unwrap_or_default()
    }

    fn open_token(&self, token: &[u8]) -> Option<Vec<u8>> {
        self.tokens.decrypt(token)
    }
}
