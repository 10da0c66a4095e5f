//! A file that is open for reading: its version, and whether what was read is of one version.

use std::fs::File;
use std::thread;
use std::time::Duration;

use farhaul_session::{Failure, FileVersion, Mtime, Stamp};
use rustix::fs::{Stat, fstat};

use super::{ctime, failed, now, size};
use crate::directory::mtime;

/// A file is settled once its content is as old as this. Until then a write that set its time may go on, and a later one may leave its
/// time as it is: the tick of a kernel lasts 10 ms at most, and a write of 1 MiB some more where threads wait for a processor.
const SETTLING: Duration = Duration::from_millis(100);
/// The same where times are whole seconds: every second one of FAT, the coarsest.
const SETTLING_OF_SECONDS: Duration = Duration::from_millis(2_100);

/// What tells the states of a file apart: its size, and when its content and its properties changed.
type State = (u64, Mtime, Mtime);

/// A file that is open for reading.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    before: Stat,
    is_settled: bool,
}

impl OpenFile {
    /// Waits until the file is settled, unless it is known to be whole. One that is written all the time never is.
    pub(super) fn new(file: File, before: Stat, is_whole: bool) -> Result<Self, Failure> {
        let mut open = Self { file, before, is_settled: true };
        if is_whole {
            return Ok(open);
        }
        let mut has_waited = false;
        while let Some(rest) = rest(&open.before) {
            thread::park_timeout(rest);
            has_waited = true;
        }
        if has_waited {
            open.before = open.stat()?;
            open.is_settled = rest(&open.before).is_none();
        }
        Ok(open)
    }

    pub(super) const fn file(&self) -> &File {
        &self.file
    }

    /// Its properties when it was opened.
    pub(super) const fn before(&self) -> &Stat {
        &self.before
    }

    /// Its version, and whether it has changed since it was opened, or may have.
    pub(super) fn version(&self) -> Result<(FileVersion, bool), Failure> {
        let now = self.stat()?;
        let version = FileVersion { stamp: Stamp { size: size(&now), mtime: mtime(&now) }, ctime: Some(ctime(&now)) };
        Ok((version, !self.is_settled || state(&now) != state(&self.before)))
    }

    fn stat(&self) -> Result<Stat, Failure> {
        fstat(&self.file).map_err(|error| failed("read", error))
    }
}

/// What tells the states of this file apart.
pub(super) fn state(stat: &Stat) -> State {
    (size(stat), mtime(stat), ctime(stat))
}

/// How long the content of a file is not settled yet. A time in the future is none that a write has set.
fn rest(stat: &Stat) -> Option<Duration> {
    let (changed, now) = (since_1970(mtime(stat))?, since_1970(now())?);
    let is_coarse = (mtime(stat).nanos, ctime(stat).nanos) == (0, 0);
    let settling = if is_coarse { SETTLING_OF_SECONDS } else { SETTLING };
    settling.checked_sub(now.checked_sub(changed)?).filter(|rest| !rest.is_zero())
}

/// `None` for an earlier time.
fn since_1970(time: Mtime) -> Option<Duration> {
    Some(Duration::new(u64::try_from(time.seconds).ok()?, time.nanos))
}
