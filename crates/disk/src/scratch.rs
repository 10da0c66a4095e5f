//! Scratch files of a copy: on the disk of its target, without a name, and gone with the copy.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use farhaul_session::{Component, FailCode, Failure, Scratch};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::caps::{Caps, ScratchClaim};
use super::directory::Directory;
use super::failure::{failure, io_failure};
use super::temporary::temporary_name;

/// A file without a name. As long as it is there, it counts against the bytes of the peer's key.
#[derive(Debug)]
struct ScratchFile {
    file: File,
    len: u64,
    /// `None` without caps.
    claim: Option<Box<dyn ScratchClaim>>,
}

/// Makes a scratch file on the disk of this directory, within these caps. If nothing can be written there, as in a dry run, it is
/// made where the system keeps temporary files.
pub(super) fn scratch_in(directory: &Directory, caps: Option<&dyn Caps>) -> Result<Box<dyn Scratch>, Failure> {
    let made = nameless_in(directory).or_else(|failed| {
        let elsewhere = Directory::open(&std::env::temp_dir()).ok();
        elsewhere.and_then(|directory| nameless_in(&directory).ok()).ok_or(failed)
    });
    Ok(Box::new(ScratchFile { file: made?, len: 0, claim: caps.map(Caps::scratch_claim) }))
}

fn nameless_in(directory: &Directory) -> Result<File, Failure> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, Path::new("."), flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(File::from(file)),
        // The file system has no files without a name, as NFS and FUSE.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {
            let name = temporary_name(&Component::new(b"scratch").map_err(|_| FailCode::NameRefused)?)?;
            let file = directory.make_file(&name).map_err(|error| failure("make a scratch file", error))?;
            directory.remove(&name).map_err(|error| failure("make a scratch file", error))?;
            Ok(file)
        }
        Err(error) => Err(failure("make a scratch file", error)),
    }
}

impl Scratch for ScratchFile {
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Failure> {
        self.file.read_exact_at(out, offset).map_err(|error| io_failure("read a scratch file", &error))
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let end = offset.saturating_add(bytes.len() as u64);
        if let Some(claim) = &mut self.claim {
            claim.grow(end.saturating_sub(self.len))?;
        }
        self.len = self.len.max(end);
        self.file.write_all_at(bytes, offset).map_err(|error| io_failure("write a scratch file", &error))
    }
}
