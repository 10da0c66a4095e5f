//! Path models driven by the real clock.
//!
//! | to change … | open |
//! | --- | --- |
//! | the user-space UDP relay, which needs no rights | `relay.rs`, `relay/` |
//! | how late packets leave | `lateness.rs` |

mod lateness;
mod relay;

pub use lateness::LatenessReport;
pub use relay::{DirectionReport, Flaw, MAX_LATENESS, MAX_STALL, NAP, Relay, RelayReport};
