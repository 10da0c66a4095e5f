//! A file of another host that is written.

use std::io::{self, Read, Write};

use farhaul_session::{Answer, Mtime, ServicePath, Written};

use super::RemoteFiles;
use super::link::Ticket;
use crate::error::{Code, Error};

/// Bytes per read of the content.
const BLOCK: usize = 256 << 10;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PutOptions {
    /// Its size in bytes, if it is known. Another number of bytes fails. Default: unknown.
    pub size: Option<u64>,
    /// Whether a file of that name is replaced, whose permissions stay. Default: no.
    pub replace: bool,
    /// Whether missing directories are made. Default: yes.
    pub parents: bool,
    /// Permission bits of a new file, to which the umask there applies. Default: `0o666`.
    pub mode: u32,
    /// The time of its last change. Default: that of the end of the put.
    pub mtime: Option<Mtime>,
}

impl Default for PutOptions {
    fn default() -> Self {
        Self { size: None, replace: false, parents: true, mode: 0o666, mtime: None }
    }
}

impl PutOptions {
    /// The same with this size in bytes. Another number of bytes fails.
    #[must_use]
    pub const fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// The same with whether a file of that name is replaced.
    #[must_use]
    pub const fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// The same with whether missing directories are made.
    #[must_use]
    pub const fn parents(mut self, parents: bool) -> Self {
        self.parents = parents;
        self
    }

    /// The same with these permission bits of a new file.
    #[must_use]
    pub const fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// The same with this time of the last change.
    #[must_use]
    pub const fn mtime(mut self, time: Mtime) -> Self {
        self.mtime = Some(time);
        self
    }
}

/// A file under way. It has its name after [`finish`](Self::finish). Dropped before, nothing of it stays.
pub struct RemoteWriter {
    files: RemoteFiles,
    place: ServicePath,
    ticket: Option<Ticket>,
}

impl RemoteWriter {
    pub(super) const fn new(files: RemoteFiles, place: ServicePath, ticket: Ticket) -> Self {
        Self { files, place, ticket: Some(ticket) }
    }

    /// Ends the file, and waits until it is safe under its name.
    ///
    /// # Errors
    /// It could not be written, or something has its name.
    pub fn finish(mut self) -> Result<Written, Error> {
        let Some(ticket) = self.ticket.take() else {
            return Err(Error::new(Code::FilesFailed, "the file could not be written, as an earlier error said"));
        };
        ticket.finish_put();
        self.outcome(ticket)
    }

    /// Writes all of `content`.
    pub(super) fn take_all(&mut self, content: &mut impl Read) -> Result<(), Error> {
        let mut block = vec![0; BLOCK];
        loop {
            let len = match content.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let named = self.files.host().named(&self.place);
                    return Err(Error::new(Code::LocalIo, format!("cannot read the content for {named}: {error}")));
                }
            };
            let mut rest = &block[..len];
            while !rest.is_empty() {
                let taken = self.send(rest)?;
                rest = &rest[taken..];
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let failed = || Error::new(Code::FilesFailed, "the file could not be written, as an earlier error said");
        let taken = self.ticket.as_ref().ok_or_else(failed)?.write(bytes);
        match self.ticket.take_if(|ticket| ticket.is_answered()) {
            // It has failed, since its end was not said.
            Some(ticket) => self.outcome(ticket).and_then(|_| Err(self.files.other_answer())),
            None => Ok(taken),
        }
    }

    fn outcome(&self, ticket: Ticket) -> Result<Written, Error> {
        match ticket.wait().map_err(|fault| self.files.error(&self.place, fault))? {
            Answer::Written(written) => Ok(written),
            _ => Err(self.files.other_answer()),
        }
    }
}

impl Write for RemoteWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        self.send(bytes).map_err(io::Error::other)
    }

    /// Does nothing: bytes leave without it, and the file is safe after [`finish`](Self::finish).
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl std::fmt::Debug for RemoteWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteWriter").field("place", &self.place).finish_non_exhaustive()
    }
}
