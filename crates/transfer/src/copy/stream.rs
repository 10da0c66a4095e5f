//! A stream as one end of a copy: a source of unknown size, and a target without a name.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use farhaul_bond::BondedStream;
use farhaul_session::{
    Chunk, Commit, Digest, Entry, EntryId, EntryKind, FailCode, Failure, Leftover, Made, Mtime, Next, RelPath, Source,
    Stamp, Store,
};
use rustix::fs::fstat;

use crate::cancel::Cancellation;
use crate::text::reason;

/// Bytes per read.
const BLOCK: usize = 256 << 10;
/// Blocks of read-ahead.
const AHEAD: usize = 4;
/// Interval at which a wait for stdin checks for signals and a lost connection: short for a person.
const LOOK: Duration = Duration::from_millis(100);
/// Permission bits of a file from a pipe, before the receiver's umask.
const MODE: u32 = 0o666;

/// A stream as one file. A separate thread reads it, since a read may wait for ever.
pub(super) struct InputStream {
    name: RelPath,
    mtime: Mtime,
    given: bool,
    blocks: Receiver<io::Result<Vec<u8>>>,
    /// The last block, and the position of its unread rest.
    block: Vec<u8>,
    used: usize,
    taken: u64,
    stream: BondedStream,
    cancellation: Cancellation,
}

impl InputStream {
    /// Starts reading `input`, for a copy over `stream` under this name.
    pub(super) fn begin(
        name: RelPath,
        mut input: Box<dyn Read + Send>,
        stream: BondedStream,
        cancellation: Cancellation,
    ) -> io::Result<Self> {
        let (filled, blocks) = sync_channel(AHEAD);
        thread::Builder::new().name("input".into()).spawn(move || {
            loop {
                let mut block = vec![0; BLOCK];
                let read = match input.read(&mut block) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(len) => Ok(block[..len].to_vec()),
                    Err(error) => Err(error),
                };
                let last = read.as_ref().map_or(true, Vec::is_empty);
                if filled.send(read).is_err() || last {
                    return;
                }
            }
        })?;
        // For a pipe this is the time of the last write.
        let mtime = fstat(io::stdin())
            .map(|stat| Mtime { seconds: stat.st_mtime, nanos: u32::try_from(stat.st_mtime_nsec).unwrap_or(0) });
        let mtime = mtime.unwrap_or_default();
        let (block, used, taken) = (Vec::new(), 0, 0);
        Ok(Self { name, mtime, given: false, blocks, block, used, taken, stream, cancellation })
    }

    fn is_wanted(&self) -> bool {
        !self.cancellation.is_cancelled() && self.stream.stats().is_ok()
    }
}

impl Source for InputStream {
    fn next_entry(&mut self, _: EntryId) -> Next {
        if std::mem::replace(&mut self.given, true) {
            return Next::End;
        }
        let path = self.name.clone();
        Next::Entry(Entry::new(path, EntryKind::File, Entry::UNKNOWN_SIZE, MODE, self.mtime))
    }

    fn open(&mut self, _: EntryId) -> Result<Stamp, Failure> {
        Ok(Stamp { size: Entry::UNKNOWN_SIZE, mtime: self.mtime })
    }

    fn read(&mut self, _: EntryId, _: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        while self.used == self.block.len() {
            match self.blocks.recv_timeout(LOOK) {
                // The signal that stops this program may also have ended its input early. It cancels the session.
                Ok(Ok(block)) if block.is_empty() && self.cancellation.is_requested() => return Ok(Chunk::Pending),
                Ok(Ok(block)) if block.is_empty() => return Ok(Chunk::End),
                Ok(Ok(block)) => (self.block, self.used) = (block, 0),
                Ok(Err(error)) => {
                    return Err(Failure::new(FailCode::Io, format!("cannot read stdin: {}", reason(&error))));
                }
                Err(RecvTimeoutError::Timeout) if self.is_wanted() => {}
                // The driver of the session learns the reason from the connection.
                Err(RecvTimeoutError::Timeout) => return Ok(Chunk::Pending),
                // The thread has reported the end of stdin, and `read` answered it with a signal that follows.
                Err(RecvTimeoutError::Disconnected) => return Ok(Chunk::Pending),
            }
        }
        let rest = &self.block[self.used..];
        let len = rest.len().min(out.len());
        out[..len].copy_from_slice(&rest[..len]);
        self.used += len;
        self.taken += len as u64;
        Ok(Chunk::Data(len))
    }

    fn recheck(&mut self, _: EntryId) -> Result<Stamp, Failure> {
        Ok(Stamp { size: self.taken, mtime: self.mtime })
    }

    fn close(&mut self, _: EntryId) {}
}

/// A stream as the target of one file. Bytes leave before their digest is verified.
pub(super) struct OutputStream {
    output: Box<dyn Write + Send>,
    closed: Rc<Cell<bool>>,
}

impl OutputStream {
    /// Sets `closed` once the reader has left.
    pub(super) fn new(output: Box<dyn Write + Send>, closed: Rc<Cell<bool>>) -> Self {
        Self { output, closed }
    }

    fn written(&self, result: io::Result<()>) -> Result<(), Failure> {
        result.map_err(|error| {
            let code = match error.kind() {
                io::ErrorKind::BrokenPipe => {
                    self.closed.set(true);
                    FailCode::Io
                }
                io::ErrorKind::StorageFull => FailCode::NoSpace,
                io::ErrorKind::QuotaExceeded => FailCode::Quota,
                _ => FailCode::Io,
            };
            Failure::new(code, format!("cannot write to stdout: {}", reason(&error)))
        })
    }
}

impl Store for OutputStream {
    fn make_dir(&mut self, _: EntryId, _: &Entry) -> Result<Made, Failure> {
        Err(FailCode::IsDirectory.into())
    }

    fn begin(&mut self, _: EntryId, _: &Entry) -> Result<(), Failure> {
        Ok(())
    }

    fn write(&mut self, _: EntryId, _: u64, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.output.write_all(bytes);
        self.written(written)
    }

    fn zeros(&mut self, id: EntryId, offset: u64, count: u64) -> Result<(), Failure> {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        let mut rest = count;
        while rest > 0 {
            let step = usize::try_from(rest).unwrap_or(ZEROS.len()).min(ZEROS.len());
            self.write(id, offset, &ZEROS[..step])?;
            rest -= step as u64;
        }
        Ok(())
    }

    fn can_repair(&self) -> bool {
        false
    }

    fn commit(&mut self, _: EntryId, _: &Entry, _: &Digest) -> Result<Commit, Failure> {
        let written = self.output.flush();
        self.written(written).map(|()| Commit::Done)
    }

    fn finish_dir(&mut self, _: EntryId, _: &Entry) -> Result<Commit, Failure> {
        Ok(Commit::Done)
    }

    fn abort(&mut self, _: EntryId, _: Leftover) {}
}
