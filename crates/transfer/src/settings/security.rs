//! The protection of connections: this side's key, the keys of peers, the cipher.

use std::path::{Path, PathBuf};

use farhaul::security::Cipher;
use farhaul_keys::{HostKeyPolicy, Server, identity, places};

use crate::admission::{Admission, KeysFile, Service};
use crate::error::Error;
use crate::event::Events;

/// Settings of the protection of connections.
#[derive(Clone, Debug, Default)]
#[cfg_attr(not(feature = "internal"), non_exhaustive)]
pub struct SecuritySettings {
    /// Neither encrypt nor authenticate: everybody on the path may read and change the data.
    pub plain: bool,
    /// Private key of this side; `None` for the user's own, which is made on first use.
    pub key: Option<PathBuf>,
    /// Cipher of the connections.
    pub cipher: Cipher,
    /// Fingerprint of the server's key; `None` for what the file of known hosts says.
    pub host_key: Option<String>,
    /// What to do about a server whose key is not known.
    pub host_key_policy: HostKeyPolicy,
    /// File of the keys of clients of a listener; `None` for the user's.
    pub authorized_keys: Option<PathBuf>,
    /// Whether a listener admits clients with any key.
    pub any_client: bool,
}

impl SecuritySettings {
    /// The protection in reports, before a connection exists.
    #[cfg_attr(not(feature = "internal"), doc(hidden))]
    pub const fn name(&self) -> &'static str {
        if self.plain { "none" } else { "tls1.3" }
    }

    /// The cipher on a command line.
    pub(crate) const fn cipher_name(&self) -> &'static str {
        match self.cipher {
            Cipher::Aes128Gcm => "aes128",
            Cipher::Aes256Gcm => "aes256",
            Cipher::ChaCha20Poly1305 => "chacha20",
            _ => "auto",
        }
    }

    /// What a client expects of the server `name`, a `host:port`. `None` for plain connections.
    ///
    /// # Errors
    /// A file of keys cannot be read, or others than its owner may have written it.
    #[cfg_attr(not(feature = "internal"), doc(hidden))]
    pub fn server(&self, name: String, events: &Events) -> Result<Option<Server>, Error> {
        if self.plain {
            return Ok(None);
        }
        let identity = identity::load(self.key.as_deref(), events)?;
        match &self.host_key {
            Some(fingerprint) => Ok(Some(Server::with_fingerprint(name, identity, self.cipher, fingerprint.clone()))),
            None => Ok(Some(Server::known(name, identity, self.cipher, self.host_key_policy.clone())?)),
        }
    }

    /// Which clients a listener with this service admits. `None` for plain connections. A daemon has its files in `folder`.
    ///
    /// # Errors
    /// As for [`server`](Self::server).
    #[cfg_attr(not(feature = "internal"), doc(hidden))]
    pub fn admission(
        &self,
        events: &Events,
        folder: Option<&Path>,
        service: Service,
    ) -> Result<Option<Admission>, Error> {
        if self.plain {
            return Ok(None);
        }
        let key = self.key.clone().or_else(|| folder.map(|folder| folder.join("host_key")));
        let identity = match &key {
            // The key of a host is made on its first start.
            Some(file) => identity::load_or_make(file)?,
            None => identity::load(None, events)?,
        };
        let file = match (&self.authorized_keys, folder) {
            (Some(file), _) => Some(KeysFile::Named(file.clone())),
            (None, Some(folder)) => Some(KeysFile::Usual(folder.join("authorized_keys"))),
            (None, None) => places::authorized_keys_file().map(KeysFile::Usual),
        };
        let key = key.or_else(places::key_file);
        let admission = Admission::new(identity, self.cipher, (file, self.any_client), service)?;
        Ok(Some(admission.with_key_of(key)))
    }
}
