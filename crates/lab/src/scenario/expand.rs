//! Expands a scenario into its runs: every curve at every point of the grid with every seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use farhaul_cc::Spec;
use farhaul_units::Rate;

use super::axis::{Axis, Changes, Curve};
use super::edit::{name_elements, set};
use super::plot::by_default;
use super::reader::{Node, Section, Source, Table};
use super::setup::Setup;
use super::vocabulary::Vocabulary;
use super::{AllChanges, Scenario};
use crate::error::ScenarioError;
use crate::key::RunKey;
use crate::record::AxisValue;

/// The most runs of one scenario: a month of a machine.
const MAX_JOBS: usize = 1_000_000;

/// Changes by the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The quick form of the scenario.
    pub quick: bool,
    /// The form for real sockets, on top of the quick one if both are wanted.
    pub emulated: bool,
    /// The seeds that replace the scenario's; none for those of the scenario.
    pub seeds: Vec<u64>,
    /// Values of an axis by its name, or of a key by its path.
    pub axes: Vec<(String, Vec<String>)>,
    /// A smoke run for tests: the first and the last point of each curve, for a moment of virtual time, without
    /// warm-up.
    pub smoke: bool,
    /// Controllers of the program, by the names that flows have for them.
    pub controllers: Controllers,
}

/// Controllers by name.
pub type Controllers = BTreeMap<String, Spec>;

/// A scenario and all its setups.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The scenario.
    pub scenario: Scenario,
    changes: AllChanges,
    smoke: bool,
    controllers: Controllers,
    source: Source,
    root: Node,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The curve's name.
    pub curve: String,
    /// The point of the grid.
    pub point: BTreeMap<String, AxisValue>,
    /// The seed.
    pub seed: u64,
    /// The key in records. Runs have equal keys if and only if everything is equal that they depend on.
    pub key: String,
    /// Whether the run keeps series. The first seed's series are drawn.
    pub(crate) series: bool,
    pub(crate) setup: Arc<Setup>,
}

impl Job {
    /// The name in messages.
    pub fn name(&self, figure: &str) -> String {
        let point: String = self.point.iter().map(|(axis, value)| format!(" {axis}={}", value.text)).collect();
        let curve = if self.curve.is_empty() { String::new() } else { format!(" {}", self.curve) };
        format!("{figure}{curve}{point} seed={}", self.seed)
    }

    /// The files that it reads, by their names in the scenario.
    pub(crate) fn files(&self) -> &BTreeSet<String> {
        &self.setup.files
    }

    /// The congestion controllers of its flows.
    pub(crate) fn laws(&self) -> impl Iterator<Item = &Spec> {
        self.setup.flows.iter().filter_map(|flow| flow.protocol.law())
    }

    /// The rate of the fastest link, and the size of the largest packets in bytes. A machine must carry both in real
    /// time. `None` if no link has a rate.
    pub fn demand(&self) -> Option<(Rate, u32)> {
        Some((self.setup.fastest_link()?, self.setup.largest_packet()?))
    }

    /// The packets that the bottleneck can carry during the run. Runs with more of them begin first.
    pub fn weight(&self) -> f64 {
        let rate = self.setup.bottleneck().rate.map_or(1e9, |rate| rate.bits_per_second() as f64);
        rate * self.setup.duration.as_secs_f64()
    }
}

impl Experiment {
    /// Parses a scenario's text. Messages call it `file`, and records call it `name`.
    ///
    /// # Errors
    /// A mistake in the scenario, with its line.
    pub fn read(name: &str, file: &str, text: &str, overrides: &Overrides) -> Result<Self, ScenarioError> {
        let (source, mut root) = Source::read(file, text)?;
        name_elements(&mut root);
        // Reports mistakes of the scenario before those of its other forms.
        Scenario::read(name, &source, &root)?;
        let form = |key| Ok(Section::root(&source, &root)?.value::<Table>(key)?.unwrap_or_default());
        for (form, is_wanted) in [(form("quick")?, overrides.quick), (form("emulated")?, overrides.emulated)] {
            for (path, value) in form.into_iter().filter(|_| is_wanted) {
                apply(&source, &mut root, &path, &value)?;
            }
        }
        let (mut scenario, mut changes) = Scenario::read(name, &source, &root)?;
        for (key, values) in &overrides.axes {
            let replaced = scenario.axes.iter().position(|axis| axis.name == *key);
            let path = replaced.and_then(|place| scenario.axes[place].set.first()).unwrap_or(key);
            let (mut axis, sets) = Axis::over(path, values);
            axis.name.clone_from(key);
            match replaced {
                Some(place) => (scenario.axes[place], changes.axes[place]) = (axis, sets),
                None => {
                    scenario.axes.push(axis);
                    changes.axes.push(sets);
                }
            }
        }
        if !overrides.seeds.is_empty() {
            scenario.seeds.clone_from(&overrides.seeds);
        }
        if scenario.curves.is_empty() {
            scenario.curves.push(Curve::only());
            changes.curves.push(Changes::new());
        }
        let controllers = overrides.controllers.clone();
        let mut experiment = Self { scenario, changes, smoke: overrides.smoke, controllers, source, root };
        let (first, _) = experiment.setup(&[&experiment.changes.curves[0], &experiment.first_point()])?;
        experiment.scenario.duration = first.duration.as_secs_f64();
        experiment.scenario.warmup = first.warmup.as_secs_f64();
        if experiment.scenario.draws_by_default {
            let keeps_series = first.series.unwrap_or(experiment.scenario.axes.is_empty());
            let vocabulary = Vocabulary::of(&first, keeps_series);
            let flows = first.flows.iter().map(|flow| flow.name.as_str());
            experiment.scenario.plots = by_default(&experiment.scenario.axes, &flows.collect::<Vec<_>>(), &vocabulary);
        }
        for place in 0..experiment.changes.curves.len() {
            // A curve that cannot be run has no words: its runs report the mistake.
            if let Ok((setup, _)) = experiment.setup(&[&experiment.changes.curves[place], &experiment.first_point()]) {
                experiment.scenario.curves[place].laws = setup.laws();
            }
        }
        experiment.scenario.flows = first.flows.into_iter().map(|flow| flow.name).collect();
        Ok(experiment)
    }

