//! Keys and handshakes of TLS 1.3 for the packet protection of `farhaul-proto`.
//!
//! Sides prove who they are by raw Ed25519 keys (RFC 7250), without certificates. The key exchange is X25519MLKEM768, or
//! X25519 with a peer that lacks it. All cryptography is that of rustls and AWS-LC. This crate has none of its own.
//!
//! | part | owns |
//! | --- | --- |
//! | [`KeyPair`], [`PublicKey`] | the identity of a side, its text and its fingerprint |
//! | [`Trust`] | which keys a side accepts |
//! | [`KnownHosts`], [`HostTrust`] | the keys of servers, as a client remembers them |
//! | [`AuthorizedKeys`] | the keys of clients, and what each may do |
//! | [`Tls`] | the provider that an endpoint is given |
//! | [`SecretLog`] | the secrets of connections, for debugging |
//! | [`Sealer`] | one cipher, for measurements of its speed |
#![forbid(unsafe_code)]

mod authorized_keys;
mod handshake;
mod host_trust;
mod identity;
mod key_log;
mod known_hosts;
mod narrowing;
mod packet_key;
mod provider;
mod public_key;
mod sealer;
mod trust;
mod verifier;

pub use authorized_keys::{AuthorizedKeys, Grant, NotAdmitted, PathGrant};
pub use host_trust::{FirstContact, HostTrust};
pub use identity::{IdentityError, KeyPair};
pub use key_log::SecretLog;
pub use known_hosts::{Known, KnownHosts, LineError, LineFault};
pub use provider::{ALPN, Choices, Cipher, Tls, TlsError};
pub use public_key::{PublicKey, PublicKeyError};
pub use sealer::Sealer;
pub use trust::{AcceptAll, Pinned, Trust};
