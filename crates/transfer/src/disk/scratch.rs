//! Scratch files of a copy: on the disk of its target, without a name, and gone with the copy.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use farhaul_session::{Component, FailCode, Failure, Scratch};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::directory::Directory;
use super::failure::{failure, io_failure};
use super::temporary::temporary_name;
use crate::keys::{Claim, Permit};

/// A file without a name. As long as it is there, it counts against the bytes of the peer's key.
#[derive(Debug)]
struct ScratchFile {
    file: File,
    len: u64,
    permit: Arc<Permit>,
    claim: Claim,
}

/// Makes a scratch file on the disk of this directory, within these caps. If nothing can be written there, as in a dry run, it is
/// made where the system keeps temporary files.
pub(super) fn scratch_in(directory: &Directory, permit: Arc<Permit>) -> Result<Box<dyn Scratch>, Failure> {
    let made = nameless_in(directory).or_else(|failed| {
        let elsewhere = Directory::open(&std::env::temp_dir()).ok();
        elsewhere.and_then(|directory| nameless_in(&directory).ok()).ok_or(failed)
    });
    Ok(Box::new(ScratchFile { file: made?, len: 0, permit, claim: Claim::default() }))
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
        self.permit.claim_more(end.saturating_sub(self.len), &mut self.claim)?;
        self.len = self.len.max(end);
        self.file.write_all_at(bytes, offset).map_err(|error| io_failure("write a scratch file", &error))
    }
}

#[cfg(test)]
mod tests {
    use farhaul::security::{AuthorizedKeys, PublicKey};

    use super::*;
    use crate::keys::Usages;

    #[test]
    fn scratch_files_count_against_the_bytes_of_a_key_as_long_as_they_are_there() {
        let keys = AuthorizedKeys::parse(&format!("{} bytes=1000B", PublicKey::from_bytes([7; 32]))).unwrap();
        let permit = Arc::new(Usages::default().begin(&keys.grants()[0]).unwrap());
        let directory = Directory::open(&std::env::temp_dir()).unwrap();
        let [mut one, mut other] = [(); 2].map(|()| scratch_in(&directory, Arc::clone(&permit)).unwrap());
        let mut write = |offset, bytes| one.write(offset, &vec![1; bytes]).map_err(|failure| failure.code);
        assert_eq!((write(0, 300), write(300, 300), write(100, 500)), (Ok(()), Ok(()), Ok(())));
        assert_eq!(write(600, 401), Err(FailCode::GivenUp));
        assert_eq!(other.write(0, &[1; 401]).map_err(|failure| failure.code), Err(FailCode::GivenUp));
        drop(one);
        other.write(0, &[1; 1000]).unwrap();
        drop(other);
        assert!(permit.claim(1000).is_ok());
    }
}
