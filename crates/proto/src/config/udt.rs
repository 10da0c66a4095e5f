//! Settings of UDT4 alone.

use farhaul_units::{AckNo, Duration, MsgNo};

/// Settings of UDT4 alone. [`Config`](crate::Config) has those that all protocols share.
#[derive(Clone, Debug)]
pub struct Config {
    /// Longest time for a rendezvous. Default 30 s, as in libudt.
    pub rendezvous_timeout: Duration,
    /// Withholds a packet of plain streams now and then until the peer reports its loss. A peer that acknowledges it before that
    /// claims what it cannot have, and loses the connection (attack B8). The controller hears nothing of it. Default false, as in
    /// the papers.
    pub withhold_packets: bool,
    /// Answers as libudt 4.11 does: without receipts or larger packets, and acknowledges when a packet comes 10 ms after the last
    /// acknowledgement, or when none has come for 100 ms. So the first packet after a pause is acknowledged at once, and those
    /// behind it with a later one. For tests and simulations of a sender. Default false.
    pub answers_as_libudt: bool,
    /// Sends as programs of libudt 4.11 expect. It cuts no write to a stream that fits into one packet: such a write begins a
    /// packet unless the newest one has room for all of it. Messages leave once even if their time to live has passed. Without
    /// this, packets are filled, and expired messages stay. Default false.
    pub sends_as_libudt: bool,
    /// Stores no payload of plain connections: whatever is written, the peer gets as many zeros, and whatever arrives, as many
    /// zeros are read. All else is as if the application had written zeros. For simulations, whose data nobody reads. Default
    /// false.
    pub blank_payload: bool,
    /// Number of the first acknowledgement of a connection. Default 1, as in libudt. For tests.
    pub initial_ack: AckNo,
    /// Number of the first message of a connection. Default 1, as in libudt. For tests.
    pub initial_message: MsgNo,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rendezvous_timeout: Duration::from_secs(30),
            withhold_packets: false,
            answers_as_libudt: false,
            sends_as_libudt: false,
            blank_payload: false,
            initial_ack: AckNo::FIRST,
            initial_message: MsgNo::FIRST,
        }
    }
}
