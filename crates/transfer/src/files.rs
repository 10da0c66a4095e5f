//! Files of another host, by requests over one connection: of a running server, or of a host that ssh reaches.
//!
//! ```text
//! RemoteFiles ── Link ── a thread that writes ──▶ FileServer
//!      │           └──── a thread that reads  ◀──
//!      └── RemoteFile, RemoteWriter, Entries
//! ```
//!
//! | part | owns |
//! | --- | --- |
//! | `place` | a host, and a path there |
//! | `link` | a connection with its session and its two threads |
//! | `reader`, `writer` | a file that is read ahead, a file under way |
//! | `entries`, `tree` | the pages of a directory, and of those below it |
//! | `steady` | a range of a file that may change while it is read |
//! | `tasks`, `wakers` | the same for tasks, which hold no thread while they wait |

mod entries;
mod failure;
mod link;
mod place;
mod reader;
mod steady;
mod tasks;
mod tree;
mod wakers;
mod writer;

use std::fmt;
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farhaul_session::{
    Answer, Existing, FailCode, FileInfo, FileRange, FileRequest, MakeDirectory, Move, Put, ReadFrom, ReadRange,
    Remove, Removing, ServicePath, Written,
};

pub use entries::Entries;
pub use place::{RemoteHost, RemotePlace};
pub use reader::RemoteFile;
pub use tasks::AsyncRemoteWriter;
pub use tree::{TreeEntries, TreeItem};
pub use writer::{PutOptions, RemoteWriter};

use self::link::{Fault, Link, Ticket};
use self::steady::{SteadyRead, Unsteady, is_generated};
use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::remote::Ssh;
use crate::report::Report;
use crate::settings::Settings;

/// Ranges that are requested at once. With 1 MiB each, they fill 1 Gbit/s over 500 ms.
const AT_ONCE: usize = 64;

/// The files of another host.
///
/// One connection carries the requests of all threads that share it: clones are handles of the same one. Requests are served at the
/// same time. Whoever needs an order waits for the first answer. A connection that the server closed, because nothing was
/// requested for long, is made again for the next request.
///
/// Before a program ends, [`close`](Self::close) tells the server. Otherwise the server waits for the silent client, which keeps its place.
///
/// Paths are bytes. Those of a server are below its root. Over ssh, they are as the user there writes them: relative ones begin in the
/// home directory, and `~` is one.
///
/// ```no_run
/// use farhaul_transfer::{Environment, PutOptions, RemoteFiles, RemoteHost, Settings, Ssh};
///
/// let host: RemoteHost = "udt://far.example:9000".parse()?;
/// let files = RemoteFiles::connect(host, Settings::default(), Ssh::default(), &Environment::default())?;
/// for entry in files.list("run42") {
///     let entry = entry?;
///     println!("{} {}", entry.info.size, entry.name);
/// }
/// let head = files.read_range("run42/data.bin", 0, 1 << 20)?;
/// println!("{} bytes, verified", head.bytes.len());
/// files.put("run42/note.txt", b"looks good".as_slice(), PutOptions::default())?;
/// files.rename("run42/note.txt", "run42/notes/first.txt")?;
/// files.close()?;
/// # Ok::<(), farhaul_transfer::Error>(())
/// ```
#[derive(Clone)]
pub struct RemoteFiles(Arc<Shared>);

struct Shared {
    host: RemoteHost,
    settings: Settings,
    ssh: Ssh,
    environment: Environment,
    link: Mutex<Option<Arc<Link>>>,
    /// Attempts to connect for tasks.
    attempts: tasks::Attempts,
}

impl RemoteFiles {
    /// Connects to a host.
    ///
    /// # Errors
    /// It does not answer, refuses, or has no file service.
    pub fn connect(host: RemoteHost, settings: Settings, ssh: Ssh, environment: &Environment) -> Result<Self, Error> {
        let files = Self::connecting_later(host, settings, ssh, environment)?;
        files.0.link()?;
        Ok(files)
    }

    /// The same without a connection: the first request makes it.
    ///
    /// # Errors
    /// The settings do not fit the host.
    pub fn connecting_later(
        host: RemoteHost,
        settings: Settings,
        ssh: Ssh,
        environment: &Environment,
    ) -> Result<Self, Error> {
        if matches!(host, RemoteHost::Ssh(_)) {
            settings.check_remote_sender()?;
            if settings.security.plain {
                return Err(Error::usage("files over SSH are always encrypted").remedy("leave out ‹plain›"));
            }
        }
        let environment = environment.clone();
        // Nothing goes on without ssh: there is no copy whose end would be one.
        let mut ssh = ssh;
        ssh.detach = false;
        let (link, attempts) = (Mutex::default(), tasks::Attempts::default());
        Ok(Self(Arc::new(Shared { host, settings, ssh, environment, link, attempts })))
    }

