//! The keys of measured streams: `protocol = "stable"` and `protocol = "probe"`.

use std::collections::BTreeSet;

use farhaul_proto::probe::StableConfig;
use farhaul_units::{Duration, Rate};

use super::{FlowSpec, Protocol, Section};
use crate::error::ScenarioError;

/// Bytes of the headers of IPv4 and UDP: `packet` counts them, a datagram does not.
const HEADERS: u32 = 28;
/// Datagrams of a burst: as many as the sender of measured streams accepts.
const BURSTS: std::ops::RangeInclusive<i64> = 1..=65_535;

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

/// A stable stream: `target`, and what the paper chose otherwise.
pub(super) fn stable(section: &mut Section<'_>) -> Result<Measured, ScenarioError> {
    let Some(target) = section.rate("target")? else {
        return Err(section.error(section.line(), "a stable stream needs `target`, such as target = \"1mbit\""));
    };
    let default = StableConfig::new(target);
    Ok(Measured::Stable(StableConfig {
        window: section.integer("window", BURSTS)?.map_or(default.window, |window| window as u32),
        first_sleep: section.some_time("sleep")?.unwrap_or(default.first_sleep),
        gain: section.number("gain", 0.0..=1e3)?.unwrap_or(default.gain),
        exponent: section.number("exponent", 0.5..=1.0)?.unwrap_or(default.exponent),
        ..default
    }))
}

/// The bulk flow beside which a stable stream runs, on the same endpoint and port.
pub(super) fn beside(section: &mut Section<'_>, protocol: &Protocol) -> Result<Option<String>, ScenarioError> {
    let beside = section.text("beside")?;
    if beside.is_some() && !matches!(protocol, Protocol::Measured(Measured::Stable(_))) {
        let message = "only a stable stream runs `beside` another flow: protocol = \"stable\"";
        return Err(section.error(section.line_of("beside"), message));
    }
    Ok(beside)
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

/// A point: `window` and `sleep`, or `window` and a `rate` that both give, with the datagrams of the flow's packets.
pub(super) fn point(section: &mut Section<'_>) -> Result<Measured, ScenarioError> {
    let window = section.integer("window", BURSTS)?.map_or(1, |window| window as u32);
    let (sleep, rate) = (section.time("sleep")?, section.rate("rate")?);
    let packet = section.integer("packet", super::PACKET_SIZES)?.map_or(super::PACKET, |bytes| bytes as u32);
    let sleep = match (sleep, rate) {
        (Some(sleep), None) if !sleep.is_zero() => sleep,
        (None, Some(rate)) => period(rate, window, packet),
        _ => {
            let message = "a probe needs either `sleep` above zero or `rate`, such as sleep = \"10ms\"";
            return Err(section.error(section.line(), message));
        }
    };
    let spaced = section.flag("spaced")?.unwrap_or_default();
    let messages = section.flag("messages")?.unwrap_or_default();
    Ok(Measured::Point(Point { window, sleep, spaced, messages }))
}

/// The time that a burst of packets stands for at this rate on the wire.
fn period(rate: Rate, window: u32, packet: u32) -> Duration {
    Duration::from_secs_f64(f64::from(window) * f64::from(packet) * 8.0 / rate.bits_per_second() as f64)
}
