//! Sources that are restricted to a list of names.

use std::sync::Arc;

use farhaul_session::{NameList, NameListBuilder, Rules};

use super::*;

fn list(names: &[&str]) -> NameList {
    let mut builder = NameListBuilder::default();
    names.iter().for_each(|name| builder.push(&rel(name)).unwrap());
    builder.build()
}

/// What a source sends, in its order.
fn sent(mut source: DiskSource) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        match source.next_entry(EntryId(names.len() as u64)) {
            Next::Entry(entry) if entry.kind == EntryKind::Directory => names.push(format!("{}/", entry.path)),
            Next::Entry(entry) => names.push(entry.path.to_string()),
            Next::Skipped(path, failure) | Next::LeftOut(path, failure) => names.push(format!("{path}: {failure}")),
            Next::Pending => {}
            Next::End => return names,
        }
    }
}

/// What a user's own program sends for this list, and a server. They agree.
#[track_caller]
fn selected(scratch: &Scratch, names: &[&str], recursive: bool, rules: &Rules) -> Vec<String> {
    let root = Directory::open(&scratch.0).unwrap();
    let here = DiskSource::by_names(&scratch.path("src"), Arc::new(list(names)), recursive).unwrap();
    let here = sent(here.under_rules(rules).unwrap());
    for source in [
        DiskSource::by_names_beneath(&root, &rel("src"), recursive),
        DiskSource::by_names_later(&scratch.path("src"), recursive),
    ] {
        let mut source = source.unwrap().under_rules(rules).unwrap();
        assert_eq!(source.next_entry(EntryId(0)), Next::End, "nothing before the list is there");
        source.restrict(list(names));
        assert_eq!(sent(source), here, "{names:?}");
    }
    here
}

fn tree(test: &str) -> Scratch {
    let scratch = Scratch::new(test);
    for name in ["src/a/x", "src/a/y", "src/b/c/z", "src/b/other", "src/b-c", "src/lone", "src/rest"] {
        scratch.write(name, b"content");
    }
    symlink("a", scratch.path("src/link")).unwrap();
    scratch
}

#[test]
fn listed_names_are_sent_with_their_parent_directories() {
    let (scratch, rules) = (tree("by-names"), Rules::default());
    let names = ["lone", "b/c/z", "a", "b-c"];
    assert_eq!(selected(&scratch, &names, true, &rules), ["a/", "a/x", "a/y", "b/", "b/c/", "b/c/z", "b-c", "lone"]);
    assert_eq!(selected(&scratch, &names, false, &rules), ["a/", "b/", "b/c/", "b/c/z", "b-c", "lone"]);
    assert_eq!(selected(&scratch, &["b", "b/c/z"], false, &rules), ["b/", "b/c/", "b/c/z"]);
    assert_eq!(selected(&scratch, &["", "a/x"], true, &rules).len(), 11);
}

#[test]
fn names_that_do_not_exist_are_reported_and_nothing_else_is() {
    let scratch = tree("by-names-missing");
    let names = ["a/none", "gone/below/1", "gone/below/2", "link/x", "lone", "lone/x", "b/none", "b"];
    let failed = |name: &str, why: &str| format!("{name}: not found: {why}");
    assert_eq!(
        selected(&scratch, &names, true, &Rules::default()),
        [
            "a/".to_owned(),
            failed("a/none", "cannot read"),
            "b/".to_owned(),
            "b/c/".to_owned(),
            "b/c/z".to_owned(),
            failed("b/none", "cannot read"),
            "b/other".to_owned(),
            failed("gone/below/1", "cannot read"),
            failed("gone/below/2", "cannot read"),
            failed("link/x", "link is a symbolic link, and those below the source are not followed"),
            "lone".to_owned(),
            failed("lone/x", "lone is a file"),
        ]
    );
    assert!(DiskSource::by_names(&scratch.path("none"), Arc::new(list(&["a"])), true).is_err());
    assert!(DiskSource::by_names_later(&scratch.path("src/lone"), true).is_err(), "a file has no names in it");
}

#[test]
fn filters_leave_out_listed_names_too() {
    let scratch = tree("by-names-filters");
    let rules = Rules { filters: vec![b"x".to_vec(), b"/b/".to_vec()], ..Rules::default() };
    assert_eq!(selected(&scratch, &["a", "a/x", "b/c/z", "lone"], true, &rules), ["a/", "a/y", "lone"]);
}
