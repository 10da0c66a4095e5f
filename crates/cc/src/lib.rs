//! Congestion controllers: one small file each, behind one trait.
//!
//! A controller receives the events of a connection ([`AckEvent`], [`LossEvent`], …), reads the transport's
//! measurements ([`Path`]) and changes settings ([`Control`]). The settings include a congestion window *and* a packet
//! sending period, because UDT's laws govern the period.
//!
//! The interface is that of UDT4's configurable congestion control (CCC). Event structs replace callback arguments, so
//! that an event can grow without breaking controllers.
//!
//! | to | open |
//! | --- | --- |
//! | see the trait | `controller.rs` |
//! | see the events and measurements | `event.rs`, `path.rs` |
//! | see the settings | `control.rs` |
//! | see what happens to a controller that fails | `supervised.rs`, `failure.rs` |
//! | pick a controller by name | `registry.rs` (the table), `entry.rs`, `spec.rs`; the text form: `selection.rs`, `options.rs` |
//! | read the default law | `model/union.rs` beside `docs/laws/union.md` |
//! | read UDT's laws | `rate/udt4.rs` beside the paper, then its other generations, `rate/udt_*.rs` |
//! | read BBR | `model/bbr.rs` beside the draft |
//! | read TCP's laws | `window/reno.rs` beside RFC 5681, then the other files of `window/`; what they share: `window/law.rs`, `window/windowed.rs` |
//! | add one | one file, one row in `registry.rs`, one snapshot in `tests/cc/curves.rs`, a response in `tests/cc/response.rs` |
//! | add one from another crate | `registration.rs` |
#![forbid(unsafe_code)]

mod control;
mod controller;
mod entry;
mod event;
mod failure;
mod known_path;
mod model;
pub mod options;
mod path;
mod rate;
mod registration;
pub mod registry;
mod selection;
mod spec;
mod supervised;
mod window;

pub use control::{BURST_TIME, Control, MAX_BURST};
pub use controller::Controller;
pub use event::{
    AckEvent, CustomMessage, DataPacket, DeliveryEvent, DeliverySample, LossEvent, LostFlight, RateSample,
    ReceivedEvent, SentEvent, TimeoutEvent,
};
pub use failure::{ControllerFailure, ControllerFault, Nonsense, NonsenseValue, ShortName};
pub use known_path::KnownPath;
pub use options::SpecError;
pub use path::Path;
pub use registration::{Registration, RegistrationError};
pub use selection::{Row, Selection};
pub use spec::Spec;
pub use supervised::Supervised;
