//! Experiments of the lab: figures of papers, scenarios, and simulations, which are scenarios as well.
//!
//! ```text
//! name, text or file ─▶ Figure ─▶ jobs ─▶ sweep on threads of its own ─▶ FigureResult ─▶ objects of Python
//!                                              └─▶ records in a folder
//! ```

mod arena;
mod outcome;
mod stored;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use farhaul_cc::Spec;
use farhaul_lab::figures::shipped;
use farhaul_lab::scenario::{Controllers, Job};
use farhaul_lab::store::Store;
use farhaul_lab::sweep::{Options, Work, sweep};
use farhaul_lab::world::{Choices, Venue};
use farhaul_lab::{Figure, FigureResult, LabError, Overrides, check};
use farhaul_transfer::{Cancellation, Code, Error};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::controller::{Factory, controller};
use crate::error::{raised, usage};
use crate::fork::OfProcess;
use crate::gate::detach;
use crate::off_thread::OffThread;
use crate::report::as_object;
use crate::settings::{Keywords, limit, unknown};
use crate::wait::wait_for;

pub(crate) use arena::run_arena;
pub(crate) use stored::StoredRuns;

/// The shipped figures: identifiers, titles, papers, scores.
#[pyfunction]
pub(crate) fn shipped_figures(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let read =
        || shipped().iter().map(|figure| figure.read(&Overrides::default()).map(|figure| outcome::listed(&figure)));
    let figures: Result<Vec<_>, LabError> = detach(py, || read().collect());
    as_object(py, &figures.map_err(|error| raised(fault(&error)))?.into())
}

/// What is to run.
struct Plan {
    figure: Figure,
    venue: Venue,
    threads: usize,
    /// Its form.
    overrides: Overrides,
    /// Whether its scenario is a text, and so in no file.
    is_text: bool,
    /// The kernel's congestion control.
    tcp: Option<String>,
    /// The folder of its results.
    store: Option<PathBuf>,
}

/// An experiment that runs on threads of its own.
#[pyclass(module = "farhaul._farhaul", frozen)]
pub(crate) struct RunningExperiment(OfProcess<Running>);

struct Running {
    /// `None` once its result was taken.
    result: Mutex<Option<OffThread<Result<FigureResult, Error>>>>,
    cancellation: Cancellation,
    progress: Arc<[AtomicUsize; 2]>,
}

#[pymethods]
impl RunningExperiment {
    /// Begins with the shipped figure or the file `name`, or the scenario `text` of this name.
    #[new]
    #[pyo3(signature = (name, text = None, **options))]
    fn begin(
        py: Python<'_>,
        name: String,
        text: Option<String>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let plan = Plan::of(py, &name, text, options)?;
        let progress = Arc::<[AtomicUsize; 2]>::default();
        let cancellation = Cancellation::default();
        let (seen, stop) = (Arc::clone(&progress), Arc::<AtomicBool>::default());
        let stopping = Arc::clone(&stop);
        cancellation.on_cancel(move || stopping.store(true, Ordering::Relaxed));
        let work = move || plan.run(&stop, &seen).map_err(|error| fault(&error));
        let result = OffThread::begin("lab", cancellation.clone(), work).map_err(raised)?;
        let result = Mutex::new(Some(result));
        Ok(Self(OfProcess::new(Running { result, cancellation, progress })))
    }

    /// Waits for the end, for at most so many seconds. `None` if it goes on.
    fn wait<'py>(&self, py: Python<'py>, seconds: Option<f64>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let running = self.0.get()?;
        let limit = limit(seconds)?;
        let taken = running.result.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut result = taken.ok_or_else(|| usage("somebody waits for this already, or has its result"))?;
        let waited = wait_for(py, limit, &mut result);
        let Ok(Some(ended)) = waited else {
            // A wait that was interrupted gives nothing up.
            *running.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            return waited.map(|_| None);
        };
        let figure = ended.and_then(|result| result).map_err(raised)?;
        outcome::object(py, &figure).map(Some)
    }

    /// The number of finished runs, and of all.
    fn progress(&self) -> PyResult<(usize, usize)> {
        let running = self.0.get()?;
        let [done, all] = [0, 1].map(|place: usize| running.progress[place].load(Ordering::Relaxed));
        Ok((done, all))
    }

    /// Stops it. Runs end within a few milliseconds of their own time.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let running = self.0.get()?;
        detach(py, || running.cancellation.cancel());
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancellation.cancel();
    }
}

