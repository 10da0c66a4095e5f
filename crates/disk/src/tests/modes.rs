//! Modes of what stands at the target before a copy.

use std::os::unix::fs::{MetadataExt, chown};

use super::*;

/// A group that no process of the tests belongs to.
const GROUP: u32 = 12_345;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Receives an empty directory of this mode.
fn receive_directory(store: &mut DiskStore, path: &str, mode: u32) {
    let entry = Entry { mode, ..directory(path) };
    store.make_dir(EntryId(0), &entry).unwrap();
    store.finish_dir(EntryId(0), &entry).unwrap();
    assert_eq!(failures(store), []);
}

/// Receives a file of this mode.
fn receive_file(to: &Path, mode: u32) {
    let mut store = DiskStore::at(to, true).unwrap();
    let entry = Entry { mode, ..file("file", 3) };
    begin_file(&mut store, EntryId(0), &entry).unwrap();
    store.write(EntryId(0), 0, b"new").unwrap();
    store.commit(EntryId(0), &entry, &Digest::of(b"new")).unwrap();
    assert_eq!(failures(&mut store), []);
    assert_eq!(fs::read(to.join("file")).unwrap(), b"new");
}

#[test]
fn an_existing_directory_keeps_its_mode_whatever_the_peer_says() {
    as_root_and_as_ordinary_user(|| {
        let to = Scratch::new(&format!("modes-dir-{}", geteuid().as_raw()));
        fs::create_dir(to.path("d")).unwrap();
        for standing in [0o700, 0o750, 0o1777, 0o2775] {
            set_mode(&to.path("d"), standing);
            let standing = mode(&to.path("d"));
            for of_peer in [0, 0o755, 0o777] {
                receive_directory(&mut DiskStore::at(&to.0, true).unwrap(), "d", of_peer);
                assert_eq!(mode(&to.path("d")), standing, "{of_peer:o}");
                // The same for the target itself, and for a copy that breaks off.
                receive_directory(&mut DiskStore::at(&to.path("d"), true).unwrap(), "new", of_peer);
                set_mode(&to.path("d/new"), 0o700);
                fs::remove_dir(to.path("d/new")).unwrap();
                let mut store = DiskStore::at(&to.0, true).unwrap();
                store.make_dir(EntryId(0), &Entry { mode: of_peer, ..directory("d") }).unwrap();
                drop(store);
                assert_eq!(mode(&to.path("d")), standing, "{of_peer:o}");
            }
        }
    });
}

#[test]
fn a_directory_of_somebody_else_takes_entries_and_keeps_its_mode_and_time() {
    if !geteuid().is_root() {
        eprintln!("skipped: only root makes directories of somebody else");
        return;
    }
    let to = Scratch::new("modes-shared");
    fs::create_dir(to.path("shared")).unwrap();
    set_mode(&to.path("shared"), 0o1777);
    set_mode(&to.0, 0o755);
    as_root_and_as_ordinary_user(|| {
        receive_directory(&mut DiskStore::at(&to.0, true).unwrap(), "shared", 0);
        assert_eq!(mode(&to.path("shared")), 0o1777);
    });
}

#[test]
fn a_new_directory_inherits_the_group_bit_of_its_parent() {
    let to = Scratch::new("modes-setgid");
    set_mode(&to.0, 0o2755);
    receive_directory(&mut DiskStore::at(&to.0, true).unwrap(), "new", 0o750);
    assert_eq!(mode(&to.path("new")), 0o2750);
    // Without a copy that ends well, an empty target goes with its store.
    let _store = DiskStore::beneath(&Directory::open(&to.0).unwrap(), &rel("made"), true).unwrap();
    assert_eq!(mode(&to.path("made")), 0o2777 & !umask());
}

#[test]
fn a_replaced_file_keeps_its_permissions_and_no_special_bits() {
    as_root_and_as_ordinary_user(|| {
        let to = Scratch::new(&format!("modes-file-{}", geteuid().as_raw()));
        for (standing, then) in [(0o600, 0o600), (0o444, 0o444), (0o666, 0o666), (0o4755, 0o755), (0o1640, 0o640)] {
            let _ = fs::remove_file(to.path("file"));
            to.write("file", b"old");
            set_mode(&to.path("file"), standing);
            receive_file(&to.0, 0o777);
            assert_eq!(mode(&to.path("file")), then);
        }
        fs::remove_file(to.path("file")).unwrap();
        receive_file(&to.0, 0o777);
        assert_eq!(mode(&to.path("file")), 0o777 & !umask(), "a new one has that of the peer");
    });
}

#[test]
fn a_file_that_appears_before_the_commit_hands_its_permissions_on() {
    let to = Scratch::new("modes-late");
    let mut store = DiskStore::at(&to.0, true).unwrap();
    // The first one shows that the file system tells names apart.
    store.make_dir(EntryId(9), &directory("d")).unwrap();
    for (id, name) in [(0, "first"), (1, "file"), (2, "d/first"), (3, "d/file")] {
        let entry = Entry { mode: 0o777, ..file(name, 3) };
        begin_file(&mut store, EntryId(id), &entry).unwrap();
        store.write(EntryId(id), 0, b"new").unwrap();
        to.write(name, b"late");
        set_mode(&to.path(name), 0o600);
        store.commit(EntryId(id), &entry, &Digest::of(b"new")).unwrap();
        assert_eq!(failures(&mut store), []);
        assert_eq!((mode(&to.path(name)), fs::read(to.path(name)).unwrap()), (0o600, b"new".to_vec()));
    }
    assert_eq!(tree(&to.0).len(), 5, "and nothing incomplete is left");
}

#[test]
fn a_replaced_file_keeps_its_group_or_that_group_loses_its_rights() {
    if !geteuid().is_root() {
        eprintln!("skipped: only root gives files to any group");
        return;
    }
    for (standing, of_others) in [(0o660, 0o600), (0o664, 0o644), (0o640, 0o600)] {
        let to = Scratch::new(&format!("modes-group-{standing:o}"));
        chown(&to.0, Some(NOBODY), Some(NOBODY)).unwrap();
        as_root_and_as_ordinary_user(|| {
            let is_root = geteuid().is_root();
            if is_root {
                to.write("file", b"old");
                chown(to.path("file"), Some(NOBODY), Some(GROUP)).unwrap();
                set_mode(&to.path("file"), standing);
            }
            receive_file(&to.0, 0o777);
            let metadata = fs::metadata(to.path("file")).unwrap();
            match is_root {
                true => assert_eq!((metadata.gid(), mode(&to.path("file"))), (GROUP, standing)),
                false => assert_eq!((metadata.gid(), mode(&to.path("file"))), (NOBODY, of_others)),
            }
        });
    }
}
