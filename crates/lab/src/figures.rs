//! The figures of the papers, as they are shipped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::check::Names;
use crate::error::{LabError, ScenarioError};
use crate::expression::Expression;
use crate::record::{AxisValue, Record};
use crate::scenario::{Experiment, Job, Overrides, Scenario, files, nearest};
use crate::world::World;

/// What a figure is, before it is run.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureInfo {
    /// Lower case: `a5`, `b3`, `a-err`; for a scenario of one's own its file's name.
    pub id: String,
    /// Key of the paper in `docs/papers/papers.bib`; empty for a scenario of one's own.
    pub paper: String,
    /// What stands above it.
    pub title: String,
    /// Where in the paper.
    pub source: String,
    /// One line: what one should see.
    pub shows: String,
    /// The figure's own words (Markdown): choices made where the paper is silent, what differs and why.
    pub readme: String,
    /// Whether Farhaul ships it like this, so that the numbers in its README are those of the shipped full run.
    pub is_shipped: bool,
    /// What the paper reports.
    pub published: Vec<Published>,
}

/// One number that a paper reports: a line of the figure's `paper.csv`.
///
/// The file's columns are `metric`, `value` (a number or a quantity, `940mbit`, `98%`), optionally `curve`, `bound`
/// (`is`, `about`, `at-least`, `at-most`), `note`; every other column is an axis of the figure, with an empty cell for
/// "everywhere".
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// For this curve only.
    pub curve: Option<String>,
    /// Where in the grid; axes that are not named are meant at all their values.
    pub point: BTreeMap<String, AxisValue>,
    /// Which metric, or the name of a series.
    pub metric: String,
    /// In base units.
    pub value: f64,
    /// As it was written.
    pub text: String,
    /// How the number is meant.
    pub bound: Bound,
    /// What has to be known about it.
    pub note: String,
    /// Its line in the file, from 1.
    pub line: usize,
}

/// How a published number is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bound {
    /// Printed in the paper.
    #[default]
    Is,
    /// "About".
    About,
    /// "At least", "above".
    AtLeast,
    /// "At most", "below".
    AtMost,
}

/// A figure and what its runs gave.
#[derive(Clone, Debug)]
pub struct FigureResult {
    /// What it is.
    pub info: FigureInfo,
    /// The scenario, as it was run (with `--quick`, its quick form).
    pub scenario: Scenario,
    /// Where it was run.
    pub world: World,
    /// All its runs, ordered by curve, point and seed.
    pub records: Vec<Record>,
    /// Whether it is the quick form.
    pub quick: bool,
    /// The command that runs it again.
    pub command: String,
    /// The same in the emulated world, where this stands for both: see [`joined`](crate::report::worlds::joined).
    pub emulated: Option<Box<FigureResult>>,
}

impl FigureResult {
    /// Ids of the figures that its scores and plots compare it with.
    pub fn refers_to(&self) -> BTreeSet<String> {
        refers_to(&self.scenario)
    }
}

/// Ids of the other figures that a scenario's scores and plots mention.
fn refers_to(scenario: &Scenario) -> BTreeSet<String> {
    let scores =
        scenario.scores.iter().flat_map(|score| score.expressions().into_iter().chain(score.filter.as_deref()));
    let plots = scenario.plots.iter().flat_map(|plot| {
        let texts = plot.y.iter().chain(&plot.x).chain(&plot.filter);
        texts.map(String::as_str)
    });
    let references = scores.chain(plots).filter_map(|text| Expression::parse(text).ok());
    let figures = references.flat_map(|expression| expression.references()).filter_map(|reference| reference.figure);
    figures.filter(|figure| *figure != scenario.name).collect()
}

/// A figure as the program carries it: the files of its folder.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its folder's name, which is its id.
    pub id: &'static str,
    /// Key of the paper: the name of the folder above.
    pub paper: &'static str,
    /// `scenario.toml`
    pub scenario: &'static str,
    /// `paper.csv`
    pub published: &'static str,
    /// `README.md`
    pub readme: &'static str,
}

static SHIPPED: &[Shipped] = include!(concat!(env!("OUT_DIR"), "/figures.rs"));

/// All shipped figures, by paper and id.
pub fn shipped() -> &'static [Shipped] {
    SHIPPED
}

/// A figure or a scenario of one's own, ready to be expanded into runs.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it is.
    pub info: FigureInfo,
    /// Its experiments.
    pub experiment: Experiment,
    /// The scenario's text.
    pub text: String,
    /// The text of `paper.csv`, empty if there is none.
    pub published: String,
}

impl Figure {
    /// The figure with this id, in any case; or, for a name that ends in `.toml`, the scenario in that file.
    ///
    /// # Errors
    /// There is none, or it cannot be read or run.
    pub fn find(name: &str, overrides: &Overrides) -> Result<Self, LabError> {
        if Path::new(name).extension().is_some_and(|extension| extension == "toml") {
            return Self::file(Path::new(name), overrides);
        }
        let id = name.to_ascii_lowercase();
        match shipped().iter().find(|figure| figure.id == id) {
            Some(figure) => figure.read(overrides),
            None => {
                let ids = shipped().iter().map(|figure| figure.id);
                let nearest = nearest(&id, ids).map_or(String::new(), |id| format!(" (perhaps {id}?)"));
                Err(LabError::NoFigure { name: name.to_owned(), nearest })
            }
        }
    }

