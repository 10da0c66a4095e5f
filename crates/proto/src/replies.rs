//! Answers to strangers, of whom nothing else is remembered.

use core::net::SocketAddr;
use std::collections::VecDeque;

use farhaul_wire::udt4::Handshake;

/// Answers that wait to be sent at most: more callers at once have to call again.
const MAX_REPLIES: usize = 256;

/// Stateless handshake answers that wait to be sent, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    waiting: VecDeque<(SocketAddr, Handshake)>,
}

impl Replies {
    /// An answer to `to`; dropped if too many wait.
    pub(crate) fn push(&mut self, to: SocketAddr, reply: Handshake) {
        if self.waiting.len() < MAX_REPLIES {
            self.waiting.push_back((to, reply));
        }
    }

    /// The next one to be sent.
    pub(crate) fn pop(&mut self) -> Option<(SocketAddr, Handshake)> {
        self.waiting.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