impl Plan {
    /// The shipped figure or the file `name`, or the scenario `text` of this name, with these options.
    fn of(py: Python<'_>, name: &str, text: Option<String>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        stored::note_place(py)?;
        let keywords = Keywords::of(py, options)?;
        let threads = keywords.take::<NonZero<usize>>("jobs")?.map(NonZero::get);
        let threads = threads.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get));
        let tcp: Option<String> = keywords.take("tcp")?;
        let venue = match keywords.take::<String>("world")?.as_deref() {
            None | Some("sim") => Venue::Simulator,
            Some("emu") => Venue::Emulator(Choices { tcp: tcp.clone(), ..Choices::default() }),
            Some(other) => return Err(unknown("world", other, "sim, emu")),
        };
        let axes: Option<BTreeMap<String, Vec<String>>> = keywords.take("axes")?;
        let overrides = Overrides {
            quick: keywords.flag("quick")?,
            emulated: !venue.world().is_simulated(),
            seeds: keywords.take("seeds")?.unwrap_or_default(),
            axes: axes.into_iter().flatten().collect(),
            controllers: controllers(&keywords)?,
            ..Overrides::default()
        };
        let store = keywords.take("store")?;
        keywords.end("run")?;
        let is_text = text.is_some();
        let figure = detach(py, || match text {
            Some(text) => Figure::text(name, text, &overrides),
            None => Figure::find(name, &overrides),
        });
        let figure = figure.map_err(|error| raised(fault(&error)))?;
        Ok(Self { figure, venue, threads, overrides, is_text, tcp, store })
    }

    /// The runs that this world can make, for the program with this key.
    fn jobs(&self, build: &str) -> Result<Vec<Job>, LabError> {
        let (jobs, refusals) = self.venue.possible(&self.figure.experiment, self.figure.experiment.jobs(build)?);
        match (jobs.as_slice(), refusals.into_iter().next()) {
            ([], Some(refusal)) => Err(refusal.into()),
            _ => Ok(jobs),
        }
    }

    fn run(self, stop: &AtomicBool, progress: &[AtomicUsize; 2]) -> Result<FigureResult, LabError> {
        let store = self.store.as_deref().map(Store::claim).transpose()?;
        let jobs = self.jobs(&stored::build(&self.venue)?)?;
        check(&[&self.figure], Path::new(""))?;
        self.store.iter().try_for_each(|store| self.describe(store))?;
        let Self { figure, venue, threads, overrides: Overrides { quick, .. }, .. } = self;
        let mut works = [Work { figure: figure.info.id.clone(), jobs, store }];
        let mut records = Vec::new();
        let options = Options {
            venue: &venue,
            threads,
            stop,
            progress: &mut |done, all| {
                progress[1].store(all, Ordering::Relaxed);
                progress[0].store(done, Ordering::Relaxed);
            },
            ran: &mut |_| {},
            finished: &mut |_, finished| {
                records = finished;
                Ok(())
            },
        };
        sweep(&mut works, options)?;
        Ok(FigureResult { records, ..FigureResult::of(figure, venue.world(), quick, String::new()) })
    }
}

/// Controllers by the names that scenarios have for them.
fn controllers(keywords: &Keywords<'_>) -> PyResult<Controllers> {
    let Some(given) = keywords.take::<Bound<'_, PyDict>>("controllers")? else { return Ok(Controllers::new()) };
    given.iter().map(|(name, made)| Ok((name.extract()?, replacement(&made)?))).collect()
}

/// What stands for a name of a scenario. The keys of runs have what it is, since the scenario has the name alone.
fn replacement(made: &Bound<'_, PyAny>) -> PyResult<Spec> {
    if !made.is_instance_of::<PyString>() {
        return Factory::of(made)?.revised();
    }
    let spec = controller(made)?;
    let (name, revision) = (spec.to_string(), format!("{spec} {:?}", spec.revision()));
    Ok(Spec::made(&name, move |seed| spec.build(seed)).revised(&revision))
}

/// The error of an experiment, as the command has it.
fn fault(error: &LabError) -> Error {
    let code = match error {
        LabError::Scenario(_) | LabError::NoFigure { .. } | LabError::Refused { .. } => Code::Usage,
        LabError::Stopped => Code::Interrupted,
        LabError::Controller { .. } => Code::ControllerFailed,
        _ => Code::Failed,
    };
    let controller = match error {
        LabError::Controller { failure, .. } => Some(failure.controller.as_str().to_owned()),
        _ => None,
    };
    let mut failure = Error::new(code, error.to_string());
    failure.controller = controller;
    failure
}
