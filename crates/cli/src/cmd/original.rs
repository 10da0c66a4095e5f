//! Conversations with the original programs of Tsunami, RBUDP and SABUL. They carry no digests, so nothing is verified.

pub(super) mod copy;
mod fault;
mod meanwhile;
pub(super) mod pipe;
pub(super) mod serve;

use crate::options::Transport;
use crate::output::json::Start;
use farhaul_transfer::report::{Direction, Report};

/// The `start` record: the protocol is the original's, and no controller governs its rate.
fn start(transport: &Transport, verb: &'static str, protocol: &str) -> Start {
    Start { protocol: protocol.to_owned(), controller: "none".to_owned(), ..transport.start(verb) }
}

/// The `end` record of a session that has moved no data yet.
fn end_record(protocol: &str, direction: Direction) -> Report {
    Report {
        direction: Some(direction),
        controller: "none".to_owned(),
        protocol: protocol.to_owned(),
        security: Some("none"),
        ..Report::default()
    }
}
