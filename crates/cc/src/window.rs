//! Controllers that govern the congestion window: TCP's.
//!
//! Each law is a [`law::WindowLaw`] in a file of its own; [`windowed::Windowed`] makes a controller of it. Shared parts:
//! [`loss_epoch`] (one decrease per window), [`hystart`] (an end of slow start).

mod bic;
mod copa;
pub(crate) mod cubic;
mod fast;
mod highspeed;
mod htcp;
mod hybla;
mod hystart;
mod illinois;
mod law;
mod ledbat;
mod loss_epoch;
mod newreno;
mod reno;
mod scalable;
mod tahoe;
mod vegas;
mod westwood;
mod windowed;

pub(crate) use bic::Bic;
pub(crate) use copa::Copa;
pub(crate) use cubic::Cubic;
pub(crate) use fast::Fast;
pub(crate) use highspeed::HighSpeed;
pub(crate) use htcp::HTcp;
pub(crate) use hybla::Hybla;
pub(crate) use illinois::Illinois;
pub(crate) use ledbat::{Ledbat, TARGET};
pub(crate) use newreno::NewReno;
pub(crate) use reno::Reno;
pub(crate) use scalable::Scalable;
pub(crate) use tahoe::Tahoe;
pub(crate) use vegas::Vegas;
pub(crate) use westwood::Westwood;
pub(crate) use windowed::Windowed;
