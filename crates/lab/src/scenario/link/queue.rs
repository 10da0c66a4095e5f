//! The queue before a link, and its drops: `queue = …`.

use farhaul_netem::{CoDelSpec, Discipline, MIN_BDP_QUEUE, QueueSize, RedSpec};
use farhaul_units::{ByteSize, Duration, Rate};
use serde::Deserialize;

use super::super::reader::{AboveZero, Number, Section, Share, Value, Whole};
use super::LinkSpec;
use crate::error::ScenarioError;

/// Bytes of a full packet, which convert a bandwidth-delay product to packets.
const FULL_PACKET: f64 = farhaul_netem::FULL_PACKET as f64;

/// The greatest threshold of RED, in packets.
const MAX_THRESHOLD: i64 = 1_000_000_000;
/// The forms of a length, for messages.
const LENGTHS: &str = "100 (packets), \"1MB\", \"bdp\" or \"2bdp\"";

/// The length of a queue, before the RTT is known.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(try_from = "Value")]
pub(crate) enum Limit {
    /// Packets or bytes.
    Fixed(QueueSize),
    /// Bandwidth-delay products.
    Products {
        /// The multiple.
        times: f64,
        /// The least number of packets.
        least: u64,
    },
}

impl Limit {
    /// The limit for a link of `rate` and flows whose longest RTT is this.
    pub(crate) fn size(self, rate: Option<Rate>, round_trip: Duration) -> QueueSize {
        match self {
            Self::Fixed(size) => size,
            Self::Products { times, least } => QueueSize::Packets(packets_of(times, rate, round_trip, least)),
        }
    }
}

/// Bandwidth-delay products in full packets, rounded up, with a least number.
pub(crate) fn packets_of(times: f64, rate: Option<Rate>, round_trip: Duration, least: u64) -> u32 {
    let product = rate.map_or(0, |rate| rate.bytes_in(round_trip)) as f64 * times;
    u32::try_from(((product / FULL_PACKET).ceil() as u64).max(least)).unwrap_or(u32::MAX)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum QueueKind {
    #[default]
    DropTail,
    DropHead,
    Red,
    Codel,
}

/// A table with a kind.
pub(super) fn read(mut table: Section<'_>, spec: &mut LinkSpec) -> Result<(), ScenarioError> {
    let kind = table.value("kind")?.unwrap_or_default();
    let at_least = table.value("at_least")?;
    spec.limit = match (table.value("limit")?, at_least) {
        (Some(Limit::Products { times, .. }), Some(Whole::<1, { u32::MAX as i64 }>(least))) => {
            Limit::Products { times, least: least as u64 }
        }
        (limit, _) => limit.unwrap_or(spec.limit),
    };
    spec.product_of = table.value("rtt")?.map(|AboveZero(time)| time);
    spec.path.discipline = match kind {
        QueueKind::DropTail => Discipline::DropTail,
        QueueKind::DropHead => Discipline::DropHead,
        QueueKind::Red => Discipline::Red(red(&mut table, spec.path.rate)?),
        QueueKind::Codel => {
            let default = CoDelSpec::default();
            Discipline::CoDel(CoDelSpec {
                target: table.value("target")?.map_or(default.target, |AboveZero(time)| time),
                interval: table.value("interval")?.map_or(default.interval, |AboveZero(time)| time),
                ..default
            })
        }
    };
    table.finish()
}

/// Thresholds in packets. Absent ones fit the link's rate.
fn red(table: &mut Section<'_>, rate: Option<Rate>) -> Result<RedSpec, ScenarioError> {
    let fitting = rate.map_or_else(RedSpec::default, RedSpec::for_rate);
    let spec = RedSpec {
        min: table.value("min")?.map_or(fitting.min, |Number::<0, MAX_THRESHOLD>(packets)| packets),
        max: table.value("max")?.map_or(fitting.max, |Number::<0, MAX_THRESHOLD>(packets)| packets),
        max_probability: table.value("probability")?.map_or(fitting.max_probability, |Share(share)| share),
        weight: table.value("weight")?.map_or(fitting.weight, |Share(share)| share),
        gentle: table.value("gentle")?.unwrap_or_default(),
        in_bytes: table.value("in_bytes")?.unwrap_or_default(),
        ..fitting
    };
    if spec.min >= spec.max {
        let message = format!("RED: `min` ({}) must be below `max` ({})", spec.min, spec.max);
        return Err(table.source().error_on(table.line_of("min"), message));
    }
    Ok(spec)
}

impl TryFrom<Value> for Limit {
    type Error = String;

    /// `100` (packets), `"1MB"`, `"bdp"`, `"2bdp"`.
    fn try_from(value: Value) -> Result<Self, String> {
        let packets = |number: i64| match u32::try_from(number) {
            Ok(0) | Err(_) => Err(format!("{number} packets are out of range: allowed is 1 to {}", u32::MAX)),
            Ok(packets) => Ok(Self::Fixed(QueueSize::Packets(packets))),
        };
        let text = match value {
            Value::Integer(number) => return packets(number),
            Value::Text(text) => text,
            other => return Err(format!("expected a length, found {}: use {LENGTHS}", other.kind())),
        };
        if let Ok(number) = text.parse() {
            return packets(number);
        }
        if let Some(times) = products(&text)? {
            return Ok(Self::Products { times, least: MIN_BDP_QUEUE });
        }
        match text.parse::<ByteSize>() {
            Ok(ByteSize(0)) => Err("a queue of no bytes lets nothing through".to_owned()),
            Ok(size) => Ok(Self::Fixed(QueueSize::Bytes(size))),
            Err(_) => Err(format!("'{text}' is not a length of a queue: use {LENGTHS}")),
        }
    }
}

/// The multiple of a bandwidth-delay product: `"bdp"` or `"2bdp"`. `None` for other text.
pub(crate) fn products(text: &str) -> Result<Option<f64>, String> {
    let Some(times) = text.strip_suffix("bdp") else { return Ok(None) };
    let times = if times.is_empty() { Ok(1.0) } else { times.trim().parse::<f64>() };
    let times = times.ok().filter(|times| (0.0..=1e6).contains(times));
    times.map(Some).ok_or_else(|| format!("'{text}' is not a multiple of a bandwidth-delay product"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gigabit() -> Option<Rate> {
        Some(Rate::from_megabits_per_second(1_000))
    }

    fn size(text: &str) -> QueueSize {
        Limit::try_from(Value::Text(text.to_owned())).unwrap().size(gigabit(), Duration::from_millis(12))
    }

    #[test]
    fn a_queue_is_as_long_as_it_is_said() {
        assert_eq!(size("1000"), QueueSize::Packets(1_000));
        assert_eq!(size("1MB"), QueueSize::Bytes(ByteSize(1_000_000)));
        assert_eq!(size("bdp"), QueueSize::Packets(1_000)); // 1.5 MB
        assert_eq!(size("2bdp"), QueueSize::Packets(2_000));
        assert_eq!(size("0.001bdp"), QueueSize::Packets(100));
        let few = Limit::Products { times: 0.001, least: 10 };
        assert_eq!(few.size(gigabit(), Duration::from_millis(12)), QueueSize::Packets(10));
        for wrong in ["0", "-1", "lots", "0B", "xbdp"] {
            assert!(Limit::try_from(Value::Text(wrong.to_owned())).is_err(), "{wrong}");
        }
    }
}
