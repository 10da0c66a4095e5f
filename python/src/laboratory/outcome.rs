//! What an experiment gives, as objects of Python.

use farhaul_lab::aggregate::Measurements;
use farhaul_lab::report::{contents, drawings};
use farhaul_lab::scenario::ScoreSource;
use farhaul_lab::score::{Worst, evaluate};
use farhaul_lab::{Figure, FigureInfo, FigureResult, Record, Scenario};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use serde_json::{Value, json};

use crate::error::usage;
use crate::gate::detach;
use crate::report::as_object;

/// A figure before it is run.
pub(super) fn listed(figure: &Figure) -> Value {
    described(&figure.info, &figure.experiment.scenario)
}

fn described(info: &FigureInfo, scenario: &Scenario) -> Value {
    let scores = scenario.scores.iter().map(|score| json!({ "id": score.id, "says": score.says }));
    let curves = scenario.curves.iter().map(|curve| (curve.name.clone(), Value::from(curve.label.clone())));
    let axes = scenario.axes.iter().map(|axis| axis.name.as_str());
    json!({
        "id": info.id,
        "title": info.title,
        "paper": info.paper,
        "source": info.source,
        "shows": info.shows,
        "readme": info.readme,
        "axes": axes.collect::<Vec<_>>(),
        "curves": curves.collect::<serde_json::Map<_, _>>(),
        "flows": scenario.flows,
        "duration": scenario.duration,
        "warmup": scenario.warmup,
        "seeds": scenario.seeds,
        "scores": scores.collect::<Vec<_>>(),
    })
}

/// The result of an experiment: its figure, `records`, `scores`, `published`, `plots` and `drawings`.
pub(super) fn object<'py>(py: Python<'py>, figure: &FigureResult) -> PyResult<Bound<'py, PyAny>> {
    let (scores, plots, drawn) = detach(py, || {
        let measurements = Measurements::new([figure]);
        let scores: Vec<Value> = evaluate(figure, &measurements)
            .iter()
            .map(|score| {
                json!({
                    "id": score.id,
                    "says": score.says,
                    "source": if score.source == ScoreSource::Paper { "paper" } else { "ours" },
                    "met": score.applies.then_some(score.met),
                    "holds": score.holds,
                    "places": score.places,
                    "worst": score.worst.as_ref().and_then(Worst::numbers),
                    "measured": score.measured(),
                })
            })
            .collect();
        let plots: Vec<Value> =
            contents(figure, &measurements).iter().filter_map(|plot| serde_json::to_value(plot).ok()).collect();
        let drawn = drawings(figure, &measurements);
        let drawn: Vec<Value> =
            drawn.iter().map(|drawn| json!({ "name": drawn.name, "title": drawn.title, "svg": drawn.svg })).collect();
        (scores, plots, drawn)
    });
    let published: Vec<Value> = figure
        .info
        .published
        .iter()
        .map(|published| {
            let point = published.point.iter().map(|(axis, value)| (axis.clone(), value.text.clone().into()));
            json!({
                "curve": published.curve,
                "metric": published.metric,
                "point": point.collect::<serde_json::Map<_, _>>(),
                "value": published.value,
                "text": published.text,
            })
        })
        .collect();
    let mut all = described(&figure.info, &figure.scenario);
    all["world"] = figure.world.to_string().into();
    all["quick"] = figure.quick.into();
    all["scores"] = scores.into();
    all["published"] = published.into();
    all["plots"] = plots.into();
    all["drawings"] = drawn.into();
    let all = as_object(py, &all)?;
    let records = figure.records.iter().map(|record| run(py, record)).collect::<PyResult<Vec<_>>>()?;
    all.set_item("records", PyList::new(py, records)?)?;
    Ok(all)
}

/// A run. Each of its series is two blocks of numbers: times, and values.
pub(super) fn run<'py>(py: Python<'py>, record: &Record) -> PyResult<Bound<'py, PyAny>> {
    let blocks = PyDict::new(py);
    for (name, points) in &record.series {
        let block = |part: fn(&(f64, f64)) -> f64| {
            let bytes: Vec<u8> = points.iter().flat_map(|point| part(point).to_ne_bytes()).collect();
            PyBytes::new(py, &bytes)
        };
        blocks.set_item(name, (block(|point| point.0), block(|point| point.1)))?;
    }
    let bare = Record { series: Default::default(), ..record.clone() };
    let object = as_object(py, &serde_json::to_value(&bare).map_err(|error| usage(error.to_string()))?)?;
    object.set_item("series", blocks)?;
    object.set_item("valid", record.is_valid())?;
    Ok(object)
}
