//! Events as controllers see them. Each object is the same in every call, with the values of that call.

use farhaul_cc::{AckEvent, DeliveryEvent, TimeoutEvent};
use farhaul_units::SeqRange;
use pyo3::prelude::*;

use super::path::rate;

/// The peer acknowledged new data in order.
#[pyclass(module = "farhaul.cc", name = "Ack")]
#[derive(Default)]
pub(crate) struct AckView(pub(super) AckEvent);

#[pymethods]
impl AckView {
    /// Everything before this sequence number has arrived.
    #[getter]
    fn seq(&self) -> u32 {
        self.0.seq.value()
    }

    /// Packets newly covered.
    #[getter]
    fn newly_acked(&self) -> u32 {
        self.0.newly_acked
    }

    /// Whether it is light: progress without measurements.
    #[getter]
    fn light(&self) -> bool {
        self.0.light
    }

    /// The RTT sample of this acknowledgement, s.
    #[getter]
    fn rtt(&self) -> Option<f64> {
        self.0.rtt_sample.map(|rtt| rtt.as_secs_f64())
    }

    /// The rate at which the covered packets were sent, packets/s.
    #[getter]
    fn sent_rate(&self) -> Option<f64> {
        rate(self.0.delivery.map(|sample| sample.sent))
    }

    /// The rate at which they were acknowledged, packets/s.
    #[getter]
    fn delivery_rate(&self) -> Option<f64> {
        rate(self.0.delivery.map(|sample| sample.delivered))
    }

    fn __repr__(&self) -> String {
        format!("<farhaul.cc.Ack: {} packets, up to {}>", self.0.newly_acked, self.seq())
    }
}

/// Packets are known to have arrived, in order or not.
#[pyclass(module = "farhaul.cc", name = "Delivery")]
#[derive(Default)]
pub(crate) struct DeliveryView(pub(super) DeliveryEvent);

#[pymethods]
impl DeliveryView {
    /// Packets newly known to have arrived.
    #[getter]
    fn newly_delivered(&self) -> f64 {
        self.0.newly_delivered
    }

    /// Packets known to have arrived so far.
    #[getter]
    fn delivered(&self) -> f64 {
        self.0.delivered
    }

    /// RTT of the packet that left last among them, s.
    #[getter]
    fn rtt(&self) -> Option<f64> {
        self.0.rtt.map(|rtt| rtt.as_secs_f64())
    }

    /// Delivery rate since that packet left, packets/s.
    #[getter]
    fn rate(&self) -> Option<f64> {
        rate(self.0.sample.and_then(|sample| sample.rate))
    }

    /// Whether the window has held packets back since the last such event.
    #[getter]
    fn window_limited(&self) -> bool {
        self.0.window_limited
    }

    fn __repr__(&self) -> String {
        format!("<farhaul.cc.Delivery: {} packets>", self.0.newly_delivered)
    }
}

/// The peer reported losses.
#[pyclass(module = "farhaul.cc", name = "Loss")]
#[derive(Default)]
pub(crate) struct LossView {
    pub(super) ranges: Vec<SeqRange>,
    pub(super) newly_lost: u32,
    pub(super) largest_sent: u32,
}

#[pymethods]
impl LossView {
    /// Packets reported for the first time, or lost once more. Zero if the report repeats earlier ones.
    #[getter]
    fn newly_lost(&self) -> u32 {
        self.newly_lost
    }

    /// The sequence number of the last packet sent so far.
    #[getter]
    fn largest_sent(&self) -> u32 {
        self.largest_sent
    }

    /// The reported packets: pairs of the first and the last sequence number.
    #[getter]
    fn ranges(&self) -> Vec<(u32, u32)> {
        self.ranges.iter().map(|range| (range.first.value(), range.last.value())).collect()
    }

    fn __repr__(&self) -> String {
        format!("<farhaul.cc.Loss: {} packets>", self.newly_lost)
    }
}

/// Nothing came from the peer for the expiration time while data was unacknowledged.
#[pyclass(module = "farhaul.cc", name = "Timeout")]
#[derive(Default)]
pub(crate) struct TimeoutView(pub(super) TimeoutEvent);

#[pymethods]
impl TimeoutView {
    /// How many have come in a row, with this one.
    #[getter]
    fn count(&self) -> u32 {
        self.0.count
    }

    /// The sequence number of the last packet sent so far.
    #[getter]
    fn largest_sent(&self) -> u32 {
        self.0.largest_sent.value()
    }

    fn __repr__(&self) -> String {
        format!("<farhaul.cc.Timeout: {} in a row>", self.0.count)
    }
}
