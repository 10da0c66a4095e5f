//! Stateless answers to callers.

use std::collections::VecDeque;

use farhaul_wire::udt4::Handshake;

use crate::transport::AddressPair;

/// Largest number of waiting answers. Further callers must retry.
const MAX_REPLIES: usize = 256;

/// Handshake answers that wait to be sent, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    waiting: VecDeque<(AddressPair, Handshake)>,
}

impl Replies {
    /// Queues an answer to `to`, or drops it if too many wait.
    pub(crate) fn push(&mut self, to: AddressPair, reply: Handshake) {
        if self.waiting.len() < MAX_REPLIES {
            self.waiting.push_back((to, reply));
        }
    }

    /// The next answer to send.
    pub(crate) fn pop(&mut self) -> Option<(AddressPair, Handshake)> {
        self.waiting.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
