//! The secrets of connections, written down for debugging.

use std::fmt;
use std::sync::Arc;

/// Takes the secrets of connections. Their holder can read and forge the whole content of the connections.
pub trait SecretLog: Send + Sync + fmt::Debug {
    /// One secret in the NSS key log format, without the end of a line: its label, the random bytes of the client, the secret.
    ///
    /// It is called in the middle of a handshake, and must not block for long.
    fn secret(&self, line: &str);
}

/// A log for rustls.
#[derive(Debug)]
pub(crate) struct Lines(pub(crate) Arc<dyn SecretLog>);

impl rustls::KeyLog for Lines {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        self.0.secret(&format!("{label} {} {}", hex(client_random), hex(secret)));
    }
}
