//! What broken copies left in a directory: incomplete files and their journals.

use std::fs::File;

use farhaul_session::{Component, Entry, RelPath};
use rustix::fs::{FileType, FlockOperation, flock, fstat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::directory::{Directory, kind, mtime};
use super::folded::differ_in_letters;
use super::journal::Noted;
use super::lock_wait::LockWait;
use super::temporary::{is_journal, is_partial, is_temporary_form, journal_of, partial_of, shown_of, shown_part};

/// Bits with which others could write to a file. While bytes arrive, incomplete files have none of them.
const WRITABLE: u32 = 0o022;

/// The temporary names in a directory when a copy came there.
#[derive(Debug, Default)]
pub(super) struct Remains {
    names: Vec<Component>,
}

/// An incomplete file that can be continued. It is locked, so that no other copy takes it.
#[derive(Debug)]
pub(super) struct Remain {
    pub(super) file: File,
    pub(super) temporary: Component,
    /// Bytes of the file.
    pub(super) len: u64,
    pub(super) noted: Noted,
}

impl Remains {
    /// Lists them. A directory that cannot be read has none that could be used.
    pub(super) fn list(directory: &Directory) -> Self {
        let mut names = Vec::new();
        let listed = directory.each_name(|name, _| {
            let temporary = is_temporary_form(name).then(|| Component::new(name).ok());
            names.extend(temporary.flatten());
            Ok::<_, Errno>(())
        });
        if listed.is_err() {
            names.clear();
        }
        Self { names }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The remain of an earlier copy of `entry` to `name` that has most chunks. All others of this name that no running copy
    /// holds are removed. With `wait`, the end of a copy that is likely to be dead is awaited once.
    pub(super) fn take(
        &mut self,
        directory: &Directory,
        name: &Component,
        entry: &Entry,
        mut wait: Option<&LockWait>,
    ) -> Option<Remain> {
        let shown = shown_part(name);
        // A file system may list other forms of characters than it was given.
        let is_of = |temporary: &Component| shown_of(temporary).is_some_and(|its| !differ_in_letters(its, shown));
        let mut best: Option<Remain> = None;
        let mine: Vec<Component> = self.names.iter().filter(|temporary| is_of(temporary)).cloned().collect();
        for temporary in mine.iter().filter(|temporary| is_partial(temporary)) {
            match Remain::open(directory, temporary, name, &mut wait) {
                Opened::Usable(remain) => {
                    let chunks = |remain: &Remain| remain.noted.chunks_within(entry.size, remain.len).len();
                    if chunks(&remain) == 0 {
                        remain.remove(directory);
                    } else if best.as_ref().is_none_or(|best| chunks(best) < chunks(&remain)) {
                        if let Some(worse) = best.replace(remain) {
                            worse.remove(directory);
                        }
                    } else {
                        remain.remove(directory);
                    }
                }
                Opened::Useless(file) => {
                    remove(directory, temporary, &file);
                }
                Opened::NotOurs => {}
            }
        }
        for journal in mine.iter().filter(|temporary| is_journal(temporary)) {
            remove_orphan(directory, journal);
        }
        self.names.retain(|temporary| !is_of(temporary));
        best
    }
}

impl Directory {
    /// The name of the newest incomplete file of the entry at this path below. No link is followed.
    pub fn newest_partial(&self, path: &RelPath) -> Option<Component> {
        let (parent, name) = self.descend_to_parent(path).ok()??;
        let Remains { names } = Remains::list(&parent);
        let partials = names.into_iter().filter(|its| is_partial(its) && shown_of(its) == Some(shown_part(&name)));
        partials.max_by_key(|its| parent.stat(its).ok().map(|stat| mtime(&stat)))
    }
}

/// The result of opening an incomplete file.
enum Opened {
    Usable(Remain),
    /// Nothing can be made of it, and nobody uses it.
    Useless(File),
    /// A running copy holds it, or somebody else made it.
    NotOurs,
}

impl Remain {
    /// Waits for a file of this user alone. Another user may lock what they like for as long as they like.
    fn open(directory: &Directory, temporary: &Component, name: &Component, wait: &mut Option<&LockWait>) -> Opened {
        let Ok(file) = directory.open_to_write(temporary) else { return Opened::NotOurs };
        if !may_remove(&file) {
            return Opened::NotOurs;
        }
        let is_locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let mut waits = || own_len(&file).is_some() && wait.take().is_some_and(|wait| wait.locks(&file));
        if !is_locked && !waits() {
            return Opened::NotOurs;
        }
        // Between the two calls, a copy may have finished it.
        let is_there =
            directory.stat(temporary).is_ok_and(|named| fstat(&file).is_ok_and(|its| its.st_ino == named.st_ino));
        if !is_there {
            return Opened::NotOurs;
        }
        let Some(len) = own_len(&file) else { return Opened::Useless(file) };
        let journal = directory.open_to_write(&journal_of(temporary)).ok().filter(|file| own_len(file).is_some());
        match journal.and_then(|journal| Noted::read(&journal).ok().flatten()) {
            Some(noted) if noted.name == name.as_bytes() => {
                Opened::Usable(Self { file, temporary: temporary.clone(), len, noted })
            }
            // Of a long name, only the start is in the temporary one.
            Some(_) => Opened::NotOurs,
            None => Opened::Useless(file),
        }
    }

    pub(super) fn remove(self, directory: &Directory) {
        remove(directory, &self.temporary, &self.file);
    }
}

/// The length of a file that can be continued: one that this user alone could have written to. Others may not plant one that
/// would get the target's name, nor change one that does.
fn own_len(file: &File) -> Option<u64> {
    let stat = fstat(file).ok()?;
    let is_own = kind(&stat) == FileType::RegularFile
        && stat.st_uid == geteuid().as_raw()
        && stat.st_nlink == 1
        && stat.st_mode & WRITABLE == 0;
    is_own.then(|| u64::try_from(stat.st_size).unwrap_or(0))
}

/// Whether a file with a temporary name is this user's to remove. A copy of root's may have given it to its owner already.
fn may_remove(file: &File) -> bool {
    fstat(file).is_ok_and(|stat| {
        kind(&stat) == FileType::RegularFile && (stat.st_uid == geteuid().as_raw() || geteuid().is_root())
    })
}

/// Removes an incomplete file that is locked, and its journal.
pub(super) fn remove(directory: &Directory, temporary: &Component, file: &File) {
    let is_same = directory.stat(temporary).is_ok_and(|named| fstat(file).is_ok_and(|its| its.st_ino == named.st_ino));
    if is_same {
        // If that fails, the temporary name shows that the file is incomplete.
        let _ = directory.remove(temporary);
        let _ = directory.remove(&journal_of(temporary));
    }
}

/// Removes a journal whose file is gone.
pub(super) fn remove_orphan(directory: &Directory, journal: &Component) {
    let Some(partial) = partial_of(journal) else { return };
    if matches!(directory.stat(&partial), Err(Errno::NOENT))
        && directory.open_to_write(journal).is_ok_and(|file| may_remove(&file))
    {
        let _ = directory.remove(journal);
    }
}

/// Removes everything that broken copies left in a directory, except what running copies hold. A small file without a lock may
/// be among it, which its copy writes again then. Returns the number of files,
/// and their bytes.
pub(super) fn remove_all(directory: &Directory) -> Result<(u64, u64), Errno> {
    let (mut files, mut bytes) = (0, 0);
    let Remains { names } = Remains::list(directory);
    for temporary in names.iter().filter(|name| is_partial(name)) {
        let Ok(file) = directory.open_to_write(temporary) else { continue };
        if !may_remove(&file) {
            continue;
        }
        let len = fstat(&file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove(directory, temporary, &file);
            files += 1;
            bytes += len;
        }
    }
    for journal in names.iter().filter(|name| is_journal(name)) {
        remove_orphan(directory, journal);
    }
    Ok((files, bytes))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::chown;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use farhaul_session::{EntryKind, Mtime};

    use super::*;

    /// A directory with long incomplete files of one name, all of which somebody has locked.
    struct Planted(PathBuf, Vec<File>);

    impl Planted {
        fn new(test: &str) -> Self {
            let base = std::env::temp_dir().join(format!("farhaul-remains-{}-{test}", std::process::id()));
            fs::create_dir_all(&base).unwrap();
            let files = (0..5).map(|number| {
                let file = File::create(base.join(format!(".file.000000000000000{number}.fhpart"))).unwrap();
                file.set_len(100 << 20).unwrap();
                rustix::fs::fchmod(&file, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
                flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
                file
            });
            let files = files.collect();
            Self(base, files)
        }

        /// How often a copy of a file of this name waits.
        fn waits(&self) -> usize {
            let waits = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&waits);
            let wait =
                LockWait::new(Duration::from_secs(600), move || counted.fetch_add(1, Ordering::Relaxed) < usize::MAX);
            let directory = Directory::open(&self.0).unwrap();
            let name = Component::new(b"file").unwrap();
            let entry =
                Entry::new(RelPath::parse(b"file").unwrap(), EntryKind::File, 100 << 20, 0o644, Mtime::default());
            assert!(Remains::list(&directory).take(&directory, &name, &entry, Some(&wait)).is_none());
            waits.load(Ordering::Relaxed)
        }
    }

    impl Drop for Planted {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_copy_waits_once_for_incomplete_files_of_one_name() {
        assert_eq!(Planted::new("own").waits(), 1);
    }

    #[test]
    fn the_newest_incomplete_file_of_a_path_is_found_and_none_behind_a_link() {
        let planted = Planted::new("newest");
        std::os::unix::fs::symlink(".", planted.0.join("link")).unwrap();
        planted.1[2].set_modified(std::time::UNIX_EPOCH + Duration::from_secs(4_000_000_000)).unwrap();
        let directory = Directory::open(&planted.0).unwrap();
        let newest = |path: &str| directory.newest_partial(&RelPath::parse(path.as_bytes()).unwrap());
        assert_eq!(newest("file").unwrap().to_string(), ".file.0000000000000002.fhpart");
        assert_eq!((newest("other"), newest("link/file")), (None, None));
    }

    #[test]
    fn nobody_waits_for_incomplete_files_of_another_user() {
        if !geteuid().is_root() {
            println!("skipped: only root can give files to another user");
            return;
        }
        let planted = Planted::new("foreign");
        for entry in fs::read_dir(&planted.0).unwrap() {
            chown(entry.unwrap().path(), Some(1_000), None).unwrap();
        }
        assert_eq!(planted.waits(), 0);
        assert_eq!(planted.1.len(), fs::read_dir(&planted.0).unwrap().count(), "what is locked stays");
    }
}
