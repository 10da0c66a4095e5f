//! The requests of tasks: futures that hold no thread while they wait, and need no runtime.
//!
//! One thread connects for all tasks that wait for it. An abandoned request is given up, as [`RemoteFiles`] says. One that reads can be
//! made again, and one that changes something may have been carried out.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::task::{Context, Poll, Waker};
use std::thread;

use farhaul_session::{
    Answer, FileInfo, FileRange, FileRequest, ListedEntry, MakeDirectory, Put, ReadFrom, Remove, Removing, ServicePath,
    Written,
};

use super::entries::PageOrder;
use super::link::{Fault, Link, Ticket};
use super::steady::{SteadyRead, Unsteady};
use super::wakers::RoomPlace;
use super::{PutOptions, RemoteFiles, Shared, existing};
use crate::error::{Code, Error};

/// Entries that a page is asked to have. A server gives as many as fit in an answer.
const PER_PAGE: u32 = 1024;

/// The tasks that wait for a connection.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    state: Mutex<AttemptsState>,
}

#[derive(Default)]
struct AttemptsState {
    is_connecting: bool,
    /// Attempts that have ended, and how the last one did.
    ended: u64,
    last: Option<Result<Weak<Link>, Error>>,
    waiting: Vec<Waker>,
}

impl std::fmt::Debug for AttemptsState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempts").field("is_connecting", &self.is_connecting).finish_non_exhaustive()
    }
}

/// A connection, as a future.
struct Connecting<'a> {
    shared: &'a Arc<Shared>,
    /// The number of the attempt that this one waits for.
    attempt: Option<u64>,
}

/// Room for a request, as a future of the request.
struct Requesting<'a> {
    link: Arc<Link>,
    request: &'a FileRequest,
    place: RoomPlace,
}

/// The answer to a request, as a future.
struct Answering {
    ticket: Ticket,
}

impl RemoteFiles {
    /// [`stat`](Self::stat) for tasks.
    ///
    /// # Errors
    /// As `stat`.
    pub async fn stat_async(&self, path: impl AsRef<[u8]>) -> Result<FileInfo, Error> {
        let place = self.place(path.as_ref())?;
        match self.repeatable_async(&place, &FileRequest::Stat(place.clone())).await? {
            Answer::Info(info) => Ok(info),
            _ => Err(self.other_answer()),
        }
    }

