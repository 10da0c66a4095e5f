//! Runs a sans-IO transport on a UDP port: one thread receives and keeps time, and every thread that calls does the
//! sending that its call made possible.
//!
//! ```text
//!   application threads                         driver thread
//!   ───────────────────                         ─────────────
//!   read, write, … ──┐                     ┌── receive a batch of trains (no lock held)
//!                    ▼                     ▼
//!              ┌──────────────── Turn ───────────────┐
//!              │  lock → transport → send → events   │
//!              └──────────────────┬──────────────────┘
//!            wake whoever waits (lock released)   sleep until the deadline
//! ```
//!
//! | to change … | open |
//! | --- | --- |
//! | what the lock protects, who waits for what | `core.rs`, `bell.rs`, `wakers.rs` |
//! | a turn at the lock, waiting for something to happen | `turn.rs`, for tasks `wait.rs` |
//! | the loop of the driver thread | `threads.rs` |
//! | how a connection finishes without a handle | `core.rs`, `parting.rs` |
//! | how the thread ends after the last handle | `threads.rs`, `departure.rs` |
//! | when it looks away to gather datagrams | `nap.rs` |
//! | how datagrams leave | `outbox.rs` |
//! | files on the disk | `disk.rs` |
//!
//! Everything is generic over [`Streams`](farhaul_proto::Streams), so other transports need another façade only.

mod bell;
mod core;
mod departure;
pub(crate) mod disk;
mod nap;
mod outbox;
mod parting;
#[cfg(test)]
mod tests;
mod threads;
mod turn;
#[cfg(any(test, feature = "tokio"))]
mod wait;
#[cfg_attr(not(any(test, feature = "tokio")), expect(dead_code, reason = "tasks come with the feature `tokio`"))]
mod wakers;

pub(crate) use self::core::{Core, Place};
pub use departure::wait_for_farewells;
pub(crate) use threads::Driver;
pub(crate) use turn::CancelFlags;
#[cfg(any(test, feature = "tokio"))]
pub(crate) use wait::TaskWait;
#[cfg(any(test, feature = "tokio"))]
pub(crate) use wakers::Registration;
