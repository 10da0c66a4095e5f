//! Records that a folder keeps, for sweeps whose runs are made elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use farhaul_lab::folder::{self, Settings};
use farhaul_lab::store::Store;
use farhaul_lab::world::Venue;
use farhaul_lab::{LabError, Overrides, Record};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use super::{Plan, fault, outcome};
use crate::error::{raised, usage};
use crate::fork::OfProcess;
use crate::gate::detach;

/// The file of this module, whose content is part of the keys of runs.
static MODULE: OnceLock<PathBuf> = OnceLock::new();
static BUILD: OnceLock<String> = OnceLock::new();

/// Notes where this module is, for the keys of records.
pub(super) fn note_place(py: Python<'_>) -> PyResult<()> {
    if MODULE.get().is_none() {
        let file = py.import("farhaul._farhaul")?.filename()?.extract()?;
        // Another thread may have been faster.
        let _ = MODULE.set(file);
    }
    Ok(())
}

/// The key of this module for the runs of a world.
pub(super) fn build(venue: &Venue) -> Result<String, LabError> {
    let build = match BUILD.get() {
        Some(build) => build.clone(),
        None => {
            let unknown = || LabError::file("farhaul._farhaul", std::io::ErrorKind::NotFound.into());
            let build = folder::build_of(MODULE.get().ok_or_else(unknown)?)?;
            BUILD.get_or_init(|| build).clone()
        }
    };
    Ok(build + &venue.mark())
}

impl Plan {
    /// Notes in a folder what its records are of, for `farhaul lab report`.
    pub(super) fn describe(&self, store: &Path) -> Result<(), LabError> {
        // An experiment without a file has the folder of its title.
        let figure = if self.is_text { folder_name(&self.figure.info.title) } else { self.figure.info.id.clone() };
        let settings = Settings {
            command: self.command(store, &figure),
            quick: self.overrides.quick,
            seeds: self.overrides.seeds.clone(),
            axes: self.overrides.axes.clone(),
            build: build(&self.venue)?,
            world: self.venue.world(),
            figure,
            ..Settings::default()
        };
        folder::begin(store, &self.figure, &settings).map(drop)
    }

    /// The call that runs it again.
    fn command(&self, store: &Path, figure: &str) -> String {
        let Overrides { quick, emulated, seeds, axes, controllers, .. } = &self.overrides;
        let file = || store.join(figure).join("scenario.toml").display().to_string();
        let name = if self.figure.is_shipped() { figure.to_owned() } else { file() };
        let axes: BTreeMap<_, _> = axes.iter().map(|(axis, values)| (axis, values)).collect();
        let laws = controllers.iter().map(|(name, law)| format!("{}: {law}", json!(name)));
        let all = [
            Some(json!(name).to_string()),
            quick.then(|| "quick=True".to_owned()),
            (!seeds.is_empty()).then(|| format!("seeds={}", json!(seeds))),
            (!axes.is_empty()).then(|| format!("axes={}", json!(axes))),
            (!controllers.is_empty()).then(|| format!("controllers={{{}}}", laws.collect::<Vec<_>>().join(", "))),
            emulated.then(|| "world=\"emu\"".to_owned()),
            self.tcp.as_ref().map(|tcp| format!("tcp={}", json!(tcp))),
            Some(format!("store={}", json!(store.display().to_string()))),
        ];
        format!("farhaul.lab.run({})", all.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// A title as the name of a folder: `Two laws over the loss` is `two-laws-over-the-loss`.
fn folder_name(title: &str) -> String {
    let words = title.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.map(str::to_lowercase).collect::<Vec<_>>().join("-").chars().take(60).collect();
    if name.is_empty() { "scenario".to_owned() } else { name }
}

/// The records in a folder, which belong to one sweep until they are closed.
#[pyclass(module = "farhaul._farhaul", frozen)]
pub(crate) struct StoredRuns(OfProcess<Mutex<Option<Store>>>);

impl StoredRuns {
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Store) -> Result<R, LabError> + Send,
    ) -> PyResult<R> {
        let place = self.0.get()?;
        detach(py, || {
            let mut store = place.lock().unwrap_or_else(PoisonError::into_inner);
            let store = store.as_mut().ok_or_else(|| usage("the records are closed"))?;
            work(store).map_err(|error| raised(fault(&error)))
        })
    }
}

#[pymethods]
impl StoredRuns {
    /// Opens the folder, and makes it if it does not exist.
    #[new]
    fn open(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        let store = detach(py, || Store::claim(&folder)).map_err(|error| raised(fault(&error)))?;
        Ok(Self(OfProcess::new(Mutex::new(Some(store)))))
    }

    /// The records of an experiment, whose arguments are those of `RunningExperiment`. `None` if one of them is missing.
    #[pyo3(signature = (name, text = None, **options))]
    fn known<'py>(
        &self,
        py: Python<'py>,
        name: String,
        text: Option<String>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let plan = Plan::of(py, &name, text, options)?;
        let records: Option<Vec<Record>> = self.with(py, |store| {
            let jobs = plan.jobs(&build(&plan.venue)?)?;
            let found = |key: &str| store.get(key).filter(|record| record.is_valid()).cloned();
            Ok(jobs.iter().map(|job| found(&job.key)).collect())
        })?;
        records.map(|records| records.iter().map(|record| outcome::run(py, record)).collect()).transpose()
    }

    /// Notes what the records are of: an experiment, whose arguments are those of `RunningExperiment`.
    #[pyo3(signature = (name, text = None, **options))]
    fn describe(
        &self,
        py: Python<'_>,
        name: String,
        text: Option<String>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let plan = Plan::of(py, &name, text, options)?;
        self.with(py, |store| plan.describe(store.folder()))
    }

    /// Adds a record, which is the JSON of one that an experiment has given.
    fn add(&self, py: Python<'_>, record: &str) -> PyResult<()> {
        let record: Record = serde_json::from_str(record).map_err(|error| usage(format!("no record: {error}")))?;
        self.with(py, |store| store.add(&record))
    }

    /// Lets others have the folder.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let place = self.0.get()?;
        detach(py, || drop(place.lock().unwrap_or_else(PoisonError::into_inner).take()));
        Ok(())
    }
}
