//! stdin and stdout as one end of a copy: a source of unknown size, and a target without a name.

use std::cell::Cell;
use std::io::{self, Read, Stdout, Write};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use farhaul::Stream;
use farhaul_session::{
    Chunk, Commit, Digest, Entry, EntryId, EntryKind, FailCode, Failure, Leftover, Mtime, Next, RelPath, Source, Stamp,
    Store,
};
use rustix::fs::{OFlags, fcntl_getfl, fstat, makedev};

use super::plan::Plan;
use crate::exit::Fault;
use crate::interrupt::Interrupt;
use crate::output::human::reason;

/// Bytes per read.
const BLOCK: usize = 256 << 10;
/// Blocks of read-ahead.
const AHEAD: usize = 4;
/// Interval at which a wait for stdin checks for signals and a lost connection: short for a person.
const LOOK: Duration = Duration::from_millis(100);
/// Major and minor number of /dev/null (null(4)).
const NULL_DEVICE: (u32, u32) = (1, 3);
/// Permission bits of a file from a pipe, before the receiver's umask.
const MODE: u32 = 0o666;

/// Refuses a copy from a closed stdin or to a closed stdout, which would be an empty file, or lost.
pub(super) fn check(plan: &Plan) -> Result<(), Fault> {
    match plan {
        Plan::Feed(_) if is_closed(io::stdin()) => Err(Fault::usage(
            "stdin is closed, so there is nothing to copy: give the program an input; `< /dev/null` makes an empty file",
        )),
        Plan::Fetch(_) if is_closed(io::stdout()) => Err(Fault::usage(
            "stdout is closed, so the copy would be lost: redirect it to a file or a program; `> /dev/null` drops it",
        )),
        _ => Ok(()),
    }
}

/// Whether nobody opened this stream. At the start of a program, the standard library opens /dev/null in the place of a closed
/// stream, for reading and writing. A shell opens it for one of them.
fn is_closed(stream: impl AsFd) -> bool {
    let is_null = fstat(&stream).is_ok_and(|stat| stat.st_rdev == makedev(NULL_DEVICE.0, NULL_DEVICE.1));
    is_null && fcntl_getfl(&stream).is_ok_and(|flags| flags.contains(OFlags::RDWR))
}

/// Stdin as one file. A separate thread reads it, since a read may wait for ever.
pub(super) struct StandardInput {
    name: RelPath,
    mtime: Mtime,
    given: bool,
    blocks: Receiver<io::Result<Vec<u8>>>,
    /// The last block, and the position of its unread rest.
    block: Vec<u8>,
    used: usize,
    taken: u64,
    stream: Stream,
    interrupt: Interrupt,
}

impl StandardInput {
    /// Starts reading stdin, for a copy over `stream` under this name.
    pub(super) fn begin(name: RelPath, stream: Stream, interrupt: Interrupt) -> io::Result<Self> {
        let (filled, blocks) = sync_channel(AHEAD);
        thread::Builder::new().name("input".into()).spawn(move || {
            let mut stdin = io::stdin().lock();
            loop {
                let mut block = vec![0; BLOCK];
                let read = match stdin.read(&mut block) {
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
        Ok(Self { name, mtime, given: false, blocks, block, used, taken, stream, interrupt })
    }

    fn is_wanted(&self) -> bool {
        !self.interrupt.is_stopping() && self.stream.stats().is_ok()
    }
}

impl Source for StandardInput {
    fn next_entry(&mut self, _: EntryId) -> Next {
        if std::mem::replace(&mut self.given, true) {
            return Next::End;
        }
        let path = self.name.clone();
        Next::Entry(Entry { path, kind: EntryKind::File, size: Entry::UNKNOWN_SIZE, mode: MODE, mtime: self.mtime })
    }

    fn read(&mut self, _: EntryId, _: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        while self.used == self.block.len() {
            match self.blocks.recv_timeout(LOOK) {
                // The signal that stops this program may also have ended its input early. It cancels the session.
                Ok(Ok(block)) if block.is_empty() && self.interrupt.is_asked_to_stop() => return Ok(Chunk::Pending),
                Ok(Ok(block)) if block.is_empty() => return Ok(Chunk::End),
                Ok(Ok(block)) => (self.block, self.used) = (block, 0),
                Ok(Err(error)) => {
                    return Err(Failure::new(FailCode::Io, format!("cannot read stdin: {}", reason(&error))));
                }
                Err(RecvTimeoutError::Timeout) if self.is_wanted() => {}
                // The driver of the session learns the reason from the connection.
                Err(RecvTimeoutError::Timeout) => return Ok(Chunk::Pending),
                // The thread has reported the end of stdin, and `read` answered it with a signal on its way.
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

/// Stdout as the target of one file. Bytes leave before their digest is verified.
pub(super) struct StandardOutput {
    stdout: Stdout,
    closed: Rc<Cell<bool>>,
}

impl StandardOutput {
    /// Sets `closed` once the reader has left.
    pub(super) fn new(closed: Rc<Cell<bool>>) -> Self {
        Self { stdout: io::stdout(), closed }
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

impl Store for StandardOutput {
    fn make_dir(&mut self, _: EntryId, _: &Entry) -> Result<(), Failure> {
        Err(FailCode::IsDirectory.into())
    }

    fn begin(&mut self, _: EntryId, _: &Entry) -> Result<(), Failure> {
        Ok(())
    }

    fn write(&mut self, _: EntryId, _: u64, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.stdout.write_all(bytes);
        self.written(written)
    }

    fn commit(&mut self, _: EntryId, _: &Entry, _: &Digest) -> Result<Commit, Failure> {
        let written = self.stdout.flush();
        self.written(written).map(|()| Commit::Done)
    }

    fn finish_dir(&mut self, _: EntryId, _: &Entry) -> Result<Commit, Failure> {
        Ok(Commit::Done)
    }

    fn abort(&mut self, _: EntryId, _: Leftover) {}
}
