//! Single packets, collected at the pace of acknowledgements, so that no burst asks for the interpreter.

use farhaul_cc::DataPacket;
use farhaul_units::{Duration, Instant};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};

use super::path::seconds;

/// Longest time that a packet waits while others leave or arrive: the interval of full acknowledgements.
const PACE: Duration = Duration::from_millis(10);
/// Most packets that wait. It bounds the memory, and is two intervals of acknowledgements at 10 Gbit/s.
const MOST: usize = 16_384;

/// A packet that left or arrived.
#[derive(Clone, Copy)]
struct Seen {
    packet: DataPacket,
    at: Instant,
    /// `None` of arrivals: their packets do not tell.
    retransmission: Option<bool>,
}

/// Packets that wait for a call.
#[derive(Default)]
pub(super) struct Batch {
    seen: Vec<Seen>,
    /// When the first of them was added.
    began: Instant,
    is_due: bool,
}

impl Batch {
    /// Adds a burst. It is `now`, and the packets left or arrived a little earlier.
    pub(super) fn add(&mut self, packets: &[DataPacket], at: Instant, retransmission: Option<bool>, now: Instant) {
        if self.seen.len() >= MOST {
            // The interpreter has ended, so nobody takes them.
            self.seen.clear();
        }
        if self.seen.is_empty() {
            self.began = now;
        }
        self.seen.extend(packets.iter().map(|packet| Seen { packet: *packet, at, retransmission }));
        self.is_due |= self.seen.len() >= MOST || now.saturating_since(self.began) >= PACE;
    }

    /// Whether a call is due for these packets alone.
    pub(super) const fn is_due(&self) -> bool {
        self.is_due
    }

    /// Makes a call due if there are packets.
    pub(super) fn hurry(&mut self) {
        self.is_due = !self.seen.is_empty();
    }

    /// Hands the packets to `view`. Returns whether there are any.
    pub(super) fn hand_over(&mut self, py: Python<'_>, view: &Py<PacketsView>) -> bool {
        self.is_due = false;
        if self.seen.is_empty() {
            return false;
        }
        // Both keep their memory.
        let mut view = view.borrow_mut(py);
        std::mem::swap(&mut view.seen, &mut self.seen);
        self.seen.clear();
        true
    }
}

/// Data packets that left or arrived since the last call, a sequence of `Packet`. The same object in every call.
#[pyclass(module = "farhaul.cc", name = "Packets", sequence)]
#[derive(Default)]
pub(crate) struct PacketsView {
    seen: Vec<Seen>,
}

#[pymethods]
impl PacketsView {
    /// Bytes of their payloads.
    #[getter]
    fn bytes(&self) -> u64 {
        self.seen.iter().map(|seen| u64::from(seen.packet.payload)).sum()
    }

    /// How many of them are retransmissions; `None` of packets that arrived.
    #[getter]
    fn retransmitted(&self) -> Option<usize> {
        let retransmissions = self.seen.iter().map(|seen| seen.retransmission.map(usize::from));
        retransmissions.sum()
    }

    fn __len__(&self) -> usize {
        self.seen.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<PacketView> {
        let count = self.seen.len();
        let place = if index < 0 { count.checked_add_signed(index) } else { Some(index.unsigned_abs()) };
        let seen = place.and_then(|place| self.seen.get(place));
        let seen = seen.ok_or_else(|| PyIndexError::new_err(format!("{index} is none of {count} packets")))?;
        Ok(PacketView(*seen))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let packets = self.seen.iter().map(|seen| Py::new(py, PacketView(*seen))).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, packets)?.try_iter()
    }

    fn __repr__(&self) -> String {
        format!("<farhaul.cc.Packets: {} packets, {} bytes>", self.seen.len(), self.bytes())
    }
}

/// A data packet.
#[pyclass(module = "farhaul.cc", name = "Packet", frozen)]
pub(crate) struct PacketView(Seen);

#[pymethods]
impl PacketView {
    /// Its sequence number.
    #[getter]
    fn seq(&self) -> u32 {
        self.0.packet.seq.value()
    }

    /// Its payload, bytes.
    #[getter]
    fn payload(&self) -> u32 {
        self.0.packet.payload
    }

    /// The number of its message; in a stream, each packet is a message of its own. `None` if the packet does not carry it.
    #[getter]
    fn message(&self) -> Option<u32> {
        self.0.packet.message.map(|message| message.value())
    }

    /// When its burst left, or reached this computer, s of the clock of `Path.now`.
    #[getter]
    fn at(&self) -> f64 {
        seconds(self.0.at)
    }

    /// Whether it was sent before; `None` of a packet that arrived.
    #[getter]
    fn retransmission(&self) -> Option<bool> {
        self.0.retransmission
    }

    fn __repr__(&self) -> String {
        format!("<farhaul.cc.Packet {}: {} bytes>", self.seq(), self.payload())
    }
}