    /// Ids of the figures that its scores and plots compare it with.
    pub(crate) fn refers_to(&self) -> BTreeSet<String> {
        refers_to(&self.experiment.scenario)
    }

    /// The names that plots and scores can mention: of its runs here, in full and in the quick form.
    ///
    /// # Errors
    /// An experiment that cannot be run here.
    pub fn names(&self) -> Result<Names, ScenarioError> {
        self.all_jobs().map(|jobs| Names::of(&jobs))
    }

    /// The files that its runs read, by the names that the scenario has for them: here, in full and in the quick form.
    ///
    /// # Errors
    /// An experiment that cannot be run here.
    pub(crate) fn files(&self) -> Result<BTreeMap<String, PathBuf>, ScenarioError> {
        let scenario = Path::new(self.experiment.file());
        let jobs = self.all_jobs()?;
        let names = jobs.iter().flat_map(Job::files);
        Ok(names.map(|name| (name.clone(), files::place(scenario, name))).collect())
    }

    /// Its runs here, in full and in the quick form.
    fn all_jobs(&self) -> Result<Vec<Job>, ScenarioError> {
        let mut jobs = self.experiment.jobs("")?;
        for quick in [false, true] {
            let overrides = Overrides { quick, ..Overrides::default() };
            // What cannot be run otherwise is not asked for here.
            let other = Experiment::read(&self.info.id, self.experiment.file(), &self.text, &overrides);
            jobs.extend(other.and_then(|experiment| experiment.jobs("")).unwrap_or_default());
        }
        Ok(jobs)
    }

    /// Whether it is a figure of this program as it is shipped, wherever it was read from.
    pub fn is_shipped(&self) -> bool {
        let same = |shipped: &&Shipped| shipped.id == self.info.id && shipped.scenario == self.text;
        shipped().iter().find(same).is_some_and(|shipped| shipped.published == self.published)
    }

    /// The scenario in a file, with `paper.csv` and `README.md` beside it if there are any.
    ///
    /// # Errors
    /// It cannot be read or run.
    pub fn file(path: &Path, overrides: &Overrides) -> Result<Self, LabError> {
        let read = |path: &Path| std::fs::read_to_string(path).map_err(|source| LabError::file(path, source));
        let beside = |name: &str| match path.with_file_name(name) {
            path if path.exists() => read(&path),
            _ => Ok(String::new()),
        };
        let stem = id_of(path);
        let figure = Source {
            id: &stem,
            file: &path.display().to_string(),
            text: read(path)?,
            published: &beside("paper.csv")?,
            readme: &beside("README.md")?,
        };
        Ok(figure.read(overrides)?)
    }
}

/// What a scenario file is called: as the folder of a figure, or as the file.
fn id_of(path: &Path) -> String {
    let words = |name: Option<&std::ffi::OsStr>| name.map(|name| name.to_string_lossy().into_owned());
    let stem = words(path.file_stem()).unwrap_or_default();
    match words(path.parent().and_then(Path::file_name)) {
        Some(folder) if stem == "scenario" => folder.to_ascii_lowercase(),
        _ => stem,
    }
}

impl Shipped {
    /// Reads its files.
    ///
    /// # Errors
    /// What is wrong with them; a test reads all of them.
    pub fn read(&self, overrides: &Overrides) -> Result<Figure, LabError> {
        let file = format!("figures/{}/{}/scenario.toml", self.paper, self.id);
        let Self { id, scenario, published, readme, .. } = *self;
        Ok(Source { id, file: &file, text: scenario.to_owned(), published, readme }.read(overrides)?)
    }
}

/// The files of a figure, wherever they are from.
struct Source<'a> {
    id: &'a str,
    file: &'a str,
    text: String,
    published: &'a str,
    readme: &'a str,
}

impl Source<'_> {
    fn read(self, overrides: &Overrides) -> Result<Figure, ScenarioError> {
        let experiment = Experiment::read(self.id, self.file, &self.text, overrides)?;
        let scenario = &experiment.scenario;
        let axes: Vec<&str> = scenario.axes.iter().map(|axis| axis.name.as_str()).collect();
        let published = crate::paper::read(self.published, &axes).map_err(|wrong| ScenarioError {
            file: Path::new(self.file).with_file_name("paper.csv").display().to_string(),
            line: wrong.line,
            message: wrong.message,
        })?;
        let words = |text: &Option<String>| text.clone().unwrap_or_default();
        let info = FigureInfo {
            id: self.id.to_owned(),
            paper: words(&scenario.paper),
            title: scenario.title.clone(),
            source: words(&scenario.source),
            shows: words(&scenario.shows),
            readme: self.readme.to_owned(),
            is_shipped: false,
            published,
        };
        let mut figure = Figure { info, experiment, text: self.text, published: self.published.to_owned() };
        figure.info.is_shipped = figure.is_shipped();
        Ok(figure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_that_differs_from_the_figure_of_its_name_is_no_figure() {
        let mut figure = shipped()[0].read(&Overrides::default()).unwrap();
        assert!(figure.is_shipped());
        figure.text.push_str("# Mine.\n");
        assert!(!figure.is_shipped());
    }
}
