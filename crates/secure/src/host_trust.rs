//! Trust in the server that a file of known hosts names, as ssh has it.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use crate::known_hosts::{Known, KnownHosts};
use crate::public_key::PublicKey;
use crate::trust::Trust;

/// Whether a client accepts a server of which it knows nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstContact {
    /// The connection fails. [`HostTrust::seen`] has the key, for a question to the user.
    #[default]
    Refuse,
    /// The key is accepted. Somebody on the path may pretend to be the server this once.
    Accept,
}

/// Accepts the known keys of one server. A changed key is never accepted. Clients are not accepted.
#[derive(Debug)]
pub struct HostTrust {
    name: String,
    known: KnownHosts,
    first: FirstContact,
    seen: Mutex<Option<PublicKey>>,
}

impl HostTrust {
    /// Trust in the server that is called `name` in the file, for instance `far.example:9000`.
    pub fn new(name: impl Into<String>, known: KnownHosts, first: FirstContact) -> Self {
        Self { name: name.into(), known, first, seen: Mutex::new(None) }
    }

    /// The last key of the server, and its standing. A key of a connection that failed is not proven.
    pub fn seen(&self) -> Option<(PublicKey, Known)> {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.map(|key| (key, self.known.look(&self.name, key)))
    }

    /// The name of the server.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Trust for HostTrust {
    fn admits_server(&self, _peer: SocketAddr, key: PublicKey) -> bool {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        match self.known.look(&self.name, key) {
            Known::Same => true,
            Known::Nothing => self.first == FirstContact::Accept,
            Known::Changed { .. } => false,
        }
    }

    fn admits_client(&self, _from: SocketAddr, _key: PublicKey) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_server_is_a_question_and_a_changed_one_is_refused() {
        let [one, other] = [1, 2].map(|byte| PublicKey::from_bytes([byte; 32]));
        let known = KnownHosts::parse(&KnownHosts::line("far:1", one)).unwrap();
        let at = "192.0.2.1:1".parse().unwrap();
        for first in [FirstContact::Refuse, FirstContact::Accept] {
            let far = HostTrust::new("far:1", known.clone(), first);
            assert_eq!(far.seen(), None);
            assert!(far.admits_server(at, one) && !far.admits_server(at, other) && !far.admits_client(at, one));
            assert_eq!(far.seen(), Some((other, Known::Changed { line: 1 })));
            let new = HostTrust::new("far:2", known.clone(), first);
            assert_eq!(new.admits_server(at, other), first == FirstContact::Accept);
            assert_eq!(new.seen(), Some((other, Known::Nothing)));
        }
    }
}
