//! Options of the protection of connections: this side's key, the keys of peers, the cipher.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use farhaul::security::Cipher;
use farhaul_transfer::internal::keys::{HostKeyPolicy, Question};
use farhaul_transfer::internal::settings::SecuritySettings;

use crate::output::{Output, question};
use crate::values::{Named, named};

/// Options of the protection of every connection.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Security")]
pub(crate) struct SecurityOptions {
    /// Neither encrypt nor authenticate, as UDT4: everybody on the path may read and change the data
    #[arg(long, env = "FARHAUL_PLAIN", value_parser = BoolishValueParser::new())]
    pub(crate) plain: bool,
    /// Private key of this side [default: ~/.config/farhaul/key, made on first use]
    #[arg(long, env = "FARHAUL_KEY", value_name = "FILE", hide_short_help = true)]
    key: Option<PathBuf>,
    /// Cipher of the connections; both sides must have it in common [default: the fastest on this processor]
    #[arg(
        long,
        env = "FARHAUL_CIPHER",
        value_name = "NAME",
        value_parser = named(CIPHERS),
        default_value = "auto",
        hide_default_value = true,
        hide_short_help = true
    )]
    cipher: Cipher,
}

/// Options of a verb that connects: which keys a server may have.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Security")]
pub(crate) struct ServerKeys {
    /// Fingerprint of the server's key, SHA256:… [default: what known_hosts says]
    #[arg(long, value_name = "FINGERPRINT", value_parser = fingerprint, hide_short_help = true)]
    host_key: Option<String>,
    /// What to do about a server whose key is not known
    #[arg(
        long,
        env = "FARHAUL_HOST_KEY_POLICY",
        value_name = "POLICY",
        value_enum,
        default_value_t,
        hide_short_help = true
    )]
    host_key_policy: UnknownKeys,
}

/// Options of a verb that listens: which clients it admits.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Security")]
pub(crate) struct ClientKeys {
    /// File of the keys of clients, one line each. This user's own key is always admitted
    /// [default: ~/.config/farhaul/authorized_keys]
    #[arg(long, env = "FARHAUL_AUTHORIZED_KEYS", value_name = "FILE")]
    authorized_keys: Option<PathBuf>,
    /// Admit clients with any key. Connections are encrypted, and anybody may call. `serve` lets unknown keys read alone
    #[arg(long, env = "FARHAUL_ANY_CLIENT", value_parser = BoolishValueParser::new())]
    any_client: bool,
}

/// How a client treats the key of a server that it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum UnknownKeys {
    /// Show its fingerprint, and ask; without a terminal, refuse
    #[default]
    Ask,
    /// Accept and remember it; refuse a changed key
    AcceptNew,
    /// Refuse it
    Strict,
}

const CIPHERS: &[Named<Cipher>] = &[
    ("auto", "The fastest on this processor", Cipher::Auto),
    ("aes128", "AES-128-GCM", Cipher::Aes128Gcm),
    ("aes256", "AES-256-GCM", Cipher::Aes256Gcm),
    ("chacha20", "ChaCha20-Poly1305", Cipher::ChaCha20Poly1305),
];

impl SecurityOptions {
    /// The settings that they mean, with those of one role or both left out.
    pub(crate) fn settings(&self) -> SecuritySettings {
        let (plain, key, cipher) = (self.plain, self.key.clone(), self.cipher);
        SecuritySettings { plain, key, cipher, ..SecuritySettings::default() }
    }

    /// The protection in records, before a connection exists.
    pub(crate) const fn name(&self) -> &'static str {
        if self.plain { "none" } else { "tls1.3" }
    }
}

impl ServerKeys {
    /// Completes the settings of a side that connects. Questions to the user stand above the progress of `output`.
    pub(crate) fn set(&self, settings: &mut SecuritySettings, output: &Output) {
        let output = output.clone();
        let ask = move |name: &str, key| question::accepts(name, key, &output);
        settings.host_key.clone_from(&self.host_key);
        settings.host_key_policy = match self.host_key_policy {
            UnknownKeys::Ask => HostKeyPolicy::Ask(Question::by(ask)),
            UnknownKeys::AcceptNew => HostKeyPolicy::AcceptNew,
            UnknownKeys::Strict => HostKeyPolicy::Strict,
        };
    }
}

impl ClientKeys {
    /// Completes the settings of a side that listens.
    pub(crate) fn set(&self, settings: &mut SecuritySettings) {
        settings.authorized_keys.clone_from(&self.authorized_keys);
        settings.any_client = self.any_client;
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
