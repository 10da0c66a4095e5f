//! The block of options that opens a session.
//!
//! The receiver of the data sends it, and the sender returns it byte for byte. An original program sets the first and
//! the ninth word. The other words are whatever its memory held, so they mean nothing.

use super::data::{HEADER_LEN, MAX_PAYLOAD};
use super::record::MAX_LOSSES;

/// Bytes of the block.
pub const OPTIONS_LEN: usize = 40;
/// Window of an original program, packets.
const ORIGINAL_WINDOW: u32 = 25_600;
/// Largest window. Beyond, numbers in it would have no order.
const MAX_WINDOW: u32 = 50_000_000;
/// Bytes of buffers of an original program. Written for readers of traces only.
const ORIGINAL_BUFFER: u32 = 40_960_000;

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
        let [payload, losses, header] =
            [MAX_PAYLOAD, MAX_LOSSES, HEADER_LEN].map(|value| u32::try_from(value).unwrap_or(0));
        let (port, packet, is_blocking) = (self.udp_port.into(), payload + header, 1);
        let words =
            [port, port, packet, payload, losses, is_blocking, ORIGINAL_BUFFER, ORIGINAL_BUFFER, self.window, 0];
        let mut block = [0; OPTIONS_LEN];
        block.copy_from_slice(words.map(u32::to_be_bytes).as_flattened());
        block
    }

    /// Reads a block.
    ///
    /// # Errors
    /// The port is none, the window is empty or too large, or the words have 64 bits.
    pub fn decode(block: &[u8; OPTIONS_LEN]) -> Result<Self, OptionsError> {
        let (words, _) = block.as_chunks();
        let [port, window] = [words[0], words[8]].map(u32::from_be_bytes);
        let udp_port = u16::try_from(port).ok().filter(|&port| port != 0);
        match udp_port {
            Some(udp_port) if (1..MAX_WINDOW).contains(&window) => Ok(Self { udp_port, window }),
            _ if Self::may_have_64_bits(block) => Err(OptionsError::WordsOf64Bits),
            None => Err(OptionsError::Port(port)),
            Some(_) => Err(OptionsError::Window(window)),
        }
    }

    /// Whether this block may be half of one with words of 64 bits. So may one whose unset words happen to be zero.
    /// Only more bytes than a block has, or senseless records behind it, make this certain.
    pub fn may_have_64_bits(block: &[u8; OPTIONS_LEN]) -> bool {
        // The upper halves of small numbers are every second word.
        let zero = |first: usize| block.chunks(4).skip(first).step_by(2).all(|word| word == [0; 4]);
        zero(1) || zero(0)
    }
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
