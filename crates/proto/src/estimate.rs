//! Measurements of a connection: RTT, arrival rate, capacity, and delivery rate.

mod ack_window;
mod arrival_rate;
mod capacity;
mod delivery;
mod rate_sample;
mod rtt;
mod sent_rate;
mod trains;

pub use ack_window::{AckWindow, Sent};
pub(crate) use arrival_rate::ArrivalRate;
pub(crate) use capacity::{Capacity, MERGED_RATE, PROBE_INTERVAL, WINDOW as PAIRS_KEPT};
pub(crate) use delivery::{Delivery, Mark};
pub(crate) use rate_sample::RateSampler;
pub use rtt::Rtt;
pub use sent_rate::SentRate;
use trains::Trains;
