//! Checks names before anything runs: metrics, series, axes, curves and figures in plots, scores and `paper.csv` must
//! exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::error::{LabError, ScenarioError};
use crate::expression::{Condition, Expression, Reference};
use crate::figures::{Figure, shipped};
use crate::folder;
use crate::metric::{Quantity, RunMetric};
use crate::names::Names;
use crate::scenario::reader::{Section, Value, listed, nearest};
use crate::scenario::{Overrides, PlotKind, PlotSpec, ScoreSpec};

#[cfg(test)]
mod tests;

/// The most names that a message lists.
const MAX_LISTED: usize = 24;

/// Checks all names in figures that are about to run. `out` may hold results of other scenarios, to which scores may
/// refer.
///
/// # Errors
/// The first name that does not exist, with its file and line and the nearest name that exists.
pub fn check(figures: &[&Figure], out: &Path) -> Result<(), LabError> {
    let mut names = BTreeMap::new();
    for figure in figures {
        names.insert(figure.info.id.clone(), figure.names()?);
    }
    let wanted: BTreeSet<String> = figures.iter().flat_map(|figure| figure.experiment.scenario.refers_to()).collect();
    for id in wanted {
        if !names.contains_key(&id)
            && let Some(found) = names_of(&id, out)?
        {
            names.insert(id, found);
        }
    }
    for figure in figures {
        Checker { figure, names: &names }.check()?;
    }
    Ok(())
}

/// The names of a figure that does not run now: a shipped one, or one with results in `out`.
fn names_of(id: &str, out: &Path) -> Result<Option<Names>, LabError> {
    if let Some(figure) = shipped().iter().find(|figure| figure.id == id) {
        return Ok(Some(figure.read(&Overrides::default())?.names()?));
    }
    // Results that cannot be read count as absent.
    let results = folder::results(out).unwrap_or_default();
    let mut names = Names::default();
    for record in results.iter().filter(|result| result.info.id == id).flat_map(|result| &result.records) {
        let vocabulary = names.curves.entry(record.curve.clone()).or_default();
        vocabulary.metrics.extend(record.metrics.keys().cloned());
    }
    Ok(Some(names).filter(|names| !names.curves.is_empty()))
}

/// A message about a name that does not exist, and the line of the key that holds it.
type Wrong = (usize, String);

struct Checker<'a> {
    figure: &'a Figure,
    /// By figure.
    names: &'a BTreeMap<String, Names>,
}

