//! What a controller sets.

use farhaul_cc::{Control, CustomMessage};
use farhaul_units::{Duration, Instant, PacketRate, SendPeriod};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;

use super::path::seconds;

/// Longest time that a setting may have, s. A connection that waits longer is given up before it sends again.
const LONGEST: f64 = 60.0;
/// Messages that may wait for the end of a call. The oldest are dropped.
const MESSAGES: usize = 64;

/// The settings of a connection that belong to its controller. The same object in every call.
///
/// A value that no connection can use raises `ValueError` where it is set.
#[pyclass(module = "farhaul.cc", name = "Control")]
pub(crate) struct ControlView {
    pub(super) control: Control,
    pub(super) now: Instant,
    pub(super) messages: Vec<CustomMessage>,
}

impl ControlView {
    pub(super) fn new() -> Self {
        Self { control: Control::initial(), now: Instant::ZERO, messages: Vec::new() }
    }
}

fn wrong(setting: &str, value: f64, usable: &str) -> PyErr {
    PyValueError::new_err(format!("control.{setting} = {value}: usable is {usable}"))
}

fn duration(setting: &str, seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(value) = seconds else { return Ok(None) };
    let usable = value > 0.0 && value <= LONGEST;
    let time = Duration::try_from_secs_f64(value).ok().filter(|time| usable && !time.is_zero());
    time.map(Some).ok_or_else(|| wrong(setting, value, "None, or a time above zero and up to 60 s"))
}

fn packets(setting: &str, packets: Option<u32>) -> PyResult<Option<u32>> {
    match packets {
        Some(0) => Err(wrong(setting, 0.0, "None, or at least one packet")),
        packets => Ok(packets),
    }
}

#[pymethods]
impl ControlView {
    /// Congestion window, packets. `None`: no window, so that only the receiver's limits.
    #[getter]
    fn cwnd(&self) -> Option<f64> {
        self.control.cwnd
    }

    #[setter]
    fn set_cwnd(&mut self, cwnd: Option<f64>) -> PyResult<()> {
        if let Some(value) = cwnd.filter(|value| !(value.is_finite() && *value > 0.0)) {
            return Err(wrong("cwnd", value, "None, or a number of packets above zero"));
        }
        self.control.cwnd = cwnd;
        Ok(())
    }

    /// Time from one packet to the next, s. `None`: packets leave as the window permits.
    #[getter]
    fn send_period(&self) -> Option<f64> {
        let period = self.control.send_period;
        (!period.is_unpaced()).then(|| period.as_micros() / 1e6)
    }

    #[setter]
    fn set_send_period(&mut self, seconds: Option<f64>) -> PyResult<()> {
        if let Some(value) = seconds.filter(|value| !(*value > 0.0 && *value <= LONGEST)) {
            return Err(wrong("send_period", value, "None, or a time above zero and up to 60 s"));
        }
        self.control.send_period = seconds.map_or(SendPeriod::UNPACED, |value| SendPeriod::from_micros(value * 1e6));
        Ok(())
    }

    /// The same as a rate, packets/s.
    #[getter]
    fn packet_rate(&self) -> Option<f64> {
        self.control.send_period.packet_rate().map(PacketRate::packets_per_second)
    }

    #[setter]
    fn set_packet_rate(&mut self, rate: Option<f64>) -> PyResult<()> {
        if let Some(value) = rate.filter(|value| !(value.is_finite() && *value >= 1.0 / LONGEST)) {
            return Err(wrong("packet_rate", value, "None, or a number of packets per second from 1/60 on"));
        }
        self.control.send_period = rate.map_or(SendPeriod::UNPACED, |value| SendPeriod::from_micros(1e6 / value));
        Ok(())
    }

    /// Whether the window limits packets that neither arrived nor are known to be lost. Otherwise it limits all behind the first gap.
    #[getter]
    fn window_of_outstanding(&self) -> bool {
        self.control.window_of_outstanding
    }

    #[setter]
    fn set_window_of_outstanding(&mut self, value: bool) {
        self.control.window_of_outstanding = value;
    }

    /// No data packet leaves before this time of `Path.now`, s.
    #[getter]
    fn freeze_until(&self) -> Option<f64> {
        self.control.freeze_until.map(seconds)
    }

    #[setter]
    fn set_freeze_until(&mut self, at: Option<f64>) -> PyResult<()> {
        let Some(value) = at else {
            self.control.freeze_until = None;
            return Ok(());
        };
        let until = Duration::try_from_secs_f64(value).ok().map(|time| Instant::ZERO + time);
        let until = until.filter(|until| until.saturating_since(self.now).as_secs_f64() <= LONGEST);
        let usable = "None, or a time of path.now up to 60 s ahead";
        self.control.freeze_until = Some(until.ok_or_else(|| wrong("freeze_until", value, usable))?);
        Ok(())
    }

    /// Most packets that leave together.
    #[getter]
    fn burst(&self) -> Option<u32> {
        self.control.burst
    }

    #[setter]
    fn set_burst(&mut self, value: Option<u32>) -> PyResult<()> {
        self.control.burst = packets("burst", value)?;
        Ok(())
    }

    /// Longest time between full acknowledgements, s; at most 0.01.
    #[getter]
    fn ack_period(&self) -> Option<f64> {
        self.control.ack_period.map(|period| period.as_secs_f64())
    }

    #[setter]
    fn set_ack_period(&mut self, seconds: Option<f64>) -> PyResult<()> {
        self.control.ack_period = duration("ack_period", seconds)?;
        Ok(())
    }

    /// A light acknowledgement after so many data packets, in place of 64.
    #[getter]
    fn ack_interval(&self) -> Option<u32> {
        self.control.ack_interval
    }

    #[setter]
    fn set_ack_interval(&mut self, value: Option<u32>) -> PyResult<()> {
        self.control.ack_interval = packets("ack_interval", value)?;
        Ok(())
    }

    /// An acknowledgement after so many data packets, beside those by time.
    #[getter]
    fn full_ack_interval(&self) -> Option<u32> {
        self.control.full_ack_interval
    }

    #[setter]
    fn set_full_ack_interval(&mut self, value: Option<u32>) -> PyResult<()> {
        self.control.full_ack_interval = packets("full_ack_interval", value)?;
        Ok(())
    }

    /// Replaces the expiration time, s.
    #[getter]
    fn rto(&self) -> Option<f64> {
        self.control.rto.map(|rto| rto.as_secs_f64())
    }

    #[setter]
    fn set_rto(&mut self, seconds: Option<f64>) -> PyResult<()> {
        self.control.rto = duration("rto", seconds)?;
        Ok(())
    }

    /// Sends a packet to the controller of the peer, which may be lost. Only for controllers with `on_custom_message`.
    fn send_message(&mut self, kind: u16, body: &[u8]) -> PyResult<()> {
        if body.len() > 1_400 {
            return Err(PyOverflowError::new_err(format!(
                "a message of {} bytes does not fit into a packet",
                body.len()
            )));
        }
        if self.messages.len() == MESSAGES {
            self.messages.remove(0);
        }
        self.messages.push(CustomMessage { kind, body: body.to_vec() });
        Ok(())
    }

    fn __repr__(&self) -> String {
        let cwnd = self.control.cwnd.map_or_else(|| "no".to_owned(), |cwnd| format!("{cwnd:.1}"));
        format!("<farhaul.cc.Control: window {cwnd} packets, period {:.3} us>", self.control.send_period.as_micros())
    }
}
