//! One flow: the keys of `[[flow]]`.

use farhaul_cc::{Spec, SpecError};
use farhaul_proto::registry::protocols;
use farhaul_sim::agent::disk::DiskSpec;
use farhaul_sim::agent::tcp::Recovery;
use farhaul_units::{Duration, Rate};

use super::reader::{Section, Value, listed, text};
use crate::error::ScenarioError;
use crate::metric::RunMetric;

mod host;
mod measured;
mod window;

pub(crate) use host::Host;
pub(crate) use measured::{Measured, Point, check_beside};
pub(crate) use window::Window;

/// The most flows of a scenario, which some hours can simulate.
const MAX_FLOWS: i64 = 10_000;
/// The most transfers of a flow, for the same reason.
const MAX_TRANSFERS: i64 = 1_000_000;
/// The word for no disk and no costs of a host.
const NONE: &str = "none";
/// The rule for lists of transfers, in messages.
const LISTS: &str = "`concurrent` of them run at a time, until all are done";
/// Bytes of a packet on the wire: the least that UDT accepts, and the most of an IP packet.
const PACKET_SIZES: std::ops::RangeInclusive<i64> = 576..=65_535;
/// Bytes of a packet on the wire: the MTU of the papers.
const PACKET: u32 = 1_500;

/// A flow, or several of the same kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlowSpec {
    /// The name in records and plots.
    pub(crate) name: String,
    /// The name of all flows of this kind: `name` of the scenario.
    pub(crate) group: String,
    pub(crate) protocol: Protocol,
    pub(crate) start: Duration,
    /// The longest random delay of the start. The seed decides it.
    pub(crate) spread: Duration,
    /// The end, finished or not; `None` for the end of the run.
    pub(crate) stop: Option<Duration>,
    /// The size of the transfer in bytes; `None` for an endless one.
    pub(crate) bytes: Option<u64>,
    /// The number of transfers of the group, one after the other in each flow; `None` for one transfer per flow.
    pub(crate) transfers: Option<u32>,
    /// The flow's own RTT; `None` for the link's.
    pub(crate) round_trip: Option<Duration>,
    /// The flow's hosts, where nodes have names.
    pub(crate) ends: Option<(String, String)>,
    /// Bytes of a full packet on the wire.
    pub(crate) packet: u32,
    /// Its sending and its receiving host; `None` for hosts that cost nothing and are never late.
    pub(crate) hosts: [Option<Host>; 2],
    /// The bulk flow whose endpoint sends this stream; `None` for an endpoint of its own.
    pub(crate) beside: Option<String>,
    /// The line in the scenario.
    pub(crate) line: usize,
}

/// The sender's protocol.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Protocol {
    /// A protocol of the registry.
    Bulk(Bulk),
    /// TCP.
    Tcp(Tcp),
    /// The reference library in its own program, in the emulated world only.
    Libudt,
    /// Cross traffic: packets without any answer.
    Cross(Rate, Pattern),
    /// A measured stream: datagrams that a responder counts.
    Measured(Measured),
}

impl Tcp {
    /// The controller of the window.
    pub(crate) fn window_law(&self) -> Spec {
        let law = match (self.cubic, self.recovery) {
            (true, _) => "cubic",
            (false, Recovery::Tahoe) => "tahoe",
            (false, _) => "reno",
        };
        law.parse().expect("all are in the registry of controllers")
    }
}

impl Protocol {
    /// Whether it is cross traffic, which fairness leaves out.
    pub(crate) fn is_cross_traffic(&self) -> bool {
        matches!(self, Self::Cross(..))
    }
}

/// Both sides of a connection of a protocol of the registry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bulk {
    pub(crate) protocol: farhaul_proto::Protocol,
    /// `None` if the protocol's own rules govern the rate.
    pub(crate) controller: Option<Spec>,
    /// The packets beyond a gap before the gap is a loss.
    pub(crate) reorder_tolerance: u32,
    /// The longest time that one burst stands for; `None` for the default.
    pub(crate) burst_time: Option<Duration>,
    /// The disk that the sender reads from.
    pub(crate) disk: Option<DiskSpec>,
    /// The protocol's fixed rate as a share of the bottleneck's, until [`FlowSpec::settle`].
    share: Option<f64>,
}

/// A TCP sender and its receiver.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tcp {
    /// The loss recovery.
    pub(crate) recovery: Recovery,
    /// Whether the window is CUBIC's.
    pub(crate) cubic: bool,
    /// The most packets in flight. A bandwidth-delay product is that of the bottleneck and the flow's own RTT.
    pub(crate) window: Window,
    /// Whether the receiver acknowledges every other packet.
    pub(crate) delayed_ack: bool,
    /// The shortest retransmission time-out; `None` for that of RFC 6298.
    pub(crate) min_rto: Option<Duration>,
}

/// The pattern of cross traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pattern {
    /// At even intervals.
    Constant,
    /// At even intervals for a while, then none for a while.
    OnOff(Duration, Duration),
    /// At random.
    Poisson,
}

