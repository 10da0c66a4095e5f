//! Names that a file system takes for one: directories of the disk that lower names, or compose their accents, before they reach
//! the system.

use std::sync::Arc;

use farhaul_session::{CHUNK_LEN, Change, ChunkDigest, Component, Kept, Properties, Rules, Skip, Verdict};

use super::super::partial::Partial;
use super::super::remains::Remains;
use super::directory::folding::Folding::{self, Case, Form};
use super::*;

fn store(to: &Scratch, folding: Folding) -> DiskStore {
    DiskStore::into_directory(Directory::open(&to.0).unwrap().that_ignores(folding))
}

fn link(name: &str, to: &str) -> Entry {
    let properties = Properties { link_target: to.into(), ..Properties::default() };
    Entry { kind: EntryKind::Symlink, properties: Some(Box::new(properties)), ..file(name, 0) }
}

/// Stores these entries, in their order: names that end in a slash are directories. Returns the names of those that fail.
fn stored(store: &mut DiskStore, names: &[&str]) -> Vec<(String, FailCode)> {
    let (mut failed, mut open) = (Vec::new(), Vec::new());
    for (id, name) in (0..).map(EntryId).zip(names) {
        let path = rel(name);
        while open.last().is_some_and(|(_, dir): &(_, Entry)| !path.components().starts_with(dir.path.components())) {
            let (id, dir) = open.pop().unwrap();
            store.finish_dir(id, &dir).unwrap();
        }
        let made = match name.strip_suffix('/') {
            Some(_) => store.make_dir(id, &directory(name)).map(|_| open.push((id, directory(name)))),
            None => begin_file(store, id, &file(name, 0)).and_then(|()| {
                store.write(id, 0, name.as_bytes())?;
                store.commit(id, &file(name, 0), &Digest::of(name.as_bytes())).map(drop)
            }),
        };
        failed.extend(made.err().map(|failure| ((*name).to_owned(), failure.code)));
    }
    while let Some((id, dir)) = open.pop() {
        store.finish_dir(id, &dir).unwrap();
    }
    store.finish_commits();
    while let Some((id, outcome)) = store.poll_committed() {
        failed.extend(outcome.err().map(|failure| (names[usize::try_from(id.0).unwrap()].to_owned(), failure.code)));
    }
    failed
}

#[test]
fn of_two_files_whose_names_are_one_to_the_file_system_the_first_stays_and_one_is_refused_by_name() {
    for round in 0..20 {
        let to = Scratch::new(&format!("fold-files-{round}"));
        if round % 2 == 0 {
            to.write("readme", b"old");
        }
        let failed = stored(&mut store(&to, Case), &["README", "file", "readme"]);
        // Both may be committed at once, so either one may be first.
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert!(failed[0].1 == FailCode::NameRefused && failed[0].0.eq_ignore_ascii_case("readme"), "{failed:?}");
        let stays = if failed[0].0 == "readme" { "README" } else { "readme" };
        assert_eq!(tree(&to.0), [("file".into(), "file".into()), ("readme".into(), stays.to_owned())]);
    }
}

#[test]
fn names_that_differ_replace_what_stood_there_before_the_copy() {
    let to = Scratch::new("fold-old");
    to.write("readme", b"old");
    to.write("d/old", b"old");
    assert_eq!(stored(&mut store(&to, Case), &["D/", "D/OLD", "README"]), []);
    assert_eq!(
        tree(&to.0),
        [("d".into(), "dir".into()), ("d/old".into(), "D/OLD".into()), ("readme".into(), "README".into())]
    );
}

#[test]
fn two_directories_whose_names_are_one_to_the_file_system_are_not_mixed() {
    for old in [false, true] {
        let to = Scratch::new(&format!("fold-directories-{old}"));
        if old {
            to.write("dir/old", b"old");
        }
        let failed = stored(&mut store(&to, Case), &["Dir/", "Dir/a", "dir/", "dir/b"]);
        assert_eq!(failed, [("dir/".into(), FailCode::NameRefused), ("dir/b".into(), FailCode::ParentFailed)]);
        assert!(to.path("dir/a").exists() && !to.path("dir/b").exists());
    }
}

#[test]
fn forms_of_one_character_are_one_name_where_the_file_system_says_so() {
    let to = Scratch::new("fold-form");
    let names = ["d/", "d/e\u{301}t\u{e9}", "d/\u{e9}te\u{301}", "n/", "n/A", "n/a"];
    let failed = stored(&mut store(&to, Form), &names);
    assert!(failed.len() == 1 && failed[0].1 == FailCode::NameRefused && failed[0].0.starts_with("d/"), "{failed:?}");
    assert!(to.path("n/A").exists() && to.path("n/a").exists(), "case matters there");
}

