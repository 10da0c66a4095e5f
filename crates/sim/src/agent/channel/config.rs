//! The constants of channels.

use farhaul_units::Duration;

use crate::agent::tcp::{HEADER, ReceiverConfig, Recovery, RtoConfig, SenderConfig};

/// Most bytes of data in a segment: an Ethernet frame without IP's and TCP's headers.
pub(super) const SEGMENT: u32 = 1_460;
/// Bytes that a host takes from its transport beyond those acknowledged, and most bytes in flight. Source: the largest
/// send buffer of Linux by default (`tcp_wmem`).
pub(super) const SEND_BUFFER: usize = 4 << 20;
/// Segments of the first window.
//= paper:rfc6928 §2
const INITIAL_WINDOW: u32 = 10;
/// Shortest and longest retransmission time-out of Linux (`TCP_RTO_MIN`, `TCP_RTO_MAX`).
const MIN_RTO: Duration = Duration::from_millis(200);
const MAX_RTO: Duration = Duration::from_secs(120);
/// The delay of acknowledgements in Linux (`TCP_DELACK_MIN`).
const DELAYED_ACK: Duration = Duration::from_millis(40);

/// The senders of channels.
pub const fn sender_config() -> SenderConfig {
    SenderConfig {
        recovery: Recovery::Sack,
        payload: SEGMENT,
        header: HEADER,
        initial_window: INITIAL_WINDOW,
        max_window: SEND_BUFFER as u32 / SEGMENT,
        bytes: None,
        handshake: true,
        limited_transmit: true,
        timestamps: true,
        // An acknowledgement counts for both segments that it acknowledges.
        ack_limit: 2,
        rto: RtoConfig { min: MIN_RTO, max: MAX_RTO, tick: Duration::ZERO },
    }
}

/// The receivers of channels.
pub const fn receiver_config() -> ReceiverConfig {
    ReceiverConfig { sack: true, delayed_ack: Some(DELAYED_ACK), header: HEADER }
}