impl Checker<'_> {
    fn check(&self) -> Result<(), ScenarioError> {
        let experiment = &self.figure.experiment;
        let scenario = &experiment.scenario;
        let mut root = Section::root(experiment.source(), experiment.root())?;
        let error = |(line, message): Wrong| experiment.source().error_on(line, message);
        for (plot, mut section) in scenario.plots.iter().zip(root.sections("plot")?) {
            self.plot(plot, &mut section).map_err(error)?;
        }
        for (score, section) in scenario.scores.iter().zip(root.sections("score")?) {
            self.score(score, &section).map_err(error)?;
        }
        self.labels().map_err(|message| error((root.line_of("labels"), message)))?;
        self.published().map_err(|(line, message)| {
            let file = Path::new(experiment.file()).with_file_name("paper.csv").display().to_string();
            ScenarioError { file, line, message }
        })
    }

    fn own(&self) -> &Names {
        &self.names[&self.figure.info.id]
    }

    fn all_curves(&self) -> Vec<&str> {
        self.figure.experiment.scenario.curves.iter().map(|curve| curve.name.as_str()).collect()
    }

    fn first_curve(&self) -> &str {
        self.figure.experiment.scenario.curves.first().map_or("", |curve| &curve.name)
    }

    fn plot(&self, plot: &PlotSpec, section: &mut Section<'_>) -> Result<(), Wrong> {
        let curves = match plot.curves.as_slice() {
            [] => self.all_curves(),
            named => named.iter().map(String::as_str).collect(),
        };
        for (y, line) in plot.y.iter().zip(lines(section, "y")) {
            let checked = match plot.kind {
                PlotKind::Time => self.series(y, &curves),
                _ if y.ends_with('*') => self.pattern(y, &curves),
                _ => self.number(y, &curves),
            };
            checked.map_err(|message| (line, message))?;
        }
        let wrong = |key: &str| {
            let line = section.line_of(key);
            move |message| (line, message)
        };
        if let Some(x) = &plot.x {
            match plot.kind {
                PlotKind::Lines if !self.own().axes.contains_key(x) => self.number(x, &curves).map_err(wrong("x"))?,
                PlotKind::Lines | PlotKind::Time => {}
                PlotKind::Heat | PlotKind::Bars => self.axis(x).map_err(wrong("x"))?,
            }
        }
        if plot.kind == PlotKind::Heat && plot.by.is_empty() {
            return Err((section.line(), "a heat map needs `by`, the axis from bottom to top".to_owned()));
        }
        match &plot.filter {
            Some(filter) => self.condition(filter, &[self.first_curve()]).map_err(wrong("where")),
            None => Ok(()),
        }
    }

    fn score(&self, score: &ScoreSpec, section: &Section<'_>) -> Result<(), Wrong> {
        let curves = [score.curve.as_deref().unwrap_or_else(|| self.first_curve())];
        for (key, text, is_condition) in score.must.texts() {
            let checked = if is_condition { self.condition(text, &curves) } else { self.number(text, &curves) };
            checked.map_err(|message| (section.line_of(key), message))?;
        }
        match &score.filter {
            Some(filter) => self.condition(filter, &curves).map_err(|message| (section.line_of("where"), message)),
            None => Ok(()),
        }
    }

    fn published(&self) -> Result<(), Wrong> {
        let curves = self.all_curves();
        for published in &self.figure.info.published {
            let metric = &published.metric;
            let checked = match &published.curve {
                Some(curve) => self.curve(curve),
                None => Ok(()),
            };
            let is_series = self.own().curves.values().any(|vocabulary| vocabulary.series.contains(metric));
            let checked = checked.and_then(|()| if is_series { Ok(()) } else { self.number(metric, &curves) });
            checked.map_err(|message| (published.line, message))?;
        }
        Ok(())
    }

    /// Labels are words for axes, their values and flows.
    fn labels(&self) -> Result<(), String> {
        let Names { axes, curves } = self.own();
        let flows = curves.values().flat_map(|vocabulary| &vocabulary.metrics);
        let flows = flows.filter_map(|key| Quantity::Goodput.flow_of(key));
        let mut known: BTreeSet<&str> = axes.keys().map(String::as_str).chain(flows).collect();
        known.extend(axes.values().flatten().map(String::as_str));
        let labels = &self.figure.experiment.scenario.labels;
        let what = "axis, value of an axis or flow";
        labels.keys().try_for_each(|name| exists(what, name, known.contains(&**name), &known))
    }

    fn axis(&self, name: &str) -> Result<(), String> {
        let axes = &self.own().axes;
        exists("axis", name, axes.contains_key(name), axes.keys())
    }

    fn curve(&self, name: &str) -> Result<(), String> {
        let curves = &self.own().curves;
        exists("curve", name, curves.contains_key(name), curves.keys())
    }

    fn series(&self, name: &str, curves: &[&str]) -> Result<(), String> {
        let vocabularies = self.own().vocabularies(curves);
        let known: BTreeSet<&String> = vocabularies.iter().flat_map(|vocabulary| &vocabulary.series).collect();
        if known.is_empty() {
            return Err("this scenario keeps no series over time: `series = true` keeps them".to_owned());
        }
        let matches = match name.strip_suffix('*') {
            Some(base) => known.iter().any(|key| key.starts_with(base)),
            None => known.contains(&name.to_owned()),
        };
        let patterns = patterns(known.iter().copied());
        exists("series", name, matches, known.into_iter().chain(&patterns))
    }

    fn pattern(&self, pattern: &str, curves: &[&str]) -> Result<(), String> {
        let vocabularies = self.own().vocabularies(curves);
        let keys = vocabularies.iter().flat_map(|vocabulary| &vocabulary.metrics);
        let keys: Vec<&String> = keys.filter(|key| RunMetric::with_key(key).is_none()).collect();
        let base = pattern.trim_end_matches('*');
        let matches = keys.iter().any(|key| key.starts_with(base));
        exists("metric of flows", pattern, matches, patterns(keys.iter().copied()))
    }

    fn number(&self, text: &str, curves: &[&str]) -> Result<(), String> {
        let expression = Expression::parse(text).map_err(|wrong| format!("'{text}': {wrong}"))?;
        expression.references().iter().try_for_each(|reference| self.reference(reference, curves))
    }

    fn condition(&self, text: &str, curves: &[&str]) -> Result<(), String> {
        let condition = Condition::parse(text).map_err(|wrong| format!("'{text}': {wrong}"))?;
        condition.references().iter().try_for_each(|reference| self.reference(reference, curves))?;
        for (axis, value) in condition.compared_texts() {
            self.axis(axis)?;
            let values = &self.own().axes[axis];
            exists(&format!("value of axis '{axis}'"), value, values.contains(value), values)?;
        }
        Ok(())
    }

    fn reference(&self, reference: &Reference, curves: &[&str]) -> Result<(), String> {
        let Reference { name, curve, figure } = reference;
        let other = figure.as_ref().filter(|figure| **figure != self.figure.info.id);
        let names = match other {
            None => self.own(),
            Some(id) => match self.names.get(id) {
                Some(names) => names,
                None => return exists("figure", id, false, shipped().iter().map(|figure| figure.id)),
            },
        };
        if figure.is_none() && curve.is_none() && names.axes.contains_key(name) {
            return Ok(());
        }
        let vocabularies = match curve {
            Some(curve) => match names.curves.get(curve) {
                Some(vocabulary) => vec![vocabulary],
                None => return exists("curve", curve, false, names.curves.keys()),
            },
            None if other.is_some() => names.curves.values().collect(),
            None => names.vocabularies(curves),
        };
        let known = || vocabularies.iter().flat_map(|vocabulary| &vocabulary.metrics);
        let axes = names.axes.keys().filter(|_| figure.is_none() && curve.is_none());
        exists("metric", name, known().any(|key| key == name), known().chain(axes))
    }
}

