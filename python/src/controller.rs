//! Congestion controllers in Python.
//!
//! ```text
//! a thread that holds a port's lock ─▶ Bridge ─▶ waits for the interpreter's lock ─▶ a method of Python
//!                                        └── one Path, one Control, one object of each event: the same in every call
//! ```
//!
//! | part | owns |
//! | --- | --- |
//! | `bridge` | one controller: which methods it has, and their calls |
//! | `factory` | what makes a controller for each connection |
//! | `failure` | exceptions of callbacks, until somebody asks why a connection or an experiment ended |
//! | `callback` | the interpreter's lock in callbacks: nobody waits for a port meanwhile |
//! | `path`, `control`, `events` | what methods read and set |
//! | `packets` | single packets, until a call is due for them |
//!
//! **Locks.** A thread in a callback holds the lock of its port and waits for the interpreter. So a thread that has the interpreter
//! must never wait for a port: every call into the library detaches first, and so does the drop of its objects ([`OfProcess`]).
//! A callback itself must not wait for any port, so objects of the library refuse calls from there.
//!
//! [`OfProcess`]: crate::fork::OfProcess

mod bridge;
mod callback;
mod control;
mod events;
mod factory;
mod failure;
mod packets;
mod path;

pub(crate) use callback::is_in_callback;
pub(crate) use control::ControlView;
pub(crate) use events::{AckView, DeliveryView, LossView, TimeoutView};
pub(crate) use factory::{Factory, controller, register};
pub(crate) use failure::failure_of;
pub(crate) use packets::{PacketView, PacketsView};
pub(crate) use path::PathView;
