//! Copies.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farhaul::units::{Duration, Instant};
use farhaul_session::{EntryKind, Failure, Kept, NoShard, Rules, Shard, Skip, SyncPolicy};
use farhaul_transfer::internal::bond::Flows;
use farhaul_transfer::internal::code_of;
use farhaul_transfer::{Cancellation, Code, CopyJob, Environment, Error, Event, Location, Report as Figures};
use farhaul_udp::Clock;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::async_call::{AsyncCall, Outcome, async_call};
use crate::error::{in_python, raised, usage, with_failures};
use crate::file_records::FileRecords;
use crate::fork::OfProcess;
use crate::gate::detach;
use crate::off_thread::OffThread;
use crate::report::Report;
use crate::settings::{Keywords, limit, settings, ssh, unknown};
use crate::wait::wait_for;

/// Longest wait for the end of a cancelled copy. Ctrl-C must end every wait within 500 ms.
const LAST: Duration = Duration::from_millis(300);
/// Failures of single files that an exception has at most.
const FAILURES: usize = 1000;

/// How far a copy is.
#[pyclass(module = "farhaul", frozen, get_all)]
#[derive(Clone, Default)]
pub(crate) struct Progress {
    /// Bytes that have moved.
    bytes: u64,
    /// Bytes to move; `None` while the sender lists them.
    total_bytes: Option<u64>,
    /// Files that have their names, or that the target had.
    files: u64,
    /// Files to copy; `None` while the sender lists them.
    total_files: Option<u64>,
    /// The file that began last.
    path: Option<String>,
    /// Time since the copy began.
    seconds: f64,
    /// The last warning, for instance of a limit to speed.
    warning: Option<String>,
    /// Attempts after the connection was lost.
    retries: u64,
}

#[pymethods]
impl Progress {
    fn __repr__(&self) -> String {
        let of = |total: Option<u64>| total.map_or_else(|| "?".to_owned(), |total| total.to_string());
        let Self { bytes, files, seconds, .. } = self;
        let (total_bytes, total_files) = (of(self.total_bytes), of(self.total_files));
        format!("<farhaul.Progress: {bytes} of {total_bytes} bytes, {files} of {total_files} files, {seconds:.1} s>")
    }
}

/// The progress of a copy, written by its threads.
#[derive(Clone)]
struct Tally {
    clock: Clock,
    state: Arc<Mutex<CopyState>>,
}

#[derive(Default)]
struct CopyState {
    progress: Progress,
    /// Bytes that have moved, those of the dialogue included, and those that the target had.
    moved: u64,
    kept: u64,
    /// Files that were not copied, as far as they are kept.
    failures: Vec<(String, Failure)>,
}

impl Tally {
    fn start() -> Self {
        Self { clock: Clock::start(), state: Arc::default() }
    }

    fn note(&self, event: &Event<'_>) {
        let mut state = lock(&self.state);
        let CopyState { progress, moved, kept, failures } = &mut *state;
        match event {
            Event::Expected { files, bytes } => {
                (progress.total_files, progress.total_bytes) = (Some(*files), Some(*bytes));
            }
            Event::Begun(entry) => progress.path = Some(entry.path.to_string()),
            Event::Moved(now) => *moved = now.bytes(),
            Event::Placed(..) => progress.files += 1,
            Event::Kept(entry, ..) if entry.kind == EntryKind::File => {
                progress.files += 1;
                *kept = kept.saturating_add(if entry.has_size() { entry.size } else { 0 });
            }
            Event::Failed(path, failure, _) if failures.len() < FAILURES => {
                failures.push((path.to_string(), Failure::clone(failure)));
            }
            Event::Warning(warning) => progress.warning = Some(in_python(warning).into_owned()),
            Event::Retrying(_) => {
                progress.retries += 1;
                // What is there counts anew.
                (progress.files, *moved, *kept) = (0, 0, 0);
                failures.clear();
            }
            _ => {}
        }
        progress.bytes = moved.saturating_add(*kept).min(progress.total_bytes.unwrap_or(u64::MAX));
    }

    fn now(&self) -> Progress {
        let progress = lock(&self.state).progress.clone();
        let elapsed = self.clock.now().saturating_since(Instant::ZERO);
        Progress { seconds: elapsed.as_secs_f64(), ..progress }
    }