/// The line of each text of a key, which holds one text or a list of them.
fn lines(section: &mut Section<'_>, key: &'static str) -> Vec<usize> {
    let nodes = match section.get(key).map(|node| (node, node.get_ref())) {
        Some((_, Value::List(nodes))) => nodes.as_slice(),
        Some((node, _)) => std::slice::from_ref(node),
        None => &[],
    };
    nodes.iter().map(|node| section.source().line(node.span().start)).collect()
}

/// The patterns that stand for keys of flows: `goodput.*`.
fn patterns<'k>(keys: impl Iterator<Item = &'k String>) -> Vec<String> {
    let quantities = keys.filter(|key| key.contains('.')).filter_map(|key| Quantity::of_key(key));
    quantities.collect::<BTreeSet<_>>().into_iter().map(Quantity::of_all_flows).collect()
}

/// An error unless the name exists. It names the nearest name that does, or all of them.
fn exists<N: AsRef<str>>(
    what: &str,
    name: &str,
    exists: bool,
    known: impl IntoIterator<Item = N>,
) -> Result<(), String> {
    if exists {
        return Ok(());
    }
    let known: Vec<N> = known.into_iter().collect();
    let known: BTreeSet<&str> = known.iter().map(AsRef::as_ref).collect();
    let hint = match nearest(name, known.iter().copied()) {
        Some(meant) => format!("did you mean '{meant}'?"),
        None if known.is_empty() => "there is none".to_owned(),
        None if known.len() <= MAX_LISTED => format!("there are {}", listed(&known.into_iter().collect::<Vec<_>>())),
        None => {
            let short = shortened(&known);
            format!("there are {}", listed(&short.iter().map(String::as_str).collect::<Vec<_>>()))
        }
    };
    Err(format!("there is no {what} '{name}': {hint}"))
}

/// Keys of flows as `goodput.FLOW`, once for all flows.
fn shortened(keys: &BTreeSet<&str>) -> Vec<String> {
    let short = |key: &&str| match Quantity::of_key(key) {
        Some(quantity) if key.contains('.') && RunMetric::with_key(key).is_none() => quantity.of_flow("FLOW"),
        _ => (*key).to_owned(),
    };
    keys.iter().map(short).collect::<BTreeSet<_>>().into_iter().collect()
}
