//! Files of another host, by requests of tasks over one connection.

use std::sync::{Mutex, MutexGuard, PoisonError};

use farhaul_session::{
    FileInfo, FileVersion, ListedDirectory, ListedEntry, Mtime, NodeKind, ReadFrom, RelPath, Removing, TreeCursor,
    Written,
};
use farhaul_transfer::{AsyncRemoteWriter, Cancellation, Error, PutOptions, RemoteFiles as Service, RemoteHost};
use pyo3::BoundObject;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::async_call::{AsyncCall, Outcome, async_call};
use crate::buffer::Readable;
use crate::error::{raised, usage};
use crate::fork::OfProcess;
use crate::gate::detach;
use crate::log;
use crate::settings::{Keywords, settings, ssh};

/// Size, digest of a file on the server. A server that copies may not know the digest.
type SizeAndDigest = (u64, Option<String>);
/// Where a listing of a tree goes on: a directory, and the name of its last entry.
type Cursor = (Vec<u8>, Vec<u8>);

/// The files of another host. One connection carries the requests of all tasks; the first of them makes it.
#[pyclass(module = "farhaul._farhaul", frozen, weakref)]
pub(crate) struct RemoteFiles(OfProcess<Inner>);

struct Inner {
    files: Service,
    cancellation: Cancellation,
}

/// A file under way. It has its name after `finish`, or nothing of it stays.
#[pyclass(module = "farhaul._farhaul", frozen, weakref)]
pub(crate) struct RemoteWriter(OfProcess<std::sync::Arc<Mutex<Option<AsyncRemoteWriter>>>>);

/// A request of a task, whose result becomes an object.
fn request<'py, T, F, R>(
    py: Python<'py>,
    work: F,
    into: impl FnOnce(Python<'_>, T) -> PyResult<R> + Send + 'static,
) -> PyResult<Bound<'py, AsyncCall>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
    R: for<'a> IntoPyObject<'a, Error: Into<PyErr>> + 'static,
{
    async_call(py, async move {
        let result = work.await;
        Box::new(move |py: Python<'_>| {
            let value = into(py, result.map_err(raised)?)?.into_pyobject(py).map_err(Into::into)?;
            Ok(value.into_bound().into_any().unbind())
        }) as Outcome
    })
}

#[pymethods]
impl RemoteFiles {
    /// The files of `host`: `udt://host:port`, or `host:` of ssh.
    #[new]
    #[pyo3(signature = (host, **options))]
    fn of(py: Python<'_>, host: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let keywords = Keywords::of(py, options)?;
        let (ssh, settings) = (ssh(&keywords)?, settings(&keywords)?);
        keywords.end("RemoteFiles")?;
        let host: RemoteHost = host.parse().map_err(raised)?;
        let environment = log::environment();
        let cancellation = environment.cancellation.clone();
        let files = Service::connecting_later(host, settings, ssh, &environment).map_err(raised)?;
        Ok(Self(OfProcess::new(Inner { files, cancellation })))
    }