    /// All entries of a directory, in ascending order of their names.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn list_async(&self, path: impl AsRef<[u8]>) -> Result<Vec<ListedEntry>, Error> {
        let place = self.place(path.as_ref())?;
        let (mut all, mut cursor): (Vec<ListedEntry>, Vec<u8>) = (Vec::new(), Vec::new());
        let mut order = PageOrder::default();
        loop {
            let request = FileRequest::List { place: place.clone(), cursor: cursor.clone(), most: PER_PAGE };
            let Answer::Page(page) = self.repeatable_async(&place, &request).await? else {
                return Err(self.other_answer());
            };
            if let Err(fault) = order.take(&page, &cursor) {
                return Err(Error::new(Code::Protocol, format!("{} {fault}", self.host())));
            }
            all.extend(page.entries);
            if page.next.is_empty() {
                return Ok(all);
            }
            cursor = page.next;
        }
    }

    /// Bytes of a file: at most `length`, compared with their digest, as [`read_range`](Self::read_range) reads them.
    ///
    /// # Errors
    /// As [`read_range`](Self::read_range).
    pub async fn read_async(&self, path: impl AsRef<[u8]>, from: ReadFrom, length: u64) -> Result<FileRange, Error> {
        let mut read = SteadyRead::new(self.place(path.as_ref())?, from, length);
        loop {
            let Answer::Range(range) = self.repeatable_async(read.place(), &read.request()).await? else {
                return Err(self.other_answer());
            };
            if let Some(range) = read.take(range).map_err(|Unsteady| self.changed(read.place()))? {
                return Ok(range);
            }
        }
    }

    /// [`create`](Self::create) for tasks.
    ///
    /// # Errors
    /// As `create`.
    pub async fn create_async(&self, path: impl AsRef<[u8]>, options: PutOptions) -> Result<AsyncRemoteWriter, Error> {
        let place = self.place(path.as_ref())?;
        let PutOptions { size, replace, parents, mode, mtime } = options;
        let put = Put { place: place.clone(), size, existing: existing(replace), parents, mode, mtime };
        let ticket = self.begin_async(&FileRequest::Put(put)).await?;
        Ok(AsyncRemoteWriter { files: self.clone(), place, ticket: Some(ticket) })
    }

    /// [`create_dir`](Self::create_dir) for tasks.
    ///
    /// # Errors
    /// As `create_dir`.
    pub async fn create_dir_async(&self, path: impl AsRef<[u8]>, parents: bool) -> Result<bool, Error> {
        let place = self.place(path.as_ref())?;
        let request = FileRequest::MakeDirectory(MakeDirectory { place: place.clone(), parents });
        match self.once_async(&place, &request).await? {
            Answer::Made(is_new) => Ok(is_new),
            _ => Err(self.other_answer()),
        }
    }

    /// [`remove_as`](Self::remove_as) for tasks.
    ///
    /// # Errors
    /// As `remove_as`.
    pub async fn remove_async(&self, path: impl AsRef<[u8]>, removing: Removing) -> Result<u64, Error> {
        let place = self.place(path.as_ref())?;
        match self.once_async(&place, &FileRequest::Remove(Remove { place: place.clone(), removing })).await? {
            Answer::Removed(count) => Ok(count),
            _ => Err(self.other_answer()),
        }
    }

    /// [`rename_as`](Self::rename_as) for tasks.
    ///
    /// # Errors
    /// As `rename_as`.
    pub async fn rename_async(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>, replace: bool) -> Result<(), Error> {
        let places = self.places(from.as_ref(), to.as_ref(), replace)?;
        self.once_async(&places.from.clone(), &FileRequest::Rename(places)).await.map(drop)
    }

    /// [`copy`](Self::copy) for tasks.
    ///
    /// # Errors
    /// As `copy`.
    pub async fn copy_async(
        &self,
        from: impl AsRef<[u8]>,
        to: impl AsRef<[u8]>,
        replace: bool,
    ) -> Result<Written, Error> {
        let places = self.places(from.as_ref(), to.as_ref(), replace)?;
        match self.once_async(&places.from.clone(), &FileRequest::Copy(places)).await? {
            Answer::Written(written) => Ok(written),
            _ => Err(self.other_answer()),
        }
    }

    /// [`digest`](Self::digest) for tasks.
    ///
    /// # Errors
    /// As `digest`.
    pub async fn digest_async(&self, path: impl AsRef<[u8]>) -> Result<Written, Error> {
        let place = self.place(path.as_ref())?;
        match self.repeatable_async(&place, &FileRequest::Digest(place.clone())).await? {
            Answer::Written(written) => Ok(written),
            _ => Err(self.other_answer()),
        }
    }

    pub(super) async fn repeatable_async(&self, place: &ServicePath, request: &FileRequest) -> Result<Answer, Error> {
        match (Answering { ticket: self.begin_async(request).await? }).await {
            Err(Fault::Lost(_)) if !self.0.environment.cancellation.is_cancelled() => {
                self.once_async(place, request).await
            }
            answer => answer.map_err(|fault| self.error(place, fault)),
        }
    }

    async fn once_async(&self, place: &ServicePath, request: &FileRequest) -> Result<Answer, Error> {
        let ticket = self.begin_async(request).await?;
        Answering { ticket }.await.map_err(|fault| self.error(place, fault))
    }

    /// Makes a request, on a new connection if the last one has ended before.
    async fn begin_async(&self, request: &FileRequest) -> Result<Ticket, Error> {
        loop {
            let link = Connecting { shared: &self.0, attempt: None }.await?;
            if let Some(ticket) = (Requesting { link, request, place: RoomPlace::default() }).await {
                return Ok(ticket);
            }
        }
    }
}

/// [`RemoteWriter`](super::RemoteWriter) for tasks. Dropped before its end, nothing of the file stays.
pub struct AsyncRemoteWriter {
    files: RemoteFiles,
    place: ServicePath,
    ticket: Option<Ticket>,
}

