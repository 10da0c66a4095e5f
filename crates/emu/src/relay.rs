//! A user-space UDP relay that emulates a path in each direction and needs no special rights.
//!
//! A client sends to the relay instead of the server. The relay delays each datagram as the model says, or loses it,
//! and forwards it. Every client has its own upstream socket, so that answers reach that client.
//!
//! The relay is precise without busy waiting. Arrivals carry the kernel's timestamps, so the time of reading does not
//! matter. The model computes exact departure times, and only the release waits for the relay. Under load it pauses for
//! at least [`PAUSE`] and then releases all due packets as trains. With the necessary rights it runs as a real-time
//! thread. It measures how late packets leave. A run that the relay limited, instead of the path, is marked as invalid.

mod clients;
mod datagram;
mod direction;
mod report;
mod run;

pub use report::{DirectionReport, RelayReport};
pub use run::{PAUSE, Relay};
