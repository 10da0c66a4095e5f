//! Copies that break off before they are complete, and the copies after them.

use std::sync::Arc;

use farhaul_session::{CHUNK_LEN, ChunkDigest, Component};

use super::super::claims::Claims;
use super::super::partial::Partial;
use super::super::remains::Remains;
use super::*;

/// Directories that stay open until the end of a test, with their final modes.
const MODES: [(&str, u32); 3] = [("t", 0o755), ("t/d", 0o750), ("t/d/r", 0o555)];

fn entry(path: &str, mode: u32) -> Entry {
    Entry { mode, ..directory(path) }
}

/// The first half of a copy: three directories, a complete file and an incomplete one.
fn begin(to: &Path) -> DiskStore {
    let mut store = DiskStore::at(to, true).unwrap();
    for (id, (path, mode)) in (0..).map(EntryId).zip(MODES) {
        store.make_dir(id, &entry(path, mode)).unwrap();
    }
    let whole = file("t/d/r/a", 0);
    begin_file(&mut store, EntryId(3), &whole).unwrap();
    store.commit(EntryId(3), &whole, &Digest::of(b"")).unwrap();
    begin_file(&mut store, EntryId(4), &file("t/d/r/b", 5)).unwrap();
    store
}

/// The chunk `index` of the resumed file has this digest.
fn digest(index: u64) -> ChunkDigest {
    ChunkDigest::from_bytes([u8::try_from(index).unwrap(); 32])
}

#[test]
fn a_resume_that_breaks_off_early_forgets_no_chunk_of_the_copy_before() {
    let to = Scratch::new("break-resume");
    let (directory, claims) = (Arc::new(Directory::open(&to.0).unwrap()), Arc::<Claims>::default());
    let (name, entry) = (Component::new(b"f").unwrap(), file("f", 4 * CHUNK_LEN));
    let size = (entry.size, false);
    let mut partial = Partial::begin(Arc::clone(&directory), name.clone(), size, Arc::clone(&claims)).unwrap();
    partial.write(0, &vec![1; 3 << 20]).unwrap();
    (0..3).for_each(|index| partial.note(index, &digest(index), &entry));
    drop(partial);
    let noted = || {
        let remain = Remains::list(&directory).take(&directory, &name, &entry, None).unwrap();
        (remain.noted.chunks_within(entry.size, remain.len), remain)
    };
    let (before, remain) = noted();
    assert_eq!(before, [0, 1, 2].map(|index| (index, digest(index))));
    // The first chunk comes again before the others are compared.
    let mut resumed = Partial::resume(Arc::clone(&directory), name.clone(), &entry, remain, claims).unwrap();
    resumed.note(0, &digest(7), &entry);
    drop(resumed);
    let (after, _remain) = noted();
    assert_eq!(after, [(0, digest(7)), (1, digest(1)), (2, digest(2))]);
    assert_eq!(fs::read_dir(&to.0).unwrap().count(), 2, "the file and its journal");
}

fn mode(path: PathBuf) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_tree_that_breaks_off_gives_new_directories_their_modes_and_the_next_copy_mends_the_rest() {
    as_root_and_as_ordinary_user(|| {
        for committed in [false, true] {
            let to = Scratch::new(&format!("break-{committed}-{}", geteuid().as_raw()));
            let mut store = begin(&to.0);
            assert_eq!(mode(to.path("t")), 0o700, "until then it is private");
            store.abort(EntryId(4), Leftover::Remove);
            // A session that breaks off says so. One whose thread ends does not.
            if committed {
                assert_eq!(failures(&mut store), []);
                store.conclude(Ending::Lacking);
            } else {
                drop(store);
            }
            assert!(to.path("t/d/r/a").exists());
            // The owner must be able to enter it again.
            let left = ["t", "t/d", "t/d/r"].map(|path| mode(to.path(path)));
            assert_eq!(left, [0o755, 0o750, 0o755]);

            let mut store = begin(&to.0);
            store.commit(EntryId(4), &file("t/d/r/b", 0), &Digest::of(b"")).unwrap();
            for (id, (path, mode)) in (0..).map(EntryId).zip(MODES).collect::<Vec<_>>().into_iter().rev() {
                store.finish_dir(id, &entry(path, mode)).unwrap();
            }
            assert_eq!(failures(&mut store), []);
            for (path, expected) in MODES {
                assert_eq!(mode(to.path(path)), expected, "{path}");
            }
            // Without these rights the test's directory could not be removed.
            fs::set_permissions(to.path("t/d/r"), fs::Permissions::from_mode(0o700)).unwrap();
        }
    });
}

