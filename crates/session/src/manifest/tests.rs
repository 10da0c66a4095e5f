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
fn special_mode_bits_are_never_sent() {
    let entry = Entry { path: path("su"), kind: EntryKind::File, size: 1, mode: 0o106_755, mtime: Mtime::default() };
    let mut body = Vec::new();
    entry.encode(&mut body);
    assert_eq!(Entry::decode(&body).unwrap().mode, 0o755);
    body[1..5].copy_from_slice(&0o7777u32.to_be_bytes());
    assert_eq!(Entry::decode(&body).unwrap().mode, 0o777);
}

proptest! {
    #[test]
    fn entries_never_panic_and_encode_as_they_were(body in proptest::collection::vec(any::<u8>(), 20..60)) {
        let mut body = body;
        body[0] &= 1;
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
