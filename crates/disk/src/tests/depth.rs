//! Open descriptors. Their number depends neither on the depth of a tree nor on the number of paths in a request.

use super::*;

/// Nested directories, many more than the descriptors that a side may hold.
const DEPTH: usize = 120;
/// Most descriptors of one side of a copy: its root, the innermost directory, a file, and two of their parent directories.
const HELD: usize = 5;

/// A tree of `DEPTH` directories. In each, one file comes before the next directory and one after it.
fn make_deep_tree(from: &Scratch) -> String {
    let mut path = String::from("t");
    for _ in 0..DEPTH {
        from.write(&format!("{path}/a"), b"before");
        from.write(&format!("{path}/z"), b"after");
        path.push_str("/d");
    }
    fs::create_dir(from.path(&path)).unwrap();
    path
}

/// The number of descriptors of this process that lead to `root` or below.
fn held_below(root: &Path) -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().map(|entry| fs::read_link(entry.unwrap().path()));
    // Another test's descriptor may be closed meanwhile.
    links.filter(|link| link.as_ref().is_ok_and(|link| link.starts_with(root))).count()
}

#[test]
fn a_source_holds_few_descriptors_however_deep_the_tree_is() {
    let from = Scratch::new("deep-source");
    make_deep_tree(&from);
    let mut source = DiskSource::new(&[from.path("t")], true).unwrap();
    let (mut entries, mut most) = (0, 0);
    while let Next::Entry(entry) = source.next_entry(EntryId(entries)) {
        if entry.kind == EntryKind::File {
            source.open(EntryId(entries)).unwrap();
            assert_eq!(source.read(EntryId(entries), 0, &mut [0; 9]), Ok(Chunk::Data(entry.size as usize)));
            assert_eq!(source.recheck(EntryId(entries)), Ok(entry.stamp()));
        }
        most = most.max(held_below(&from.0));
        source.close(EntryId(entries));
        entries += 1;
    }
    assert_eq!(entries as usize, 3 * DEPTH + 1);
    assert!(most <= HELD, "{most}");
}

#[test]
fn a_source_holds_few_descriptors_however_much_was_asked_for() {
    let from = Scratch::new("many-sources");
    let names: Vec<String> = (0..DEPTH).map(|number| format!("d{number:03}/file{number:03}")).collect();
    for name in &names {
        from.write(name, b"x");
    }
    let paths: Vec<PathBuf> = names.iter().map(|name| from.path(name)).collect();
    let below: Vec<RelPath> = names.iter().map(|name| rel(name)).collect();
    let root = Directory::open(&from.0).unwrap();
    for mut source in [DiskSource::new(&paths, false).unwrap(), DiskSource::beneath(&root, &below, false).unwrap()] {
        let mut entries = 0;
        while let Next::Entry(_) = source.next_entry(EntryId(entries)) {
            // The descriptors of the other source and its root count, too.
            let held = held_below(&from.0);
            assert!(held <= 2 * HELD, "{held}");
            source.close(EntryId(entries));
            entries += 1;
        }
        assert_eq!(entries as usize, DEPTH);
    }
}

#[test]
fn a_store_holds_few_descriptors_however_deep_the_tree_is() {
    let to = Scratch::new("deep-store");
    let mut store = DiskStore::at(&to.0, true).unwrap();
    let mut path = String::from("t");
    let mut open = Vec::new();
    for id in (0..).map(EntryId).take(DEPTH) {
        store.make_dir(id, &directory(&path)).unwrap();
        open.push((id, directory(&path)));
        path.push_str("/d");
    }
    let held = held_below(&to.0);
    assert!(held <= HELD, "{held}");
    while let Some((id, directory)) = open.pop() {
        // An entry after the innermost directory finds its own directory again.
        let (number, entry) = (EntryId(1000 + id.0), file(&format!("{}/z", directory.path), 0));
        begin_file(&mut store, number, &entry).unwrap();
        store.commit(number, &entry, &Digest::of(b"")).unwrap();
        store.finish_dir(id, &directory).unwrap();
        store.finish_commits();
        let held = held_below(&to.0);
        assert!(held <= HELD, "{held}");
    }
    assert_eq!(failures(&mut store), []);
    assert_eq!(tree(&to.0).len(), 2 * DEPTH);
    for path in ["t", "t/d", "t/d/d"] {
        let metadata = fs::metadata(to.path(path)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o755);
        assert_eq!(metadata.modified().unwrap(), fs::metadata(to.path("t/z")).unwrap().modified().unwrap());
    }
}