    /// The host.
    pub fn host(&self) -> &RemoteHost {
        &self.0.host
    }

    /// The figures of the connection.
    pub fn report(&self) -> Report {
        let report =
            Report { address: Some(self.0.host.to_string()), ..self.0.settings.report(crate::report::Direction::Both) };
        match &*self.0.current() {
            Some(link) => link.report(report),
            None => report,
        }
    }

    /// The properties of an entry. A symbolic link is not followed.
    ///
    /// # Errors
    /// There is none ([`Code::NotFound`]), or it may not be seen.
    pub fn stat(&self, path: impl AsRef<[u8]>) -> Result<FileInfo, Error> {
        let place = self.place(path.as_ref())?;
        match self.repeatable(&place, &FileRequest::Stat(place.clone()))? {
            Answer::Info(info) => Ok(info),
            _ => Err(self.other_answer()),
        }
    }

    /// The entries of a directory in ascending order of their names, fetched as they are taken.
    pub fn list(&self, path: impl AsRef<[u8]>) -> Entries {
        Entries::of(self.clone(), path.as_ref())
    }

    /// Bytes of a file: `length` from `offset` on, or fewer at its end. Their digest is compared before they are returned. They are those of
    /// the file at one moment: if it changes meanwhile, it is read again.
    ///
    /// # Errors
    /// The file cannot be read, the bytes are not those that the server read ([`Code::Integrity`]), or the file changes all the time
    /// ([`Code::SourceChanged`]).
    pub fn read_range(&self, path: impl AsRef<[u8]>, offset: u64, length: u64) -> Result<FileRange, Error> {
        self.read_at(path.as_ref(), ReadFrom::Start(offset), length)
    }

    /// The last bytes of a file: at most `length`, and all of a shorter file.
    ///
    /// # Errors
    /// As [`read_range`](Self::read_range).
    pub fn read_end(&self, path: impl AsRef<[u8]>, length: u64) -> Result<FileRange, Error> {
        self.read_at(path.as_ref(), ReadFrom::End(length), length)
    }

    fn read_at(&self, path: &[u8], from: ReadFrom, length: u64) -> Result<FileRange, Error> {
        let mut read = SteadyRead::new(self.place(path)?, from, length);
        loop {
            let Answer::Range(range) = self.repeatable(read.place(), &read.request())? else {
                return Err(self.other_answer());
            };
            if let Some(range) = read.take(range).map_err(|Unsteady| self.changed(read.place()))? {
                return Ok(range);
            }
        }
    }

    /// Ranges of one file, each an offset and a length, requested together. The results are in the order of `ranges`.
    ///
    /// # Errors
    /// One of them cannot be read: as [`read_range`](Self::read_range). The others are given up. So they are if the file changed between
    /// two of them ([`Code::SourceChanged`]).
    pub fn read_ranges(&self, path: impl AsRef<[u8]>, ranges: &[(u64, u64)]) -> Result<Vec<FileRange>, Error> {
        let mut all = Vec::with_capacity(ranges.len());
        self.each_range(path, ranges, |range| {
            all.push(range);
            Ok(())
        })?;
        Ok(all)
    }

    /// The same, with each range passed on in the order of `ranges`, while the next ones are in flight.
    ///
    /// # Errors
    /// As [`read_ranges`](Self::read_ranges), or that of `pass`.
    pub fn each_range(
        &self,
        path: impl AsRef<[u8]>,
        ranges: &[(u64, u64)],
        mut pass: impl FnMut(FileRange) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let place = self.place(path.as_ref())?;
        let request = |&(offset, length): &(u64, u64)| {
            FileRequest::Read(ReadRange { place: place.clone(), from: ReadFrom::Start(offset), length })
        };
        let mut outstanding = std::collections::VecDeque::new();
        let (mut next, mut done) = (0, 0);
        let mut version = None;
        while done < ranges.len() {
            while next < ranges.len() && outstanding.len() < AT_ONCE {
                outstanding.push_back(self.0.begin(&request(&ranges[next]))?);
                next += 1;
            }
            let Some(ticket) = outstanding.pop_front() else { break };
            let answer = match ticket.wait() {
                // Another connection can answer again.
                Err(Fault::Lost(_)) => {
                    outstanding.clear();
                    next = done + 1;
                    self.repeatable(&place, &request(&ranges[done]))?
                }
                answer => answer.map_err(|fault| self.error(&place, fault))?,
            };
            let Answer::Range(mut range) = answer else { return Err(self.other_answer()) };
            if range.changed {
                let (offset, length) = ranges[done];
                range = self.read_at(place.as_bytes(), ReadFrom::Start(offset), length)?;
            }
            if *version.get_or_insert(range.version) != range.version && !is_generated(&range) {
                return Err(self.changed(&place));
            }
            pass(range)?;
            done += 1;
        }
        Ok(())
    }

