//! Controllers that govern the congestion window: TCP's.
//!
//! Shared parts: [`slow_start`] (slow start and its end), [`loss_epoch`] (one decrease per window).

mod cubic;
mod ledbat;
mod loss_epoch;
mod reno;
mod slow_start;
mod tahoe;

pub(crate) use cubic::Cubic;
pub(crate) use ledbat::{Ledbat, TARGET};
pub(crate) use reno::Reno;
pub(crate) use tahoe::Tahoe;

/// The window after a time-out, packets: RFC 5681's loss window. UDT's sender raises it to its own minimum of two.
const LOSS_WINDOW: f64 = 1.0;
