//! Targets that are no regular files.

use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, Mode, RenameFlags, makedev, mkfifoat, mknodat};
use rustix::io::Errno;

use super::target::{Refusal, Target};
use super::*;

/// An entry that a file must not replace.
struct Thing {
    /// Its name in failures.
    words: &'static str,
    make: fn(&Path) -> bool,
    is_still_there: fn(FileType) -> bool,
}

const THINGS: [Thing; 5] = [
    Thing {
        words: "a symbolic link",
        make: |at| symlink("file", at).is_ok(),
        is_still_there: |kind| kind.is_symlink(),
    },
    Thing {
        words: "a symbolic link",
        make: |at| symlink("no-where", at).is_ok(),
        is_still_there: |kind| kind.is_symlink(),
    },
    Thing { words: "a pipe", make: |at| mkfifoat(CWD, at, Mode::RWXU).is_ok(), is_still_there: |kind| kind.is_fifo() },
    Thing { words: "a socket", make: |at| UnixListener::bind(at).is_ok(), is_still_there: |kind| kind.is_socket() },
    // Only root may create one.
    Thing { words: "a device", make: make_null_device, is_still_there: |kind| kind.is_char_device() },
];

fn make_null_device(at: &Path) -> bool {
    mknodat(CWD, at, rustix::fs::FileType::CharacterDevice, Mode::RWXU, makedev(1, 3)).is_ok()
}

fn kind(path: &Path) -> FileType {
    fs::symlink_metadata(path).unwrap().file_type()
}

/// Runs a test for each entry that this user can create, in a directory with a regular file beside it.
fn for_each_thing(name: &str, test: impl Fn(&Thing, &Scratch) + Send + Sync) {
    as_root_and_as_ordinary_user(|| {
        for (number, thing) in THINGS.iter().enumerate() {
            let to = Scratch::new(&format!("{name}-{number}-{}", geteuid().as_raw()));
            to.write("file", b"untouched");
            test(thing, &to);
            assert_eq!(fs::read(to.path("file")).unwrap(), b"untouched");
        }
    });
}

#[test]
fn anything_but_a_regular_file_at_the_target_is_refused_by_name_and_stays() {
    for_each_thing("there", |thing, to| {
        if !(thing.make)(&to.path("target")) {
            return;
        }
        let mut store = DiskStore::at(&to.0, true).unwrap();
        let failure = begin_file(&mut store, EntryId(0), &file("target", 3)).unwrap_err();
        assert_eq!(failure.code, FailCode::Exists);
        assert!(failure.message.contains("target") && failure.message.contains(thing.words), "{failure}");
        // The same for a target with its own name, and for a directory.
        let mut store = DiskStore::at(&to.path("target"), false).unwrap();
        let failure = begin_file(&mut store, EntryId(0), &file("other", 3)).unwrap_err();
        assert!(failure.message.contains("target") && failure.message.contains(thing.words), "{failure}");
        let failure = store.make_dir(EntryId(1), &directory("other")).unwrap_err();
        assert_eq!(failure.code, FailCode::Exists);
        assert!(failure.message.contains("target") && failure.message.contains(thing.words), "{failure}");
        assert!((thing.is_still_there)(kind(&to.path("target"))));
        assert_eq!(fs::read_dir(&to.0).unwrap().count(), 2, "no incomplete file is left");
    });
}

#[test]
fn a_thing_that_appears_at_the_target_while_the_file_arrives_is_refused_by_name_and_stays() {
    for_each_thing("appears", |thing, to| {
        for old in [false, true] {
            let target = to.path("target");
            if old {
                to.write("target", b"old");
            }
            let (mut store, entry) = (DiskStore::at(&to.0, true).unwrap(), file("target", 3));
            begin_file(&mut store, EntryId(0), &entry).unwrap();
            store.write(EntryId(0), 0, b"new").unwrap();
            if old {
                fs::remove_file(&target).unwrap();
            }
            if !(thing.make)(&target) {
                return;
            }
            store.commit(EntryId(0), &entry, &Digest::of(b"new")).unwrap();
            store.finish_commits();
            let failure = store.poll_committed().unwrap().1.unwrap_err();
            assert_eq!(failure.code, FailCode::Exists);
            assert!(failure.message.contains("target") && failure.message.contains(thing.words), "{failure}");
            assert!((thing.is_still_there)(kind(&target)));
            assert_eq!(fs::read_dir(&to.0).unwrap().count(), 2, "no incomplete file is left");
            fs::remove_file(&target).unwrap();
        }
    });
}

/// In a directory that the copy has made, it expects nothing.
#[test]
fn a_thing_that_appears_in_a_new_directory_is_refused_and_stays() {
    for_each_thing("new-directory", |thing, to| {
        let mut store = DiskStore::at(&to.0, true).unwrap();
        store.make_dir(EntryId(0), &directory("d")).unwrap();
        if !(thing.make)(&to.path("d/target")) {
            return;
        }
        for (id, size) in [(1, 3), (2, LARGE)] {
            let entry = file("d/target", size);
            begin_file(&mut store, EntryId(id), &entry).unwrap();
            store.write(EntryId(id), 0, b"new").unwrap();
            store.commit(EntryId(id), &entry, &Digest::of(b"new")).unwrap();
            assert_eq!(failures(&mut store), [(EntryId(id), FailCode::Exists)]);
            assert!((thing.is_still_there)(kind(&to.path("d/target"))));
        }
    });
}

#[test]
fn a_thing_that_slips_in_between_the_last_look_and_the_rename_stays() {
    for_each_thing("slips", |thing, to| {
        if !(thing.make)(&to.path("target")) {
            return;
        }
        to.write(".temporary", b"new");
        let directory = Directory::open(&to.0).unwrap();
        let [name, temporary] = ["target", ".temporary"].map(|name| rel(name).components()[0].clone());
        let target = Target { directory: &directory, name: &name };
        // The step that follows a look at a regular file.
        assert!(matches!(target.replace(&temporary), Err(Refusal::InTheWay(_))));
        // The step that follows a look at nothing.
        let taken = target.rename(&temporary, RenameFlags::NOREPLACE);
        assert_eq!(taken, Err(Refusal::System(Errno::EXIST)));
        assert!((thing.is_still_there)(kind(&to.path("target"))));
        assert_eq!(fs::read(to.path(".temporary")).unwrap(), b"new");
    });
}