    /// Opens a file that is read ahead: for reading from its beginning to its end, and for seeking.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open_read(&self, path: impl AsRef<[u8]>) -> Result<RemoteFile, Error> {
        RemoteFile::open(self.clone(), self.place(path.as_ref())?, ReadFrom::Start(0), u64::MAX)
    }

    /// The same for a part of a file: at most `length` bytes. No others are read.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open_part(&self, path: impl AsRef<[u8]>, from: ReadFrom, length: u64) -> Result<RemoteFile, Error> {
        RemoteFile::open(self.clone(), self.place(path.as_ref())?, from, length)
    }

    /// The same for a file that may change while it is read, so that its bytes may belong to several of its states: for a log that grows.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open_changing(&self, path: impl AsRef<[u8]>, from: ReadFrom, length: u64) -> Result<RemoteFile, Error> {
        RemoteFile::open_changing(self.clone(), self.place(path.as_ref())?, from, length)
    }

    /// Writes a file. It has its name once it is whole, verified and safe on the disk there.
    ///
    /// # Errors
    /// The content cannot be read ([`Code::LocalIo`]), or the file cannot be written: for instance [`Code::AlreadyExists`].
    pub fn put(&self, path: impl AsRef<[u8]>, mut content: impl Read, options: PutOptions) -> Result<Written, Error> {
        let mut writer = self.create(path, options)?;
        writer.take_all(&mut content)?;
        writer.finish()
    }

    /// Begins a file that is written in pieces. It appears with [`RemoteWriter::finish`], or not at all. [`MAX_PUTS`](farhaul_session::MAX_PUTS)
    /// files can be under way at a time, and 8 with an older server. Another one waits until one of them has ended.
    ///
    /// # Errors
    /// The connection is lost. A file that cannot be made fails with its first pieces, or at its end.
    pub fn create(&self, path: impl AsRef<[u8]>, options: PutOptions) -> Result<RemoteWriter, Error> {
        let place = self.place(path.as_ref())?;
        let PutOptions { size, replace, parents, mode, mtime } = options;
        let put = Put { place: place.clone(), size, existing: existing(replace), parents, mode, mtime };
        let ticket = self.0.begin(&FileRequest::Put(put))?;
        Ok(RemoteWriter::new(self.clone(), place, ticket))
    }

    /// Makes a directory. With `parents`, it makes missing ones on the way, and one that exists is no failure. Returns whether it is new.
    ///
    /// # Errors
    /// It cannot be made: for instance [`Code::AlreadyExists`].
    pub fn create_dir(&self, path: impl AsRef<[u8]>, parents: bool) -> Result<bool, Error> {
        let place = self.place(path.as_ref())?;
        let request = FileRequest::MakeDirectory(MakeDirectory { place: place.clone(), parents });
        match self.once(&place, &request)? {
            Answer::Made(is_new) => Ok(is_new),
            _ => Err(self.other_answer()),
        }
    }

    /// Removes a file, a link, or an empty directory.
    ///
    /// # Errors
    /// It cannot be removed: for instance [`Code::NotFound`] or [`Code::DirectoryNotEmpty`].
    pub fn remove(&self, path: impl AsRef<[u8]>) -> Result<(), Error> {
        self.remove_as(path, Removing::Either).map(drop)
    }

    /// Removes a directory with everything in it, or a file. If there are more than `most` entries, the rest stays. Returns the number of
    /// entries removed.
    ///
    /// # Errors
    /// An entry cannot be removed, or there are too many. Some may have been removed.
    pub fn remove_tree(&self, path: impl AsRef<[u8]>, most: u64) -> Result<u64, Error> {
        self.remove_as(path, Removing::Tree(most))
    }

    /// Removes what `removing` permits. Returns the number of entries removed.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove_as(&self, path: impl AsRef<[u8]>, removing: Removing) -> Result<u64, Error> {
        let place = self.place(path.as_ref())?;
        match self.once(&place, &FileRequest::Remove(Remove { place: place.clone(), removing }))? {
            Answer::Removed(count) => Ok(count),
            _ => Err(self.other_answer()),
        }
    }

    /// Gives an entry another name, which nothing has. Missing directories are made.
    ///
    /// # Errors
    /// Something has the name ([`Code::AlreadyExists`]), or it cannot be renamed.
    pub fn rename(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<(), Error> {
        self.rename_as(from, to, false)
    }

    /// The same. With `replace`, it replaces a file, or an empty directory by a directory.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn rename_as(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>, replace: bool) -> Result<(), Error> {
        let places = self.places(from.as_ref(), to.as_ref(), replace)?;
        self.once(&places.from.clone(), &FileRequest::Rename(places)).map(drop)
    }

    /// Copies a file on the server, whose bytes do not come here. With `replace`, it replaces a file. Missing directories are made.
    ///
    /// # Errors
    /// It cannot be copied.
    pub fn copy(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>, replace: bool) -> Result<Written, Error> {
        let places = self.places(from.as_ref(), to.as_ref(), replace)?;
        match self.once(&places.from.clone(), &FileRequest::Copy(places))? {
            Answer::Written(written) => Ok(written),
            _ => Err(self.other_answer()),
        }
    }

    /// The size and the BLAKE3 digest of a file, as `b3sum` prints it. The server reads all of it.
    ///
    /// # Errors
    /// It cannot be read, or changed meanwhile ([`Code::SourceChanged`]).
    pub fn digest(&self, path: impl AsRef<[u8]>) -> Result<Written, Error> {
        let place = self.place(path.as_ref())?;
        match self.repeatable(&place, &FileRequest::Digest(place.clone()))? {
            Answer::Written(written) => Ok(written),
            _ => Err(self.other_answer()),
        }
    }

    /// Ends the connection once every request has its answer. Later requests make a new one.
    ///
    /// # Errors
    /// The server left before that.
    pub fn close(&self) -> Result<(), Error> {
        let link = self.0.current().take();
        link.map_or(Ok(()), |link| link.close())
    }

    fn place(&self, path: &[u8]) -> Result<ServicePath, Error> {
        ServicePath::new(path)
            .map_err(|error| Error::usage(format!("the path '{}' is refused: {error}", farhaul_session::escape(path))))
    }

    fn places(&self, from: &[u8], to: &[u8], replace: bool) -> Result<Move, Error> {
        Ok(Move { from: self.place(from)?, to: self.place(to)?, existing: existing(replace), parents: true })
    }

    /// Makes a request that changes nothing. It is made again if the connection was lost.
    fn repeatable(&self, place: &ServicePath, request: &FileRequest) -> Result<Answer, Error> {
        match self.0.begin(request)?.wait() {
            Err(Fault::Lost(_)) if !self.0.environment.cancellation.is_cancelled() => self.once(place, request),
            answer => answer.map_err(|fault| self.error(place, fault)),
        }
    }

    /// Makes a request at most once.
    fn once(&self, place: &ServicePath, request: &FileRequest) -> Result<Answer, Error> {
        self.0.begin(request)?.wait().map_err(|fault| self.error(place, fault))
    }

    fn error(&self, place: &ServicePath, fault: Fault) -> Error {
        match fault {
            Fault::Failed(failure) => failure::error(&self.0.host.named(place), &failure),
            Fault::Lost(error) => error,
        }
    }

    fn changed(&self, place: &ServicePath) -> Error {
        self.error(place, Fault::Failed(FailCode::SourceChanged.into()))
    }

    fn other_answer(&self) -> Error {
        Error::new(Code::Protocol, format!("{} answers what was not asked", self.0.host))
    }
}

