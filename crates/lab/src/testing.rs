//! Results for the tests of drawings and scores, made by formulas.

mod gallery;

use std::collections::BTreeMap;

use crate::expression::quantity_in_base_units;
use crate::figures::{FigureInfo, FigureResult};
use crate::record::{AxisValue, EmulationRecord, Record, World};
use crate::scenario::{Axis, Curve, Demand, Scenario, ScoreSource, ScoreSpec};

pub(crate) use gallery::gallery;

/// The grid of a figure.
pub(crate) struct Grid<'a> {
    /// Values of the axis `rate`.
    pub(crate) rates: &'a [&'a str],
    /// Values of the axis `rtt`.
    pub(crate) rtts: &'a [&'a str],
    /// Seeds, from 1.
    pub(crate) seeds: u64,
}

/// One run of the figure.
pub(crate) struct TestRun<'a> {
    pub(crate) curve: &'a str,
    pub(crate) rate: f64,
    pub(crate) rtt: f64,
    pub(crate) seed: u64,
}

/// The names of the curves. The second is Farhaul's default.
pub(crate) const CURVES: [&str; 2] = ["udt-2004", "udt"];

fn values(texts: &[&str]) -> Vec<AxisValue> {
    texts.iter().map(|text| AxisValue { text: (*text).to_owned(), number: quantity_in_base_units(text) }).collect()
}

/// A figure whose metrics are a function of the run.
pub(crate) fn figure(
    id: &str,
    grid: Grid<'_>,
    scores: Vec<ScoreSpec>,
    metrics: impl Fn(&TestRun<'_>) -> Vec<(String, f64)>,
) -> FigureResult {
    let mut axes = Vec::new();
    for (name, texts) in [("rate", grid.rates), ("rtt", grid.rtts)] {
        if !texts.is_empty() {
            axes.push(Axis { name: name.to_owned(), set: vec![format!("link.{name}")], values: values(texts) });
        }
    }
    let label = |curve: &str| if curve == "udt" { "Farhaul’s default".to_owned() } else { curve.to_owned() };
    let scenario = Scenario {
        name: id.to_owned(),
        title: "UDT fills a DropTail link".to_owned(),
        paper: Some("udt-2004".to_owned()),
        source: Some("Figure 3, §4.1".to_owned()),
        shows: Some("Utilisation stays high unless the link is slow and the path long.".to_owned()),
        duration: 60.0,
        warmup: 0.0,
        seeds: (1..=grid.seeds).collect(),
        axes,
        curves: CURVES.iter().map(|name| Curve::named((*name).to_owned(), label(name))).collect(),
        flows: vec!["udt".to_owned()],
        labels: BTreeMap::new(),
        plots: Vec::new(),
        draws_by_default: false,
        scores,
    };
    let mut records = Vec::new();
    for curve in CURVES {
        for point in crate::aggregate::grid(&scenario) {
            for seed in 1..=grid.seeds {
                let at = |axis: &str| point.get(axis).and_then(|value| value.number).unwrap_or(0.0);
                let run = TestRun { curve, rate: at("rate"), rtt: at("rtt"), seed };
                let metrics = metrics(&run).into_iter().collect();
                records.push(record(id, curve, point.clone(), seed, metrics));
            }
        }
    }
    let info = FigureInfo {
        id: id.to_owned(),
        paper: "udt-2004".to_owned(),
        title: scenario.title.clone(),
        source: "Figure 3, §4.1".to_owned(),
        shows: "Utilisation stays high unless the link is slow and the path long.".to_owned(),
        readme: String::new(),
        is_shipped: true,
        published: Vec::new(),
    };
    FigureResult {
        info,
        scenario,
        world: Default::default(),
        records,
        quick: false,
        command: format!("farhaul lab run {id} --seed 1"),
        emulated: None,
    }
}

fn record(
    id: &str,
    curve: &str,
    point: BTreeMap<String, AxisValue>,
    seed: u64,
    metrics: BTreeMap<String, f64>,
) -> Record {
    Record {
        figure: id.to_owned(),
        curve: curve.to_owned(),
        point,
        seed,
        world: Default::default(),
        emulation: None,
        metrics,
        series: BTreeMap::new(),
        key: String::new(),
        trace: String::new(),
        simulated_seconds: 60.0,
        real_seconds: 1.0,
        packet_hops: 1_000,
    }
}

/// A score of the first curve.
pub(crate) fn score(id: &str, must: Demand, filter: Option<&str>) -> ScoreSpec {
    ScoreSpec {
        id: id.to_owned(),
        says: "utilisation ≥ 98 %".to_owned(),
        curve: None,
        filter: filter.map(str::to_owned),
        must,
        source: ScoreSource::Paper,
        line: 1,
    }
}

/// The gallery. Its first figure also has emulated runs, with nine tenths of every value.
pub(crate) fn both_worlds() -> Vec<FigureResult> {
    let mut results = gallery();
    let mut emulated = results[0].clone();
    emulated.world = World::Emulated;
    emulated.command.push_str(" --world emu");
    for run in &mut emulated.records {
        run.world = World::Emulated;
        run.metrics.values_mut().for_each(|value| *value *= 0.9);
        run.emulation = Some(EmulationRecord { valid: true, flaws: Vec::new(), ..flawed() });
    }
    results.insert(1, emulated);
    results
}

/// The report of an invalid run.
pub(crate) fn flawed() -> EmulationRecord {
    EmulationRecord {
        valid: false,
        flaws: vec!["97 % of a processor were needed".to_owned()],
        lateness_p50: 1e-5,
        lateness_p99: 1e-4,
        lateness_max: 1e-3,
        longest_gap: 1e-3,
        busy: 0.97,
        waited: None,
        host_wait: None,
        receiver_drops: 0,
        tcp: None,
    }
}