#[derive(Clone)]
enum Kind {
    Bulk(farhaul_proto::Protocol),
    Tcp,
    Libudt,
    Constant,
    OnOff,
    Poisson,
    Stable,
    Probe,
}

/// The kinds of flows beside the protocols of the registry.
const OTHER_KINDS: [(&str, Kind); 7] = [
    ("tcp", Kind::Tcp),
    ("libudt", Kind::Libudt),
    ("cbr", Kind::Constant),
    ("on-off", Kind::OnOff),
    ("poisson", Kind::Poisson),
    ("stable", Kind::Stable),
    ("probe", Kind::Probe),
];

/// The TCP senders, and whether their window is CUBIC's. `sack` is the default.
const RECOVERIES: [(&str, (Recovery, bool)); 5] = [
    ("tahoe", (Recovery::Tahoe, false)),
    ("reno", (Recovery::Reno, false)),
    ("newreno", (Recovery::NewReno, false)),
    ("sack", (Recovery::Sack, false)),
    ("cubic", (Recovery::Sack, true)),
];

impl FlowSpec {
    /// Parses a `[[flow]]` into one or several flows.
    pub(crate) fn read(mut section: Section<'_>, named_nodes: bool) -> Result<Vec<Self>, ScenarioError> {
        let line = section.line();
        let group = section.required_text("name")?;
        if group.is_empty() || group.chars().any(|letter| !letter.is_ascii_alphanumeric() && !"-_".contains(letter)) {
            let line = section.line_of("name");
            return Err(section.error(line, format!("'{group}' cannot name a flow: use letters, digits, - and _")));
        }
        if RunMetric::ALL.iter().any(|metric| metric.statistic() == Some(&group)) {
            let message =
                format!("'{group}' is the name of a statistic, as in goodput.max: give the flow another `name`");
            return Err(section.error(section.line_of("name"), message));
        }
        let protocol = protocol(&mut section)?;
        let transfers = transfers(&mut section, &protocol)?;
        let count = match transfers {
            Some((_, 1)) => None,
            Some((_, at_a_time)) => Some(at_a_time),
            None => section.integer("count", 0..=MAX_FLOWS)?,
        };
        let start = section.time("start")?.unwrap_or_default();
        let every = section.time("every")?.unwrap_or_default();
        let beside = measured::beside(&mut section, &protocol)?;
        let spec = Self {
            name: group.clone(),
            group,
            protocol,
            beside,
            start,
            spread: section.time("spread")?.unwrap_or_default(),
            stop: section.some_time("stop")?,
            bytes: section.size("bytes")?,
            transfers: transfers.map(|(transfers, _)| transfers),
            round_trip: section.some_time("rtt")?,
            ends: ends(&mut section, named_nodes)?,
            packet: section.integer("packet", PACKET_SIZES)?.map_or(PACKET, |bytes| bytes as u32),
            hosts: [host::read(&mut section, "sender")?, host::read(&mut section, "receiver")?],
            line,
        };
        if spec.stop.is_some_and(|stop| stop <= start) {
            let line = section.line_of("stop");
            return Err(section.error(line, format!("flow '{}' stops before it starts", spec.name)));
        }
        section.finish()?;
        Ok(match count {
            None => vec![spec],
            Some(count) => (0..count as u32)
                .map(|index| Self {
                    name: format!("{}-{}", spec.group, index + 1),
                    start: start + every * index,
                    ..spec.clone()
                })
                .collect(),
        })
    }
}

impl FlowSpec {
    /// Puts a rate that is a share of the `bottleneck`'s into the options of the protocol.
    ///
    /// # Errors
    /// The bottleneck has no rate, or the protocol takes none.
    pub(crate) fn settle(&mut self, bottleneck: Option<Rate>) -> Result<(), String> {
        let Protocol::Bulk(bulk) = &mut self.protocol else { return Ok(()) };
        let Some(share) = bulk.share.take() else { return Ok(()) };
        let Some(rate) = bottleneck else {
            return Err("a share of the bottleneck's rate needs a bottleneck with `rate`".to_owned());
        };
        let bits = (share * rate.bits_per_second() as f64) as u64;
        let text = bulk.protocol.to_string();
        let separator = if text.contains(':') { ',' } else { ':' };
        let fixed = format!("{text}{separator}rate={bits}bit").parse();
        bulk.protocol = fixed.map_err(|wrong: SpecError| wrong.to_string())?;
        Ok(())
    }
}

/// A list of transfers: the number of all, and the number at a time.
fn transfers(section: &mut Section<'_>, protocol: &Protocol) -> Result<Option<(u32, i64)>, ScenarioError> {
    let transfers = section.integer("transfers", 1..=MAX_TRANSFERS)?;
    let at_a_time = section.integer("concurrent", 1..=MAX_FLOWS)?;
    let wrong = |section: &Section<'_>, key: &str, what: &str| Err(section.error(section.line_of(key), what));
    let Some(transfers) = transfers else {
        return match at_a_time {
            Some(_) => wrong(
                section,
                "concurrent",
                "`concurrent` is the number of `transfers` at a time, and needs `transfers`",
            ),
            None => Ok(None),
        };
    };
    if !matches!(protocol, Protocol::Tcp(_)) {
        return wrong(section, "transfers", "lists of `transfers` are for TCP: protocol = \"tcp\"");
    }
    if !section.has("bytes") {
        return wrong(section, "transfers", "`transfers` needs the size of each, such as bytes = \"1MB\"");
    }
    for key in ["count", "stop"] {
        if section.has(key) {
            return wrong(section, key, &format!("`{key}` does not go with `transfers`: {LISTS}"));
        }
    }
    Ok(Some((transfers as u32, at_a_time.unwrap_or(1).min(transfers))))
}