#[test]
fn what_the_source_has_under_another_spelling_is_no_surplus() {
    for dry_run in [true, false] {
        let to = Scratch::new(&format!("fold-surplus-{dry_run}"));
        for name in ["readme", "d/x", "d/old", "kept", "gone"] {
            to.write(name, b"");
        }
        let rules = Rules { delete: Some(u64::MAX), whole: true, skip: Skip::Exists, dry_run, ..Rules::default() };
        let mut store = store(&to, Case).under_rules(&rules, true);
        store.make_dir(EntryId(0), &directory("D")).unwrap();
        store.examine(EntryId(1), &file("D/X", 0)).unwrap();
        store.finish_dir(EntryId(0), &directory("D")).unwrap();
        for (id, name) in (2..).map(EntryId).zip(["README", "kept"]) {
            assert_eq!(store.examine(id, &file(name, 0)), Ok(Verdict::Have(Change::None)));
        }
        store.finish_commits();
        let mut removed: Vec<_> = std::iter::from_fn(|| store.delete_next()).collect();
        removed.sort_by_key(|(path, _)| path.to_string());
        let removed: Vec<_> = removed.into_iter().map(|(path, done)| (path.to_string(), done)).collect();
        assert_eq!(removed, [("D/old".to_owned(), Ok(())), ("gone".to_owned(), Ok(()))]);
        let names: Vec<_> = tree(&to.0).into_iter().map(|(name, _)| name.display().to_string()).collect();
        assert!(dry_run || names == ["d", "d/x", "kept", "readme"], "{names:?}");
    }
}

#[test]
fn of_two_links_whose_names_are_one_to_the_file_system_the_first_stays() {
    let to = Scratch::new("fold-links");
    let rules = Rules { keep: Kept::ALL, ..Rules::default() };
    let mut store = store(&to, Case).under_rules(&rules, true);
    let code = |made: Result<(Change, Commit), Failure>| made.map(|(change, _)| change).map_err(|failure| failure.code);
    assert_eq!(code(store.make_symlink(EntryId(0), &link("LINK", "one"))), Ok(Change::New));
    assert_eq!(code(store.make_symlink(EntryId(1), &link("link", "two"))), Err(FailCode::NameRefused));
    assert_eq!(fs::read_link(to.path("link")).unwrap().to_str(), Some("one"));
    to.write("file", b"");
    store.examine(EntryId(2), &file("FILE", 0)).unwrap();
    let first = file("file", 0);
    assert_eq!(code(store.make_hard_link(EntryId(3), &file("other", 0), &first.path)), Ok(Change::New));
    assert_eq!(code(store.make_hard_link(EntryId(4), &file("LINK", 0), &first.path)), Err(FailCode::Exists));
}

#[test]
fn two_names_of_one_file_are_two_entries() {
    for folding in [Folding::Nothing, Case] {
        let to = Scratch::new(&format!("fold-hard-links-{folding:?}"));
        to.write("\u{e9}", b"");
        fs::hard_link(to.path("\u{e9}"), to.path("\u{fc}")).unwrap();
        let rules = Rules { skip: Skip::Exists, ..Rules::default() };
        let mut store = store(&to, folding).under_rules(&rules, true);
        for (id, name) in (0..).map(EntryId).zip(["\u{e9}", "\u{fc}"]) {
            assert_eq!(store.examine(id, &file(name, 0)), Ok(Verdict::Have(Change::None)), "{folding:?}");
        }
    }
}

#[test]
fn an_incomplete_file_is_continued_where_it_is_listed_in_another_form() {
    let to = Scratch::new("fold-resume");
    let directory = Arc::new(Directory::open(&to.0).unwrap().that_ignores(Form));
    let (name, entry) = (Component::new("e\u{301}".as_bytes()).unwrap(), file("e\u{301}", 3 * CHUNK_LEN));
    let size = (entry.size, false);
    let mut partial = Partial::begin(Arc::clone(&directory), name.clone(), size, Arc::default()).unwrap();
    partial.write(0, &vec![1; 2 << 20]).unwrap();
    (0..2).for_each(|index| partial.note(index, &ChunkDigest::from_bytes([1; 32]), &entry));
    drop(partial);
    let remain = Remains::list(&directory).take(&directory, &name, &entry, None).unwrap();
    assert_eq!(remain.noted.chunks_within(entry.size, remain.len).len(), 2);
}

#[test]
fn where_case_matters_all_names_arrive() {
    let to = Scratch::new("fold-nothing");
    let names = ["Dir/", "Dir/A", "Dir/a", "README", "dir/", "dir/\u{e9}", "readme"];
    assert_eq!(stored(&mut store(&to, Folding::Nothing), &names), []);
    assert_eq!(tree(&to.0).len(), names.len());
}
