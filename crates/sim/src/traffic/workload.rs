//! The work of one side of each connection.

use farhaul_units::Rate;

/// The amount of data that a side sends on each of its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Amount {
    /// Nothing.
    #[default]
    Nothing,
    /// This many bytes, the 16 of the stream's header included. At least the header is sent.
    Bytes(u64),
    /// Unlimited data.
    Unlimited,
}

/// The work of one side on each of its connections.
///
/// A side finishes a connection once it has written all its data and received all it expects.
#[derive(Clone, Copy, Debug, Default)]
pub struct Workload {
    /// The data it sends.
    pub send: Amount,
    /// Whether the peer sends too. The side then finishes only after all of that has arrived.
    pub expect: bool,
    /// How fast the application reads; `None` for at once.
    pub read_rate: Option<Rate>,
    /// Whether the connection stays open when there is nothing left to do.
    pub keep_open: bool,
    /// Whether it ends its own direction alone once it has written everything, and leaves the other one to the peer.
    pub half_close: bool,
}

impl Workload {
    /// Sends `bytes` and expects nothing.
    pub fn send(bytes: u64) -> Self {
        Self { send: Amount::Bytes(bytes), ..Self::default() }
    }

    /// Sends until the end of the simulation.
    pub fn send_without_end() -> Self {
        Self { send: Amount::Unlimited, ..Self::default() }
    }

    /// Only receives.
    pub fn receive() -> Self {
        Self { expect: true, ..Self::default() }
    }

    /// Sends `bytes` and expects the peer to send as well.
    pub fn exchange(bytes: u64) -> Self {
        Self { send: Amount::Bytes(bytes), expect: true, ..Self::default() }
    }

    /// Reads no faster than `rate`.
    #[must_use]
    pub fn reading_at(mut self, rate: Rate) -> Self {
        self.read_rate = Some(rate);
        self
    }

    /// Leaves the connection open and idle when all is done.
    #[must_use]
    pub fn kept_open(mut self) -> Self {
        self.keep_open = true;
        self
    }

    /// Ends its own direction alone, as soon as everything is written.
    #[must_use]
    pub fn half_closing(mut self) -> Self {
        self.half_close = true;
        self
    }
}