/// The kind of flow that `value` names: a protocol of the registry with its options, or another.
fn kind(value: &Value) -> Result<Kind, String> {
    let text = text(value)?;
    if let Some((_, kind)) = OTHER_KINDS.iter().find(|(name, _)| *name == text) {
        return Ok(kind.clone());
    }
    text.parse().map(Kind::Bulk).map_err(|wrong| match wrong {
        SpecError::UnknownName { name, .. } => {
            let registered = protocols().iter().map(|entry| entry.name);
            let names: Vec<&str> = registered.chain(OTHER_KINDS.iter().map(|(name, _)| *name)).collect();
            format!("'{name}' is not one of {}", listed(&names))
        }
        wrong => wrong.to_string(),
    })
}

fn protocol(section: &mut Section<'_>) -> Result<Protocol, ScenarioError> {
    let kind = section.read("protocol", kind)?.unwrap_or_else(|| Kind::Bulk(Default::default()));
    Ok(match kind {
        Kind::Bulk(protocol) => Protocol::Bulk(bulk(section, protocol)?),
        Kind::Tcp => {
            let (recovery, cubic) = section.choice("controller", &RECOVERIES)?.unwrap_or((Recovery::Sack, false));
            Protocol::Tcp(Tcp {
                recovery,
                cubic,
                window: window::read(section)?,
                delayed_ack: section.flag("delayed_ack")?.unwrap_or(true),
                min_rto: section.some_time("min_rto")?,
            })
        }
        Kind::Libudt => Protocol::Libudt,
        Kind::Constant => Protocol::Cross(cross_rate(section)?, Pattern::Constant),
        Kind::Stable => Protocol::Measured(measured::stable(section)?),
        Kind::Probe => Protocol::Measured(measured::point(section)?),
        Kind::Poisson => Protocol::Cross(cross_rate(section)?, Pattern::Poisson),
        Kind::OnOff => {
            let (on, off) = (section.some_time("on")?, section.time("off")?);
            let (Some(on), Some(off)) = (on, off) else {
                return Err(section.error(section.line(), "an on-off source needs `on` and `off`, such as on = \"1s\""));
            };
            Protocol::Cross(cross_rate(section)?, Pattern::OnOff(on, off))
        }
    })
}

fn bulk(section: &mut Section<'_>, protocol: farhaul_proto::Protocol) -> Result<Bulk, ScenarioError> {
    let default = protocol.controller();
    let given = section.read("controller", |value| match &default {
        Some(_) => value.to_string().parse::<Spec>().map_err(|wrong| wrong.to_string()),
        None => Err(format!("'{}' has none, because its own rules govern the rate", protocol.entry().name)),
    })?;
    Ok(Bulk {
        controller: given.or(default),
        protocol,
        reorder_tolerance: section.integer("reorder_tolerance", 0..=10_000)?.unwrap_or(0) as u32,
        burst_time: section.time("burst_time")?,
        disk: disk(section)?,
        share: section.share("rate")?,
    })
}

/// Whether a key that is absent by default is said to be absent: a form of a scenario takes it away so.
fn is_none(section: &mut Section<'_>, key: &'static str) -> bool {
    section.get(key).is_some_and(|node| matches!(&node.value, Value::Text(text) if text == NONE))
}

/// `{ rate = "400mbit", block = "1MB", ahead = "8MB" }`. Without `ahead` the next block is read after everything before
/// it is acknowledged.
fn disk(section: &mut Section<'_>) -> Result<Option<DiskSpec>, ScenarioError> {
    if is_none(section, "disk") {
        return Ok(None);
    }
    let Some(mut table) = section.section("disk")? else { return Ok(None) };
    let (Some(rate), Some(block)) = (table.rate("rate")?, table.size("block")?) else {
        return Err(
            table.error(table.line(), "`disk` needs `rate` and `block`, as in { rate = \"400mbit\", block = \"1MB\" }")
        );
    };
    let ahead = table.size("ahead")?;
    table.finish()?;
    Ok(Some(DiskSpec { rate, block, ahead }))
}

fn cross_rate(section: &mut Section<'_>) -> Result<Rate, ScenarioError> {
    let rate = section.rate("rate")?;
    rate.ok_or_else(|| section.error(section.line(), "cross traffic needs `rate`, such as rate = \"40mbit\""))
}

fn ends(section: &mut Section<'_>, named_nodes: bool) -> Result<Option<(String, String)>, ScenarioError> {
    if !named_nodes {
        return Ok(None);
    }
    Ok(Some((section.required_text("from")?, section.required_text("to")?)))
}
