//! The keys of `[[flow]]`.

use farhaul_cc::{Spec, SpecError};
use farhaul_proto::registry::protocols;
use farhaul_sim::agent::disk::DiskSpec;
use farhaul_sim::agent::tcp::Recovery;
use serde::Deserialize;
use toml::Spanned;

use super::host::HostKeys;
use super::window::WindowKeys;
use super::{Bulk, FlowSpec, Host, Measured, Pattern, Protocol, Tcp, Window, measured};
use crate::error::ScenarioError;
use crate::metric::RunMetric;
use crate::scenario::reader::{AboveZero, LinkRate, OrTable, Section, Share, Size, Source, Time, Value, Whole, listed};

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

/// The keys of every flow.
#[derive(Deserialize)]
struct FlowKeys {
    name: FlowName,
    protocol: Option<FlowKind>,
    count: Option<Spanned<Whole<0, MAX_FLOWS>>>,
    transfers: Option<Spanned<Whole<1, MAX_TRANSFERS>>>,
    concurrent: Option<Spanned<Whole<1, MAX_FLOWS>>>,
    #[serde(default)]
    start: Time,
    #[serde(default)]
    every: Time,
    #[serde(default)]
    spread: Time,
    stop: Option<Spanned<AboveZero>>,
    bytes: Option<Size>,
    rtt: Option<AboveZero>,
    /// Bytes on the wire: the least that UDT accepts, and the most of an IP packet.
    packet: Option<Whole<576, 65_535>>,
    sender: Option<OrTable<Absent, HostKeys>>,
    receiver: Option<OrTable<Absent, HostKeys>>,
    beside: Option<Spanned<String>>,
}

/// A disk. Without `ahead` the next block is read after everything before it is acknowledged.
#[derive(Deserialize)]
#[serde(expecting = "{ rate = \"400mbit\", block = \"1MB\" }")]
struct DiskKeys {
    rate: LinkRate,
    block: Size,
    ahead: Option<Size>,
}

/// The TCP senders: the loss recovery, or the window of CUBIC with selective acknowledgements.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TcpController {
    Tahoe,
    Reno,
    NewReno,
    #[default]
    Sack,
    Cubic,
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
const OTHER_KINDS: [(&str, FlowKind); 7] = [
    ("tcp", FlowKind::Tcp),
    ("libudt", FlowKind::Libudt),
    ("cbr", FlowKind::Constant),
    ("on-off", FlowKind::OnOff),
    ("poisson", FlowKind::Poisson),
    ("stable", FlowKind::Stable),
    ("probe", FlowKind::Probe),
];

