//! Start-up that measures: the window grows fourfold per round trip, and the trains that this makes show the capacity of the
//! bottleneck before the window reaches it.
//!
//! UDT4's slow start doubles the window until something is lost or the flow window is full; with buffers larger than the
//! path, it overruns the queue by tens of thousands of packets (departure D20). Here:
//!
//! ```text
//! per ACK:   W ← W + 3·acked, as far as W is used               (1)
//! train:     packets that were sent 1.5 times faster than they were delivered: C = their delivery rate
//! pacing:    none before C is known, then 1/(2·C)             (2)
//! ends:      when 4·W ≥ C·RTT, so that the period 1/C is no more than the fourfold growth would have brought;
//!            or a packet is lost; or, while no train was seen, when the round trip has grown by half or the window is the
//!            largest there is                                                              (3)
//! ```
//!
//! While the application is the limit, what arrives says nothing: only a train, or a loss after it, ends start-up then.
//!
//! | here | unit |
//! | --- | --- |
//! | `W` the window | packets |
//! | `C` the capacity | packets/s |

use farhaul_units::{PacketRate, SendPeriod};

use super::flow_control::{cwnd, measured_rate, set_cwnd};
use crate::{AckEvent, Control, DeliverySample, Path};

/// Packets added per packet acknowledged, (1). With an initial window of 16 this brings 1 MB over a path of 1 Gbit/s and
/// 100 ms in 0.6 s; doubling needs 0.85 s.
const GROWTH: f64 = 3.0;
/// A train counts if it was sent this much faster than it was delivered.
const TRAIN_RATIO: f64 = 1.5;
/// Rate before the window has reached the path, as a multiple of the capacity, (2): trains stay trains, and a queue of a
/// quarter of the path holds what this overruns.
const PROBING_GAIN: f64 = 2.0;
/// Growth of the round trip that ends start-up where no train showed the capacity.
const QUEUE_RATIO: f64 = 1.5;
/// A longer train replaces the estimate of a shorter one; one at least this share as long still counts in the mean.
const COMPARABLE: f64 = 0.75;

/// Start-up under way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Start {
    /// The capacity that the longest trains showed, and their length in packets.
    train: Option<(PacketRate, f64)>,
}

impl Start {
    /// Takes in an acknowledgement. The capacity to go on with, once start-up is over.
    pub(crate) fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) -> Option<PacketRate> {
        if let Some(sample) = ack.delivery {
            self.learn(&sample);
        }
        // A window that is not used says nothing, so it grows no further than fourfold beyond its use.
        let used = f64::from(path.in_flight + ack.newly_acked) * (1.0 + GROWTH);
        let grown = (cwnd(control) + GROWTH * f64::from(ack.newly_acked)).min(used);
        set_cwnd(path, control, grown.max(cwnd(control)));
        let floor = path.min_rtt.unwrap_or(path.rtt);
        match self.capacity() {
            Some(capacity) => {
                control.send_period = PacketRate::new(capacity.packets_per_second() * PROBING_GAIN).send_period();
                (cwnd(control) * (1.0 + GROWTH) >= capacity.packets_in(floor)).then_some(capacity)
            }
            None => {
                control.send_period = SendPeriod::UNPACED;
                let queued = path.rtt.as_secs_f64() > floor.as_secs_f64() * QUEUE_RATIO;
                let full = cwnd(control) >= f64::from(path.max_window);
                let over = (queued || full) && !path.application_limited;
                over.then(|| best_rate(path)).flatten()
            }
        }
    }

    /// The capacity to go on with after a loss; `None` if nothing has been measured but what the application sent.
    pub(crate) fn on_loss(&self, path: &Path) -> Option<PacketRate> {
        self.capacity().or(best_rate(path).filter(|_| !path.application_limited))
    }

    /// What the trains that were under way when start-up ended go on to show: the capacity, if it changed.
    pub(crate) fn refine(&mut self, ack: &AckEvent) -> Option<PacketRate> {
        let before = self.capacity();
        self.learn(ack.delivery.as_ref()?);
        self.capacity().filter(|capacity| Some(*capacity) != before)
    }

    /// The capacity, if a train has shown it.
    pub(crate) fn capacity(&self) -> Option<PacketRate> {
        self.train.map(|(rate, _)| rate)
    }

    fn learn(&mut self, sample: &DeliverySample) {
        if sample.sent.packets_per_second() < sample.delivered.packets_per_second() * TRAIN_RATIO {
            return;
        }
        let packets = f64::from(sample.packets);
        self.train = Some(match self.train {
            Some((rate, length)) if packets < length => {
                if packets < length * COMPARABLE {
                    (rate, length)
                } else {
                    (mean(rate, sample.delivered), length)
                }
            }
            _ => (sample.delivered, packets),
        });
    }
}

