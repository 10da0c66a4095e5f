//! What the application says and hears in message mode.

use farhaul_units::Duration;

/// How a message is to be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageOptions {
    /// Give the message up when it could not be delivered for this long; `None` never does.
    pub ttl: Option<Duration>,
    /// Deliver it after all messages before it. Otherwise it may overtake incomplete ones.
    pub in_order: bool,
}

/// What [`Endpoint::recv_message`](super::Endpoint::recv_message) gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A message; its bytes stand in the output.
    Received {
        /// Bytes copied.
        len: usize,
        /// The output had no room for all of it; the rest is lost, as in UDT.
        truncated: bool,
    },
    /// Nothing now; a readable event will follow.
    Pending,
    /// The end, as far as UDT4 shows it: see [`Read::End`](crate::Read::End).
    End,
}
