//! Packet protection: an authenticated and encrypted datagram around the packet of a transport.
//!
//! ```text
//!   0                   1                   2                   3
//!  | 0xC5          |  epoch (8)    |       packet number (24) …    |
//!  | …             |0|             connection id of the receiver … |
//!  | …             |
//!  |      header of Initial packets, in them alone, in clear       |
//!  |      body, encrypted; its last 16 bytes are the tag           |
//! ```
//!
//! Everything before the body is authenticated with it. The first byte is that of control packets of UDT4 of a type that
//! libudt ignores, so a port can tell both apart. The header is as short as that of QUIC, and has no field that a receiver must
//! complete by guessing.
//!
//! | epoch | body |
//! | --- | --- |
//! | [`INITIAL`](Epoch::INITIAL), [`HANDSHAKE`](Epoch::HANDSHAKE) | [`Frame`]s, which carry the TLS handshake |
//! | [`FIRST_APPLICATION`](Epoch::FIRST_APPLICATION) and later | one [`inner`] packet |

mod frame;
mod header;
mod initial_header;
pub mod inner;
#[cfg(test)]
mod tests;
mod transport_parameters;

pub use frame::{CloseCode, Frame, FrameError, MAX_REASON};
pub use header::{
    ConnectionName, Epoch, HEADER_LEN, Header, NUMBERS, PacketNumber, TAG_LEN, destination, is_protected,
};
pub use initial_header::{InitialHeader, MAX_CLIENT_ID, MAX_TOKEN, MIN_CLIENT_ID};
pub use inner::{DataForm, OVERHEAD, STREAM_OVERHEAD};
pub use transport_parameters::{ParametersError, TransportParameters};

/// The version of these formats. A side closes a handshake of another version.
pub const VERSION: u32 = 1;
/// Fewest bytes of a datagram with an Initial packet. It proves that the path carries so much, and bounds what a forged
/// one makes a listener send (attack A11).
pub const MIN_INITIAL: usize = 1200;
