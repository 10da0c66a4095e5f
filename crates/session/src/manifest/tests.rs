use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn path(text: &str) -> RelPath {
    RelPath::parse(text.as_bytes()).unwrap()
}

/// Admits paths in order. Those that end in `/` are directories. Returns the first refused one, if any.
fn first_refused<'a>(paths: &[&'a str]) -> Option<&'a str> {
    let mut open = OpenDirectories::default();
    for text in paths {
        let path = path(text);
        let Ok(depth) = open.admit(&path) else { return Some(text) };
        while open.close_to(depth).is_some() {}
        if text.ends_with('/') {
            open.open(path.split_last().unwrap().0.clone(), ());
        }
    }
    None
}

#[test]
fn depth_first_ascending_order_is_accepted() {
    assert_eq!(first_refused(&["a/", "a/b/", "a/b/x", "a/c", "b", "c/", "c/a"]), None);
}

#[test]
fn duplicates_strangers_and_returns_are_refused() {
    assert_eq!(first_refused(&["a", "a"]), Some("a"));
    assert_eq!(first_refused(&["a/", "a/x", "a/x"]), Some("a/x"));
    assert_eq!(first_refused(&["a/x"]), Some("a/x"), "its directory was never announced");
    assert_eq!(first_refused(&["a", "a/x"]), Some("a/x"), "a file is no directory");
    assert_eq!(first_refused(&["a/", "b", "a/x"]), Some("a/x"), "a is closed");
    assert_eq!(first_refused(&["a/", "b/", "a/"]), Some("a/"));
}

#[test]
fn modes_have_no_bits_but_those_of_chmod() {
    let entry = Entry::new(path("su"), EntryKind::File, 1, 0o106_755, Mtime::default());
    let mut body = Vec::new();
    entry.encode(&mut body);
    assert_eq!(Entry::decode(&body).unwrap().mode, 0o6755);
    body[1..5].copy_from_slice(&u32::MAX.to_be_bytes());
    assert_eq!(Entry::decode(&body).unwrap().mode, 0o7777);
}

#[test]
fn links_have_what_makes_them_links() {
    for (kind, properties) in [
        (EntryKind::Symlink, Properties { link_target: b"../x".to_vec(), ..Properties::default() }),
        (EntryKind::HardLink, Properties { first_name: Some(EntryId(3)), ..Properties::default() }),
    ] {
        let bare = Entry::new(path("l"), kind, 0, 0o777, Mtime::default());
        let whole = Entry { properties: Some(Box::new(properties)), ..bare.clone() };
        let decoded = |entry: &Entry| {
            let mut body = Vec::new();
            entry.encode(&mut body);
            Entry::decode(&body)
        };
        assert!(decoded(&bare).is_err());
        assert_eq!(decoded(&whole), Ok(whole));
    }
}

proptest! {
    #[test]
    fn entries_never_panic_and_encode_as_they_were(body in proptest::collection::vec(any::<u8>(), 20..60)) {
        let mut body = body;
        body[0] &= 3;
        if let Ok(entry) = Entry::decode(&body) {
            let mut again = Vec::new();
            entry.encode(&mut again);
            prop_assert_eq!(Entry::decode(&again), Ok(entry));
        }
    }

    #[test]
    fn no_sequence_of_paths_is_admitted_twice(picks in proptest::collection::vec("[ab](/[ab]){0,2}/?", 1..30)) {
        let mut open = OpenDirectories::default();
        let mut seen = BTreeSet::new();
        for text in &picks {
            let path = path(text);
            if let Ok(depth) = open.admit(&path) {
                while open.close_to(depth).is_some() {}
                prop_assert!(seen.insert(path.clone()), "{} twice", path);
                if text.ends_with('/') {
                    open.open(path.split_last().unwrap().0.clone(), ());
                }
            }
        }
    }
}
