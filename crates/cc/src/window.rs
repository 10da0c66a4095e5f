//! Controllers that govern the congestion window: TCP's.
//!
//! Shared parts: [`slow_start`] (slow start and its end), [`loss_epoch`] (one decrease per window).

pub(crate) mod cubic;
mod ledbat;
mod loss_epoch;
mod reno;
mod slow_start;
mod tahoe;

pub(crate) use cubic::Cubic;
pub(crate) use ledbat::{Ledbat, TARGET};
pub(crate) use reno::Reno;
pub(crate) use tahoe::Tahoe;
