//! The folder with the results of one figure: its scenario, its settings and its records.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use farhaul_cc::Spec;
use farhaul_cc::registry::Revision;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::figures::{Figure, FigureResult};
use crate::key::RunKey;
use crate::record::{Record, World};
use crate::scenario::{Job, Overrides, files};
use crate::store::stored_records;

#[cfg(test)]
mod tests;

/// The file with the settings, for each world.
const RUNS: [(World, &str); 2] = [(World::Simulated, "run.json"), (World::Emulated, "run-emulated.json")];
/// A copy of the scenario.
const SCENARIO: &str = "scenario.toml";

/// The settings of a figure's runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The id of the figure, or the name of its file.
    pub figure: String,
    /// The command that runs it again.
    pub command: String,
    /// Whether the quick form is run.
    pub quick: bool,
    /// The seeds that replace the scenario's; none for those of the scenario.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// Axes that were replaced or added.
    #[serde(default)]
    pub axes: Vec<(String, Vec<String>)>,
    /// The key of the program that ran it.
    pub build: String,
    /// The world of the runs.
    #[serde(default)]
    pub world: World,
    /// Controllers whose code is in the program that ran it, by the names that flows have for them. [`begin`] notes them.
    #[serde(default)]
    pub controllers: BTreeMap<String, OwnController>,
}

/// A controller whose code other programs do not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnController {
    /// Its name in reports.
    name: String,
    /// The text that changes with its code; `None` if the key of the program does.
    revision: Option<String>,
}

impl OwnController {
    fn of(law: &Spec) -> Self {
        let revision = if let Revision::Text(text) = law.revision() { Some(text.to_owned()) } else { None };
        Self { name: law.to_string(), revision }
    }

    /// A controller that gives runs the same keys, and makes none of them.
    fn stand_in(&self) -> Spec {
        let law = Spec::made(&self.name, |seed| Spec::default().build(seed));
        self.revision.iter().fold(law, |law, revision| law.revised(revision))
    }
}

impl Settings {
    /// The changes to the scenario.
    pub fn overrides(&self) -> Overrides {
        let emulated = !self.world.is_simulated();
        let controllers = self.controllers.iter().map(|(name, own)| (name.clone(), own.stand_in())).collect();
        let (seeds, axes) = (self.seeds.clone(), self.axes.clone());
        Overrides { quick: self.quick, emulated, seeds, axes, controllers, ..Overrides::default() }
    }
}

/// The controllers of a figure that only this program has.
fn own_controllers(figure: &Figure) -> Result<BTreeMap<String, OwnController>, LabError> {
    let named = figure.experiment.controllers();
    let jobs = figure.experiment.jobs("")?;
    let registered = jobs.iter().flat_map(Job::laws).filter(|law| law.revision() != Revision::BuiltIn);
    let registered = registered.filter(|law| named.values().all(|own| own != *law));
    let registered = registered.map(|law| (law.to_string(), OwnController::of(law)));
    Ok(registered.chain(named.iter().map(|(name, law)| (name.clone(), OwnController::of(law)))).collect())
}

/// Makes the folder `settings.figure` below `out` and stores the settings. The copy of the scenario includes the files that
/// it names, so that it runs from there.
///
/// # Errors
/// The folder cannot be written, or one of those files cannot be read.
pub fn begin(out: &Path, figure: &Figure, settings: &Settings) -> Result<PathBuf, LabError> {
    let folder = out.join(&settings.figure);
    fs::create_dir_all(&folder).map_err(|source| LabError::file(&folder, source))?;
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|source| LabError::file(&path, source))
    };
    write(SCENARIO, figure.text.clone())?;
    for (name, text) in [("README.md", figure.info.readme.clone()), ("paper.csv", figure.published.clone())] {
        if !text.is_empty() {
            write(name, text)?;
        }
    }
    keep_files(&folder, figure)?;
    let settings = &Settings { controllers: own_controllers(figure)?, ..settings.clone() };
    let text = serde_json::to_string_pretty(settings).map_err(|wrong| LabError::file(&folder, wrong.into()))?;
    write(file(settings.world), text + "\n")?;
    Ok(folder)
}

/// The file with the settings for a world.
fn file(world: World) -> &'static str {
    RUNS.iter().find(|(known, _)| *known == world).map_or("run.json", |(_, file)| file)
}

/// Copies the files that a scenario names.
fn keep_files(folder: &Path, figure: &Figure) -> Result<(), LabError> {
    let at_home = |path: &Path| Some(path.parent()?.canonicalize().ok()? == folder.canonicalize().ok()?);
    // A scenario in the folder of its results has its files already. Copies would hide later changes to them.
    if at_home(Path::new(figure.experiment.file())) == Some(true) {
        return Ok(());
    }
    for (name, from) in figure.files()? {
        let to = folder.join(files::copy(&name));
        let content = fs::read(&from).map_err(|source| LabError::file(&from, source))?;
        let write = || {
            fs::create_dir_all(to.parent().unwrap_or(folder))?;
            fs::write(&to, content)
        };
        write().map_err(|source| LabError::file(&to, source))?;
    }
    Ok(())
}

/// The results of all figures below `out`, by name, one for each world. Unfinished figures have fewer records. They are in
/// the folder of the figure, or together in `out`, as runs from Python are kept.
///
/// # Errors
/// A file cannot be read, or the folder does not exist.
pub fn results(out: &Path) -> Result<Vec<FigureResult>, LabError> {
    let entries = fs::read_dir(out).map_err(|source| LabError::file(out, source))?;
    let mut folders: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    folders.sort();
    let together = stored_records(out)?;
    let runs = folders.iter().flat_map(|folder| RUNS.iter().map(move |(_, run)| (folder, folder.join(run))));
    runs.filter(|(_, run)| run.is_file()).map(|(folder, run)| result(folder, &run, &together)).collect()
}

/// The result in one figure's folder with the settings in `path`. `together` are the records of several figures by key.
fn result(folder: &Path, path: &Path, together: &BTreeMap<String, Record>) -> Result<FigureResult, LabError> {
    let text = fs::read_to_string(path).map_err(|source| LabError::file(path, source))?;
    let settings: Settings = serde_json::from_str(&text).map_err(|wrong| LabError::Store {
        path: path.to_owned(),
        line: wrong.line(),
        message: format!("this file has no valid settings of a figure ({wrong}); run the figure again"),
    })?;
    let mut figure = Figure::file(&folder.join(SCENARIO), &settings.overrides())?;
    figure.info.id.clone_from(&settings.figure);
    figure.experiment.scenario.name.clone_from(&settings.figure);
    let own = stored_records(folder)?;
    let jobs = figure.experiment.jobs(&settings.build)?;
    let found = |job: &Job| own.get(&job.key).or_else(|| together.get(&job.key)).cloned();
    let records = jobs.iter().filter_map(found).collect();
    Ok(FigureResult { records, ..FigureResult::of(figure, settings.world, settings.quick, settings.command) })
}

/// The key of this program: a hash of its file.
///
/// # Errors
/// The file cannot be read.
pub fn build() -> Result<String, LabError> {
    build_of(&std::env::current_exe().map_err(|source| LabError::file("the program", source))?)
}

/// The key of the program or library in this file.
///
/// # Errors
/// The file cannot be read.
pub fn build_of(path: &Path) -> Result<String, LabError> {
    let bytes = fs::read(path).map_err(|source| LabError::file(path, source))?;
    Ok(RunKey::new().content(&bytes).to_string())
}
