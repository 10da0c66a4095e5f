//! The keys of `[[flow]]`.

use farhaul_cc::registry::{LawFamily, controllers};
use farhaul_cc::{Spec, SpecError};
use farhaul_protocols::registry::protocols;
use farhaul_sim::agent::disk::DiskSpec;
use farhaul_sim::agent::tcp::Recovery;
use serde::Deserialize;
use toml::Spanned;

use super::host::HostKeys;
use super::window::WindowKeys;
use super::{Bulk, FlowSpec, Host, Pattern, Protocol, Tcp, Window, measured};
use crate::error::ScenarioError;
use crate::metric::RunMetric;
use crate::scenario::Controllers;
use crate::scenario::reader::{AboveZero, LinkRate, OrTable, Section, Share, Size, Time, Value, Whole, listed};

/// The most flows of a scenario, which some hours can simulate.
const MAX_FLOWS: i64 = 10_000;
/// The most transfers of a flow, for the same reason.
const MAX_TRANSFERS: i64 = 1_000_000;
/// The rule for lists of transfers, in messages.
const LISTS: &str = "`concurrent` of them run at a time, until all are done";
/// Flows, for messages.
const ENDS: &str = "{ from = \"a\", to = \"b\" }";
const CROSS_TRAFFIC: &str = "{ protocol = \"cbr\", rate = \"40mbit\" }";
const ON_OFF: &str = "{ protocol = \"on-off\", rate = \"40mbit\", on = \"1s\", off = \"1s\" }";
/// Bytes of a packet on the wire: the MTU of the papers.
const PACKET: u32 = 1_500;

/// A disk. Without `ahead` the next block is read after everything before it is acknowledged.
#[derive(Deserialize)]
#[serde(expecting = "{ rate = \"400mbit\", block = \"1MB\" }")]
struct DiskKeys {
    rate: LinkRate,
    block: Size,
    ahead: Option<Size>,
}

/// Whose receiver the answers are like.
#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answers {
    #[default]
    Farhaul,
    Libudt,
}

/// `"none"`, the default of a key that holds a table: a form of a scenario takes the table away so.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct Absent;

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct FlowName(String);

/// The kind of flow: a protocol of the registry with its options, or another.
#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
enum FlowKind {
    Bulk(farhaul_protocols::Protocol),
    Other(ReadKeys),
}