    /// The exception for a copy that failed with `error`. If nothing but one file was asked for, its reason is that of the copy.
    fn raised(&self, mut error: Error) -> PyErr {
        let failures = std::mem::take(&mut lock(&self.state).failures);
        if let (Code::FilesFailed, [(_, only)], Some(report)) = (error.code, &failures[..], &error.report)
            && report.files == Some(0)
            && report.failed == Some(1)
        {
            error.code = code_of(only.code);
        }
        let failures = failures.into_iter().map(|(path, failure)| (path, failure.to_string())).collect();
        with_failures(error, failures)
    }
}

/// A copy that runs on a thread of its own.
#[pyclass(module = "farhaul._farhaul", frozen)]
pub(crate) struct RunningCopy(OfProcess<Running>);

struct Running {
    /// `None` once its result was taken.
    result: Mutex<Option<OffThread<Result<Figures, Error>>>>,
    cancellation: Cancellation,
    /// Closes once the copy has ended.
    end: Mutex<Receiver<Infallible>>,
    tally: Tally,
    /// `None` unless they were asked for.
    files: Option<FileRecords>,
}

#[pymethods]
impl RunningCopy {
    /// Begins to copy `src` to `dst`.
    #[new]
    #[pyo3(signature = (src, dst, **options))]
    fn begin(
        py: Python<'_>,
        src: &Bound<'_, PyAny>,
        dst: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let keywords = Keywords::of(py, options)?;
        let files = keywords.flag("list_files")?.then(FileRecords::start);
        let copy = copy_of((src, dst), keywords)?;
        let tally = Tally::start();
        let heard = (tally.clone(), files.clone());
        let environment = Environment::reporting_to(move |event: &Event<'_>| {
            crate::log::note(event);
            heard.0.note(event);
            heard.1.iter().for_each(|files| files.note(event));
        });
        let cancellation = environment.cancellation.clone();
        let (runs, end) = sync_channel(0);
        let work = move || {
            let result = copy.run(&environment);
            drop(runs);
            result
        };
        let result = OffThread::begin("copy", cancellation.clone(), work).map_err(raised)?;
        let (result, end) = (Mutex::new(Some(result)), Mutex::new(end));
        Ok(Self(OfProcess::new(Running { result, cancellation, end, tally, files })))
    }

    /// Waits for the end, for at most so many seconds. `None` if it goes on.
    fn wait(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<Option<Report>> {
        let running = self.0.get()?;
        let limit = limit(seconds)?;
        let mut result = running.take()?;
        match wait_for(py, limit, &mut result) {
            Ok(Some(outcome)) => {
                let outcome = outcome.and_then(|result| result);
                Report::of(py, &outcome.map_err(|error| running.tally.raised(error))?).map(Some)
            }
            // A wait that was interrupted gives nothing up.
            other => {
                *lock(&running.result) = Some(result);
                other.map(|_| None)
            }
        }
    }

    /// The report, for tasks. To cancel the call cancels the copy.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, AsyncCall>> {
        let running = self.0.get()?;
        let (result, tally) = (running.take()?, running.tally.clone());
        async_call(py, async move {
            let outcome = result.await.and_then(|result| result);
            Box::new(move |py: Python<'_>| {
                let report = Report::of(py, &outcome.map_err(|error| tally.raised(error))?)?;
                Ok(Py::new(py, report)?.into_any())
            }) as Outcome
        })
    }

    /// How far it is.
    fn progress(&self) -> PyResult<Progress> {
        Ok(self.0.get()?.tally.now())
    }

    /// The files that have ended since the last call, if it was begun with `list_files`.
    fn take_files<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let running = self.0.get()?;
        running.files.as_ref().map_or_else(|| Ok(Vec::new()), |files| files.take(py))
    }

    /// Cancels it. Returns once it has ended, or after 300 ms: then it ends by itself.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let running = self.0.get()?;
        detach(py, || {
            running.cancellation.cancel();
            let _ = lock(&running.end).recv_timeout(LAST);
        });
        Ok(())
    }
}

impl Running {
    fn take(&self) -> PyResult<OffThread<Result<Figures, Error>>> {
        lock(&self.result).take().ok_or_else(|| usage("somebody waits for this copy already, or has its result"))
    }
}

