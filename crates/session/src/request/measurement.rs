//! The parameters of a measurement, and how a request carries them.

use farhaul_units::Duration;

use crate::field::{Fields, Malformed, numbered};

/// The parameters of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchSpec {
    /// The sending side.
    pub direction: Direction,
    /// The end of the measurement.
    pub stop: Stop,
}

/// The direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the connecting to the accepting side.
    Forward = 0,
    /// From the accepting to the connecting side (`--reverse`).
    Reverse = 1,
}

/// When a measurement ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After this time, counted by the sender from its first byte. A frame in progress is completed.
    After(Duration),
    /// After this many bytes.
    Bytes(u64),
}

impl BenchSpec {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.push(self.direction as u8);
        let (unit, amount) = match self.stop {
            Stop::After(duration) => (0, u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)),
            Stop::Bytes(bytes) => (1, bytes),
        };
        out.push(unit);
        out.extend_from_slice(&amount.to_be_bytes());
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body);
        let direction = numbered(&[Direction::Forward, Direction::Reverse], fields.u8()?, "direction")?;
        let unit = fields.u8()?;
        let amount = fields.u64()?;
        let stop = match unit {
            0 => Stop::After(Duration::from_nanos(amount)),
            1 => Stop::Bytes(amount),
            _ => return Err(Malformed::Value("unit")),
        };
        Ok(Self { direction, stop })
    }
}
