//! The hosts of a flow: the cost of packets, other programs, and times without a processor.

use farhaul_sim::agent::late::Lateness;
use farhaul_sim::host_cost::{HostCost, Load};

use super::super::reader::Section;
use super::is_none;
use crate::error::ScenarioError;

/// A host at one end of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Host {
    /// The cost of packets; `None` for none.
    pub(crate) cost: Option<HostCost>,
    /// When its program does not run; `None` for never.
    pub(crate) late: Option<Lateness>,
}

/// `{ per_arrival = "2us", per_data = "8us", receive_buffer = "1MB", late = { … } }`. `"none"`: none, as by default.
pub(super) fn read(section: &mut Section<'_>, key: &'static str) -> Result<Option<Host>, ScenarioError> {
    if is_none(section, key) {
        return Ok(None);
    }
    let Some(mut table) = section.section(key)? else { return Ok(None) };
    let receive_buffer = table.size("receive_buffer")?;
    let cost = HostCost {
        per_arrival: table.time("per_arrival")?.unwrap_or_default(),
        per_data: table.time("per_data")?.unwrap_or_default(),
        per_request: table.time("per_request")?.unwrap_or_default(),
        per_sent: table.time("per_sent")?.unwrap_or_default(),
        receive_buffer,
        send_jitter: table.time("send_jitter")?.unwrap_or_default(),
        load: load(&mut table)?,
    };
    let late = late(&mut table, receive_buffer)?;
    table.finish()?;
    // Without a cost, only a late program fills the buffer.
    let is_free = cost == HostCost { receive_buffer, ..HostCost::default() };
    Ok(Some(Host { cost: (!is_free || late.is_none()).then_some(cost), late }))
}

/// `{ busy = "4ms", every = "10ms" }`: other programs on a host.
fn load(section: &mut Section<'_>) -> Result<Option<Load>, ScenarioError> {
    let Some(mut table) = section.section("load")? else { return Ok(None) };
    let times = table.time("busy")?.zip(table.time("every")?);
    let Some((busy, every)) = times.filter(|(busy, every)| busy < every) else {
        let message = "`load` needs `busy` and a longer `every`, as in { busy = \"4ms\", every = \"10ms\" }";
        return Err(table.error(table.line(), message));
    };
    table.finish()?;
    Ok(Some(Load { busy, every }))
}

/// `{ every = "100ms", least = "1ms", most = "10ms", pause = "50ms", pauses = "2%" }`: a program that is not scheduled
/// at times.
fn late(section: &mut Section<'_>, buffer: Option<u64>) -> Result<Option<Lateness>, ScenarioError> {
    let Some(mut table) = section.section("late")? else { return Ok(None) };
    let (every, most) = (table.some_time("every")?, table.time("most")?);
    let least = table.time("least")?;
    let pause = table.some_time("pause")?;
    let pauses = table.share("pauses")?;
    let wrong = |table: &Section<'_>, message| Err(table.error(table.line(), message));
    let (Some(every), Some(most)) = (every, most) else {
        return wrong(&table, "`late` needs `every` and `most`, as in { every = \"100ms\", most = \"10ms\" }");
    };
    let least = least.unwrap_or_default();
    if least > most {
        return wrong(&table, "`late` needs a `least` that is not above `most`, the longest short absence");
    }
    if pause.is_some() != pauses.is_some() {
        let message = "`pause` and `pauses` of `late` go together: pause = \"50ms\", pauses = \"2%\" of the absences";
        return wrong(&table, message);
    }
    table.finish()?;
    let (pause, pauses) = (pause.unwrap_or_default(), pauses.unwrap_or_default());
    Ok(Some(Lateness { every, least, most, pause, pauses, buffer }))
}