#[test]
fn a_deep_tree_arrives_as_it_is() {
    as_root_and_as_ordinary_user(|| {
        let user = geteuid().as_raw();
        let (from, to) = (Scratch::new(&format!("deep-from-{user}")), Scratch::new(&format!("deep-to-{user}")));
        make_deep_tree(&from);
        let mut source = DiskSource::new(&[from.path("t")], true).unwrap();
        assert_eq!(copy(&mut source, &mut DiskStore::at(&to.0, true).unwrap()), []);
        assert_eq!(tree(&from.0), tree(&to.0));
    });
}

/// Replaces a directory by a link or by another directory.
fn swap(at: &Path, outside: &Path, for_link: bool) {
    fs::rename(at, at.with_file_name("moved")).unwrap();
    match for_link {
        true => symlink(outside, at).unwrap(),
        false => fs::create_dir_all(at.join("d")).unwrap(),
    }
}

#[test]
fn a_directory_swapped_while_the_copy_is_below_it_gets_nothing_and_what_belongs_there_fails() {
    for for_link in [true, false] {
        let (to, outside) = (Scratch::new(&format!("swap-to-{for_link}")), Scratch::new("swap-outside"));
        let mut store = DiskStore::at(&to.0, true).unwrap();
        store.make_dir(EntryId(0), &directory("t")).unwrap();
        store.make_dir(EntryId(1), &directory("t/d")).unwrap();
        swap(&to.path("t"), &outside.0, for_link);
        // The innermost directory is held.
        begin_file(&mut store, EntryId(2), &file("t/d/file", 0)).unwrap();
        store.commit(EntryId(2), &file("t/d/file", 0), &Digest::of(b"")).unwrap();
        assert_eq!(begin_file(&mut store, EntryId(3), &file("t/z", 0)).unwrap_err().code, FailCode::NotFound);
        assert_eq!(store.finish_dir(EntryId(0), &directory("t")).unwrap_err().code, FailCode::NotFound);
        assert_eq!(failures(&mut store), []);
        assert!(to.path("moved/d/file").exists());
        assert_eq!(tree(&outside.0), []);
        assert!(!to.path("t/z").exists());
    }
}

#[test]
fn a_source_directory_swapped_while_the_copy_is_below_it_is_named_and_nothing_else_is_sent() {
    for for_link in [true, false] {
        let (from, outside) = (Scratch::new(&format!("swap-from-{for_link}")), Scratch::new("swap-secret"));
        outside.write("z", b"secret");
        from.write("t/d/e/file", b"");
        from.write("t/d/z", b"");
        let mut source = DiskSource::new(&[from.path("t")], true).unwrap();
        let mut step = |id| source.next_entry(EntryId(id));
        assert!(matches!((step(0), step(1), step(2)), (Next::Entry(_), Next::Entry(_), Next::Entry(_))));
        swap(&from.path("t/d"), &outside.0, for_link);
        from.write("t/d/z", b"other");
        assert!(matches!(step(3), Next::Entry(entry) if entry.path == rel("t/d/e/file")), "it was held");
        let Next::Skipped(path, failure) = step(4) else { panic!("it is of another directory") };
        assert_eq!((path.to_string(), failure.code), ("t/d/z".into(), FailCode::SourceChanged));
        assert_eq!(step(4), Next::End);
    }
}
