//! Settings of sessions with original programs, by the options of transports.

use farhaul_originals::rbudp::{PAYLOAD, Terms};
use farhaul_originals::tsunami::{ClientOptions, ServerOptions};
use farhaul_units::ByteSize;

use crate::options::Transport;

/// IPv4 and UDP headers of a packet.
const HEADERS: u32 = 28;
/// Header of a Tsunami block.
const BLOCK_HEADER: u32 = 6;

impl Transport {
    /// What an option in a command that this side suggests must have. It does not print the secret.
    pub(crate) fn secret_option(&self) -> &'static str {
        if self.choice().secret().is_some() { "--protocol tsunami:secret=SECRET " } else { "" }
    }

    fn secret(&self) -> Vec<u8> {
        self.choice().secret().unwrap_or_default().into_bytes()
    }

    /// A Tsunami client: the rate is asked for, and a block fills a packet.
    pub(crate) fn tsunami_client(&self) -> ClientOptions {
        let default = ClientOptions::default();
        ClientOptions {
            secret: self.secret(),
            block_size: self.packet().saturating_sub(HEADERS + BLOCK_HEADER),
            rate: self.rate().unwrap_or(default.rate),
            patience: self.timeout.min(default.patience),
            ..default
        }
    }

    /// A Tsunami server: the rate is a cap on what clients ask for.
    pub(crate) fn tsunami_server(&self) -> ServerOptions {
        let default = ServerOptions::default();
        ServerOptions { secret: self.secret(), max_rate: self.rate(), patience: self.timeout.min(default.patience) }
    }

    /// An RBUDP session.
    pub(crate) fn rbudp(&self) -> Terms {
        let default = Terms::default();
        Terms {
            payload: self.choice().payload.unwrap_or(PAYLOAD),
            rate: self.rate().unwrap_or(default.rate),
            buffer: self.buffer.map_or(default.buffer, |ByteSize(bytes)| bytes),
            patience: self.timeout,
            ..default
        }
    }
}
