//! When a file gets its name: after its commit, and not before.

use farhaul_session::Verdict;

use super::*;

#[test]
fn until_the_commit_the_old_file_stands_and_the_new_one_is_private() {
    let to = Scratch::new("commit");
    to.write("file", b"old");
    let mut store = DiskStore::at(&to.0, true).unwrap();
    let entry = file("file", LARGE);
    begin_file(&mut store, EntryId(0), &entry).unwrap();
    store.write(EntryId(0), 0, b"new").unwrap();
    let there = tree(&to.0);
    let (temporary, _) = there.iter().find(|(path, _)| path.as_os_str() != "file").unwrap();
    let name = temporary.to_str().unwrap();
    assert!(name.starts_with(".file.") && name.ends_with(".fhpart"), "{name}");
    assert_eq!(fs::metadata(to.path(name)).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read(to.path("file")).unwrap(), b"old");
    store.commit(EntryId(0), &entry, &Digest::of(b"new")).unwrap();
    assert_eq!(failures(&mut store), []);
    assert_eq!(tree(&to.0), [("file".into(), "new".into())]);
}

#[test]
fn an_aborted_file_is_kept_or_removed_as_asked() {
    let to = Scratch::new("abort");
    let mut store = DiskStore::at(&to.0, true).unwrap();
    for (id, leftover, left) in [(0, Leftover::Remove, 0), (1, Leftover::Keep, 1)] {
        begin_file(&mut store, EntryId(id), &file("file", LARGE)).unwrap();
        store.write(EntryId(id), 0, b"ab").unwrap();
        store.abort(EntryId(id), leftover);
        assert_eq!(tree(&to.0).len(), left);
    }
}

#[test]
fn a_failed_commit_is_reported_for_its_file_alone() {
    let to = Scratch::new("alone");
    let mut store = DiskStore::at(&to.0, true).unwrap();
    for id in 0..100 {
        let entry = file(&format!("{id:03}"), 3);
        begin_file(&mut store, EntryId(id), &entry).unwrap();
        store.write(EntryId(id), 0, b"new").unwrap();
        if id % 10 == 0 {
            // Another entry takes the name at the last moment.
            fs::create_dir(to.path(&format!("{id:03}"))).unwrap();
        }
        assert_eq!(store.commit(EntryId(id), &entry, &Digest::of(b"new")), Ok(Commit::Pending));
    }
    let mut failed = failures(&mut store);
    failed.sort_by_key(|(id, _)| *id);
    let expected: Vec<_> = (0..100).step_by(10).map(|id| (EntryId(id), FailCode::Exists)).collect();
    assert_eq!(failed, expected);
    let expected = |id| (format!("{id:03}").into(), if id % 10 == 0 { "dir".into() } else { "new".into() });
    assert_eq!(tree(&to.0), (0..100).map(expected).collect::<Vec<_>>(), "and nothing incomplete is left");
}

#[test]
fn a_commit_counts_only_once_its_file_has_its_name() {
    let to = Scratch::new("commit-order");
    let mut store = DiskStore::at(&to.0, true).unwrap();
    for id in 0..50 {
        let entry = file(&format!("{id}"), 0);
        begin_file(&mut store, EntryId(id), &entry).unwrap();
        store.commit(EntryId(id), &entry, &Digest::of(b"")).unwrap();
        while let Some((done, outcome)) = store.poll_committed() {
            assert_eq!(outcome, Ok(()));
            assert!(to.path(&format!("{}", done.0)).exists());
        }
    }
}

