//! Jitter, reordering, policers, rates and delays over time, and recorded links.

use std::path::Path;

use farhaul_netem::{DeliveryTrace, JitterShape, JitterSpec, PolicerSpec, ReorderSpec, Schedule, Step, Variation};
use farhaul_units::{ByteSize, Duration};
use serde::Deserialize;
use toml::Spanned;

use super::super::files;
use super::super::reader::{AboveZero, LinkRate, OrTable, Section, Share, Size, Time};
use crate::error::ScenarioError;

/// `{ max = "5ms", shape = "normal", reorder = true }`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct JitterKeys {
    max: Time,
    shape: Shape,
    reorder: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Shape {
    #[default]
    Uniform,
    Normal,
}

/// A share of packets that are held back.
#[derive(Deserialize)]
#[serde(expecting = "{ share = \"1%\", by = \"5ms\" }")]
pub(super) struct ReorderKeys {
    share: Share,
    by: AboveZero,
}

/// A rate above which packets are dropped.
#[derive(Deserialize)]
#[serde(expecting = "{ rate = \"100mbit\", burst = \"15kB\" }")]
pub(super) struct PolicerKeys {
    rate: LinkRate,
    burst: Size,
}

/// A change of a link at a time.
#[derive(Deserialize)]
#[serde(expecting = "{ at = \"10s\", rate = \"50mbit\" }")]
struct StepKeys {
    at: Time,
    rate: Option<LinkRate>,
    delay: Option<Time>,
}

pub(super) fn jitter(keys: OrTable<Time, JitterKeys>) -> Option<JitterSpec> {
    let spec = match keys {
        OrTable::Bare(Time(max)) => JitterSpec::up_to(max),
        OrTable::Table(keys) => JitterSpec {
            max: keys.max.0,
            shape: match keys.shape {
                Shape::Uniform => JitterShape::Uniform,
                Shape::Normal => JitterShape::Normal,
            },
            may_reorder: keys.reorder,
        },
    };
    (spec.max > Duration::ZERO).then_some(spec)
}

pub(super) fn reorder(keys: ReorderKeys) -> Option<ReorderSpec> {
    let spec = ReorderSpec { probability: keys.share.0, extra_delay: keys.by.0 };
    (spec.probability > 0.0).then_some(spec)
}

pub(super) fn policer(keys: PolicerKeys) -> PolicerSpec {
    PolicerSpec { rate: keys.rate.0, burst: ByteSize(keys.burst.0) }
}

/// `schedule = [{ at = "10s", rate = "50mbit" }, …]`, repeated every `repeat`, or `trace = "FILE"`, a mahimahi trace
/// beside the scenario.
pub(super) fn variation(section: &mut Section<'_>) -> Result<Option<Variation>, ScenarioError> {
    let steps: Vec<StepKeys> = section.value("schedule")?.unwrap_or_default();
    let repeat = section.value("repeat")?;
    if let Some(name) = section.value::<Spanned<String>>("trace")? {
        if !steps.is_empty() {
            return Err(section.source().error(&name, "a link has either `schedule` or `trace`"));
        }
        let path = files::place(Path::new(&section.source().file), name.get_ref());
        let text = std::fs::read_to_string(&path).map_err(|wrong| {
            section.source().error(&name, format!("cannot read the trace {}: {wrong}", path.display()))
        })?;
        let trace: DeliveryTrace =
            text.parse().map_err(|wrong| section.source().error(&name, format!("{}: {wrong}", path.display())))?;
        return Ok(Some(Variation::Trace(trace)));
    }
    if steps.is_empty() {
        return Ok(None);
    }
    let wrong = |what: String| section.source().error_on(section.line_of("schedule"), what);
    let steps = steps.into_iter().map(|step| Step {
        at: step.at.0,
        rate: step.rate.map(|LinkRate(rate)| rate),
        delay: step.delay.map(|Time(delay)| delay),
    });
    let schedule = Schedule::new(steps).map_err(|error| wrong(format!("`schedule`: {error}")))?;
    let schedule = match repeat {
        Some(AboveZero(period)) => schedule.repeated(period).map_err(|error| wrong(format!("`repeat`: {error}")))?,
        None => schedule,
    };
    Ok(Some(Variation::Schedule(schedule)))
}
