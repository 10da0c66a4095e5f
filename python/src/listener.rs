//! Listeners: ports to which others connect.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farhaul::security::{Pinned, PublicKey, Security};
use farhaul::{AsyncStream, Endpoint, Listener as Port};
use farhaul_transfer::Error;
use farhaul_transfer::internal::HostPort;
use farhaul_transfer::internal::admission::{Admission, Service};
use farhaul_transfer::internal::keys::identity;
use farhaul_transfer::internal::settings::Settings;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::async_call::{AsyncCall, Outcome, async_call};
use crate::detached::Detached;
use crate::error::{of_connection, raised, usage};
use crate::fork::OfProcess;
use crate::gate::detach;
use crate::log;
use crate::settings::{Keywords, limit, settings};
use crate::stream::Stream;
use crate::unclosed::warn_unclosed;
use crate::wait::wait;

/// A port to which others connect.
#[pyclass(module = "farhaul", frozen, weakref)]
pub(crate) struct Listener(OfProcess<Inner>);

struct Inner {
    /// `None` once it is closed.
    port: Mutex<Option<Arc<Port>>>,
    address: SocketAddr,
    /// The fingerprint of this side's key.
    key: Option<String>,
}

#[pymethods]
impl Listener {
    /// Opens the UDP port at `address`.
    #[new]
    #[pyo3(signature = (address, *, clients = None, **options))]
    fn open(
        py: Python<'_>,
        address: &str,
        clients: Option<Vec<String>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let keywords = Keywords::of(py, options)?;
        let settings = settings(&keywords)?;
        keywords.end("listen")?;
        let clients = clients.map(|keys| keys.iter().map(|key| public_key(key)).collect()).transpose()?;
        let address = HostPort::with_default(address, 0).map_err(usage)?;
        let opened = detach(py, || -> Result<_, Error> {
            let (endpoint, key) = bind(&settings, &address, clients)?;
            let at = endpoint.local_addr();
            let port = endpoint.listen().map_err(|error| Error::of_connection(&error, &at))?;
            Ok(Inner { port: Mutex::new(Some(Arc::new(port))), address: at, key })
        });
        opened.map(|inner| Self(OfProcess::new(inner))).map_err(raised)
    }

    /// Waits for the next connection, for at most so many seconds.
    #[pyo3(signature = (timeout = None))]
    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Stream> {
        let inner = self.0.get()?;
        let port = Detached::new(inner.port()?);
        let accepted = wait(py, limit(timeout)?, port.accept_async())?;
        let (stream, _) = accepted.map_err(|error| of_connection(&error, &inner.address))?;
        Ok(accepted_stream(py, &stream))
    }

    /// The same for tasks.
    fn accept_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, AsyncCall>> {
        let inner = self.0.get()?;
        let (port, address) = (inner.port()?, inner.address);
        async_call(py, async move {
            let accepted = port.accept_async().await;
            Box::new(move |py: Python<'_>| {
                let (stream, _) = accepted.map_err(|error| of_connection(&error, &address))?;
                Ok(Py::new(py, accepted_stream(py, &stream))?.into_any())
            }) as Outcome
        })
    }

    /// Its address, `host:port`.
    #[getter]
    fn address(&self) -> PyResult<String> {
        Ok(self.0.get()?.address.to_string())
    }

    /// The fingerprint of its key; `None` if its connections are plain.
    #[getter]
    fn key(&self) -> PyResult<Option<&str>> {
        Ok(self.0.get()?.key.as_deref())
    }

    /// Refuses further connections. Calls that wait end. Streams go on, and without them the port is free.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let port = self.0.get()?.place().take();
        detach(py, || port.inspect(|port| port.close()));
        Ok(())
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<&Bound<'_, PyAny>>,
        _error: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// The next stream. It ends never: a closed listener raises.
    fn __next__(&self, py: Python<'_>) -> PyResult<Stream> {
        self.accept(py, None)
    }

    fn __repr__(&self) -> String {
        match self.0.here() {
            Some(inner) => inner.shown(),
            None => "<farhaul.Listener of the parent process>".to_owned(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(inner) = self.0.here().filter(|inner| inner.place().is_some()) {
            warn_unclosed(&inner.shown());
        }
    }
}

impl Inner {
    fn shown(&self) -> String {
        let closed = if self.place().is_some() { "" } else { ", closed" };
        format!("<farhaul.Listener at {}{closed}>", self.address)
    }

    fn place(&self) -> MutexGuard<'_, Option<Arc<Port>>> {
        self.port.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn port(&self) -> PyResult<Arc<Port>> {
        self.place().clone().ok_or_else(|| of_connection(&farhaul::Error::ListenerClosed, &self.address))
    }
}

fn accepted_stream(py: Python<'_>, stream: &AsyncStream) -> Stream {
    Stream::of(py, stream.as_blocking().clone(), None)
}

/// Opens a port for these clients, or for those that the files of keys admit.
fn bind(
    settings: &Settings,
    address: &HostPort,
    clients: Option<Vec<PublicKey>>,
) -> Result<(Endpoint, Option<String>), Error> {
    let (at, security, events) = (address.listening()?, &settings.security, log::environment().events);
    match clients {
        Some(_) if security.plain => Err(Error::usage("plain connections have no keys").remedy("leave out clients")),
        Some(clients) => {
            let pair = identity::load(security.key.as_deref(), &events)?;
            let key = pair.public().fingerprint();
            let trust = Pinned { clients, servers: Vec::new() };
            let endpoint = settings.bind_with(at, Some(Security::new(pair, trust).cipher(security.cipher)))?;
            Ok((endpoint, Some(key)))
        }
        None => {
            let admission = security.admission(&events, None, Service::Bytes("listen"))?;
            let key = admission.as_ref().map(Admission::fingerprint);
            Ok((settings.bind(at, admission.as_ref())?, key))
        }
    }
}

fn public_key(text: &str) -> PyResult<PublicKey> {
    text.parse().map_err(|error| usage(format!("argument 'clients': {error}")))
}
