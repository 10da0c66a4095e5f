//! What a client expects of the server that it calls: a given key, a known one, or this user's own.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use farhaul::Code;
use farhaul::security::{
    Cipher, FirstContact, HostTrust, KeyPair, Known, KnownHosts, Pinned, PublicKey, Security, Trust,
};

use super::{files, places};
use crate::error::Error;
use crate::notices::Notices;

/// The command that prints the key of a server, and where a daemon has it.
const FINGERPRINT: &str = "farhaul key fingerprint";
const DAEMON: &str = " (of a daemon: with /etc/farhaul/host_key behind it)";

/// How a client treats the key of a server that it does not know.
#[derive(Clone, Debug, Default)]
pub enum HostKeyPolicy {
    /// Ask somebody whether it is right.
    Ask(Question),
    /// Accept and remember it; refuse a changed key.
    AcceptNew,
    /// Refuse it.
    #[default]
    Strict,
}

/// Asks somebody whether the key of a server is right, by the name of the server and its key.
#[derive(Clone)]
pub struct Question(Arc<Ask>);

/// Returns whether the key of the server with this name is right.
type Ask = dyn Fn(&str, PublicKey) -> bool + Send + Sync;

impl Question {
    /// Asks by this function, which returns whether the key is right.
    pub fn by(ask: impl Fn(&str, PublicKey) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Question")
    }
}

/// The expectations of a client.
#[derive(Debug)]
pub struct Server {
    identity: KeyPair,
    cipher: Cipher,
    /// The name in the file of known hosts.
    name: String,
    policy: HostKeyPolicy,
    expected: Expected,
    /// The key of the first connection. Others must have the same one.
    pinned: OnceLock<PublicKey>,
}

/// The keys that a server may have.
#[derive(Clone, Debug)]
enum Expected {
    /// The key with this fingerprint.
    Fingerprint(String),
    /// This key, told by somebody who is trusted.
    Key(PublicKey),
    /// A known one, or this user's own.
    Known { file: Option<PathBuf>, host: Arc<HostTrust>, own: PublicKey },
}

impl Server {
    /// A server with the key of this fingerprint.
    pub fn with_fingerprint(name: String, identity: KeyPair, cipher: Cipher, fingerprint: String) -> Self {
        Self::expecting(Expected::Fingerprint(fingerprint), name, identity, cipher)
    }

    /// A server with this key.
    pub fn with_key(name: String, identity: KeyPair, cipher: Cipher, key: PublicKey) -> Self {
        Self::expecting(Expected::Key(key), name, identity, cipher)
    }

    fn expecting(expected: Expected, name: String, identity: KeyPair, cipher: Cipher) -> Self {
        Self { identity, cipher, name, policy: HostKeyPolicy::Strict, expected, pinned: OnceLock::new() }
    }

    /// A server that this user may know.
    pub fn known(name: String, identity: KeyPair, cipher: Cipher, policy: HostKeyPolicy) -> Result<Self, Error> {
        let file = places::known_hosts_file();
        let text = file.as_deref().map(files::read_trusted).transpose()?.flatten().unwrap_or_default();
        let known = KnownHosts::parse(&text).map_err(|error| {
            let path = file.as_deref().unwrap_or_else(|| "known_hosts".as_ref()).display();
            Error::new(Code::LocalIo, format!("{path}: {error}"))
        })?;
        let first = match policy {
            HostKeyPolicy::AcceptNew => FirstContact::Accept,
            HostKeyPolicy::Ask(_) | HostKeyPolicy::Strict => FirstContact::Refuse,
        };
        let host = Arc::new(HostTrust::new(name.clone(), known, first));
        let expected = Expected::Known { file, host, own: identity.public() };
        Ok(Self { policy, ..Self::expecting(expected, name, identity, cipher) })
    }

    /// The fingerprint of this side's key.
    pub fn own_fingerprint(&self) -> String {
        self.identity.public().fingerprint()
    }

