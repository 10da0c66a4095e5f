//! An encrypted handshake with the server, for its key and its answer to this side's key. It asks for measured streams alone, so the
//! program there never hears of it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farhaul::probe::{EnclosureConfig, ProbeSocket};
use farhaul::security::{KeyPair, Known, KnownHosts, Pinned, PublicKey, Security, SecurityFault, Trust};
use farhaul::{ConnectionLost, Error, PeerIncompatible};
use farhaul_transfer::internal::keys::{identity, places};
use farhaul_transfer::internal::lists;

use super::examined::Examined;
use super::finding::{Finding, quoted};
use crate::exit::Fault;
use crate::interrupt::Interrupt;

/// Longest wait for the handshake.
const WAIT: Duration = Duration::from_millis(1_500);

/// Interrupts are looked for so often.
const STEP: Duration = Duration::from_millis(100);

/// Time beyond two round trips in which a server judges a key.
const JUDGING: Duration = Duration::from_millis(300);

/// Accepts and remembers the key of the server. No data is sent, so nothing depends on it.
#[derive(Debug, Default)]
struct Seen(Mutex<Option<PublicKey>>);

impl Trust for Seen {
    fn admits_server(&self, _peer: SocketAddr, key: PublicKey) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        true
    }

    fn admits_client(&self, _from: SocketAddr, _key: PublicKey) -> bool {
        false
    }
}

/// This side's key, and whether it is the user's.
struct Own {
    pair: KeyPair,
    is_lasting: bool,
}

impl Own {
    /// The user's key, or one for this run alone. Nothing is written.
    fn load(file: Option<&Path>) -> Result<Self, Fault> {
        match identity::existing(file)? {
            Some(pair) => Ok(Self { pair, is_lasting: true }),
            None => Ok(Self { pair: identity::generate()?, is_lasting: false }),
        }
    }
}

/// A server that answers with encryption.
pub(super) struct Server<'a> {
    /// The name under which this user may know it.
    pub(super) name: &'a str,
    pub(super) peer: SocketAddr,
    pub(super) round_trip: Duration,
}

/// Shakes hands with the server.
pub(super) fn examine(server: &Server<'_>, examined: &Examined<'_>) -> Vec<Finding> {
    let own = match Own::load(examined.key) {
        Ok(own) => own,
        Err(fault) => return vec![Finding::problem("encryption", format!("no handshake without a key: {fault}"))],
    };
    let seen = Arc::new(Seen::default());
    let shaken = shake(server, Security::new(own.pair.clone(), Arc::clone(&seen)), &examined.context.interrupt);
    let key = *seen.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found = Vec::new();
    if let Some(key) = key {
        let (standing, file) = standing(server.name, key);
        found.push(judge_host_key(&key.fingerprint(), key == own.pair.public(), standing, &file));
    }
    found.push(judge_handshake(&shaken, &own.pair.public(), own.is_lasting));
    found
}

/// Shakes hands with a remote program that ssh started. Both keys were made for this.
pub(super) fn examine_remote(server: &Server<'_>, pair: KeyPair, key: PublicKey, interrupt: &Interrupt) -> Finding {
    let trust = Pinned { servers: vec![key], clients: Vec::new() };
    match shake(server, Security::new(pair, trust), interrupt) {
        Ok(suite) => Finding::ok("encryption", format!("{suite}, with keys of this examination")),
        Err(error) => handshake_fails(&error),
    }
}

fn handshake_fails(error: &Error) -> Finding {
    Finding::problem("encryption", format!("the port answers, and the handshake fails: {error}"))
}

/// Connects, and leaves once the server could have refused. Returns the suite. A port that takes no measured streams ends the
/// connection after it has admitted the key.
fn shake(server: &Server<'_>, security: Security, interrupt: &Interrupt) -> Result<String, Error> {
    let config = EnclosureConfig::default().connect_timeout(WAIT);
    let mut socket = ProbeSocket::enclosed(server.peer, security, config)?;
    while !socket.connect(STEP)? {
        if interrupt.is_stopping() {
            return Err(Error::Cancelled);
        }
    }
    let suite = socket.protection().map(|protection| protection.suite).unwrap_or_default();
    // TLS 1.3 is complete here before the server has judged this side's key.
    match socket.hold((server.round_trip * 2 + JUDGING).min(WAIT)) {
        Ok(()) | Err(Error::Lost(ConnectionLost::PeerIncompatible(PeerIncompatible::OtherProtocol))) => Ok(suite),
        Err(error) => Err(error),
    }
}