/// Reads the keys of a kind of flows, whose packets have so many bytes, beside the controllers of the program.
type ReadKeys = fn(&mut Section<'_>, u32, &Controllers) -> Result<Protocol, ScenarioError>;

/// The kinds of flows beside the protocols of the registry.
const OTHER_KINDS: [(&str, ReadKeys); 7] = [
    ("tcp", |section, _, controllers| tcp(section, controllers).map(Protocol::Tcp)),
    ("libudt", |_, _, _| Ok(Protocol::Libudt)),
    ("cbr", |section, _, _| cross(section, CROSS_TRAFFIC, Pattern::Constant)),
    ("on-off", |section, _, _| {
        let (AboveZero(on), Time(off)) = (section.needed("on", ON_OFF)?, section.needed("off", ON_OFF)?);
        cross(section, ON_OFF, Pattern::OnOff(on, off))
    }),
    ("poisson", |section, _, _| cross(section, CROSS_TRAFFIC, Pattern::Poisson)),
    ("stable", |section, _, _| measured::stable(section).map(Protocol::Measured)),
    ("probe", |section, packet, _| measured::point(section, packet).map(Protocol::Measured)),
];

impl FlowSpec {
    /// Parses a `[[flow]]` into one or several flows.
    ///
    /// `controllers` are those of the program, by name.
    pub(crate) fn read(
        mut section: Section<'_>,
        named_nodes: bool,
        controllers: &Controllers,
    ) -> Result<Vec<Self>, ScenarioError> {
        let source = section.source();
        let line = section.line();
        let FlowName(group) = section.needed("name", "name = \"far\"")?;
        let packet = section.value("packet")?.map_or(PACKET, |Whole::<576, 65_535>(bytes)| bytes as u32);
        let kind = section.value("protocol")?.unwrap_or_else(|| FlowKind::Bulk(Default::default()));
        let protocol = match kind {
            FlowKind::Bulk(protocol) => bulk(&mut section, protocol, controllers).map(Protocol::Bulk)?,
            FlowKind::Other(read) => read(&mut section, packet, controllers)?,
        };
        let transfers = transfers(&mut section, &protocol)?;
        let count = match transfers {
            Some((_, 1)) => None,
            Some((_, at_a_time)) => Some(at_a_time),
            None => section.value("count")?.map(|Whole::<0, MAX_FLOWS>(count)| count),
        };
        let Time(start) = section.value("start")?.unwrap_or_default();
        let Time(every) = section.value("every")?.unwrap_or_default();
        let stop: Option<Spanned<AboveZero>> = section.value("stop")?;
        if let Some(stop) = stop.as_ref().filter(|stop| stop.get_ref().0 <= start) {
            return Err(source.error(stop, format!("flow '{group}' stops before it starts")));
        }
        let ends = match named_nodes {
            true => Some((section.needed("from", ENDS)?, section.needed("to", ENDS)?)),
            false => None,
        };
        let spec = Self {
            name: group.clone(),
            beside: measured::beside(&mut section, &protocol)?,
            group,
            protocol,
            start,
            spread: section.value("spread")?.unwrap_or(Time::default()).0,
            stop: stop.map(|stop| stop.into_inner().0),
            bytes: section.value("bytes")?.map(|Size(bytes)| bytes),
            transfers: transfers.map(|(transfers, _)| transfers),
            round_trip: section.value("rtt")?.map(|AboveZero(time)| time),
            ends,
            packet,
            hosts: [host(&mut section, "sender")?, host(&mut section, "receiver")?],
            line,
        };
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

fn host(section: &mut Section<'_>, key: &'static str) -> Result<Option<Host>, ScenarioError> {
    let keys = section.value(key)?.and_then(table_of);
    keys.map(|keys: HostKeys| Host::read(section.source(), keys)).transpose()
}

/// A list of transfers: the number of all, and the number at a time.
fn transfers(section: &mut Section<'_>, protocol: &Protocol) -> Result<Option<(u32, i64)>, ScenarioError> {
    let transfers: Option<Whole<1, MAX_TRANSFERS>> = section.value("transfers")?;
    let at_a_time: Option<Whole<1, MAX_FLOWS>> = section.value("concurrent")?;
    let wrong =
        |section: &Section<'_>, key: &str, what: &str| Err(section.source().error_on(section.line_of(key), what));
    let Some(Whole(transfers)) = transfers else {
        let what = "`concurrent` is the number of `transfers` at a time, and needs `transfers`";
        return if at_a_time.is_some() { wrong(section, "concurrent", what) } else { Ok(None) };
    };
    if !matches!(protocol, Protocol::Tcp(_)) {
        return wrong(section, "transfers", "lists of `transfers` are for TCP: protocol = \"tcp\"");
    }
    if section.get("bytes").is_none() {
        return wrong(section, "transfers", "`transfers` needs the size of each, such as bytes = \"1MB\"");
    }
    for key in ["count", "stop"] {
        if section.get(key).is_some() {
            return wrong(section, key, &format!("`{key}` does not go with `transfers`: {LISTS}"));
        }
    }
    Ok(Some((transfers as u32, at_a_time.map_or(1, |Whole(flows)| flows).min(transfers))))
}

fn cross(section: &mut Section<'_>, example: &str, pattern: Pattern) -> Result<Protocol, ScenarioError> {
    section.needed("rate", example).map(|LinkRate(rate)| Protocol::Cross(rate, pattern))
}

fn bulk(
    section: &mut Section<'_>,
    protocol: farhaul_protocols::Protocol,
    controllers: &Controllers,
) -> Result<Bulk, ScenarioError> {
    let default = protocol.controller();
    let given = section.value::<Spanned<String>>("controller")?.map(|text| {
        let given = match &default {
            Some(_) => law(text.get_ref(), controllers),
            None => Err(format!("'{}' has none, because its own rules govern the rate", protocol.entry().name)),
        };
        given.map_err(|what| section.source().error(&text, format!("`controller` in [[flow]]: {what}")))
    });
    let tolerance = section.value("reorder_tolerance")?;
    Ok(Bulk {
        controller: given.transpose()?.or(default),
        protocol,
        reorder_tolerance: tolerance.map_or(0, |Whole::<0, 10_000>(packets)| packets as u32),
        burst_time: section.value("burst_time")?.map(|Time(time)| time),
        answers_as_libudt: section.value::<Answers>("answers")?.unwrap_or_default() == Answers::Libudt,
        disk: section.value("disk")?.and_then(table_of).map(|keys: DiskKeys| DiskSpec {
            rate: keys.rate.0,
            block: keys.block.0,
            ahead: keys.ahead.map(|Size(bytes)| bytes),
        }),
        share: section.value("rate")?.map(|Share(share)| share),
    })
}

/// A congestion controller by its name and options: one of the program, or one of the registry.
fn law(text: &str, controllers: &Controllers) -> Result<Spec, String> {
    match controllers.get(text) {
        Some(own) => Ok(own.clone()),
        None => text.parse().map_err(|wrong: SpecError| wrong.to_string()),
    }
}

/// A TCP sender. Before selective acknowledgements, the name of a sender was that of its recovery.
fn tcp(section: &mut Section<'_>, controllers: &Controllers) -> Result<Tcp, ScenarioError> {
    let given = section.value::<Spanned<String>>("controller")?;
    let (recovery, name) = match given.as_ref().map_or("sack", |text| text.get_ref()) {
        "tahoe" => (Recovery::Tahoe, "tahoe"),
        "reno" => (Recovery::Reno, "reno"),
        "newreno" => (Recovery::NewReno, "reno"),
        "sack" => (Recovery::Sack, "reno"),
        law => (Recovery::Sack, law),
    };
    let law = law(name, controllers).and_then(|law| match has_window(name) {
        true => Ok(law),
        false => Err(format!("'{name}' is no law of a window, which a TCP needs")),
    });
    let error = |what| {
        let what = format!("`controller` in [[flow]] of TCP: {what}");
        given.as_ref().map_or(section.error(&what), |text| section.source().error(text, &what))
    };
    Ok(Tcp {
        recovery,
        law: law.map_err(error)?,
        window: match section.value::<OrTable<Window, WindowKeys>>("window")? {
            None => Window::UNLIMITED,
            Some(OrTable::Bare(window)) => window,
            Some(OrTable::Table(table)) => table.into(),
        },
        delayed_ack: section.value("delayed_ack")?.unwrap_or(true),
        min_rto: section.value("min_rto")?.map(|AboveZero(time)| time),
    })
}

/// Whether a controller governs a window. Those of programs are taken at their word.
fn has_window(text: &str) -> bool {
    let entry = controllers().into_iter().find(|entry| Some(entry.name) == text.split(':').next());
    entry.is_none_or(|entry| !matches!(entry.family, LawFamily::Model | LawFamily::Rate))
}

fn table_of<T>(keys: OrTable<Absent, T>) -> Option<T> {
    match keys {
        OrTable::Table(table) => Some(table),
        OrTable::Bare(Absent) => None,
    }
}

impl TryFrom<Value> for Absent {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value.as_text() {
            Some("none") => Ok(Self),
            _ => Err(format!("expected a table or \"none\", found {}", value.kind())),
        }
    }
}

impl TryFrom<String> for FlowName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if name.is_empty() || name.chars().any(|letter| !letter.is_ascii_alphanumeric() && !"-_".contains(letter)) {
            return Err(format!("'{name}' cannot name a flow: use letters, digits, - and _"));
        }
        if RunMetric::ALL.iter().any(|metric| metric.statistic() == Some(&name)) {
            return Err(format!(
                "'{name}' is the name of a statistic, as in goodput.max: give the flow another `name`"
            ));
        }
        Ok(Self(name))
    }
}

impl TryFrom<String> for FlowKind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if let Some((_, read)) = OTHER_KINDS.iter().find(|(name, _)| *name == text) {
            return Ok(Self::Other(*read));
        }
        text.parse().map(Self::Bulk).map_err(|wrong| match wrong {
            SpecError::UnknownName { name, .. } => {
                let registered = protocols().iter().map(|entry| entry.name);
                let names: Vec<&str> = registered.chain(OTHER_KINDS.iter().map(|(name, _)| *name)).collect();
                format!("'{name}' is not one of {}", listed(&names))
            }
            wrong => wrong.to_string(),
        })
    }
}
