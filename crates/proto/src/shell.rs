//! The shell of every protocol's endpoint and connections: whatever does not differ between protocols.
//!
//! | part | owns |
//! | --- | --- |
//! | `life`, `standing` | the state of a connection, and how its application sees it |
//! | `farewell` | telling the peer how this side left |
//! | `expiry` | silence: keep-alives, time-outs |
//! | `progress`, `gap` | limits after which a live peer is given up |
//! | `limit` | what held the sender back, and for how long |
//! | `slots`, `schedule` | where an endpoint keeps its connections, and their order of sending |
//! | `handshake` | callers and listeners, with cookies |
//! | `admission`, `replies`, `secrets` | callers: room for them, answers without state, numbers that nobody guesses |

mod admission;
pub(crate) mod connection;
pub(crate) mod endpoint;
pub(crate) mod expiry;
pub(crate) mod farewell;
pub(crate) mod gap;
pub(crate) mod handshake;
mod life;
pub(crate) mod limit;
pub(crate) mod progress;
pub(crate) mod protocol;
mod replies;
mod schedule;
mod secrets;
pub(crate) mod slots;
mod standing;