#[test]
fn a_target_directory_that_the_store_made_goes_if_nothing_arrived() {
    let to = Scratch::new("break-empty");
    let exists_after = |ending: Option<Ending>, arrives: bool| {
        let mut store = DiskStore::at(&to.path("new"), true).unwrap();
        if arrives {
            begin_file(&mut store, EntryId(0), &file("a", LARGE)).unwrap();
            store.write(EntryId(0), 0, b"part").unwrap();
            store.abort(EntryId(0), Leftover::Keep);
        }
        if let Some(ending) = ending {
            store.conclude(ending);
        }
        drop(store);
        to.path("new").exists()
    };
    assert!(!exists_after(Some(Ending::Lacking), false));
    assert!(!exists_after(None, false), "the session did not begin");
    assert!(exists_after(Some(Ending::Whole), false), "an empty directory was copied");
    assert!(exists_after(Some(Ending::Lacking), false), "the one that stood there before stays");
    fs::remove_dir(to.path("new")).unwrap();
    assert!(exists_after(Some(Ending::Lacking), true), "a part stays where it is");
}

#[test]
fn a_copy_that_breaks_off_keeps_the_modes_of_existing_directories() {
    let to = Scratch::new("break-old");
    fs::create_dir(to.path("t")).unwrap();
    fs::set_permissions(to.path("t"), fs::Permissions::from_mode(0o711)).unwrap();
    drop(begin(&to.0));
    assert_eq!((mode(to.path("t")), mode(to.path("t/d"))), (0o711, 0o750));
}

/// The mode of a directory that was private, after a copy of one with the mode 0755.
fn mode_after_another_copy(to: &Scratch) -> u32 {
    let mut store = DiskStore::at(&to.0, true).unwrap();
    store.make_dir(EntryId(0), &entry("t", 0o755)).unwrap();
    store.finish_dir(EntryId(0), &entry("t", 0o755)).unwrap();
    assert_eq!(failures(&mut store), []);
    mode(to.path("t"))
}

#[test]
fn a_directory_that_a_killed_copy_left_private_is_mended_by_the_next_one() {
    as_root_and_as_ordinary_user(|| {
        let to = Scratch::new(&format!("break-killed-{}", geteuid().as_raw()));
        let mut store = DiskStore::at(&to.0, true).unwrap();
        store.make_dir(EntryId(0), &entry("t", 0o755)).unwrap();
        // A process that is killed does nothing more.
        std::mem::forget(store);
        assert_eq!(mode(to.path("t")), 0o700);
        if !Directory::open(&to.path("t")).unwrap().is_unfinished() {
            eprintln!("skipped: this file system keeps no marks");
            return;
        }
        assert_eq!(mode_after_another_copy(&to), 0o755);
        // It is finished now, so a later mode stays.
        fs::set_permissions(to.path("t"), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(mode_after_another_copy(&to), 0o700);
    });
}

#[test]
fn a_directory_that_the_target_has_named_is_continued_and_not_entered() {
    let to = Scratch::new("break-named");
    let copy = |source: &str, is_whole: bool| {
        let mut store = DiskStore::at(&to.path("new"), false).unwrap();
        store.make_dir(EntryId(0), &entry(source, 0o755)).unwrap();
        if is_whole {
            store.finish_dir(EntryId(0), &entry(source, 0o755)).unwrap();
            assert_eq!(failures(&mut store), []);
        }
    };
    copy("new", false);
    if Directory::open(&to.path("new")).unwrap().unfinished_source().is_none() {
        eprintln!("skipped: this file system keeps no marks");
        return;
    }
    copy("new", false);
    assert!(!to.path("new/new").exists(), "it goes on");
    copy("other", false);
    assert!(to.path("new/other").exists(), "another copy goes into it");
    copy("new", true);
    assert!(!to.path("new/new").exists());
    copy("new", true);
    assert!(to.path("new/new").exists(), "it was finished");
}

#[test]
fn a_mark_counts_for_nothing_once_the_mode_has_changed_or_others_could_have_set_it() {
    let to = Scratch::new("break-marked");
    fs::create_dir(to.path("t")).unwrap();
    let directory = Directory::open(&to.path("t")).unwrap();
    for (marked, then) in [(0o700, 0o500), (0o770, 0o770), (0o707, 0o707)] {
        directory.mark_unfinished(marked, None);
        fs::set_permissions(to.path("t"), fs::Permissions::from_mode(then)).unwrap();
        assert!(!directory.is_unfinished());
        assert_eq!(mode_after_another_copy(&to), then);
    }
}

#[test]
fn a_directory_that_replaced_another_keeps_its_mode_when_the_copy_breaks_off() {
    let to = Scratch::new("break-swap");
    let store = begin(&to.0);
    fs::rename(to.path("t/d"), to.path("t/moved")).unwrap();
    fs::create_dir(to.path("t/d")).unwrap();
    fs::set_permissions(to.path("t/d"), fs::Permissions::from_mode(0o711)).unwrap();
    drop(store);
    assert_eq!((mode(to.path("t")), mode(to.path("t/d"))), (0o755, 0o711));
}
