//! Controllers whose law is a law of the congestion window: TCP's.
//!
//! The parts that several of them share: [`slow_start`] (slow start and its end), [`loss_epoch`] (one cut per window).

mod cubic;
mod loss_epoch;
mod reno;
mod slow_start;
mod tahoe;

pub(crate) use cubic::Cubic;
pub(crate) use reno::Reno;
pub(crate) use tahoe::Tahoe;

/// The smallest window after a time-out, packets: RFC 5681's loss window. UDT's sender takes it for its own least of two.
const LOSS_WINDOW: f64 = 1.0;
