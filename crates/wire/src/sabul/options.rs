//! The block of options that opens a session.
//!
//! The receiver of the data sends it, and the sender returns it byte for byte. An original program sets the first and
//! the ninth word. The other words are whatever its memory held, so they mean nothing.

use super::data::{HEADER_LEN, MAX_PAYLOAD};
use super::record::MAX_LOSSES;
use crate::field::Word;

/// Bytes of the block.
pub const OPTIONS_LEN: usize = 40;
/// Window of an original program, packets.
const ORIGINAL_WINDOW: u32 = 25_600;
/// Largest window. Beyond, numbers in it would have no order.
const MAX_WINDOW: u32 = 50_000_000;
/// Bytes of buffers of an original program. Written for readers of traces only.
const ORIGINAL_BUFFER: u32 = 40_960_000;

const UDP_PORT: Word = Word::new("UDP port", 0);
const CONTROL_PORT: Word = Word::new("control port", 1);
const PACKET: Word = Word::new("packet size", 2);
const PAYLOAD: Word = Word::new("payload", 3);
const LOSSES: Word = Word::new("most losses", 4);
const BLOCKING: Word = Word::new("blocking", 5);
const SEND_BUFFER: Word = Word::new("send buffer", 6);
const RECV_BUFFER: Word = Word::new("receive buffer", 7);
const WINDOW: Word = Word::new("receive window", 8);

/// The options with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The port to which data goes, at the address of the channel's other end.
    pub udp_port: u16,
    /// Packets that the sender may have unacknowledged.
    pub window: u32,
}

impl Options {
    /// The options of a receiver with this port and the window of the original.
    pub const fn new(udp_port: u16) -> Self {
        Self { udp_port, window: ORIGINAL_WINDOW }
    }

    /// The block. Words without a meaning get the original's constants, so that no memory of this program leaves.
    pub fn encode(&self) -> [u8; OPTIONS_LEN] {
        let mut block = [0; OPTIONS_LEN];
        let [payload, losses, header] =
            [MAX_PAYLOAD, MAX_LOSSES, HEADER_LEN].map(|value| u32::try_from(value).unwrap_or(0));
        for (word, value) in [
            (UDP_PORT, u32::from(self.udp_port)),
            (CONTROL_PORT, u32::from(self.udp_port)),
            (PACKET, payload + header),
            (PAYLOAD, payload),
            (LOSSES, losses),
            (BLOCKING, 1),
            (SEND_BUFFER, ORIGINAL_BUFFER),
            (RECV_BUFFER, ORIGINAL_BUFFER),
            (WINDOW, self.window),
        ] {
            word.write(&mut block, value);
        }
        block
    }

    /// Reads a block.
    ///
    /// # Errors
    /// The port is none, the window is empty or too large, or the words have 64 bits.
    pub fn decode(block: &[u8; OPTIONS_LEN]) -> Result<Self, OptionsError> {
        let (port, window) = (UDP_PORT.read(block), WINDOW.read(block));
        let udp_port = u16::try_from(port).ok().filter(|&port| port != 0);
        match udp_port {
            Some(udp_port) if (1..MAX_WINDOW).contains(&window) => Ok(Self { udp_port, window }),
            _ if looks_like_64_bits(block) => Err(OptionsError::WordsOf64Bits),
            None => Err(OptionsError::Port(port)),
            Some(_) => Err(OptionsError::Window(window)),
        }
    }

    /// Whether this block may be half of one with words of 64 bits. So may one whose unset words happen to be zero.
    /// Only more bytes than a block has, or senseless records behind it, make this certain.
    pub fn may_have_64_bits(block: &[u8; OPTIONS_LEN]) -> bool {
        looks_like_64_bits(block)
    }
}

/// Whether every second word is zero: the upper halves of small numbers.
fn looks_like_64_bits(block: &[u8; OPTIONS_LEN]) -> bool {
    let zero = |first: usize| block.chunks(4).skip(first).step_by(2).all(|word| word == [0; 4]);
    zero(1) || zero(0)
}

/// Why a block of options was refused. The peer is no receiver of SABUL 2.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// No UDP port has this number.
    #[error("the receiver names UDP port {0}")]
    Port(u32),
    /// The window is empty or has no order.
    #[error("the receiver's window of {0} packets is not within 1 to {max}", max = MAX_WINDOW - 1)]
    Window(u32),
    /// The peer was built with words of 64 bits.
    #[error("the peer sends words of 64 bits: it is a 64-bit build of SABUL, and only 32-bit builds have a format")]
    WordsOf64Bits,
}
