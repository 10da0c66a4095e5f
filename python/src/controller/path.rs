//! What a controller reads of its connection.

use farhaul_cc::Path;
use farhaul_units::{Duration, Instant, PacketRate};
use pyo3::prelude::*;

/// The measurements of a connection. The same object in every call, with the values of that call.
#[pyclass(module = "farhaul.cc", name = "NetworkPath")]
pub(crate) struct PathView {
    pub(super) path: Path,
    seed: u64,
}

impl PathView {
    pub(super) fn new(seed: u64) -> Self {
        Self { path: Path::default(), seed }
    }
}

/// Seconds of a clock that begins somewhere.
pub(super) fn seconds(at: Instant) -> f64 {
    at.saturating_since(Instant::ZERO).as_secs_f64()
}

fn time(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}

pub(super) fn rate(rate: Option<PacketRate>) -> Option<f64> {
    rate.map(PacketRate::packets_per_second)
}

#[pymethods]
impl PathView {
    /// Time of the event, s.
    #[getter]
    fn now(&self) -> f64 {
        seconds(self.path.now)
    }

    /// Packet size on the wire with all headers, bytes.
    #[getter]
    fn mss(&self) -> u32 {
        self.path.mss
    }

    /// Smoothed RTT, s.
    #[getter]
    fn rtt(&self) -> f64 {
        self.path.rtt.as_secs_f64()
    }

    /// Mean deviation of the RTT, s.
    #[getter]
    fn rtt_var(&self) -> f64 {
        self.path.rtt_var.as_secs_f64()
    }

    /// Minimum RTT of the last ten to twenty seconds, s.
    #[getter]
    fn min_rtt(&self) -> Option<f64> {
        time(self.path.min_rtt)
    }

    /// Latest RTT sample, s.
    #[getter]
    fn latest_rtt(&self) -> Option<f64> {
        time(self.path.latest_rtt)
    }

    /// Arrival rate that the receiver reports, packets/s.
    #[getter]
    fn arrival_rate(&self) -> Option<f64> {
        rate(self.path.arrival_rate)
    }

    /// Capacity by the receiver's probe pairs, packets/s.
    #[getter]
    fn capacity(&self) -> Option<f64> {
        rate(self.path.capacity)
    }

    /// Delivery rate that this side sees in acknowledgements, packets/s.
    #[getter]
    fn delivery_rate(&self) -> Option<f64> {
        rate(self.path.delivery_rate)
    }

    /// Packets sent and not acknowledged.
    #[getter]
    fn in_flight(&self) -> u32 {
        self.path.in_flight
    }

    /// Packets in flight that neither arrived nor are known to be lost.
    #[getter]
    fn outstanding(&self) -> f64 {
        self.path.outstanding
    }

    /// The receiver's free buffer, packets.
    #[getter]
    fn flow_window(&self) -> u32 {
        self.path.flow_window
    }

    /// The largest flow window so far, packets.
    #[getter]
    fn max_window(&self) -> u32 {
        self.path.max_window
    }

    /// Sequence number of the next new packet.
    #[getter]
    fn next_seq(&self) -> u32 {
        self.path.next_seq.value()
    }

    /// Packets sent so far, retransmissions included.
    #[getter]
    fn packets_sent(&self) -> u64 {
        self.path.packets_sent
    }

    /// Whether the sender had nothing to send although it was permitted to.
    #[getter]
    fn application_limited(&self) -> bool {
        self.path.application_limited
    }

    /// Seed for random draws. A simulation with the same seed gives every connection the same one again.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    fn __repr__(&self) -> String {
        let Path { rtt, in_flight, .. } = self.path;
        format!("<farhaul.cc.Path: {:.6} s, RTT {:.6} s, {in_flight} packets in flight>", self.now(), rtt.as_secs_f64())
    }
}
