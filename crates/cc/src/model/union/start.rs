//! Start-up: the window grows fourfold per RTT, and the trains that this makes show the capacity before the window reaches it.
//!
//! ```text
//! per delivery   W ← W + 3·delivered, as far as W is used                          (1)
//! train          packets sent 1.5 times faster than they arrived: C = the rate of their arrival
//! pacing         none before C is known, then 2·C                                  (2)
//! ends           when 4·W ≥ C·RTT: growth would bring more than C; or, without a
//!                train, when q is half of the base RTT or W is the largest allowed  (3)
//! ```

use farhaul_units::{PacketRate, SendPeriod};

use super::senses::Queue;
use crate::controller::{Control, DeliveryEvent, DeliverySample, Path};
use crate::rate::flow_control::{cwnd, set_cwnd};

/// Packets added per packet delivered, (1). From 16 packets, a path of 8000 is full in 4.5 RTTs. Doubling needs 9.
pub(super) const GROWTH: f64 = 3.0;
/// A train was sent this much faster than it arrived.
const TRAIN: f64 = 1.5;
/// Pace in multiples of C, (2): trains stay trains, and a queue of a quarter of the path holds what this overruns.
const PROBING: f64 = 2.0;
/// Queue, as a share of the base RTT, that ends start-up where no train was seen.
const QUEUE: f64 = 0.5;

/// The state of start-up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartUp {
    /// C by the last train, packets/s.
    capacity: Option<f64>,
}

impl StartUp {
    /// Takes in a delivery. Returns the rate to go on with, once start-up is over.
    pub(super) fn on_delivery(
        &mut self,
        path: &Path,
        delivery: &DeliveryEvent,
        queue: &Queue,
        control: &mut Control,
    ) -> Option<f64> {
        if let Some(train) = &delivery.train {
            self.learn(train);
        }
        let used = (path.outstanding + delivery.newly_delivered) * (1.0 + GROWTH);
        let grown = (cwnd(control) + GROWTH * delivery.newly_delivered).min(used);
        set_cwnd(path, control, grown.max(cwnd(control)));
        let base = queue.base().unwrap_or(path.rtt.as_secs_f64());
        if let Some(capacity) = self.capacity() {
            control.send_period = PacketRate::new(capacity * PROBING).send_period();
            return (cwnd(control) * (1.0 + GROWTH) >= capacity * base).then_some(capacity);
        }
        control.send_period = SendPeriod::UNPACED;
        let is_full = cwnd(control) >= f64::from(path.max_window);
        let is_over = (queue.delay() > base * QUEUE || is_full) && !path.application_limited;
        let sample = delivery.sample.filter(|_| is_over)?;
        let rate = sample.rate?;
        Some(rate.packets_per_second())
    }

    /// What trains that were in flight when start-up ended go on to show: C, if it changed.
    pub(super) fn refine(&mut self, train: &DeliverySample) -> Option<f64> {
        let before = self.capacity();
        self.learn(train);
        self.capacity().filter(|capacity| Some(*capacity) != before)
    }

    /// C, packets/s, if a train has shown it.
    pub(super) const fn capacity(&self) -> Option<f64> {
        self.capacity
    }

    fn learn(&mut self, train: &DeliverySample) {
        let (sent, arrived) = (train.sent.packets_per_second(), train.delivered.packets_per_second());
        if sent >= arrived * TRAIN {
            self.capacity = Some(arrived);
        }
    }
}
