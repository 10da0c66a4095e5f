//! The figures of the papers, as the program ships them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::error::{LabError, ScenarioError};
use crate::expression::references;
use crate::names::Names;
use crate::paper::{self, Published};
use crate::record::{Record, World};
use crate::scenario::{Experiment, Job, Overrides, Scenario, files, nearest};

/// A figure before it is run.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureInfo {
    /// The id in lower case: `a5`, `b3`, `a-err`. For a user's scenario, the name of its file.
    pub id: String,
    /// The paper's key in `docs/papers/papers.bib`; empty for a user's scenario.
    pub paper: String,
    /// The title.
    pub title: String,
    /// The place in the paper.
    pub source: String,
    /// The expected result in one line.
    pub shows: String,
    /// The figure's README in Markdown: choices where the paper is silent, differences and their reasons.
    pub readme: String,
    /// Whether Farhaul ships the figure in this form. The README then has the numbers of the shipped full run.
    pub is_shipped: bool,
    /// The numbers that the paper reports.
    pub published: Vec<Published>,
}

/// A figure and the records of its runs.
#[derive(Clone, Debug)]
pub struct FigureResult {
    /// The figure.
    pub info: FigureInfo,
    /// The scenario that was run: with `--quick`, its quick form.
    pub scenario: Scenario,
    /// The world of the runs.
    pub world: World,
    /// All runs, ordered by curve, point and seed.
    pub records: Vec<Record>,
    /// Whether the quick form was run.
    pub quick: bool,
    /// The command that runs it again.
    pub command: String,
    /// The emulated result, if this one stands for both worlds: see [`joined`](crate::report::worlds::joined).
    pub emulated: Option<Box<FigureResult>>,
}

impl FigureResult {
    /// A figure with these settings, without runs.
    pub fn of(figure: Figure, world: World, quick: bool, command: String) -> Self {
        let Figure { info, experiment, .. } = figure;
        Self { info, scenario: experiment.scenario, world, records: Vec::new(), quick, command, emulated: None }
    }

    /// Ids of the figures to which its scores and plots refer.
    pub fn refers_to(&self) -> BTreeSet<String> {
        self.scenario.refers_to()
    }
}

impl Scenario {
    /// Ids of the other figures to which its scores and plots refer.
    pub(crate) fn refers_to(&self) -> BTreeSet<String> {
        let scores =
            self.scores.iter().flat_map(|score| score.expressions().into_iter().chain(score.filter.as_deref()));
        let plots = self.plots.iter().flat_map(|plot| plot.y.iter().chain(&plot.x).chain(&plot.filter));
        let figures = scores.chain(plots.map(String::as_str)).flat_map(references);
        figures.filter_map(|reference| reference.figure).filter(|figure| *figure != self.name).collect()
    }
}

/// A figure as the program carries it: the files of its folder.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// The id, which is the name of its folder.
    pub id: &'static str,
    /// The paper's key, which is the name of the folder above.
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

/// A figure or a user's scenario, ready to be expanded into runs.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The figure.
    pub info: FigureInfo,
    /// Its experiments.
    pub experiment: Experiment,
    /// The text of the scenario.
    pub text: String,
    /// The text of `paper.csv`; empty if there is none.
    pub published: String,
}

impl Figure {
    /// The figure with this id, in any case. A name that ends in `.toml` is the file of a scenario.
    ///
    /// # Errors
    /// The figure does not exist, cannot be read or cannot be run.
    pub fn find(name: &str, overrides: &Overrides) -> Result<Self, LabError> {
        if Path::new(name).extension().is_some_and(|extension| extension == "toml") {
            return Self::file(Path::new(name), overrides);
        }
        let id = name.to_ascii_lowercase();
        match shipped().iter().find(|figure| figure.id == id) {
            Some(figure) => figure.read(overrides),
            None => {
                let ids = shipped().iter().map(|figure| figure.id);
                let nearest = nearest(&id, ids).map_or(String::new(), |id| format!(" (did you mean {id}?)"));
                Err(LabError::NoFigure { name: name.to_owned(), nearest })
            }
        }
    }

    /// The names that plots and scores can mention: those of its runs here, and in its full, quick and emulated forms.
    ///
    /// # Errors
    /// An experiment that cannot be run here.
    pub fn names(&self) -> Result<Names, ScenarioError> {
        self.all_jobs().map(|jobs| Names::of(&jobs))
    }