impl FlowSpec {
    /// Parses a `[[flow]]` into one or several flows.
    pub(crate) fn read(mut section: Section<'_>, named_nodes: bool) -> Result<Vec<Self>, ScenarioError> {
        let source = section.source();
        let line = section.line();
        let keys: FlowKeys = section.read()?;
        let packet = keys.packet.map_or(PACKET, |Whole(bytes)| bytes as u32);
        let kind = keys.protocol.clone().unwrap_or_else(|| FlowKind::Bulk(Default::default()));
        let protocol = protocol(&mut section, kind, packet)?;
        let transfers = transfers(source, &keys, &protocol)?;
        let ends = match named_nodes {
            true => Some((section.needed("from", ENDS)?, section.needed("to", ENDS)?)),
            false => None,
        };
        section.finish()?;
        let count = match transfers {
            Some((_, 1)) => None,
            Some((_, at_a_time)) => Some(at_a_time),
            None => keys.count.map(|count| count.into_inner().0),
        };
        let FlowKeys { name: FlowName(group), start: Time(start), every: Time(every), .. } = keys;
        if let Some(stop) = keys.stop.as_ref().filter(|stop| stop.get_ref().0 <= start) {
            return Err(source.error(stop, format!("flow '{group}' stops before it starts")));
        }
        if let Some(beside) = &keys.beside
            && !matches!(protocol, Protocol::Measured(Measured::Stable(_)))
        {
            let message = "only a stable stream runs `beside` another flow: protocol = \"stable\"";
            return Err(source.error(beside, message));
        }
        let host = |keys: Option<OrTable<Absent, HostKeys>>| {
            keys.and_then(table_of).map(|keys| Host::read(source, keys)).transpose()
        };
        let spec = Self {
            name: group.clone(),
            group,
            protocol,
            beside: keys.beside.map(Spanned::into_inner),
            start,
            spread: keys.spread.0,
            stop: keys.stop.map(|stop| stop.into_inner().0),
            bytes: keys.bytes.map(|Size(bytes)| bytes),
            transfers: transfers.map(|(transfers, _)| transfers),
            round_trip: keys.rtt.map(|AboveZero(time)| time),
            ends,
            packet,
            hosts: [host(keys.sender)?, host(keys.receiver)?],
            line,
        };
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

/// A list of transfers: the number of all, and the number at a time.
fn transfers(source: &Source, keys: &FlowKeys, protocol: &Protocol) -> Result<Option<(u32, i64)>, ScenarioError> {
    let at_a_time = keys.concurrent.as_ref().map(|concurrent| concurrent.get_ref().0);
    let Some(transfers) = &keys.transfers else {
        return keys.concurrent.as_ref().map_or(Ok(None), |concurrent| {
            let message = "`concurrent` is the number of `transfers` at a time, and needs `transfers`";
            Err(source.error(concurrent, message))
        });
    };
    if !matches!(protocol, Protocol::Tcp(_)) {
        return Err(source.error(transfers, "lists of `transfers` are for TCP: protocol = \"tcp\""));
    }
    if keys.bytes.is_none() {
        return Err(source.error(transfers, "`transfers` needs the size of each, such as bytes = \"1MB\""));
    }
    if let Some(count) = &keys.count {
        return Err(source.error(count, format!("`count` does not go with `transfers`: {LISTS}")));
    }
    if let Some(stop) = &keys.stop {
        return Err(source.error(stop, format!("`stop` does not go with `transfers`: {LISTS}")));
    }
    let transfers = transfers.get_ref().0;
    Ok(Some((transfers as u32, at_a_time.unwrap_or(1).min(transfers))))
}

fn protocol(section: &mut Section<'_>, kind: FlowKind, packet: u32) -> Result<Protocol, ScenarioError> {
    match kind {
        FlowKind::Constant => cross(section, CROSS_TRAFFIC, Pattern::Constant),
        FlowKind::Poisson => cross(section, CROSS_TRAFFIC, Pattern::Poisson),
        FlowKind::OnOff => {
            let (AboveZero(on), Time(off)) = (section.needed("on", ON_OFF)?, section.needed("off", ON_OFF)?);
            cross(section, ON_OFF, Pattern::OnOff(on, off))
        }
        FlowKind::Bulk(protocol) => bulk(section, protocol).map(Protocol::Bulk),
        FlowKind::Tcp => tcp(section).map(Protocol::Tcp),
        FlowKind::Libudt => Ok(Protocol::Libudt),
        FlowKind::Stable => measured::stable(section).map(Protocol::Measured),
        FlowKind::Probe => measured::point(section, packet).map(Protocol::Measured),
    }
}

fn cross(section: &mut Section<'_>, example: &str, pattern: Pattern) -> Result<Protocol, ScenarioError> {
    section.needed("rate", example).map(|LinkRate(rate)| Protocol::Cross(rate, pattern))
}

fn bulk(section: &mut Section<'_>, protocol: farhaul_proto::Protocol) -> Result<Bulk, ScenarioError> {
    let default = protocol.controller();
    let given = section.value::<Spanned<String>>("controller")?.map(|text| {
        let given = match &default {
            Some(_) => text.get_ref().parse::<Spec>().map_err(|wrong| wrong.to_string()),
            None => Err(format!("'{}' has none, because its own rules govern the rate", protocol.entry().name)),
        };
        given.map_err(|what| section.error_at(&text, format!("`controller` in [[flow]]: {what}")))
    });
    let tolerance = section.value("reorder_tolerance")?;
    Ok(Bulk {
        controller: given.transpose()?.or(default),
        protocol,
        reorder_tolerance: tolerance.map_or(0, |Whole::<0, 10_000>(packets)| packets as u32),
        burst_time: section.value("burst_time")?.map(|Time(time)| time),
        disk: section.value("disk")?.and_then(table_of).map(|keys: DiskKeys| DiskSpec {
            rate: keys.rate.0,
            block: keys.block.0,
            ahead: keys.ahead.map(|Size(bytes)| bytes),
        }),
        share: section.value("rate")?.map(|Share(share)| share),
    })
}

fn tcp(section: &mut Section<'_>) -> Result<Tcp, ScenarioError> {
    let controller = section.value("controller")?.unwrap_or_default();
    Ok(Tcp {
        recovery: match controller {
            TcpController::Tahoe => Recovery::Tahoe,
            TcpController::Reno => Recovery::Reno,
            TcpController::NewReno => Recovery::NewReno,
            TcpController::Sack | TcpController::Cubic => Recovery::Sack,
        },
        cubic: matches!(controller, TcpController::Cubic),
        window: match section.value::<OrTable<Window, WindowKeys>>("window")? {
            None => Window::UNLIMITED,
            Some(OrTable::Bare(window)) => window,
            Some(OrTable::Table(table)) => table.into(),
        },
        delayed_ack: section.value("delayed_ack")?.unwrap_or(true),
        min_rto: section.value("min_rto")?.map(|AboveZero(time)| time),
    })
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
        if let Some((_, kind)) = OTHER_KINDS.iter().find(|(name, _)| *name == text) {
            return Ok(kind.clone());
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