/// The content, even after a panic: each is one value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn copy_of((src, dst): (&Bound<'_, PyAny>, &Bound<'_, PyAny>), keywords: Keywords<'_>) -> PyResult<CopyJob> {
    let mut places = sources(src)?;
    places.push(place(dst)?);
    let archive = keywords.flag("archive")?;
    let recursive = keywords.flag("recursive")? || archive;
    let flows = keywords.take::<FlowsArgument>("flows")?.map_or(Flows::Auto, |flows| flows.0);
    let copy = CopyJob::new(&places, recursive)
        .map_err(raised)?
        .with_rules(rules(&keywords, archive)?)
        .flows(flows)
        .give_up_after(keywords.time("give_up")?.unwrap_or_default())
        .with_ssh(ssh(&keywords)?)
        .with_settings(settings(&keywords)?);
    keywords.end("copy")?;
    if copy.reads_stream() || copy.writes_stream() {
        return Err(usage("'-' is no place for a program: name a file, or open a stream with farhaul.connect()"));
    }
    copy.check().map_err(raised)?;
    Ok(copy)
}

/// One place, or several in a list.
fn sources(src: &Bound<'_, PyAny>) -> PyResult<Vec<Location>> {
    match (src.cast::<PyList>(), src.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().map(|src| place(&src)).collect(),
        (_, Ok(tuple)) => tuple.iter().map(|src| place(&src)).collect(),
        _ => Ok(vec![place(src)?]),
    }
}

/// A place as the command line takes it: text, bytes, or a path of this host.
fn place(value: &Bound<'_, PyAny>) -> PyResult<Location> {
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
        let text: OsString = match value.cast::<PyBytes>() {
            Ok(bytes) => OsString::from_vec(bytes.as_bytes().to_vec()),
            Err(_) => value.extract()?,
        };
        return Location::read(&text).map_err(usage);
    }
    // A `pathlib.Path` is of this host, whatever its name looks like.
    let path: PathBuf = value.extract()?;
    Ok(Location::Local(path))
}

fn rules(keywords: &Keywords<'_>, archive: bool) -> PyResult<Rules> {
    let numeric_ids = keywords.flag("numeric_ids")?;
    let delete = keywords.flag("delete")?;
    let max_delete = keywords.take("max_delete")?;
    let (exclude, include): (Option<Vec<String>>, Option<Vec<String>>) =
        (keywords.take("exclude")?, keywords.take("include")?);
    let filters = exclude.into_iter().flatten().map(String::into_bytes);
    let kept = include.into_iter().flatten().map(|pattern| format!("!{pattern}").into_bytes());
    Ok(Rules {
        keep: if archive { Kept { numeric_ids, ..Kept::ALL } } else { Kept::default() },
        skip: match keywords.take::<String>("skip")?.as_deref() {
            None | Some("size-time") => Skip::SizeTime,
            Some("digest") => Skip::Digest,
            Some("exists") => Skip::Exists,
            Some("never") => Skip::Never,
            Some(other) => return Err(unknown("skip", other, "size-time, digest, exists, never")),
        },
        delete: delete.then(|| max_delete.unwrap_or(u64::MAX)),
        whole: false,
        dry_run: keywords.flag("dry_run")?,
        verify_disk: match keywords.take::<String>("verify")?.as_deref() {
            None => false,
            Some("disk") => true,
            Some(other) => return Err(unknown("verify", other, "disk")),
        },
        sync: match keywords.take::<String>("fsync")?.as_deref() {
            None | Some("file") => SyncPolicy::File,
            Some("never") => SyncPolicy::Never,
            Some("chunk") => SyncPolicy::Chunk,
            Some(other) => return Err(unknown("fsync", other, "never, file, chunk")),
        },
        allow_changing: keywords.flag("allow_changing")?,
        wait_for_space: keywords.flag("wait_for_space")?,
        modify_window: keywords.time("modify_window")?.unwrap_or_default(),
        filters: filters.chain(kept).collect(),
        shard: keywords.take::<String>("shard")?.map(|part| part_of(&part)).transpose()?,
    })
}

/// A number of flows: a number, or `auto`.
struct FlowsArgument(Flows);

impl<'py> FromPyObject<'_, 'py> for FlowsArgument {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        value.str()?.to_cow()?.parse().map(Self).map_err(usage)
    }
}

/// One part of the files: `3/8`.
fn part_of(text: &str) -> PyResult<Shard> {
    text.parse().map_err(|error: NoShard| usage(format!("shard: {error}")))
}
