//! Records that a folder keeps, for sweeps whose runs are made elsewhere.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use farhaul_lab::store::Store;
use farhaul_lab::world::Venue;
use farhaul_lab::{LabError, Record, folder};
use pyo3::prelude::*;
use pyo3::types::PyDict;

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