#[test]
fn a_dropped_store_completes_its_commits() {
    let to = Scratch::new("dropped");
    let mut store = DiskStore::at(&to.0, true).unwrap();
    store.make_dir(EntryId(0), &directory("d")).unwrap();
    for id in 1..=20 {
        let entry = file(&format!("d/{id:02}"), 0);
        begin_file(&mut store, EntryId(id), &entry).unwrap();
        store.commit(EntryId(id), &entry, &Digest::of(b"")).unwrap();
    }
    store.finish_dir(EntryId(0), &directory("d")).unwrap();
    drop(store);
    assert_eq!(tree(&to.0).len(), 21);
    assert!(tree(&to.0).iter().all(|(path, _)| !path.to_string_lossy().ends_with(".fhpart")));
    assert_eq!(fs::metadata(to.path("d")).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn small_files_arrive_although_another_copy_removes_what_it_takes_for_remains() {
    let to = Scratch::new("removed-meanwhile");
    let mut store = DiskStore::at(&to.0, true).unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let removed = thread::scope(|scope| {
        let other = scope.spawn(|| {
            let (other, mut removed) = (Directory::open(&to.0).unwrap(), 0);
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                removed += crate::remains::remove_all(&other).unwrap().0;
            }
            removed
        });
        for id in 0..500 {
            let entry = file(&format!("{id}"), 1);
            begin_file(&mut store, EntryId(id), &entry).unwrap();
            store.write(EntryId(id), 0, b"x").unwrap();
            store.commit(EntryId(id), &entry, &Digest::of(b"x")).unwrap();
        }
        let failed = failures(&mut store);
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(failed, []);
        other.join().unwrap()
    });
    println!("{removed} were removed");
    let all = tree(&to.0);
    assert_eq!(all.len(), 500, "and nothing incomplete is left");
    assert!(all.iter().all(|(_, content)| content == "x"));
}

#[test]
fn what_a_dead_copy_left_of_a_small_file_goes_with_the_next_one() {
    let to = Scratch::new("small-remain");
    // Nothing locks it, as after a kill.
    to.write(".file.0123456789abcdef.fhpart", b"ne");
    set_private(&to.path(".file.0123456789abcdef.fhpart"));
    let mut store = DiskStore::at(&to.0, true).unwrap();
    let entry = file("file", 3);
    begin_file(&mut store, EntryId(0), &entry).unwrap();
    store.write(EntryId(0), 0, b"new").unwrap();
    store.commit(EntryId(0), &entry, &Digest::of(b"new")).unwrap();
    assert_eq!(failures(&mut store), []);
    assert_eq!(tree(&to.0), [("file".into(), "new".into())]);
}

fn set_private(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_directory_in_which_nothing_changes_is_done_at_once_and_its_remains_go_if_a_copy_broke_off_in_it() {
    let to = Scratch::new("unchanged");
    let (entry, kept) = (directory("d"), file("d/kept", 3));
    let copies = |others: &[&str]| {
        let mut store = DiskStore::at(&to.0, true).unwrap();
        store.make_dir(EntryId(0), &entry).unwrap();
        let mut all = vec![kept.clone()];
        all.extend(others.iter().map(|name| file(name, 3)));
        for (id, entry) in (1..).map(EntryId).zip(&all) {
            if let Ok(Verdict::Want(..)) = store.examine(id, entry) {
                store.begin(id, entry).unwrap();
                store.write(id, 0, b"new").unwrap();
                store.commit(id, entry, &Digest::of(b"new")).unwrap();
            }
        }
        assert_eq!(failures(&mut store), []);
        let finished = store.finish_dir(EntryId(0), &entry).unwrap();
        assert_eq!(failures(&mut store), []);
        finished
    };
    assert_eq!((copies(&[]), copies(&[])), (Commit::Pending, Commit::Done));
    assert_eq!((copies(&["d/new"]), copies(&["d/new"])), (Commit::Pending, Commit::Done));
    let left = to.path("d/.kept.0123456789abcdef.fhpart");
    fs::write(&left, b"ne").unwrap();
    set_private(&left);
    assert_eq!((copies(&[]), left.exists()), (Commit::Pending, false), "its time is another one");
    assert_eq!(copies(&[]), Commit::Done);
}
