//! Another name for an entry.

use farhaul_session::{Component, Existing, FailCode, Failure};
use rustix::fs::{AtFlags, FileType, Mode, RenameFlags};
use rustix::io::Errno;

use super::failed;
use super::new_file::in_the_way;
use crate::directory::{Directory, is_same, kind};

/// Gives an entry another name, which survives a crash. Replaced is only a regular file, or an empty directory by a directory.
pub(super) fn rename(
    from: (&Directory, &Component),
    to: (&Directory, &Component),
    existing: Existing,
) -> Result<(), Failure> {
    let cannot = |error| match error {
        Errno::INVAL => Failure::new(FailCode::NameRefused, "a directory cannot be moved into itself"),
        error => failed("rename", error),
    };
    let entry = from.0.stat(from.1).map_err(cannot)?;
    let is_directory = kind(&entry) == FileType::Directory;
    if from.0.keeps(&entry) {
        return Err(cannot(Errno::BUSY));
    }
    let standing = match to.0.stat(to.1) {
        Ok(standing) => Some(standing),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(cannot(error)),
    };
    let renamed = match standing {
        None => into_free_name(from, to, is_directory),
        // Two names of one file: rename(2) would do nothing and say that it is done.
        Some(standing) if is_same(&standing, &entry) && from.1 == to.1 && from.0.is_same(to.0) => Ok(()),
        Some(standing) => {
            let fits = match kind(&standing) {
                FileType::RegularFile => !is_directory,
                FileType::Directory => is_directory,
                _ => false,
            };
            if existing == Existing::Keep || !fits || is_same(&standing, &entry) {
                return Err(in_the_way(to.1, kind(&standing)));
            }
            if to.0.keeps(&standing) {
                return Err(cannot(Errno::BUSY));
            }
            // In one step, in which nobody sees neither entry. What takes the place of the standing one at this moment is replaced as well:
            // an entry of this kind, or a link, which is not followed.
            rustix::fs::renameat(from.0, from.1.as_bytes(), to.0, to.1.as_bytes())
        }
    };
    renamed.map_err(|error| match error {
        Errno::EXIST => to.0.stat(to.1).map_or_else(|_| FailCode::Exists.into(), |stat| in_the_way(to.1, kind(&stat))),
        error => cannot(error),
    })?;
    let synced = to.0.sync().and_then(|()| if from.0.is_same(to.0) { Ok(()) } else { from.0.sync() });
    synced.map_err(|error| failed("synchronise the directory", error))
}

/// Renames, unless another entry has the name by now.
fn into_free_name(
    (from, name): (&Directory, &Component),
    (to, new_name): (&Directory, &Component),
    is_directory: bool,
) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from, name.as_bytes(), to, new_name.as_bytes(), RenameFlags::NOREPLACE) {
        // The file system has no such step, or a directory was to be moved into itself. What is made first takes a free name as well.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        renamed => return renamed,
    }
    if !is_directory {
        return from.move_to_free_name(name, to, new_name);
    }
    let (name, new_name) = (name.as_bytes(), new_name.as_bytes());
    rustix::fs::mkdirat(to, new_name, Mode::RWXU)?;
    rustix::fs::renameat(from, name, to, new_name).inspect_err(|_| {
        let _ = rustix::fs::unlinkat(to, new_name, AtFlags::REMOVEDIR);
    })
}
