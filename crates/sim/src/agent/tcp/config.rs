//! The settings of a sender.

use super::rto::RtoConfig;
use crate::packet::segment::HEADER;

/// The loss recovery of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// Go back to the lost segment, without fast recovery.
    Tahoe,
    /// Fast recovery until the first new acknowledgement (RFC 5681).
    Reno,
    /// Fast recovery until the whole flight is acknowledged (RFC 6582).
    NewReno,
    /// Recovery by selective acknowledgements (RFC 6675).
    #[default]
    Sack,
}

/// Settings of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderConfig {
    /// Loss recovery.
    pub recovery: Recovery,
    /// Bytes of data in a full segment.
    pub payload: u32,
    /// Bytes of IP and TCP header.
    pub header: u32,
    /// Initial window, packets.
    pub initial_window: u32,
    /// The receiver's window, packets.
    pub max_window: u32,
    /// Bytes to send; `None` for an endless transfer.
    pub bytes: Option<u64>,
    /// Whether a handshake of one RTT comes first.
    pub handshake: bool,
    /// Whether each of the first two duplicate acknowledgements permits a new segment (RFC 3042). With SACK it always
    /// does.
    pub limited_transmit: bool,
    /// Whether every acknowledgement yields an RTT sample (the timestamps option), instead of one segment at a time.
    pub timestamps: bool,
    /// Most packets of window growth per acknowledgement: 1 by RFC 5681, 2 with delayed acknowledgements and RFC 3465.
    pub ack_limit: u32,
    /// Bounds of the retransmission time-out.
    pub rto: RtoConfig,
}

impl Default for SenderConfig {
    /// SACK, 1460 bytes of data in packets of 1500, an initial window of three packets (RFC 5681 for that size).
    /// Handshake, limited transmit and time stamps are on. Time-outs follow RFC 6298, and the receiver's window is a
    /// million packets.
    fn default() -> Self {
        Self {
            recovery: Recovery::Sack,
            payload: 1_460,
            header: HEADER,
            initial_window: 3,
            max_window: 1_000_000,
            bytes: None,
            handshake: true,
            limited_transmit: true,
            timestamps: true,
            ack_limit: 1,
            rto: RtoConfig::default(),
        }
    }
}
