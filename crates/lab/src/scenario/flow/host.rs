//! The hosts of a flow: the cost of packets, other programs, and times without a processor.

use farhaul_sim::agent::late::Lateness;
use farhaul_sim::host_cost::{HostCost, Load};
use farhaul_units::Duration;
use serde::Deserialize;
use toml::Spanned;

use super::super::reader::{AboveZero, Share, Size, Source, Time};
use crate::error::ScenarioError;

/// A host at one end of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Host {
    /// The cost of packets; `None` for none.
    pub(crate) cost: Option<HostCost>,
    /// When its program does not run; `None` for never.
    pub(crate) late: Option<Lateness>,
}

/// `{ per_arrival = "2us", per_data = "8us", receive_buffer = "1MB", late = { … } }`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct HostKeys {
    per_arrival: Time,
    per_data: Time,
    per_request: Time,
    per_sent: Time,
    receive_buffer: Option<Size>,
    send_jitter: Time,
    gather: Time,
    load: Option<Spanned<LoadKeys>>,
    late: Option<Spanned<LateKeys>>,
}

/// `{ busy = "4ms", every = "10ms" }`: other programs on a host.
#[derive(Clone, Copy, Deserialize)]
struct LoadKeys {
    busy: Option<Time>,
    every: Option<Time>,
}

/// `{ every = "100ms", least = "1ms", most = "10ms", pause = "50ms", pauses = "2%" }`: a program that is not scheduled
/// at times.
#[derive(Clone, Copy, Deserialize)]
struct LateKeys {
    every: Option<AboveZero>,
    most: Option<Time>,
    least: Option<Time>,
    pause: Option<AboveZero>,
    pauses: Option<Share>,
}

impl Host {
    /// The host with these keys.
    pub(super) fn read(source: &Source, keys: HostKeys) -> Result<Self, ScenarioError> {
        let receive_buffer = keys.receive_buffer.map(|Size(bytes)| bytes);
        let cost = HostCost {
            per_arrival: keys.per_arrival.0,
            per_data: keys.per_data.0,
            per_request: keys.per_request.0,
            per_sent: keys.per_sent.0,
            receive_buffer,
            send_jitter: keys.send_jitter.0,
            gather: keys.gather.0,
            load: keys.load.map(|keys| load(*keys.get_ref()).map_err(|what| source.error(&keys, what))).transpose()?,
        };
        let late =
            keys.late.map(|keys| late(*keys.get_ref(), receive_buffer).map_err(|what| source.error(&keys, what)));
        let late = late.transpose()?;
        // Without a cost, only a late program fills the buffer.
        let is_free = cost == HostCost { receive_buffer, ..HostCost::default() };
        Ok(Self { cost: (!is_free || late.is_none()).then_some(cost), late })
    }
}

fn load(keys: LoadKeys) -> Result<Load, &'static str> {
    match (keys.busy, keys.every) {
        (Some(Time(busy)), Some(Time(every))) if busy < every => Ok(Load { busy, every }),
        _ => Err("`load` needs `busy` and a longer `every`, as in { busy = \"4ms\", every = \"10ms\" }"),
    }
}

fn late(keys: LateKeys, buffer: Option<u64>) -> Result<Lateness, &'static str> {
    let (Some(AboveZero(every)), Some(Time(most))) = (keys.every, keys.most) else {
        return Err("`late` needs `every` and `most`, as in { every = \"100ms\", most = \"10ms\" }");
    };
    let Time(least) = keys.least.unwrap_or_default();
    if least > most {
        return Err("`late` needs a `least` that is not above `most`, the longest short absence");
    }
    let (pause, pauses) = match (keys.pause, keys.pauses) {
        (Some(AboveZero(pause)), Some(Share(pauses))) => (pause, pauses),
        (None, None) => (Duration::ZERO, 0.0),
        _ => {
            return Err(
                "`pause` and `pauses` of `late` go together: pause = \"50ms\", pauses = \"2%\" of the absences",
            );
        }
    };
    Ok(Lateness { every, least, most, pause, pauses, buffer })
}
