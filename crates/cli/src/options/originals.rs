//! Options of conversations with original programs of Tsunami, RBUDP and SABUL.

use clap::{Args, ValueEnum};
use farhaul::Protocol;
use farhaul_transfer::original::rbudp::original::{PAYLOAD, Terms};
use farhaul_transfer::original::tsunami::original::{ClientOptions, ServerOptions};
use farhaul_units::ByteSize;

use super::Transport;
use crate::exit::Fault;

/// IPv4 and UDP headers of a packet.
const HEADERS: u32 = 28;
/// Header of a Tsunami block.
const BLOCK_HEADER: u32 = 6;

/// The original program at the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Original {
    /// `tsunami` of tsunami-udp 1.1
    Tsunami,
    /// `recvfile` of QUANTA
    Rbudp,
}

impl Original {
    /// The program whose clients a server of this protocol serves as well.
    pub(crate) fn of(protocol: &Protocol) -> Option<Self> {
        Self::from_str(protocol.entry().name, false).ok()
    }
}

/// The original program at the other end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OriginalStream {
    /// Programs of SABUL 2.1, built with 32-bit words
    Sabul,
}

impl OriginalStream {
    /// The program whose format `pipe` speaks with this protocol.
    pub(crate) fn of(protocol: &Protocol) -> Result<Option<Self>, Fault> {
        let found = Self::from_str(protocol.entry().name, false).ok();
        if found.is_some() && protocol.to_string() != protocol.entry().name {
            return Err(Fault::usage(format!(
                "pipe speaks the format of the original {}, which takes no options; copy and bench take them",
                protocol.entry().name
            )));
        }
        Ok(found)
    }
}

/// Options of conversations with original programs.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Original programs")]
pub(crate) struct Originals {
    /// Secret of Tsunami, the same on both sides: kitten for original programs that were given none [default: none]
    ///
    /// The original programs cannot run without a secret, and have the default `kitten`. It protects little.
    #[arg(long, env = "FARHAUL_TSUNAMI_SECRET", value_name = "SECRET", hide_env_values = true)]
    tsunami_secret: Option<String>,
    /// Payload bytes of an RBUDP datagram, the same on both sides
    #[arg(long, env = "FARHAUL_PAYLOAD", value_name = "BYTES", default_value_t = PAYLOAD, value_parser = clap::value_parser!(u16).range(64..))]
    payload: u16,
}

impl Originals {
    fn secret(&self) -> Vec<u8> {
        self.tsunami_secret.clone().unwrap_or_default().into_bytes()
    }

    /// The option in a command that this side suggests. It does not print the secret.
    pub(crate) fn secret_option(&self) -> &'static str {
        if self.tsunami_secret.is_some() { "--tsunami-secret SECRET " } else { "" }
    }

    /// A Tsunami client: the rate is asked for, and a block fills a packet.
    pub(crate) fn tsunami_client(&self, transport: &Transport) -> ClientOptions {
        let default = ClientOptions::default();
        ClientOptions {
            secret: self.secret(),
            block_size: transport.packet().saturating_sub(HEADERS + BLOCK_HEADER),
            rate: transport.rate().unwrap_or(default.rate),
            patience: transport.timeout.min(default.patience),
            ..default
        }
    }

    /// A Tsunami server: the rate is a cap on what clients ask for.
    pub(crate) fn tsunami_server(&self, transport: &Transport) -> ServerOptions {
        let default = ServerOptions::default();
        ServerOptions {
            secret: self.secret(),
            max_rate: transport.rate(),
            patience: transport.timeout.min(default.patience),
        }
    }

    /// An RBUDP session.
    pub(crate) fn rbudp(&self, transport: &Transport) -> Terms {
        let default = Terms::default();
        Terms {
            payload: self.payload,
            rate: transport.rate().unwrap_or(default.rate),
            buffer: transport.buffer.map_or(default.buffer, |ByteSize(bytes)| bytes),
            patience: transport.timeout,
            ..default
        }
    }
}
