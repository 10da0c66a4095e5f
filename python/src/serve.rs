//! Servers of directories.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use farhaul::Endpoint;
use farhaul::units::Duration;
use farhaul_transfer::internal::HostPort;
use farhaul_transfer::internal::admission::{Admission, Service};
use farhaul_transfer::internal::serve::{DirectoryServer, listener};
use farhaul_transfer::{Cancellation, Environment, Error, Event, Observer, Report as Figures};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{in_python, raised, usage};
use crate::fork::OfProcess;
use crate::gate::detach;
use crate::report::Report;
use crate::settings::{Keywords, settings};
use crate::unclosed::warn_unclosed;

/// Longest wait for the end of a server whose sessions were cancelled. Ctrl-C must end every wait within 500 ms.
const LAST: Duration = Duration::from_millis(400);
/// Reports of ended sessions that are kept for the program.
const KEPT: usize = 256;

/// A server of one directory, on threads of its own.
#[pyclass(module = "farhaul._farhaul", frozen)]
pub(crate) struct Server(OfProcess<Running>);

struct Running {
    address: String,
    key: Option<String>,
    cancellation: Cancellation,
    /// Its clients and its port. `None` if its connections are plain, and once it is closed.
    guarded: Mutex<Option<(Admission, Endpoint)>>,
    /// Closes once the server has ended.
    end: Mutex<Receiver<Infallible>>,
    heard: Heard,
}

/// What a server tells.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Log>>);

#[derive(Default)]
struct Log {
    ended: VecDeque<(Figures, Option<Error>)>,
    warnings: VecDeque<String>,
}

impl Heard {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Heard {
    fn on_event(&self, _session: Option<u64>, event: &Event<'_>) {
        crate::log::note(event);
        match event {
            Event::Ended(report, error) => {
                let mut log = self.log();
                log.ended.push_back((Figures::clone(report), error.cloned()));
                if log.ended.len() > KEPT {
                    log.ended.pop_front();
                }
            }
            Event::Warning(warning) => {
                let mut log = self.log();
                log.warnings.push_back(in_python(warning).into_owned());
                if log.warnings.len() > KEPT {
                    log.warnings.pop_front();
                }
            }
            _ => {}
        }
    }
}

#[pymethods]
impl Server {
    /// Serves `root` at `listen`.
    #[new]
    #[pyo3(signature = (root, listen, **options))]
    fn begin(py: Python<'_>, root: PathBuf, listen: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let keywords = Keywords::of(py, options)?;
        let read_only = keywords.flag("read_only")?;
        let sessions = keywords.take("max_sessions")?;
        let idle = keywords.time("idle_timeout")?;
        let settings = settings(&keywords)?;
        keywords.end("serve")?;
        let address = HostPort::with_default(listen, 0).map_err(usage)?;
        let heard = Heard::default();
        let environment = Environment::reporting_to(heard.clone());
        let cancellation = environment.cancellation.clone();
        let (runs, end) = sync_channel(0);
        let begun = detach(py, || -> Result<_, Error> {
            let clients = settings.security.admission(&environment.events, None, Service::Files)?;
            let key = clients.as_ref().map(Admission::fingerprint);
            let mut server = DirectoryServer::of(&root, clients.clone(), read_only)?;
            if let Some(sessions) = sessions {
                server = server.sessions(sessions);
            }
            if let Some(idle) = idle {
                server = server.idle(Some(idle).filter(|idle| !idle.is_zero()));
            }
            let endpoint = settings.bind(address.listening()?, clients.as_ref())?;
            environment.cancellation.cancels(endpoint.canceller());
            let listener = listener::listen(&environment, &endpoint)?;
            if let Some(clients) = &clients {
                listener::guard(&environment, clients, &endpoint)?;
            }
            let address = endpoint.local_addr().to_string();
            let guarded = clients.map(|clients| (clients, endpoint.clone()));
            thread::Builder::new().name("serve".into()).spawn(move || {
                // It ends by its cancellation, or because the port is gone, which the clients notice.
                let _ = server.run(&environment, &settings, listener, |_| {});
                drop((endpoint, runs));
            })?;
            Ok((address, key, guarded))
        });
        // What began before a failure ends at once.
        let (address, key, guarded) = begun.inspect_err(|_| cancellation.cancel()).map_err(raised)?;
        let (guarded, end) = (Mutex::new(guarded), Mutex::new(end));
        Ok(Self(OfProcess::new(Running { address, key, cancellation, guarded, end, heard })))
    }

    /// Its address, `host:port`.
    #[getter]
    fn address(&self) -> PyResult<&str> {
        Ok(&self.0.get()?.address)
    }

    /// The fingerprint of its key; `None` if its connections are plain.
    #[getter]
    fn key(&self) -> PyResult<Option<&str>> {
        Ok(self.0.get()?.key.as_deref())
    }

    /// Whether it serves.
    #[getter]
    fn is_running(&self) -> PyResult<bool> {
        let running = self.0.get()?;
        let end = running.end.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(matches!(end.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout)))
    }

    /// The reports of sessions that have ended since the last call, with the error of each.
    fn take_reports(&self, py: Python<'_>) -> PyResult<Vec<(Report, Option<Py<PyAny>>)>> {
        let ended = std::mem::take(&mut self.0.get()?.heard.log().ended);
        ended
            .into_iter()
            .map(|(figures, error)| {
                let error = error.map(|error| raised(error).into_value(py).into_any());
                Ok((Report::of(py, &figures)?, error))
            })
            .collect()
    }

    /// The warnings since the last call.
    fn take_warnings(&self) -> PyResult<Vec<String>> {
        Ok(std::mem::take(&mut self.0.get()?.heard.log().warnings).into())
    }

    /// Reads the file of the clients' keys again, and ends the connections of clients that may do less now than before. Returns
    /// their number.
    fn reload(&self, py: Python<'_>) -> PyResult<usize> {
        let running = self.0.get()?;
        let Some((clients, endpoint)) = running.guarded.lock().unwrap_or_else(PoisonError::into_inner).clone() else {
            return Ok(0);
        };
        let ended = detach(py, || clients.reload(&endpoint)).map_err(raised)?;
        let missing = clients.missing_directories();
        missing.iter().for_each(|missing| running.heard.on_event(None, &Event::Warning(missing)));
        Ok(ended)
    }

    /// Ends it, with its sessions. Returns once it has ended, or after 400 ms: then it ends by itself.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let running = self.0.get()?;
        detach(py, || {
            running.cancellation.cancel();
            let _ = running.end.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LAST);
            let guarded = running.guarded.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(guarded);
        });
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(running) = self.0.here().filter(|running| !running.cancellation.is_cancelled()) {
            warn_unclosed(&format!("<farhaul.DirectoryServer at {}>", running.address));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancellation.cancel();
    }
}
