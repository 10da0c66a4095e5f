//! The manifest of a copy while it is written.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use farhaul_session::Digest;
use farhaul_transfer::internal::manifest_file::line;

use crate::exit::{Code, Fault};

/// A manifest, under a temporary name until the copy is done.
pub(crate) struct Manifest {
    path: PathBuf,
    temporary: PathBuf,
    /// The file, and the first error.
    state: Mutex<(BufWriter<File>, io::Result<()>)>,
}

impl Manifest {
    /// Begins the manifest at `path`.
    pub(crate) fn begin(path: &Path) -> Result<Self, Fault> {
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let temporary = PathBuf::from(name);
        let file = File::create(&temporary).map_err(|error| no_manifest(path, &error))?;
        Ok(Self { path: path.to_owned(), temporary, state: Mutex::new((BufWriter::new(file), Ok(()))) })
    }

    /// Adds a file. An error shows at the end.
    pub(crate) fn add(&self, path: &[u8], digest: &Digest) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, result) = &mut *state;
        if result.is_ok() {
            *result = file.write_all(&line(path, digest));
        }
    }

    /// Gives it its name, if the copy is whole.
    pub(crate) fn end(&self, is_whole: bool) -> Result<(), Fault> {
        if !is_whole {
            let _ = std::fs::remove_file(&self.temporary);
            return Ok(());
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, result) = &mut *state;
        std::mem::replace(result, Ok(()))
            .and_then(|()| file.flush())
            .and_then(|()| file.get_ref().sync_all())
            .and_then(|()| std::fs::rename(&self.temporary, &self.path))
            .map_err(|error| no_manifest(&self.path, &error))
    }
}

fn no_manifest(path: &Path, error: &io::Error) -> Fault {
    Fault::new(Code::LocalIo, format!("cannot write the manifest {}: {error}", path.display()))
        .remedy("name a file in a directory that you may write to")
}
