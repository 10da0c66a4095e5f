//! How an incomplete file is made.

use std::fs::File;

use farhaul_session::{Component, Failure};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::directory::Directory;
use crate::failure::cannot_make;
use crate::temporary::{journal_of, temporary_name};

/// Attempts to find a temporary name that nothing has.
const ATTEMPTS: usize = 4;

/// An incomplete file and its temporary name.
pub(super) type Made = (Component, File);

/// Makes an incomplete file, and locks it. Before it is locked, another copy to the same target may take it for a remain and
/// remove it. Then a new one is made that has no name until it is locked, where the file system can. On file systems without
/// locks, two copies to one target at a time may disturb each other: each of them ends with a whole file or an error all the same.
pub(super) fn make_locked(directory: &Directory, name: &Component) -> Result<Made, Failure> {
    let (made, is_taken) = make_named(directory, name)?;
    if !is_taken {
        return Ok(made);
    }
    make_unnamed(directory, name).or_else(|_| Ok(make_named(directory, name)?.0))
}

/// Makes an incomplete file.
pub(super) fn make(directory: &Directory, name: &Component) -> Result<Made, Failure> {
    make_first(directory, || temporary_name(name))
}

/// Makes the journal of an incomplete file under a name of its own.
pub(super) fn make_journal(directory: &Directory, name: &Component) -> Result<Made, Failure> {
    make_first(directory, || Ok(journal_of(&temporary_name(name)?)))
}

/// Makes a file under the first of these names that nothing has.
pub(super) fn make_first(
    directory: &Directory,
    mut names: impl FnMut() -> Result<Component, Failure>,
) -> Result<Made, Failure> {
    let mut left = ATTEMPTS;
    loop {
        let temporary = names()?;
        left -= 1;
        match directory.make_file(&temporary) {
            // A fork of this process has made it.
            Err(Errno::EXIST) if left > 0 => {}
            made => return Ok((temporary, made.map_err(|error| cannot_make("file", directory, error))?)),
        }
    }
}

/// Returns whether another copy has locked or removed it, too.
fn make_named(directory: &Directory, name: &Component) -> Result<(Made, bool), Failure> {
    let (temporary, file) = make(directory, name)?;
    let is_locked = flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
    let is_taken = is_locked || rustix::fs::fstat(&file).is_ok_and(|stat| stat.st_nlink == 0);
    Ok(((temporary, file), is_taken))
}

fn make_unnamed(directory: &Directory, name: &Component) -> Result<Made, Failure> {
    let temporary = temporary_name(name)?;
    let named = directory.make_unnamed_file().and_then(|file| {
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        directory.name_file(&file, &temporary)?;
        Ok(file)
    });
    Ok((temporary, named.map_err(|error| cannot_make("file", directory, error))?))
}
