//! The most that a TCP sender may have in flight: `window = …`, the buffers of both hosts.

use farhaul_units::{Duration, Rate};
use serde::Deserialize;

use crate::scenario::link::{packets_of, products};
use crate::scenario::reader::{Value, Whole};

/// The most packets in flight.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(try_from = "Value")]
pub(crate) enum Window {
    /// A number of packets.
    Packets(u32),
    /// Bandwidth-delay products of the bottleneck and the flow's own RTT.
    Products {
        /// The multiple.
        times: f64,
        /// The least number of packets.
        least: u64,
    },
}

impl Window {
    /// A window that never limits.
    pub(super) const UNLIMITED: Self = Self::Packets(1_000_000);

    /// The window for a bottleneck of `rate`.
    pub(crate) fn packets(self, rate: Option<Rate>, round_trip: Duration) -> u32 {
        match self {
            Self::Packets(packets) => packets,
            Self::Products { times, least } => packets_of(times, rate, round_trip, least),
        }
    }
}

/// `{ limit = "bdp", at_least = 20 }`.
#[derive(Deserialize)]
#[serde(expecting = "{ limit = \"bdp\", at_least = 20 }")]
pub(super) struct WindowKeys {
    limit: Window,
    at_least: Option<Whole<1, { u32::MAX as i64 }>>,
}

impl From<WindowKeys> for Window {
    fn from(WindowKeys { limit, at_least }: WindowKeys) -> Self {
        match (limit, at_least) {
            (Self::Products { times, .. }, Some(Whole(least))) => Self::Products { times, least: least as u64 },
            (limit, _) => limit,
        }
    }
}

impl TryFrom<Value> for Window {
    type Error = String;

    /// `20` (packets), `"bdp"` or `"2bdp"`.
    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::Integer(number) => match u32::try_from(number) {
                Ok(0) | Err(_) => Err(format!("{number} packets are out of range: allowed is 1 to {}", u32::MAX)),
                Ok(packets) => Ok(Self::Packets(packets)),
            },
            Value::Text(text) => match products(&text)? {
                Some(times) => Ok(Self::Products { times, least: 1 }),
                None => Err(format!("'{text}' is not a window: use 20 (packets), \"bdp\" or \"2bdp\"")),
            },
            other => Err(format!("expected a window, found {}: use 20 (packets), \"bdp\" or \"2bdp\"", other.kind())),
        }
    }
}