    /// The files that its runs read, by their names in the scenario: runs here, and in its full, quick and emulated forms.
    ///
    /// # Errors
    /// An experiment that cannot be run here.
    pub(crate) fn files(&self) -> Result<BTreeMap<String, PathBuf>, ScenarioError> {
        let scenario = Path::new(self.experiment.file());
        let jobs = self.all_jobs()?;
        let names = jobs.iter().flat_map(Job::files);
        Ok(names.map(|name| (name.clone(), files::place(scenario, name))).collect())
    }

    /// Its runs here, and in its full, quick and emulated forms.
    fn all_jobs(&self) -> Result<Vec<Job>, ScenarioError> {
        let mut jobs = self.experiment.jobs("")?;
        for (quick, emulated) in [(false, false), (true, false), (false, true), (true, true)] {
            let controllers = self.experiment.controllers().clone();
            let overrides = Overrides { quick, emulated, controllers, ..Overrides::default() };
            // Another form that cannot be run has no names and no files.
            let other = Experiment::read(&self.info.id, self.experiment.file(), &self.text, &overrides);
            jobs.extend(other.and_then(|experiment| experiment.jobs("")).unwrap_or_default());
        }
        Ok(jobs)
    }

    /// Whether this is a shipped figure in its shipped form, from whichever file it was read.
    pub fn is_shipped(&self) -> bool {
        let same = |shipped: &&Shipped| shipped.id == self.info.id && shipped.scenario == self.text;
        shipped().iter().find(same).is_some_and(|shipped| shipped.published == self.published)
    }

    /// A scenario that is in no file. Messages and records call it `name`.
    ///
    /// # Errors
    /// The scenario cannot be run.
    pub fn text(name: &str, text: String, overrides: &Overrides) -> Result<Self, LabError> {
        Ok(FigureFiles { id: name, file: name, text, published: "", readme: "" }.read(overrides)?)
    }

    /// The scenario in a file, with `paper.csv` and `README.md` beside it if they exist.
    ///
    /// # Errors
    /// The scenario cannot be read or run.
    pub fn file(path: &Path, overrides: &Overrides) -> Result<Self, LabError> {
        let read = |path: &Path| std::fs::read_to_string(path).map_err(|source| LabError::file(path, source));
        let beside = |name: &str| match path.with_file_name(name) {
            path if path.exists() => read(&path),
            _ => Ok(String::new()),
        };
        let stem = id_of(path);
        let figure = FigureFiles {
            id: &stem,
            file: &path.display().to_string(),
            text: read(path)?,
            published: &beside("paper.csv")?,
            readme: &beside("README.md")?,
        };
        Ok(figure.read(overrides)?)
    }
}

/// The id of a scenario file: the name of a figure's folder, or the name of the file.
fn id_of(path: &Path) -> String {
    let words = |name: Option<&std::ffi::OsStr>| name.map(|name| name.to_string_lossy().into_owned());
    let stem = words(path.file_stem()).unwrap_or_default();
    match words(path.parent().and_then(Path::file_name)) {
        Some(folder) if stem == "scenario" => folder.to_ascii_lowercase(),
        _ => stem,
    }
}

impl Shipped {
    /// The path of its README in the project: the shipped result, and the reasons for what it misses.
    #[must_use]
    pub fn page(&self) -> String {
        format!("figures/{}/{}/README.md", self.paper, self.id)
    }

    /// Parses the files of the figure.
    ///
    /// # Errors
    /// A mistake in the files. A test reads all of them.
    pub fn read(&self, overrides: &Overrides) -> Result<Figure, LabError> {
        let file = format!("figures/{}/{}/scenario.toml", self.paper, self.id);
        let Self { id, scenario, published, readme, .. } = *self;
        Ok(FigureFiles { id, file: &file, text: scenario.to_owned(), published, readme }.read(overrides)?)
    }
}

/// The files of a figure.
struct FigureFiles<'a> {
    id: &'a str,
    file: &'a str,
    text: String,
    published: &'a str,
    readme: &'a str,
}

impl FigureFiles<'_> {
    fn read(self, overrides: &Overrides) -> Result<Figure, ScenarioError> {
        let experiment = Experiment::read(self.id, self.file, &self.text, overrides)?;
        let scenario = &experiment.scenario;
        let axes: Vec<&str> = scenario.axes.iter().map(|axis| axis.name.as_str()).collect();
        let published = paper::read(self.published, &axes).map_err(|wrong| ScenarioError {
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