    /// The scenario's file, as it was named.
    pub(crate) fn file(&self) -> &str {
        &self.source.file
    }

    /// The scenario's file, with its lines.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// The scenario as it was written, with the changes of the quick and of the emulated form if they are run.
    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    /// The controllers of the program that it may name.
    pub(crate) const fn controllers(&self) -> &Controllers {
        &self.controllers
    }

    fn first_point(&self) -> Changes {
        self.changes.axes.iter().flat_map(|values| values[0].clone()).collect()
    }

    /// All runs, in the order of curves, points and seeds. `build` is the key of the program.
    ///
    /// # Errors
    /// An experiment that cannot be run, with the line of the mistake.
    pub fn jobs(&self, build: &str) -> Result<Vec<Job>, ScenarioError> {
        let points: usize = self.scenario.axes.iter().map(|axis| axis.values.len()).product();
        let count = points.saturating_mul(self.scenario.curves.len()).saturating_mul(self.scenario.seeds.len());
        if count > MAX_JOBS {
            return Err(self.source.error_on(1, format!("{count} runs are too many: {MAX_JOBS} are allowed")));
        }
        let mut jobs = Vec::with_capacity(count);
        for curve in 0..self.scenario.curves.len() {
            for point in (0..points).filter(|point| !self.smoke || *point == 0 || point + 1 == points) {
                self.point(build, curve, point, &mut jobs)?;
            }
        }
        Ok(jobs)
    }

    /// The runs of one curve at one point.
    fn point(&self, build: &str, curve: usize, mut index: usize, jobs: &mut Vec<Job>) -> Result<(), ScenarioError> {
        let mut point = BTreeMap::new();
        let mut layers = vec![&self.changes.curves[curve]];
        // The last axis changes fastest.
        for (axis, changes) in self.scenario.axes.iter().zip(&self.changes.axes).rev() {
            let place = index % axis.values.len();
            index /= axis.values.len();
            point.insert(axis.name.clone(), axis.values[place].clone());
            layers.push(&changes[place]);
        }
        let (setup, text) = self.setup(&layers)?;
        let series = setup.series.unwrap_or(self.scenario.axes.is_empty());
        let drawn = self.scenario.seeds[0];
        let setup = Arc::new(setup);
        for &seed in &self.scenario.seeds {
            let key = RunKey::new()
                .text(build)
                .text(&text)
                .number(seed)
                .number(u64::from(series && seed == drawn))
                .to_string();
            let (point, setup) = (point.clone(), Arc::clone(&setup));
            let curve = self.scenario.curves[curve].name.clone();
            jobs.push(Job { curve, point, seed, key, series: series && seed == drawn, setup });
        }
        Ok(())
    }

    /// The setup after these changes, and its text in a form that does not depend on the file's.
    fn setup(&self, layers: &[&Changes]) -> Result<(Setup, String), ScenarioError> {
        let mut root = self.root.clone();
        for (path, value) in layers.iter().copied().flatten() {
            apply(&self.source, &mut root, path, value)?;
        }
        let setup = Setup::read(&self.source, &root, &self.controllers)?;
        let setup = if self.smoke { setup.smoke() } else { setup };
        // Recorded links are in files of their own.
        let recorded: String = setup.topology.links.iter().map(|link| format!("{:?}", link.path.variation)).collect();
        let revisions = setup.revisions();
        Ok((setup, Setup::canonical(&root) + &recorded + &revisions))
    }
}

fn apply(source: &Source, root: &mut Node, path: &str, value: &Node) -> Result<(), ScenarioError> {
    set(root, path, value).map_err(|message| source.error(value, message))
}
