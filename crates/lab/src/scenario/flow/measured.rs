//! The keys of measured streams: `protocol = "stable"` and `protocol = "probe"`.

use std::collections::BTreeSet;

use farhaul_proto::probe::StableConfig;
use farhaul_units::{Duration, Rate};
use serde::Deserialize;
use toml::Spanned;

use super::{FlowSpec, Protocol};
use crate::error::ScenarioError;
use crate::scenario::reader::{AboveZero, LinkRate, Number, Section, Time, Value, Whole};

/// Bytes of the headers of IPv4 and UDP: `packet` counts them, a datagram does not.
const HEADERS: u32 = 28;
/// Datagrams of a burst: as many as the sender of measured streams accepts.
type Burst = Whole<1, 65_535>;
/// Exponents of the steps of a stable stream.
const EXPONENTS: std::ops::RangeInclusive<f64> = 0.5..=1.0;

/// The source of a measured stream. Its receiver counts and acknowledges, and asks for nothing again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Measured {
    /// A stable control stream. Its datagrams have the size of the flow's packets.
    Stable(StableConfig),
    /// A point of a throughput profile.
    Point(Point),
}

/// A point of a throughput profile: bursts at fixed distances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// W_c: datagrams of a burst.
    pub(crate) window: u32,
    /// T_s: time from one burst to the next.
    pub(crate) sleep: Duration,
    /// Whether the datagrams of a burst are spread over the sleep.
    pub(crate) spaced: bool,
    /// Whether each burst is a message whose delay counts.
    pub(crate) messages: bool,
}

impl Measured {
    /// Bytes of a datagram in a packet of this size.
    pub(crate) fn datagram(packet: u32) -> u16 {
        u16::try_from(packet - HEADERS).unwrap_or(u16::MAX)
    }
}

#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct Exponent(f64);

/// A stable stream: `target`, and what the paper chose otherwise.
pub(super) fn stable(section: &mut Section<'_>) -> Result<Measured, ScenarioError> {
    let LinkRate(target) = section.needed("target", "{ protocol = \"stable\", target = \"1mbit\" }")?;
    let default = StableConfig::new(target);
    Ok(Measured::Stable(StableConfig {
        window: section.value("window")?.map_or(default.window, |Whole(window): Burst| window as u32),
        first_sleep: section.value("sleep")?.map_or(default.first_sleep, |AboveZero(sleep)| sleep),
        gain: section.value("gain")?.map_or(default.gain, |Number::<0, 1_000>(gain)| gain),
        exponent: section.value("exponent")?.map_or(default.exponent, |Exponent(exponent)| exponent),
        ..default
    }))
}

/// The bulk flow beside which a stable stream runs, on the same endpoint and port.
pub(super) fn beside(section: &mut Section<'_>, protocol: &Protocol) -> Result<Option<String>, ScenarioError> {
    let beside: Option<Spanned<String>> = section.value("beside")?;
    match beside {
        Some(beside) if !matches!(protocol, Protocol::Measured(Measured::Stable(_))) => {
            let message = "only a stable stream runs `beside` another flow: protocol = \"stable\"";
            Err(section.source().error(&beside, message))
        }
        beside => Ok(beside.map(Spanned::into_inner)),
    }
}

/// Checks that each stream with `beside` names one flow that can carry it, and that no other stream names the same.
pub(crate) fn check_beside(flows: &[FlowSpec]) -> Result<(), (usize, String)> {
    let mut taken = BTreeSet::new();
    for flow in flows {
        let Some(beside) = &flow.beside else { continue };
        let bulk = flows.iter().find(|other| other.name == *beside);
        if !bulk.is_some_and(|bulk| matches!(bulk.protocol, Protocol::Bulk(_))) {
            let what =
                format!("flow '{}' runs beside '{beside}', which is no flow with a protocol of its own", flow.name);
            return Err((flow.line, what));
        }
        if !taken.insert(beside) {
            return Err((flow.line, format!("'{beside}' has a stream beside it already, and can have one")));
        }
    }
    Ok(())
}

/// A point for packets of this size: `window` and `sleep`, or `window` and a `rate` that both give.
pub(super) fn point(section: &mut Section<'_>, packet: u32) -> Result<Measured, ScenarioError> {
    let window = section.value("window")?.map_or(1, |Whole(window): Burst| window as u32);
    let sleep = match (section.value("sleep")?, section.value("rate")?) {
        (Some(Time(sleep)), None) if !sleep.is_zero() => sleep,
        (None, Some(LinkRate(rate))) => period(rate, window, packet),
        _ => {
            let message = "a probe needs either `sleep` above zero or `rate`, such as sleep = \"10ms\"";
            return Err(section.error(message));
        }
    };
    let spaced = section.value("spaced")?.unwrap_or_default();
    let messages = section.value("messages")?.unwrap_or_default();
    Ok(Measured::Point(Point { window, sleep, spaced, messages }))
}

/// The time that a burst of packets stands for at this rate on the wire.
fn period(rate: Rate, window: u32, packet: u32) -> Duration {
    Duration::from_secs_f64(f64::from(window) * f64::from(packet) * 8.0 / rate.bits_per_second() as f64)
}

impl TryFrom<Value> for Exponent {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let exponent = value.number()?;
        match EXPONENTS.contains(&exponent) {
            true => Ok(Self(exponent)),
            false => {
                Err(format!("{exponent} is out of range: allowed is {} to {}", EXPONENTS.start(), EXPONENTS.end()))
            }
        }
    }
}
