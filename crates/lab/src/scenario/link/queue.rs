//! The queue before a link, and its drops: `queue = …`.

use farhaul_netem::{CoDelSpec, Discipline, MIN_BDP_QUEUE, QueueSize, RedSpec};
use farhaul_units::{ByteSize, Duration, Rate};

use super::super::reader::{Node, Section, Value};
use super::{LinkSpec, kind_error};
use crate::error::ScenarioError;

/// Bytes of a full packet, which convert a bandwidth-delay product to packets.
const FULL_PACKET: f64 = farhaul_netem::FULL_PACKET as f64;

/// The length of a queue, before the RTT is known.
#[derive(Clone, Copy, Debug, PartialEq)]
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

/// A length, or a table with a kind.
pub(super) fn read(section: &Section<'_>, node: &Node, spec: &mut LinkSpec) -> Result<(), ScenarioError> {
    if !matches!(node.value, Value::Table(_)) {
        spec.limit = limit(&node.value, None)
            .map_err(|what| section.error(node.line, format!("`queue` in {}: {what}", section.name())))?;
        spec.path.discipline = Discipline::DropTail;
        return Ok(());
    }
    let mut table = Section::of(section.file(), format!("`queue` of {}", section.name()), node)?;
    let kind = table.text("kind")?.unwrap_or_else(|| "drop-tail".to_owned());
    let least = table.integer("at_least", 1..=i64::from(u32::MAX))?.map(|packets| packets as u64);
    spec.limit = table.read("limit", |value| limit(value, least))?.unwrap_or(spec.limit);
    spec.product_of = table.some_time("rtt")?;
    spec.path.discipline = match kind.as_str() {
        "drop-tail" => Discipline::DropTail,
        "drop-head" => Discipline::DropHead,
        "red" => Discipline::Red(red(&mut table, spec.path.rate)?),
        "codel" => {
            let default = CoDelSpec::default();
            Discipline::CoDel(CoDelSpec {
                target: table.some_time("target")?.unwrap_or(default.target),
                interval: table.some_time("interval")?.unwrap_or(default.interval),
                ..default
            })
        }
        other => return Err(kind_error(&table, other, &["drop-tail", "drop-head", "red", "codel"])),
    };
    table.finish()
}

/// Thresholds in packets. Absent ones fit the link's rate.
fn red(table: &mut Section<'_>, rate: Option<Rate>) -> Result<RedSpec, ScenarioError> {
    let fitting = rate.map_or_else(RedSpec::default, RedSpec::for_rate);
    let spec = RedSpec {
        min: table.number("min", 0.0..=1e9)?.unwrap_or(fitting.min),
        max: table.number("max", 0.0..=1e9)?.unwrap_or(fitting.max),
        max_probability: table.share("probability")?.unwrap_or(fitting.max_probability),
        weight: table.share("weight")?.unwrap_or(fitting.weight),
        gentle: table.flag("gentle")?.unwrap_or(false),
        in_bytes: table.flag("in_bytes")?.unwrap_or(false),
        ..fitting
    };
    if spec.min >= spec.max {
        let line = table.line_of("min");
        return Err(table.error(line, format!("RED: `min` ({}) must be below `max` ({})", spec.min, spec.max)));
    }
    Ok(spec)
}

/// `100` (packets), `"1MB"`, `"bdp"`, `"2bdp"`.
fn limit(value: &Value, least: Option<u64>) -> Result<Limit, String> {
    let packets = |number: i64| match u32::try_from(number) {
        Ok(0) | Err(_) => Err(format!("{number} packets are out of range: allowed is 1 to {}", u32::MAX)),
        Ok(packets) => Ok(Limit::Fixed(QueueSize::Packets(packets))),
    };
    match value {
        Value::Integer(number) => packets(*number),
        Value::Text(text) => {
            if let Ok(number) = text.parse() {
                return packets(number);
            }
            if let Some(times) = products(text)? {
                return Ok(Limit::Products { times, least: least.unwrap_or(MIN_BDP_QUEUE) });
            }
            match text.parse::<ByteSize>() {
                Ok(ByteSize(0)) => Err("a queue of no bytes lets nothing through".to_owned()),
                Ok(size) => Ok(Limit::Fixed(QueueSize::Bytes(size))),
                Err(_) => {
                    Err(format!("'{text}' is not a length of a queue: use 100 (packets), \"1MB\", \"bdp\" or \"2bdp\""))
                }
            }
        }
        other => {
            Err(format!("expected a length, found {}: use 100 (packets), \"1MB\", \"bdp\" or \"2bdp\"", other.kind()))
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

    fn size(text: &str, least: Option<u64>) -> QueueSize {
        limit(&Value::Text(text.to_owned()), least).unwrap().size(gigabit(), Duration::from_millis(12))
    }

    #[test]
    fn a_queue_is_as_long_as_it_is_said() {
        assert_eq!(size("1000", None), QueueSize::Packets(1_000));
        assert_eq!(size("1MB", None), QueueSize::Bytes(ByteSize(1_000_000)));
        assert_eq!(size("bdp", None), QueueSize::Packets(1_000)); // 1.5 MB
        assert_eq!(size("2bdp", None), QueueSize::Packets(2_000));
        assert_eq!(size("0.001bdp", None), QueueSize::Packets(100));
        assert_eq!(size("0.001bdp", Some(10)), QueueSize::Packets(10));
        for wrong in ["0", "-1", "lots", "0B", "xbdp"] {
            assert!(limit(&Value::Text(wrong.to_owned()), None).is_err(), "{wrong}");
        }
    }
}