    /// The protection of a port for connections to this server.
    pub fn security(&self) -> Security {
        if let Some(key) = self.pinned.get() {
            return self.security_with(*key);
        }
        Security::new(self.identity.clone(), self.expected.clone()).cipher(self.cipher)
    }

    /// The protection of a port for connections to this server, once the user has accepted `key`.
    pub fn security_with(&self, key: PublicKey) -> Security {
        let trust = Pinned { servers: vec![key], clients: Vec::new() };
        Security::new(self.identity.clone(), trust).cipher(self.cipher)
    }

    /// Asks the user about the unknown key of a server, after a refusal. Returns the key that the user accepts.
    ///
    /// # Errors
    /// The key is none that this user may accept, or the user does not.
    pub fn fetch_key(&self) -> Result<PublicKey, Error> {
        let (host, file) = match &self.expected {
            Expected::Fingerprint(wanted) => {
                return Err(Error::new(
                    Code::HostKeyChanged,
                    format!("{} does not have the key {wanted}; somebody may be in between", self.name),
                ));
            }
            Expected::Key(key) => {
                let wanted = key.fingerprint();
                return Err(Error::new(
                    Code::HostKeyChanged,
                    format!("{} does not have the key {wanted}; somebody may be in between", self.name),
                ));
            }
            Expected::Known { .. } if self.pinned.get().is_some() => {
                return Err(Error::new(
                    Code::HostKeyChanged,
                    format!("{} has another key than a moment ago; somebody may be in between", self.name),
                ));
            }
            Expected::Known { host, file, .. } => (host, file),
        };
        let file = file.as_ref().map_or_else(|| "known_hosts".into(), |file| file.display().to_string());
        match host.seen() {
            Some((key, Known::Changed { line })) => Err(Error::new(
                Code::HostKeyChanged,
                format!(
                    "{} has another key, {}, than in line {line} of {file}: somebody may be in between, or the server was \
                     installed anew; compare it with `{FINGERPRINT}` there{DAEMON}, and remove the line if it is right",
                    self.name,
                    key.fingerprint()
                ),
            )),
            Some((key, _)) if self.asked(key) => Ok(key),
            seen => {
                let key = seen.map_or_else(|| "a key".to_owned(), |(key, _)| format!("the key {}", key.fingerprint()));
                Err(Error::new(Code::HostKeyUnknown, format!("{} has {key}, which is not known here", self.name))
                    .remedy(format!(
                        "compare it with `{FINGERPRINT}` there{DAEMON}, and accept it with ‹host-key› FINGERPRINT or \
                         ‹host-key-policy› accept-new"
                    )))
            }
        }
    }

    fn asked(&self, key: PublicKey) -> bool {
        match &self.policy {
            HostKeyPolicy::Ask(Question(ask)) => ask(&self.name, key),
            HostKeyPolicy::AcceptNew | HostKeyPolicy::Strict => false,
        }
    }

    /// Remembers the key of a server with which a connection was established, once. A failure is a warning.
    pub fn remember(&self, events: &impl Notices) {
        let Expected::Known { file: Some(file), host, own } = &self.expected else { return };
        let Some((key, known)) = host.seen() else { return };
        if self.pinned.set(key).is_err() || known != Known::Nothing || key == *own {
            return;
        }
        match files::append(file, &KnownHosts::line(&self.name, key)) {
            Ok(()) => events.note(&format!("{} is known from now on, with the key {}", self.name, key.fingerprint())),
            Err(error) => events.warn(&format!("cannot write {}: {error}", file.display())),
        }
    }
}

impl Trust for Expected {
    fn admits_server(&self, peer: SocketAddr, key: PublicKey) -> bool {
        match self {
            Self::Fingerprint(wanted) => key.fingerprint() == *wanted,
            Self::Key(wanted) => key == *wanted,
            // Whoever has this user's private key is this user.
            Self::Known { host, own, .. } => key == *own || host.admits_server(peer, key),
        }
    }

    fn admits_client(&self, _from: SocketAddr, _key: PublicKey) -> bool {
        false
    }
}