    /// The properties of an entry.
    fn stat<'py>(&self, py: Python<'py>, path: Vec<u8>) -> PyResult<Bound<'py, AsyncCall>> {
        let files = self.files()?;
        request(py, async move { files.stat_async(path).await }, |py, info| properties(py, &info))
    }

    /// The names of a directory, with the properties of each.
    fn list<'py>(&self, py: Python<'py>, path: Vec<u8>) -> PyResult<Bound<'py, AsyncCall>> {
        let files = self.files()?;
        request(py, async move { files.list_async(path).await }, listed)
    }

    /// A page of the directories from `path` on: the path of each below it, its entries, and why it cannot be read. With them comes the
    /// cursor of the next page. `None` from a server that does not know the request.
    #[pyo3(signature = (path, depth, cursor = None))]
    fn list_tree<'py>(
        &self,
        py: Python<'py>,
        path: Vec<u8>,
        depth: u32,
        cursor: Option<Cursor>,
    ) -> PyResult<Bound<'py, AsyncCall>> {
        let files = self.files()?;
        let from = match cursor {
            Some((path, name)) => {
                let path = RelPath::parse(&path).map_err(|error| usage(error.to_string()))?;
                TreeCursor { path, name }
            }
            None => TreeCursor::default(),
        };
        let work = {
            let (files, path) = (files.clone(), path.clone());
            async move { files.list_tree_async(path, depth, from).await }
        };
        request(py, work, move |py, page| {
            let Some(page) = page else { return Ok(None) };
            let directory = |directory: ListedDirectory| {
                let failed = |failure| raised(files.error_below(&path, &directory.path, failure)).into_value(py);
                let error = directory.failure.as_ref().map(failed);
                let below = PyBytes::new(py, &directory.path.to_bytes()).unbind();
                Ok((below, listed(py, directory.entries)?, error))
            };
            let directories = page.directories.into_iter().map(directory).collect::<PyResult<Vec<_>>>()?;
            let bytes = |bytes: &[u8]| PyBytes::new(py, bytes).unbind();
            let next = page.next.map(|next| (bytes(&next.path.to_bytes()), bytes(&next.name)));
            Ok(Some((directories, next)))
        })
    }

    /// Bytes of a file from `offset` on; with a negative one, its last bytes. At most `length`. They are of the version that is returned
    /// with them, or it fails.
    fn read<'py>(&self, py: Python<'py>, path: Vec<u8>, offset: i64, length: u64) -> PyResult<Bound<'py, AsyncCall>> {
        let files = self.files()?;
        let from = match u64::try_from(offset) {
            Ok(offset) => ReadFrom::Start(offset),
            Err(_) => ReadFrom::End(offset.unsigned_abs()),
        };
        request(py, async move { files.read_async(path, from, length).await }, |py, range| {
            let FileVersion { stamp, ctime } = range.version;
            let version = (stamp.size, nanoseconds(stamp.mtime), ctime.map(nanoseconds));
            Ok((PyBytes::new(py, &range.bytes).unbind(), range.at_end, version))
        })
    }

    /// Begins a file.
    #[pyo3(signature = (path, *, replace, size = None, mtime = None))]
    fn create<'py>(
        &self,
        py: Python<'py>,
        path: Vec<u8>,
        replace: bool,
        size: Option<u64>,
        mtime: Option<f64>,
    ) -> PyResult<Bound<'py, AsyncCall>> {
        let files = self.files()?;
        let mut options = PutOptions::default().replace(replace);
        (options.size, options.mtime) = (size, mtime.map(moment));
        request(py, async move { files.create_async(path, options).await }, |py, writer| {
            Py::new(py, RemoteWriter(OfProcess::new(std::sync::Arc::new(Mutex::new(Some(writer))))))
        })
    }

    /// Writes a file with this content.
    #[pyo3(signature = (path, content, *, replace))]
    fn put<'py>(
        &self,
        py: Python<'py>,
        path: Vec<u8>,
        content: Readable,
        replace: bool,
    ) -> PyResult<Bound<'py, AsyncCall>> {
        let files = self.files()?;
        let options = PutOptions::default().replace(replace).size(content.bytes().len() as u64);
        let work = async move {
            let mut writer = files.create_async(path, options).await?;
            writer.write_all(content.bytes()).await?;
            writer.finish().await
        };
        request(py, work, |_, written| Ok(size_and_digest(&written)))
    }

    /// Makes a directory. Returns whether it is new.
    fn create_dir<'py>(&self, py: Python<'py>, path: Vec<u8>, parents: bool) -> PyResult<Bound<'py, AsyncCall>> {
        let files = self.files()?;
        request(py, async move { files.create_dir_async(path, parents).await }, |_, is_new| Ok(is_new))
    }

    /// Removes what `kind` names: `file`, `directory` (an empty one), `either`, or `tree` with at most `most` entries.
    #[pyo3(signature = (path, kind, most = u64::MAX))]
    fn remove<'py>(&self, py: Python<'py>, path: Vec<u8>, kind: &str, most: u64) -> PyResult<Bound<'py, AsyncCall>> {
        let files = self.files()?;
        let removing = match kind {
            "file" => Removing::File,
            "directory" => Removing::EmptyDirectory,
            "either" => Removing::Either,
            "tree" => Removing::Tree(most),
            other => return Err(crate::settings::unknown("kind", other, "file, directory, either, tree")),
        };
        request(py, async move { files.remove_async(path, removing).await }, |_, count| Ok(count))
    }

    /// Gives an entry another name.
    fn rename<'py>(
        &self,
        py: Python<'py>,
        from_: Vec<u8>,
        to: Vec<u8>,
        replace: bool,
    ) -> PyResult<Bound<'py, AsyncCall>> {
        let files = self.files()?;
        request(py, async move { files.rename_async(from_, to, replace).await }, |py, ()| Ok(py.None()))
    }

    /// Copies a file on the server.
    fn copy<'py>(
        &self,
        py: Python<'py>,
        from_: Vec<u8>,
        to: Vec<u8>,
        replace: bool,
    ) -> PyResult<Bound<'py, AsyncCall>> {
        let files = self.files()?;
        let work = async move { files.copy_async(from_, to, replace).await };
        request(py, work, |_, written| Ok(size_and_digest(&written)))
    }

    /// The size and the BLAKE3 digest of a file, which the server reads.
    fn digest<'py>(&self, py: Python<'py>, path: Vec<u8>) -> PyResult<Bound<'py, AsyncCall>> {
        let files = self.files()?;
        request(py, async move { files.digest_async(path).await }, |_, written| Ok(size_and_digest(&written)))
    }

    /// Ends the connection once every request has its answer. The next request makes a new one.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let files = self.files()?;
        detach(py, || files.close()).map_err(raised)
    }

    fn __repr__(&self) -> String {
        match self.0.here().map(|inner| inner.files.host()) {
            Some(RemoteHost::Server(server)) => format!("<farhaul.RemoteFiles of udt://{server}>"),
            Some(host) => format!("<farhaul.RemoteFiles of {host}:>"),
            None => "<farhaul.RemoteFiles of the parent process>".to_owned(),
        }
    }

    /// Ends the connection at once. Nothing can be requested any more.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.0.get()?;
        detach(py, || inner.cancellation.cancel());
        Ok(())
    }
}