impl AsyncRemoteWriter {
    /// Sends all of `bytes`, as far as the server takes them. An abandoned call gives the file up, because a part of `bytes` may have
    /// been taken: later calls fail.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        let ticket = self.ticket.take().ok_or_else(failed_before)?;
        while !bytes.is_empty() {
            let taken = std::future::poll_fn(|cx| ticket.poll_write(cx, bytes)).await;
            bytes = &bytes[taken..];
            if ticket.is_answered() {
                // It has failed, since its end was not said.
                return self.outcome(ticket).await.and_then(|_| Err(self.files.other_answer()));
            }
        }
        self.ticket = Some(ticket);
        Ok(())
    }

    /// Ends the file, and waits until it is safe under its name. Behind an abandoned call, it may have its name or not.
    ///
    /// # Errors
    /// It could not be written, or something has its name.
    pub async fn finish(mut self) -> Result<Written, Error> {
        let ticket = self.ticket.take().ok_or_else(failed_before)?;
        ticket.finish_put();
        self.outcome(ticket).await
    }

    async fn outcome(&self, ticket: Ticket) -> Result<Written, Error> {
        match (Answering { ticket }).await.map_err(|fault| self.files.error(&self.place, fault))? {
            Answer::Written(written) => Ok(written),
            _ => Err(self.files.other_answer()),
        }
    }
}

impl std::fmt::Debug for AsyncRemoteWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AsyncRemoteWriter").field("place", &self.place).finish_non_exhaustive()
    }
}

fn failed_before() -> Error {
    Error::new(Code::FilesFailed, "the file could not be written, as an earlier error said")
}

impl Future for Connecting<'_> {
    type Output = Result<Arc<Link>, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = self.shared;
        let mut attempts = shared.attempts.state();
        // Another attempt may have followed already: its end is as good.
        if let Some(last) = attempts.last.as_ref().filter(|_| self.attempt.is_some_and(|mine| attempts.ended > mine)) {
            match last.as_ref().map(Weak::upgrade) {
                Err(error) => return Poll::Ready(Err(error.clone())),
                Ok(Some(link)) => return Poll::Ready(Ok(link)),
                // It was closed meanwhile.
                Ok(None) => self.attempt = None,
            }
        }
        if self.attempt.is_none() {
            if let Some(link) = shared.open_link() {
                return Poll::Ready(Ok(link));
            }
            self.attempt = Some(attempts.ended);
            if !attempts.is_connecting {
                let its = Arc::clone(shared);
                let begun = thread::Builder::new().name("connect".into()).spawn(move || its.connect_for_tasks());
                if let Err(error) = begun {
                    return Poll::Ready(Err(error.into()));
                }
                attempts.is_connecting = true;
            }
        }
        attempts.waiting.push(cx.waker().clone());
        Poll::Pending
    }
}

impl Attempts {
    /// The content, even after a panic: it is consistent at any time.
    fn state(&self) -> MutexGuard<'_, AttemptsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// The connection, if there is one.
    fn open_link(&self) -> Option<Arc<Link>> {
        let current = match self.link.try_lock() {
            Ok(current) => current,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread connects.
            Err(TryLockError::WouldBlock) => return None,
        };
        current.as_ref().filter(|link| link.is_open()).map(Arc::clone)
    }

    /// Connects, and wakes the tasks that wait for it.
    fn connect_for_tasks(&self) {
        let result = self.link();
        let mut attempts = self.attempts.state();
        attempts.is_connecting = false;
        attempts.ended += 1;
        attempts.last = Some(result.as_ref().map(Arc::downgrade).map_err(Clone::clone));
        let waiting = std::mem::take(&mut attempts.waiting);
        drop(attempts);
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Future for Requesting<'_> {
    type Output = Option<Ticket>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { link, request, place } = &mut *self;
        link.poll_request(cx, request, place)
    }
}

impl Drop for Requesting<'_> {
    fn drop(&mut self) {
        self.link.leave_room(&self.place);
    }
}

impl Future for Answering {
    type Output = Result<Answer, Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.ticket.poll_answer(cx)
    }
}
