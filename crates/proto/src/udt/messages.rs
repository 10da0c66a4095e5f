//! Message mode: its types, and its two commands.

use farhaul_units::{Duration, Instant};

use super::established::Established;
use crate::config::Mode;
use crate::shell::connection::Connection;
use crate::shell::protocol::Protocol;
use crate::transport::{Read, StreamError};

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
    /// The end, as far as UDT4 shows it. See [`Read::End`].
    End,
}

/// An established connection of UDT4, by itself or inside an envelope.
pub(crate) trait HasUdt {
    fn udt(&mut self) -> &mut Established;
}

impl HasUdt for Established {
    fn udt(&mut self) -> &mut Established {
        self
    }
}

impl<P: Protocol<Established: HasUdt>> Connection<P> {
    /// Takes one message for sending. Returns false if there is no room now.
    pub(crate) fn send_message(
        &mut self,
        now: Instant,
        message: &[u8],
        options: MessageOptions,
    ) -> Result<bool, StreamError> {
        let (standing, established) = self.parts_to_write(Mode::Message)?;
        let taken = established.udt().write_message(now, message, options)?;
        if !taken {
            standing.wait_for_room();
        }
        Ok(taken)
    }

    /// Copies the next message into `out`.
    pub(crate) fn recv_message(&mut self, out: &mut [u8]) -> Result<Message, StreamError> {
        let (standing, established) = self.parts_to_read(Mode::Message)?;
        if let Some(len) = established.and_then(|established| established.udt().read_message(out)) {
            return Ok(Message::Received { len: len.min(out.len()), truncated: len > out.len() });
        }
        Ok(match standing.nothing_to_read()? {
            Read::End => Message::End,
            _ => Message::Pending,
        })
    }
}