impl RemoteFiles {
    fn files(&self) -> PyResult<Service> {
        Ok(self.0.get()?.files.clone())
    }
}

#[pymethods]
impl RemoteWriter {
    /// Sends all of `data`. One call at a time. A call that was cancelled has given the file up.
    fn write<'py>(&self, py: Python<'py>, data: Readable) -> PyResult<Bound<'py, AsyncCall>> {
        let place = std::sync::Arc::clone(self.0.get()?);
        let mut writer = self.take()?;
        let work = async move {
            let written = writer.write_all(data.bytes()).await;
            *lock(&place) = Some(writer);
            written
        };
        request(py, work, |py, ()| Ok(py.None()))
    }

    /// Ends the file, and waits until it is safe under its name.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, AsyncCall>> {
        let writer = self.take()?;
        request(py, writer.finish(), |_, written| Ok(size_and_digest(&written)))
    }

    /// Gives the file up. Nothing of it stays.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        let writer = lock(self.0.get()?).take();
        detach(py, || drop(writer));
        Ok(())
    }
}

impl RemoteWriter {
    fn take(&self) -> PyResult<AsyncRemoteWriter> {
        let writer = lock(self.0.get()?).take();
        writer.ok_or_else(|| usage("this file was finished or given up, or another call writes it"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn size_and_digest(written: &Written) -> SizeAndDigest {
    (written.size, written.digest.map(|digest| digest.to_string()))
}

/// The names of entries, with the properties of each.
fn listed(py: Python<'_>, entries: Vec<ListedEntry>) -> PyResult<Vec<(Py<PyBytes>, Py<PyDict>)>> {
    let entry = |entry: ListedEntry| {
        let name = PyBytes::new(py, entry.name.as_bytes()).unbind();
        properties(py, &entry.info).map(|info| (name, info))
    };
    entries.into_iter().map(entry).collect()
}

/// Properties by their names.
fn properties(py: Python<'_>, info: &FileInfo) -> PyResult<Py<PyDict>> {
    let fields = PyDict::new(py);
    let kind = match info.kind {
        NodeKind::File => "file",
        NodeKind::Directory => "directory",
        NodeKind::Link => "link",
        NodeKind::Other => "other",
    };
    fields.set_item("type", kind)?;
    fields.set_item("size", info.size)?;
    fields.set_item("mode", info.mode)?;
    fields.set_item("mtime_ns", nanoseconds(info.mtime))?;
    if let Some(ctime) = info.ctime {
        fields.set_item("ctime_ns", nanoseconds(ctime))?;
    }
    if let Some(target) = &info.target {
        fields.set_item("destination", PyBytes::new(py, target))?;
    }
    if let Some(owner) = &info.owner {
        fields.set_item("uid", owner.uid)?;
        fields.set_item("gid", owner.gid)?;
    }
    Ok(fields.unbind())
}

/// Nanoseconds since 1970.
fn nanoseconds(time: Mtime) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
}

/// A time in seconds since 1970.
fn moment(seconds: f64) -> Mtime {
    let whole = seconds.floor();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
    Mtime { seconds: whole as i64, nanos: (((seconds - whole) * 1e9) as u32).min(999_999_999) }
}
