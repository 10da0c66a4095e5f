//! Stateless answers to callers.

use std::collections::VecDeque;

use crate::transport::AddressPair;

/// Largest number of waiting answers. Further callers must retry.
const MAX_REPLIES: usize = 256;

/// Answers that wait to be sent, oldest first.
#[derive(Debug)]
pub(crate) struct Replies<T> {
    waiting: VecDeque<(AddressPair, T)>,
}

impl<T> Replies<T> {
    pub(crate) const fn new() -> Self {
        Self { waiting: VecDeque::new() }
    }

    /// Queues an answer to `to`, or drops it if too many wait.
    pub(crate) fn push(&mut self, to: AddressPair, reply: T) {
        if self.waiting.len() < MAX_REPLIES {
            self.waiting.push_back((to, reply));
        }
    }

    /// The next answer to send.
    pub(crate) fn pop(&mut self) -> Option<(AddressPair, T)> {
        self.waiting.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
