//! Checks that a stream has arrived whole.

use super::flow::{Flow, Integrity};

/// Describes what is wrong with the arrival of the stream of `sent` among the other side's flows. `None` if it arrived
/// whole.
pub(crate) fn fault(sent: &Flow, arrived: &[Flow]) -> Option<String> {
    if !sent.is_sending() {
        return None;
    }
    let seed = sent.sent_seed();
    let flow = arrived.iter().find(|flow| flow.received().header.is_some_and(|(arrived, _)| arrived == seed));
    let Some(received) = flow.map(Flow::received) else {
        let state = (sent.connected_at, sent.closed);
        return Some(format!("stream {seed:#x}: {} bytes written, none arrived; {state:?}", sent.written()));
    };
    if let Integrity::Damaged(at) = received.integrity {
        return Some(format!("stream {seed:#x}: damaged at byte {at} of {}", received.bytes));
    }
    if received.complete_at.is_none() || received.bytes != sent.written() {
        let (bytes, written) = (received.bytes, sent.written());
        return Some(format!("stream {seed:#x}: {bytes} of {written} bytes arrived; sender {:?}", sent.closed));
    }
    None
}
