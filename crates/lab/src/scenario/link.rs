//! One link: what `[link]`, `[[links]]` and `[access]` say about it.

use farhaul_netem::{JitterSpec, LossSpec, MIN_BDP_QUEUE, PathSpec, QueueSize, ReorderSpec};
use farhaul_units::{ByteSize, Duration, Rate};

use super::reader::{self, Node, Section, Value};
use crate::error::ScenarioError;

/// Bytes of a full packet, by which a bandwidth-delay product becomes packets.
const FULL_PACKET: u64 = farhaul_netem::FULL_PACKET as u64;

/// How much may wait before a link, before the round trip is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    /// Packets or bytes.
    Fixed(QueueSize),
    /// Bandwidth-delay products, and how many packets at least.
    Products {
        /// How many.
        times: f64,
        /// At least so many packets.
        least: u64,
    },
}

impl Limit {
    /// The limit before a link of `rate` for flows whose longest round trip is this.
    pub(crate) fn size(self, rate: Option<Rate>, round_trip: Duration) -> QueueSize {
        match self {
            Self::Fixed(size) => size,
            Self::Products { times, least } => {
                let product = rate.map_or(0, |rate| rate.bytes_in(round_trip)) as f64 * times;
                let packets = (product / FULL_PACKET as f64).ceil() as u64;
                QueueSize::Packets(u32::try_from(packets.max(least)).unwrap_or(u32::MAX))
            }
        }
    }
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkSpec {
    /// Everything but the queue's length.
    pub(crate) path: PathSpec,
    /// The queue's length.
    pub(crate) limit: Limit,
    /// The round trip that a queue given in bandwidth-delay products is meant for, if it is said.
    pub(crate) product_of: Option<Duration>,
}

impl LinkSpec {
    /// A link as described, for a queue of flows whose longest round trip is this.
    pub(crate) fn path(&self, round_trip: Duration) -> PathSpec {
        let queue = self.limit.size(self.path.rate, self.product_of.unwrap_or(round_trip));
        PathSpec { queue, ..self.path.clone() }
    }

    /// Reads the keys that all links have; what is not given is as in `base`.
    pub(crate) fn read(section: &mut Section<'_>, base: &Self) -> Result<Self, ScenarioError> {
        let mut spec = base.clone();
        let path = &mut spec.path;
        if let Some(rate) = section.rate("rate")? {
            path.rate = Some(rate);
        }
        if let Some(delay) = section.time("delay")? {
            path.delay = delay;
        }
        if let Some(loss) = section.get("loss") {
            path.loss = self::loss(section, loss)?;
        }
        if let Some(max) = section.time("jitter")? {
            path.jitter = (max > Duration::ZERO).then(|| JitterSpec::up_to(max));
        }
        if let Some(node) = section.get("reorder") {
            path.reorder = reorder(section, node)?;
        }
        if let Some(share) = section.share("duplicate")? {
            path.duplicate = share;
        }
        if let Some(share) = section.share("corrupt")? {
            path.corrupt = share;
        }
        if let Some(node) = section.get("queue") {
            queue(section, node, &mut spec)?;
        }
        Ok(spec)
    }
}

impl Default for LinkSpec {
    /// A perfect link, before which one bandwidth-delay product may wait once it has a rate.
    fn default() -> Self {
        Self {
            path: PathSpec::default(),
            limit: Limit::Products { times: 1.0, least: MIN_BDP_QUEUE },
            product_of: None,
        }
    }
}

/// `1e-4`, `"0.1%"` or a table that says of which kind.
fn loss(section: &Section<'_>, node: &Node) -> Result<Option<LossSpec>, ScenarioError> {
    if !matches!(node.value, Value::Table(_)) {
        let share = reader::share(&node.value)
            .map_err(|what| section.error(node.line, format!("`loss` in {}: {what}", section.name())))?;
        return Ok((share > 0.0).then_some(LossSpec::Bernoulli(share)));
    }
    let mut table = Section::of(section.file(), format!("`loss` of {}", section.name()), node)?;
    let kind = table.required_text("kind")?;
    let spec = match kind.as_str() {
        "bernoulli" => {
            let line = table.line();
            table.share("rate")?.map(LossSpec::Bernoulli).ok_or_else(|| table.error(line, "this loss needs `rate`"))?
        }
        "pattern" => {
            let line = table.line_of("packets");
            let text = table.required_text("packets")?;
            LossSpec::Pattern(text.parse().map_err(|wrong| table.error(line, format!("`packets`: {wrong}")))?)
        }
        other => return Err(kind_error(&table, other, &["bernoulli", "pattern"])),
    };
    table.finish()?;
    Ok(Some(spec))
}

/// A share, or `{ share = "1%", by = "5ms" }`.
fn reorder(section: &Section<'_>, node: &Node) -> Result<Option<ReorderSpec>, ScenarioError> {
    let mut table = Section::of(section.file(), format!("`reorder` of {}", section.name()), node)?;
    let (share, by) = (table.share("share")?, table.some_time("by")?);
    table.finish()?;
    let (Some(probability), Some(extra_delay)) = (share, by) else {
        return Err(
            section.error(node.line, "`reorder` needs `share` and `by`, as in { share = \"1%\", by = \"5ms\" }")
        );
    };
    Ok((probability > 0.0).then_some(ReorderSpec { probability, extra_delay }))
}

/// A length, or a table that says of which kind.
fn queue(section: &Section<'_>, node: &Node, spec: &mut LinkSpec) -> Result<(), ScenarioError> {
    if !matches!(node.value, Value::Table(_)) {
        spec.limit = limit(&node.value, None)
            .map_err(|what| section.error(node.line, format!("`queue` in {}: {what}", section.name())))?;
        return Ok(());
    }
    let mut table = Section::of(section.file(), format!("`queue` of {}", section.name()), node)?;
    let kind = table.text("kind")?.unwrap_or_else(|| "drop-tail".to_owned());
    let least = table.integer("min", 1..=i64::from(u32::MAX))?.map(|packets| packets as u64);
    spec.limit = table.read("limit", |value| limit(value, least))?.unwrap_or(spec.limit);
    spec.product_of = table.some_time("rtt")?;
    match kind.as_str() {
        "drop-tail" => {}
        other => return Err(kind_error(&table, other, &["drop-tail"])),
    }
    table.finish()
}

fn kind_error(table: &Section<'_>, kind: &str, allowed: &[&str]) -> ScenarioError {
    let line = table.line_of("kind");
    table.error(line, format!("{}: no kind is called '{kind}', there are {}", table.name(), reader::listed(allowed)))
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
            if let Some(times) = text.strip_suffix("bdp") {
                let times = if times.is_empty() { Ok(1.0) } else { times.trim().parse::<f64>() };
                let times = times.ok().filter(|times| (0.0..=1e6).contains(times));
                let times = times.ok_or_else(|| format!("'{text}' is no multiple of a bandwidth-delay product"))?;
                return Ok(Limit::Products { times, least: least.unwrap_or(MIN_BDP_QUEUE) });
            }
            match text.parse::<ByteSize>() {
                Ok(ByteSize(0)) => Err("a queue of no bytes lets nothing through".to_owned()),
                Ok(size) => Ok(Limit::Fixed(QueueSize::Bytes(size))),
                Err(_) => {
                    Err(format!("'{text}' is no length of a queue: 100 (packets), \"1MB\", \"bdp\" and \"2bdp\" are"))
                }
            }
        }
        other => Err(format!("a length is wanted, not {}: 100 (packets), \"1MB\", \"bdp\", \"2bdp\"", other.kind())),
    }
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