/// What this user knows of a server's key, and the file that says so.
fn standing(name: &str, key: PublicKey) -> (Known, String) {
    let file = places::known_hosts_file();
    let text = file.as_deref().and_then(|file| fs::read(file).ok()).unwrap_or_default();
    let known = KnownHosts::parse(lists::utf8(&text).unwrap_or_default()).unwrap_or_default().look(name, key);
    (known, file.map_or_else(|| "known_hosts".to_owned(), |file| file.display().to_string()))
}

/// `is_own`: the server runs as this user. `file`: the one with the known servers.
pub(super) fn judge_host_key(fingerprint: &str, is_own: bool, known: Known, file: &str) -> Finding {
    let finding = match known {
        _ if is_own => Finding::ok("host_key", format!("{fingerprint}, this user's own key")),
        Known::Same => Finding::ok("host_key", format!("{fingerprint}, known here")),
        Known::Nothing => Finding::advice(
            "host_key",
            format!(
                "{fingerprint}, unknown here: if it is printed there, too, connect once with --host-key-policy accept-new"
            ),
        )
        .fix_there("farhaul key fingerprint"),
        Known::Changed { line } => Finding::problem(
            "host_key",
            format!(
                "{fingerprint}, and line {line} of {file} has another key: somebody may be in between; if `farhaul key \
                 fingerprint` there prints this one, forget the old one"
            ),
        )
        .fix(format!("sed -i '{line}d' {}", quoted(file))),
    };
    finding.with("peer_key", fingerprint)
}

/// `is_lasting`: the key is that of the user, and not of this run alone.
pub(super) fn judge_handshake(shaken: &Result<String, Error>, own: &PublicKey, is_lasting: bool) -> Finding {
    match shaken {
        Ok(suite) => Finding::ok("encryption", format!("{suite}; the server admits this side")),
        Err(Error::Lost(ConnectionLost::Insecure(SecurityFault::NotAdmitted))) if is_lasting => Finding::problem(
            "encryption",
            "the server does not admit this user's key: its authorized_keys lacks it, or the line there has expired or is for \
             other addresses. Its log says which. A missing line is added by a command below, where the server runs as a user or as \
             the daemon of the system; then send SIGHUP to it",
        )
        .fix_there(admitting(own)),
        Err(Error::Lost(ConnectionLost::Insecure(SecurityFault::NotAdmitted))) => Finding::problem(
            "encryption",
            "the server does not admit unlisted keys, and this user has no key yet: make one, and add it there",
        )
        .fix("farhaul key new && farhaul key show"),
        Err(error) => handshake_fails(error),
    }
}

/// The commands that add a key to the file of a user, and to that of the daemon. A second line for one key would make the whole
/// file invalid, so neither adds one.
fn admitting(key: &PublicKey) -> String {
    let adding =
        |file: &str, quote: &str| format!("grep -sqF {quote}{key}{quote} {file} || echo {quote}{key}{quote} >> {file}");
    let (user, daemon) =
        (adding("~/.config/farhaul/authorized_keys", "'"), adding("/etc/farhaul/authorized_keys", "\""));
    format!("{user}\nsudo sh -c '{daemon}'")
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingState;
    use super::*;

    const FINGERPRINT: &str = "SHA256:abc";

    #[test]
    fn a_key_is_own_known_unknown_or_changed() {
        let judged = |is_own, known| judge_host_key(FINGERPRINT, is_own, known, "/k");
        assert_eq!(judged(true, Known::Nothing).state, FindingState::Ok);
        assert!(judged(false, Known::Same).message.contains("known here"));
        let unknown = judged(false, Known::Nothing);
        assert!(unknown.state == FindingState::Advice && unknown.message.contains("accept-new"), "{}", unknown.message);
        let changed = judged(false, Known::Changed { line: 3 });
        assert_eq!((changed.state, changed.fix.as_deref()), (FindingState::Problem, Some("sed -i '3d' /k")));
        for finding in [unknown, changed] {
            assert!(finding.message.starts_with(FINGERPRINT), "{}", finding.message);
        }
    }

    #[test]
    fn a_refused_key_is_added_there_or_made_here() {
        let own = KeyPair::generate().unwrap().public();
        let refused = Err(Error::Lost(ConnectionLost::Insecure(SecurityFault::NotAdmitted)));
        let lasting = judge_handshake(&refused, &own, true);
        assert!(lasting.state == FindingState::Problem && lasting.fix.unwrap().contains(&own.to_string()));
        assert!(judge_handshake(&refused, &own, false).fix.unwrap().starts_with("farhaul key new"));
        let fine = judge_handshake(&Ok("TLS1.3 X25519 AES128-GCM".into()), &own, true);
        assert!(fine.state == FindingState::Ok && fine.message.starts_with("TLS1.3"));
        let other = judge_handshake(&Err(Error::Lost(ConnectionLost::Refused)), &own, true);
        assert_eq!(other.state, FindingState::Problem);
    }
}
