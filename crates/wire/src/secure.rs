//! The secure envelope: an authenticated and encrypted datagram around the packet of a transport.
//!
//! ```text
//!   0                   1                   2                   3
//!  |1|      type = 0x4648 (15 bit)   |          epoch (16)         |
//!  |                 packet number, high 32                        |
//!  |                 packet number, low 32                         |
//!  |0|               connection id of the receiver (31 bit)        |
//!  |      greeting, in Initial packets alone, in clear             |
//!  |      body, encrypted; its last 16 bytes are the tag           |
//! ```
//!
//! Everything before the body is authenticated with it. The first word looks like a control packet of UDT4 of a type that
//! libudt ignores, and the connection id stands where UDT4 has the socket id. So one demultiplexer serves both.
//!
//! | epoch | body |
//! | --- | --- |
//! | [`INITIAL`](Epoch::INITIAL), [`HANDSHAKE`](Epoch::HANDSHAKE) | [`Frame`]s, which carry the TLS handshake |
//! | [`FIRST_APPLICATION`](Epoch::FIRST_APPLICATION) and later | one [`inner`] packet |

mod frame;
mod greeting;
mod header;
pub mod inner;
mod terms;
#[cfg(test)]
mod tests;

pub use frame::{CloseCode, Frame, FrameError, MAX_REASON};
pub use greeting::{Greeting, MAX_CLIENT_ID, MAX_TOKEN, MIN_CLIENT_ID};
pub use header::{ConnectionName, Epoch, HEADER_LEN, Header, PacketNumber, TAG_LEN, is_envelope};
pub use terms::{Terms, TermsError};

/// Bytes that an envelope adds to a packet of UDT4: its header and tag, less the word with the socket id.
pub const OVERHEAD: usize = HEADER_LEN + TAG_LEN - 4;
/// The version of these formats. A side closes a handshake of another version.
pub const VERSION: u32 = 1;
/// Fewest bytes of a datagram with an Initial packet. It proves that the path carries so much, and bounds what a forged
/// one makes a listener send (attack A11).
pub const MIN_INITIAL: usize = 1200;
