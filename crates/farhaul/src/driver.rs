//! Runs a sans-IO transport on a UDP port. One thread receives and keeps time, unless a caller that waits does so in its
//! place. Every calling thread does the sending that its call made possible.
//!
//! ```text
//!   application threads                         driver thread
//!   ───────────────────                         ─────────────
//!   read, write, … ──┐                     ┌── receive a batch of trains (no lock held)
//!                    ▼                     ▼
//!              ┌─────────── EndpointGuard ───────────┐
//!              │  lock → transport → send → events   │
//!              └──────────────────┬──────────────────┘
//!            wake the waiters (lock released)     sleep until the deadline
//! ```
//!
//! | to change … | open |
//! | --- | --- |
//! | the state under the lock, and its waiters | `core.rs`, `wait_queue.rs`, `wakers.rs` |
//! | access to the lock, and waiting for a condition | `guard.rs`, for tasks `wait.rs` |
//! | the loop of the driver thread | `threads.rs` |
//! | a turn of who drives: receiving, and the sleep after it | `receive_state.rs` |
//! | callers that drive while they wait | `driver_role.rs`, `wait_times.rs` |
//! | connections that finish without a handle | `core.rs`, `lingering.rs` |
//! | the end of the thread after the last handle | `threads.rs`, `closing.rs` |
//! | sleeps of the thread to gather datagrams | `receive_coalescing.rs` |
//! | what the socket's full buffer lost | `receive_drops.rs` |
//! | wake-ups of readers for more than a few packets | `wake_coalescing.rs` |
//! | datagrams that wait for the socket | `transmit_queue.rs` |
//! | TCP connections of transports with channels | `channels.rs` |
//! | answers to measured streams | `probes.rs` |
//!
//! Everything is generic over [`Streams`](farhaul_proto::Streams) with [`Channels`](farhaul_proto::Channels), so another
//! transport needs only another façade.

pub(crate) mod channels;
mod closing;
mod core;
mod driver_role;
mod guard;
mod lingering;
mod probes;
mod receive_coalescing;
mod receive_drops;
mod receive_state;
#[cfg(test)]
mod tests;
mod threads;
mod transmit_queue;
#[cfg(any(test, feature = "tokio"))]
mod wait;
mod wait_queue;
mod wait_times;
mod wake_coalescing;
mod wakers;

pub(crate) use self::channels::OtherClient;
pub(crate) use self::core::{Core, WaitPlace};
pub(crate) use closing::once_closed;
pub use closing::wait_idle;
pub(crate) use guard::{CancelFlags, EndpointGuard};
pub(crate) use threads::{Driver, UdpPort};
#[cfg(any(test, feature = "tokio"))]
pub(crate) use wait::TaskWait;
pub(crate) use wakers::Registration;
