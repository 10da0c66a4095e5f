//! Options of the protection of connections: this side's key, the keys of peers, the cipher.

use std::path::{Path, PathBuf};

use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use farhaul::security;

use crate::config;
use crate::exit::Fault;
use crate::output::Output;
use crate::trust::{Admission, HostKeyPolicy, KeysFile, Server, Service, identity};

/// Options of the protection of connections.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Security")]
pub(crate) struct SecurityOptions {
    /// Neither encrypt nor authenticate: everybody on the path may read and change the data. Compatible with UDT4
    #[arg(long, env = "FARHAUL_PLAIN", value_parser = BoolishValueParser::new())]
    pub(crate) plain: bool,
    /// Private key of this side [default: ~/.config/farhaul/key, made on first use]
    #[arg(long, env = "FARHAUL_KEY", value_name = "FILE")]
    key: Option<PathBuf>,
    /// Cipher of the connections; both sides must have it in common [default: the fastest on this processor]
    #[arg(long, env = "FARHAUL_CIPHER", value_name = "NAME", value_enum, default_value_t, hide_default_value = true)]
    cipher: Cipher,
    /// Connecting: fingerprint of the server's key, SHA256:… [default: what known_hosts says]
    #[arg(long, value_name = "FINGERPRINT", value_parser = fingerprint)]
    host_key: Option<String>,
    /// Connecting: what to do about a server whose key is not known
    #[arg(long, env = "FARHAUL_HOST_KEY_POLICY", value_name = "POLICY", value_enum, default_value_t)]
    host_key_policy: HostKeyPolicy,
    /// Listening: file of the keys of clients, one line each. This user's own key is always admitted
    /// [default: ~/.config/farhaul/authorized_keys]
    #[arg(long, env = "FARHAUL_AUTHORIZED_KEYS", value_name = "FILE")]
    authorized_keys: Option<PathBuf>,
    /// Listening: admit clients with any key. Connections are encrypted, and anybody may call. `serve` lets unknown keys read
    /// alone
    #[arg(long, env = "FARHAUL_ANY_CLIENT", value_parser = BoolishValueParser::new())]
    any_client: bool,
}

/// The cipher of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Cipher {
    /// The fastest on this processor
    #[default]
    Auto,
    /// AES-128-GCM
    Aes128,
    /// AES-256-GCM
    Aes256,
    /// ChaCha20-Poly1305
    Chacha20,
}

impl From<Cipher> for security::Cipher {
    fn from(cipher: Cipher) -> Self {
        match cipher {
            Cipher::Auto => Self::Auto,
            Cipher::Aes128 => Self::Aes128Gcm,
            Cipher::Aes256 => Self::Aes256Gcm,
            Cipher::Chacha20 => Self::ChaCha20Poly1305,
        }
    }
}

impl SecurityOptions {
    /// The protection in records, before a connection exists.
    pub(crate) const fn name(&self) -> &'static str {
        if self.plain { "none" } else { "tls1.3" }
    }

    /// The cipher of connections.
    pub(crate) fn cipher(&self) -> security::Cipher {
        self.cipher.into()
    }

    /// The cipher on a command line.
    pub(crate) fn cipher_name(&self) -> String {
        self.cipher.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// What a client expects of the server `name`, a `host:port`. `None` for plain connections.
    pub(crate) fn server(&self, name: String, output: &Output) -> Result<Option<Server>, Fault> {
        if self.plain {
            return Ok(None);
        }
        let identity = identity::load(self.key.as_deref(), output)?;
        let cipher = self.cipher.into();
        match &self.host_key {
            Some(fingerprint) => Ok(Some(Server::with_fingerprint(name, identity, cipher, fingerprint.clone()))),
            None => Server::known(name, identity, cipher, self.host_key_policy).map(Some),
        }
    }

    /// Which clients a listener with this service admits. `None` for plain connections. A daemon has its files in `folder`.
    pub(crate) fn admission(
        &self,
        output: &Output,
        folder: Option<&Path>,
        service: Service,
    ) -> Result<Option<Admission>, Fault> {
        if self.plain {
            return Ok(None);
        }
        let key = self.key.clone().or_else(|| folder.map(|folder| folder.join("host_key")));
        let identity = match &key {
            // The key of a host is made on its first start.
            Some(file) => identity::load_or_make(file)?,
            None => identity::load(None, output)?,
        };
        let file = match (&self.authorized_keys, folder) {
            (Some(file), _) => Some(KeysFile::Named(file.clone())),
            (None, Some(folder)) => Some(KeysFile::Usual(folder.join("authorized_keys"))),
            (None, None) => config::authorized_keys_file().map(KeysFile::Usual),
        };
        let key = key.or_else(config::key_file);
        let admission = Admission::new(identity, self.cipher.into(), (file, self.any_client), service)?;
        Ok(Some(admission.with_key_of(key)))
    }
}

fn fingerprint(text: &str) -> Result<String, String> {
    match text.strip_prefix("SHA256:") {
        Some(digest) if digest.len() == 43 => Ok(text.to_owned()),
        _ => {
            Err("a fingerprint has `SHA256:` and 43 characters; `farhaul key fingerprint` on the server prints it"
                .into())
        }
    }
}
