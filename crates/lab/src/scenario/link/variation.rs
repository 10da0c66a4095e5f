//! Jitter, reordering, policers, rates and delays over time, and recorded links.

use std::path::Path;

use farhaul_netem::{DeliveryTrace, JitterShape, JitterSpec, PolicerSpec, ReorderSpec, Schedule, Step, Variation};
use farhaul_units::{ByteSize, Duration};

use super::super::files::{self, TRACE};
use super::super::reader::{Node, Section, Value};
use crate::error::ScenarioError;

/// `"5ms"` or `{ max = "5ms", shape = "normal", reorder = true }`.
pub(super) fn jitter(section: &mut Section<'_>) -> Result<Option<JitterSpec>, ScenarioError> {
    let Some(Node { value: Value::Table(_), .. }) = section.get("jitter") else {
        let max = section.time("jitter")?.unwrap_or_default();
        return Ok((max > Duration::ZERO).then(|| JitterSpec::up_to(max)));
    };
    let Some(mut table) = section.section("jitter")? else { return Ok(None) };
    let shapes = [("uniform", JitterShape::Uniform), ("normal", JitterShape::Normal)];
    let spec = JitterSpec {
        max: table.time("max")?.unwrap_or_default(),
        shape: table.choice("shape", &shapes)?.unwrap_or_default(),
        may_reorder: table.flag("reorder")?.unwrap_or(false),
    };
    table.finish()?;
    Ok((spec.max > Duration::ZERO).then_some(spec))
}

/// `{ share = "1%", by = "5ms" }`.
pub(super) fn reorder(section: &mut Section<'_>) -> Result<Option<ReorderSpec>, ScenarioError> {
    let Some(mut table) = section.section("reorder")? else { return Ok(None) };
    let (share, by) = (table.share("share")?, table.some_time("by")?);
    let (Some(probability), Some(extra_delay)) = (share, by) else {
        let message = "`reorder` needs `share` and `by`, as in { share = \"1%\", by = \"5ms\" }";
        return Err(table.error(table.line(), message));
    };
    table.finish()?;
    Ok((probability > 0.0).then_some(ReorderSpec { probability, extra_delay }))
}

/// `{ rate = "100mbit", burst = "15kB" }`.
pub(super) fn policer(section: &mut Section<'_>) -> Result<Option<PolicerSpec>, ScenarioError> {
    let Some(mut table) = section.section("policer")? else { return Ok(None) };
    let (Some(rate), Some(burst)) = (table.rate("rate")?, table.size("burst")?) else {
        let message = "`policer` needs `rate` and `burst`, as in { rate = \"100mbit\", burst = \"15kB\" }";
        return Err(table.error(table.line(), message));
    };
    table.finish()?;
    Ok(Some(PolicerSpec { rate, burst: ByteSize(burst) }))
}

/// `schedule = [{ at = "10s", rate = "50mbit" }, …]`, repeated every `repeat`, or `trace = "FILE"`, a mahimahi trace
/// beside the scenario.
pub(super) fn variation(section: &mut Section<'_>) -> Result<Option<Variation>, ScenarioError> {
    let steps = section.sections("schedule")?;
    let repeat = section.some_time("repeat")?;
    let trace = section.text(TRACE)?;
    let line = section.line_of(if trace.is_some() { TRACE } else { "schedule" });
    if let Some(name) = trace {
        if !steps.is_empty() {
            return Err(section.error(line, "a link has either `schedule` or `trace`"));
        }
        let path = files::place(Path::new(section.file()), &name);
        let text = std::fs::read_to_string(&path)
            .map_err(|wrong| section.error(line, format!("cannot read the trace {}: {wrong}", path.display())))?;
        let trace: DeliveryTrace =
            text.parse().map_err(|wrong| section.error(line, format!("{}: {wrong}", path.display())))?;
        return Ok(Some(Variation::Trace(trace)));
    }
    if steps.is_empty() {
        return Ok(None);
    }
    let mut read = Vec::new();
    for mut step in steps {
        let at = step.time("at")?;
        let at = at.ok_or_else(|| step.error(step.line(), "a step of a schedule needs `at`, such as at = \"10s\""))?;
        read.push(Step { at, rate: step.rate("rate")?, delay: step.time("delay")? });
        step.finish()?;
    }
    let schedule = Schedule::new(read).map_err(|wrong| section.error(line, format!("`schedule`: {wrong}")))?;
    let schedule = match repeat {
        Some(period) => schedule.repeated(period).map_err(|wrong| section.error(line, format!("`repeat`: {wrong}")))?,
        None => schedule,
    };
    Ok(Some(Variation::Schedule(schedule)))
}