impl fmt::Debug for RemoteFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteFiles").field("host", &self.0.host).finish_non_exhaustive()
    }
}

impl Shared {
    fn current(&self) -> MutexGuard<'_, Option<Arc<Link>>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection, which is made if there is none.
    fn link(&self) -> Result<Arc<Link>, Error> {
        let mut current = self.current();
        if let Some(link) = current.as_ref().filter(|link| link.is_open()) {
            return Ok(Arc::clone(link));
        }
        if let Some(reason) = self.environment.cancellation.reason() {
            return Err(reason);
        }
        let link = Link::open(&self.host, &self.settings, &self.ssh, &self.environment)?;
        *current = Some(Arc::clone(&link));
        Ok(link)
    }

    /// Makes a request, on a new connection if the last one has ended before.
    fn begin(&self, request: &FileRequest) -> Result<Ticket, Error> {
        loop {
            let link = self.link()?;
            if let Some(ticket) = link.request(request) {
                return Ok(ticket);
            }
        }
    }
}

impl Drop for Shared {
    /// The server is told, while this side waits for nothing.
    fn drop(&mut self) {
        if let Some(link) = self.current().take() {
            link.finish();
        }
    }
}

const fn existing(replace: bool) -> Existing {
    if replace { Existing::Replace } else { Existing::Keep }
}
