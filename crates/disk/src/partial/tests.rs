//! Files under their temporary names, beside other copies.

use std::path::{Path, PathBuf};

use farhaul_session::{EntryKind, Mtime, RelPath};

use super::*;
use crate::temporary::temporary_name;

#[test]
fn a_full_disk_is_reported_with_the_name_of_the_incomplete_file() {
    let directory = Arc::new(Directory::open(Path::new("/dev")).unwrap());
    let file = File::options().write(true).open("/dev/full").unwrap();
    let name = Component::new(b"tape\n1").unwrap();
    let temporary = temporary_name(&name).unwrap();
    let space = Reservation::begin(&file, 0).unwrap();
    let partial = Partial::empty(directory, file, (temporary, name), (2, space), Arc::default());
    partial.end.set(1);
    let failure = partial.write(1, b"x").unwrap_err();
    assert_eq!(failure.code, FailCode::NoSpace);
    assert!(failure.message.contains(" .tape\\n1.") && failure.message.ends_with(".fhpart"), "{failure}");
}

/// A folder of its own.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> (Self, Arc<Directory>) {
        let path = std::env::temp_dir().join(format!("farhaul-partial-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let directory = Arc::new(Directory::open(&path).unwrap());
        (Self(path), directory)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn begun(directory: &Arc<Directory>) -> Partial {
    let name = Component::new(b"b").unwrap();
    Partial::begin(Arc::clone(directory), name, (2 * CHUNK_LEN, true), Arc::default()).unwrap()
}

#[test]
fn no_other_copy_takes_a_file_between_its_creation_and_its_lock() {
    let (folder, directory) = Folder::new("lock");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = Directory::open(&folder.0).unwrap();
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = remains::remove_all(&other);
            }
        });
        let lost = (0..2_000).filter(|_| {
            let partial = begun(&directory);
            rustix::fs::fstat(&partial.file).unwrap().st_nlink != 1
        });
        let lost = lost.count();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(lost, 0);
    });
}

#[test]
fn a_journal_does_not_outlive_a_file_that_somebody_else_removed() {
    let (folder, directory) = Folder::new("journal");
    let mut partial = begun(&directory);
    partial.write(0, b"x").unwrap();
    let mtime = Mtime { seconds: 1, nanos: 0 };
    let entry = Entry::new(RelPath::parse(b"b").unwrap(), EntryKind::File, 2 * CHUNK_LEN, 0o644, mtime);
    partial.note(0, &ChunkDigest::of(0, b"x"), &entry);
    assert_eq!(folder.0.read_dir().unwrap().count(), 2);
    directory.remove(&partial.temporary.clone()).unwrap();
    partial.remove();
    assert_eq!(folder.0.read_dir().unwrap().count(), 0);
}

#[test]
fn a_file_is_read_again_until_the_copy_ends() {
    let looks = std::sync::atomic::AtomicU32::new(0);
    let ends = Ends::when(move || looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 2);
    let endless = File::open("/dev/zero").unwrap();
    let failure = verify(&endless, &farhaul_session::Digest::of(b""), &ends).unwrap_err();
    assert_eq!(failure.code, FailCode::GivenUp);
}

/// A process and its fork have the same sequence of names.
#[test]
fn a_name_that_a_fork_has_taken_is_no_end_of_a_journal() {
    let (folder, directory) = Folder::new("fork");
    let taken = journal_of(&temporary_name(&Component::new(b"b").unwrap()).unwrap());
    std::fs::write(folder.0.join(taken.to_string()), "of the fork").unwrap();
    let free = journal_of(&temporary_name(&Component::new(b"b").unwrap()).unwrap());
    let mut names = [&taken, &taken, &free].into_iter();
    let (made, _) = made::make_first(&directory, || Ok(names.next().unwrap().clone())).unwrap();
    assert_eq!(made, free);
    let failure = made::make_first(&directory, || Ok(taken.clone())).unwrap_err();
    assert_eq!(failure.code, FailCode::Exists);
    assert_eq!(std::fs::read(folder.0.join(taken.to_string())).unwrap(), b"of the fork");
}
