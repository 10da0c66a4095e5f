//! What a client expects of the server that it calls: a given key, a known one, or this user's own.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use clap::ValueEnum;
use farhaul::security::{
    Cipher, FirstContact, HostTrust, KeyPair, Known, KnownHosts, Pinned, PublicKey, Security, Trust,
};

use super::files;
use crate::config;
use crate::exit::{Code, Fault};
use crate::output::{Output, human};

/// Longest answer to a question, bytes.
const ANSWER: u64 = 64;
/// The command that prints the key of a server, and where a daemon has it.
const FINGERPRINT: &str = "farhaul key fingerprint";
const DAEMON: &str = " (of a daemon: with /etc/farhaul/host_key behind it)";

/// How a client treats the key of a server that it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostKeyPolicy {
    /// Show its fingerprint, and ask; without a terminal, refuse
    #[default]
    Ask,
    /// Accept and remember it; refuse a changed key
    AcceptNew,
    /// Refuse it
    Strict,
}

/// The expectations of a client.
#[derive(Debug)]
pub(crate) struct Server {
    identity: KeyPair,
    cipher: Cipher,
    /// The name in the file of known hosts.
    name: String,
    policy: HostKeyPolicy,
    expected: Expected,
    /// The key of the first connection. Others must have the same one.
    settled: OnceLock<PublicKey>,
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
    pub(crate) fn with_fingerprint(name: String, identity: KeyPair, cipher: Cipher, fingerprint: String) -> Self {
        Self::expecting(Expected::Fingerprint(fingerprint), name, identity, cipher)
    }

    /// A server with this key.
    pub(crate) fn with_key(name: String, identity: KeyPair, cipher: Cipher, key: PublicKey) -> Self {
        Self::expecting(Expected::Key(key), name, identity, cipher)
    }

    const fn expecting(expected: Expected, name: String, identity: KeyPair, cipher: Cipher) -> Self {
        Self { identity, cipher, name, policy: HostKeyPolicy::Strict, expected, settled: OnceLock::new() }
    }

    /// A server that this user may know.
    pub(crate) fn known(name: String, identity: KeyPair, cipher: Cipher, policy: HostKeyPolicy) -> Result<Self, Fault> {
        let file = config::known_hosts_file();
        let text = file.as_deref().map(files::read_trusted).transpose()?.flatten().unwrap_or_default();
        let known = KnownHosts::parse(&text).map_err(|error| {
            let path = file.as_deref().unwrap_or_else(|| "known_hosts".as_ref()).display();
            Fault::new(Code::LocalIo, format!("{path}: {error}"))
        })?;
        let first = if policy == HostKeyPolicy::AcceptNew { FirstContact::Accept } else { FirstContact::Refuse };
        let host = Arc::new(HostTrust::new(name.clone(), known, first));
        let expected = Expected::Known { file, host, own: identity.public() };
        Ok(Self { policy, ..Self::expecting(expected, name, identity, cipher) })
    }

    /// The fingerprint of this side's key.
    pub(crate) fn own_fingerprint(&self) -> String {
        self.identity.public().fingerprint()
    }

    /// The protection of a port for connections to this server.
    pub(crate) fn security(&self) -> Security {
        if let Some(key) = self.settled.get() {
            return self.security_with(*key);
        }
        Security::new(self.identity.clone(), self.expected.clone()).cipher(self.cipher)
    }

    /// The protection of a port for connections to this server, once the user has accepted `key`.
    pub(crate) fn security_with(&self, key: PublicKey) -> Security {
        let trust = Pinned { servers: vec![key], clients: Vec::new() };
        Security::new(self.identity.clone(), trust).cipher(self.cipher)
    }

    /// Asks the user about the unknown key of a server, after a refusal. Returns the key that the user accepts.
    ///
    /// # Errors
    /// The key is none that this user may accept, or the user does not.
    pub(crate) fn ask(&self, output: &Output) -> Result<PublicKey, Fault> {
        let (host, file) = match &self.expected {
            Expected::Fingerprint(wanted) => {
                return Err(Fault::new(
                    Code::HostKeyChanged,
                    format!("{} does not have the key {wanted}; somebody may be in between", self.name),
                ));
            }
            Expected::Key(key) => {
                let wanted = key.fingerprint();
                return Err(Fault::new(
                    Code::HostKeyChanged,
                    format!("{} does not have the key {wanted}; somebody may be in between", self.name),
                ));
            }
            Expected::Known { .. } if self.settled.get().is_some() => {
                return Err(Fault::new(
                    Code::HostKeyChanged,
                    format!("{} has another key than a moment ago; somebody may be in between", self.name),
                ));
            }
            Expected::Known { host, file, .. } => (host, file),
        };
        let file = file.as_ref().map_or_else(|| "known_hosts".into(), |file| file.display().to_string());
        match host.seen() {
            Some((key, Known::Changed { line })) => Err(Fault::new(
                Code::HostKeyChanged,
                format!(
                    "{} has another key, {}, than in line {line} of {file}: somebody may be in between, or the server was \
                     installed anew; compare it with `{FINGERPRINT}` there{DAEMON}, and remove the line if it is right",
                    self.name,
                    key.fingerprint()
                ),
            )),
            Some((key, _)) if self.policy == HostKeyPolicy::Ask && asked(&self.name, key, output) => Ok(key),
            seen => {
                let key = seen.map_or_else(|| "a key".to_owned(), |(key, _)| format!("the key {}", key.fingerprint()));
                Err(Fault::new(
                    Code::HostKeyUnknown,
                    format!(
                        "{} has {key}, which is not known here; compare it with `{FINGERPRINT}` there{DAEMON}, and \
                         accept it with --host-key FINGERPRINT or --host-key-policy accept-new",
                        self.name
                    ),
                ))
            }
        }
    }

    /// Remembers the key of a server with which a connection was established, once. A failure is a warning.
    pub(crate) fn remember(&self, output: &Output) {
        let Expected::Known { file: Some(file), host, own } = &self.expected else { return };
        let Some((key, known)) = host.seen() else { return };
        if self.settled.set(key).is_err() || known != Known::Nothing || key == *own {
            return;
        }
        match files::append(file, &KnownHosts::line(&self.name, key)) {
            Ok(()) => output.say(&format!("{} is known from now on, with the key {}", self.name, key.fingerprint())),
            Err(error) => output.warn(&format!("cannot write {}: {error}", file.display())),
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

/// Whether the user, who sits at a terminal, accepts the key.
fn asked(name: &str, key: PublicKey, output: &Output) -> bool {
    if !human::is_terminal() {
        return false;
    }
    let mut accepted = false;
    output.suspend(|| accepted = answer(name, key).unwrap_or(false));
    accepted
}

/// Asks at the terminal itself, since stdin may carry data.
fn answer(name: &str, key: PublicKey) -> std::io::Result<bool> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    write!(
        terminal,
        "{name} is not known here. Its key is {}\nDoes `{FINGERPRINT}` there print the same{DAEMON}? Connect, and remember it (yes/no)? ",
        key.fingerprint()
    )?;
    let mut line = String::new();
    BufReader::new(terminal.take(ANSWER)).read_line(&mut line)?;
    Ok(line.trim() == "yes")
}
