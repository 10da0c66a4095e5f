//! The endpoint of every protocol and its connections: whatever does not differ between protocols.
//!
//! ```text
//!               ┌───────────────── Endpoint (one port) ──────────────────────────────┐
//! datagrams ───▶│ first byte ─▶ Demultiplexer ─▶ slots ─▶ Connection ─▶ Opening      │──▶ datagrams
//!               │               key                       state       ▼              │
//! commands  ───▶│                                                   Established      │──▶ events
//! channel bytes▶│ ready queues                                                       │──▶ channel bytes
//! time      ───▶│ deadlines (heap)                                                   │──▶ deadline
//!               └────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A protocol implements these and `Demultiplexer`, and hands its demultiplexer to an [`Endpoint`](crate::Endpoint).
//! One that the endpoint does not know may stand in another crate.
//!
//! | part | owns |
//! | --- | --- |
//! | `protocol` | the traits of connections: `Opening` and `Established` |
//! | `endpoint` | routing, turns in sending, timers, channels, the public traits |
//! | `connection` | the phases of a connection, and its application's commands |
//! | `life`, `connection_state` | the state of a connection, and how its application sees it |
//! | `closing` | telling the peer how this side left |
//! | `liveness` | all limits after which a peer is given up: `expiry`, `progress`, `gap` |
//! | `limit` | what held the sender back, and for how long |
//! | `line` | an end of a control channel |
//! | `route` | the addresses of a connection's datagrams |
//! | `slots`, `schedule` | where an endpoint keeps its connections, and their order of sending |
//! | `handshake` | callers and listeners with cookies, as UDT4 and the protocol of 2004 have them; room for callers |
//! | `replies` | stateless replies to callers |

pub mod closing;
pub mod connection;
pub(crate) mod connection_state;
pub mod endpoint;
pub mod expiry;
pub mod gap;
pub mod handshake;
pub(crate) mod life;
pub mod limit;
pub mod line;
pub mod liveness;
pub mod progress;
pub mod protocol;
mod replies;
mod route;
pub(crate) mod schedule;
pub(crate) mod slots;

#[cfg(test)]
mod tests;
