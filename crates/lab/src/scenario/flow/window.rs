//! The most that a TCP sender may have in flight: `window = …`, the buffers of both hosts.

use farhaul_units::{Duration, Rate};

use crate::error::ScenarioError;
use crate::scenario::link::{packets_of, products};
use crate::scenario::reader::{Section, Value};

/// A window that never limits, in packets.
const UNLIMITED: u32 = 1_000_000;

/// The most packets in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// The window for a bottleneck of `rate`.
    pub(crate) fn packets(self, rate: Option<Rate>, round_trip: Duration) -> u32 {
        match self {
            Self::Packets(packets) => packets,
            Self::Products { times, least } => packets_of(times, rate, round_trip, least),
        }
    }
}

/// `20` (packets), `"bdp"`, `"2bdp"`, or `{ limit = "bdp", at_least = 20 }`.
pub(super) fn read(section: &mut Section<'_>) -> Result<Window, ScenarioError> {
    let Some(node) = section.get("window") else { return Ok(Window::Packets(UNLIMITED)) };
    if !matches!(node.value, Value::Table(_)) {
        let wrong = |what| section.error(node.line, format!("`window` in {}: {what}", section.name()));
        return limit(&node.value, 1).map_err(wrong);
    }
    let mut table = Section::of(section.file(), format!("`window` of {}", section.name()), node)?;
    let least = table.integer("at_least", 1..=i64::from(u32::MAX))?.map_or(1, |packets| packets as u64);
    let window = table.read("limit", |value| limit(value, least))?;
    let missing = || table.error(node.line, "`window` needs `limit`, as in { limit = \"bdp\", at_least = 20 }");
    let window = window.ok_or_else(missing)?;
    table.finish()?;
    Ok(window)
}

/// A window without a table, as a number or as text.
fn limit(value: &Value, least: u64) -> Result<Window, String> {
    match value {
        Value::Integer(number) => match u32::try_from(*number) {
            Ok(0) | Err(_) => Err(format!("{number} packets are out of range: allowed is 1 to {}", u32::MAX)),
            Ok(packets) => Ok(Window::Packets(packets)),
        },
        Value::Text(text) => match products(text)? {
            Some(times) => Ok(Window::Products { times, least }),
            None => Err(format!("'{text}' is not a window: use 20 (packets), \"bdp\" or \"2bdp\"")),
        },
        other => Err(format!("expected a window, found {}: use 20 (packets), \"bdp\" or \"2bdp\"", other.kind())),
    }
}
