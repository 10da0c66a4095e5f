//! The callback of a controller that runs on this thread, if one does.

use std::cell::RefCell;

use farhaul::cc::{CustomMessage, Path};
use farhaul::units::Instant;

/// Most messages that one callback sends.
const MOST_MESSAGES: usize = 64;

thread_local! {
    static CURRENT: RefCell<Option<Callback>> = const { RefCell::new(None) };
}

/// What a controller counts itself, because callbacks cannot ask the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) begun: Option<Instant>,
    pub(crate) received: u64,
    pub(crate) retransmitted: u64,
    pub(crate) lost: u64,
    pub(crate) acks: u64,
    pub(crate) naks: u64,
    /// The period in microseconds, and the window.
    pub(crate) period: f64,
    pub(crate) window: f64,
}

/// A running callback.
struct Callback {
    facts: Option<(Path, Counts)>,
    messages: Vec<CustomMessage>,
}

/// Whether a callback runs on this thread. The port's lock is held then. None runs while the thread ends, when programs
/// still call the library from their own destructors.
pub(crate) fn is_running() -> bool {
    CURRENT.try_with(|current| current.borrow().is_some()).unwrap_or(false)
}

/// Runs a callback. `facts` are its connection's. Returns the messages that it sends.
pub(super) fn run(facts: Option<(Path, Counts)>, callback: impl FnOnce()) -> Vec<CustomMessage> {
    let running = Some(Callback { facts, messages: Vec::new() });
    let Ok(before) = CURRENT.try_with(|current| current.replace(running)) else {
        callback();
        return Vec::new();
    };
    callback();
    CURRENT.replace(before).map_or_else(Vec::new, |callback| callback.messages)
}

/// Sends a message from the running callback. Returns false if there is none, or it has sent too many.
pub(crate) fn send(message: CustomMessage) -> bool {
    let push = |current: &RefCell<Option<Callback>>| match &mut *current.borrow_mut() {
        Some(callback) if callback.messages.len() < MOST_MESSAGES => {
            callback.messages.push(message);
            true
        }
        _ => false,
    };
    CURRENT.try_with(push).unwrap_or(false)
}

/// The facts of the running callback's connection.
pub(crate) fn facts() -> Option<(Path, Counts)> {
    CURRENT.try_with(|current| current.borrow().as_ref()?.facts).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_sends_messages_and_other_code_does_not() {
        let message = CustomMessage { kind: 3, body: vec![1, 2, 3, 4] };
        assert!(!send(message.clone()) && !is_running());
        let sent = run(None, || {
            assert!(is_running() && send(message.clone()));
        });
        assert_eq!(sent, [message]);
        assert!(!is_running());
    }
}