/// The larger of what arrives and what is delivered: both lag behind a rate that grows fourfold per round trip.
fn best_rate(path: &Path) -> Option<PacketRate> {
    match (path.delivery_rate, measured_rate(path)) {
        (Some(delivered), Some(arrived)) if delivered > arrived => Some(delivered),
        (delivered, arrived) => arrived.or(delivered),
    }
}

fn mean(one: PacketRate, other: PacketRate) -> PacketRate {
    PacketRate::new((one.packets_per_second() + other.packets_per_second()) / 2.0)
}

#[cfg(test)]
mod tests {
    use farhaul_units::Duration;

    use super::*;

    fn path() -> Path {
        Path {
            mss: 1_500,
            in_flight: 10_000,
            rtt: Duration::from_millis(100),
            min_rtt: Some(Duration::from_millis(100)),
            max_window: 262_144,
            ..Path::default()
        }
    }

    fn ack(newly_acked: u32, delivery: Option<(u32, f64, f64)>) -> AckEvent {
        let delivery = delivery.map(|(packets, sent, delivered)| DeliverySample {
            packets,
            sent: PacketRate::new(sent),
            delivered: PacketRate::new(delivered),
        });
        AckEvent { newly_acked, delivery, ..AckEvent::default() }
    }

    #[test]
    fn the_window_grows_fourfold_and_is_not_paced_before_the_capacity_is_known() {
        let (mut start, mut control) = (Start::default(), Control::initial());
        assert_eq!(start.on_ack(&path(), &ack(16, None), &mut control), None);
        assert_eq!(control.cwnd, Some(64.0));
        assert!(control.send_period.is_unpaced());
    }

    #[test]
    fn a_train_sets_the_pace_and_the_end() {
        let (mut start, mut control) = (Start::default(), Control::initial());
        start.on_ack(&path(), &ack(64, Some((64, 1e6, 83_000.0))), &mut control);
        assert!((control.send_period.as_micros() - 1e6 / 166_000.0).abs() < 1e-6);
        // Packets that were sent as slowly as they arrived say nothing.
        start.on_ack(&path(), &ack(64, Some((640, 83_000.0, 80_000.0))), &mut control);
        let end = start.on_ack(&path(), &ack(3_000, None), &mut control);
        assert_eq!(end, Some(PacketRate::new(83_000.0)));
    }

    #[test]
    fn a_longer_train_is_believed_over_a_shorter_one() {
        let mut start = Start::default();
        start.learn(&ack(0, Some((64, 1e6, 60_000.0))).delivery.unwrap());
        start.learn(&ack(0, Some((640, 1e6, 83_000.0))).delivery.unwrap());
        start.learn(&ack(0, Some((64, 1e6, 200_000.0))).delivery.unwrap());
        assert_eq!(start.capacity(), Some(PacketRate::new(83_000.0)));
    }

    #[test]
    fn a_standing_queue_ends_start_up_where_no_train_was_seen() {
        let (mut start, mut control) = (Start::default(), Control::initial());
        let queued = Path { rtt: Duration::from_millis(160), delivery_rate: Some(PacketRate::new(5_000.0)), ..path() };
        assert_eq!(start.on_ack(&queued, &ack(16, None), &mut control), Some(PacketRate::new(5_000.0)));
    }
}
