//! Types of message mode.

use farhaul_units::Duration;

/// How a message is to be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageOptions {
    /// Give up the message after this long without delivery; `None` for never.
    pub ttl: Option<Duration>,
    /// Deliver it after all messages before it. Otherwise it may overtake incomplete ones.
    pub in_order: bool,
}

/// The result of [`Endpoint::recv_message`](super::Endpoint::recv_message).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A message. Its bytes are in the output.
    Received {
        /// Bytes copied.
        len: usize,
        /// The output was too small. The rest of the message is lost, as in UDT.
        truncated: bool,
    },
    /// Nothing now. [`Event::Readable`](crate::Event::Readable) will follow.
    Pending,
    /// The end, as far as UDT4 shows it. See [`Read::End`](crate::Read::End).
    End,
}
