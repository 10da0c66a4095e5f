//! Selections by patterns.

use std::io;

use farhaul_session::Component;

use super::*;

const NOTHING: &str = "nothing matches";

fn logs(test: &str) -> Scratch {
    let scratch = Scratch::new(test);
    for name in
        ["logs/b.gz", "logs/a.gz", "logs/.hidden.gz", "logs/c.txt", "logs/old/d.gz", "logs/new/e.gz", "logs/new/f"]
    {
        scratch.write(name, b"content");
    }
    scratch
}

/// Names in the order in which a source sends them, or the error.
fn sent(selected: io::Result<Selection>) -> Result<Vec<String>, String> {
    let mut source = DiskSource::of(selected.map_err(|error| error.to_string())?);
    let mut names = Vec::new();
    loop {
        match source.next_entry(EntryId(0)) {
            Next::Entry(entry) => names.push(entry.path.to_string()),
            Next::Skipped(path, failure) | Next::LeftOut(path, failure) => names.push(format!("{path}: {failure}")),
            Next::Pending => {}
            Next::End => return Ok(names),
        }
    }
}

/// What a server sends for these paths, and what a user's own program sends. They agree but in the error.
#[track_caller]
fn selected(scratch: &Scratch, paths: &[&str]) -> Result<Vec<String>, String> {
    let root = Directory::open(&scratch.0).unwrap();
    let below: Vec<_> = paths.iter().map(|path| rel(path)).collect();
    let here: Vec<_> = paths.iter().map(|path| scratch.path(path)).collect();
    let served = sent(Selection::beneath(&root, &below, Wording::Patterns, false));
    assert_eq!(served, sent(Selection::named(&here, Wording::Patterns, false)), "{paths:?}");
    served
}

#[test]
fn patterns_select_names_in_ascending_order_on_every_level() {
    let scratch = logs("levels");
    for (patterns, names) in [
        (&["logs/*.gz"][..], &["a.gz", "b.gz"][..]),
        (&["logs/?.[gt]*"], &["a.gz", "b.gz", "c.txt"]),
        (&["logs/.*.gz"], &[".hidden.gz"]),
        (&["logs/*/*.gz"], &["d.gz", "e.gz"]),
        (&["l*/new/[!f]*"], &["e.gz"]),
        (&["l*/ne\\w/f"], &["f"]),
        (&["logs/a*", "logs/*.gz", "logs/c.txt"], &["a.gz", "b.gz", "c.txt"]),
    ] {
        assert_eq!(selected(&scratch, patterns).unwrap(), names, "{patterns:?}");
    }
}

#[test]
fn a_pattern_without_a_match_is_an_error() {
    let scratch = logs("none");
    for pattern in ["logs/*.zip", "none/*", "logs/a.gz/*", "logs/*.gz/*", "*/*/*/*/*", "logs/?"] {
        let why = selected(&scratch, &[pattern]).unwrap_err();
        assert!(why.contains(NOTHING), "{pattern}: {why}");
    }
    let root = Directory::open(&scratch.0).unwrap();
    let error = Selection::beneath(&root, &[rel("logs/*.gz")], Wording::Literal, false).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound, "it is a name here");
}

#[test]
fn a_name_with_these_characters_wins_over_the_pattern() {
    let scratch = logs("literal");
    for name in ["logs/*.gz", "logs/a?gz", "logs/[x]/*", "logs/x/y"] {
        scratch.write(name, b"content");
    }
    assert_eq!(selected(&scratch, &["logs/*.gz"]).unwrap(), ["*.gz"]);
    assert_eq!(selected(&scratch, &["logs/\\*.gz"]).unwrap(), ["*.gz"]);
    assert_eq!(selected(&scratch, &["logs/[x]/*"]).unwrap(), ["*"]);
    // In the middle, it wins only as a part of a path that exists.
    assert_eq!(selected(&scratch, &["logs/[x]/?"]).unwrap(), ["y"]);
}

#[test]
fn no_pattern_passes_a_link_and_a_link_that_matches_is_named() {
    let scratch = logs("links");
    scratch.write("outside/secret.gz", b"secret");
    symlink("../outside", scratch.path("logs/link")).unwrap();
    symlink("../outside/secret.gz", scratch.path("logs/link.gz")).unwrap();
    symlink("nowhere", scratch.path("logs/dangling.gz")).unwrap();
    assert!(selected(&scratch, &["logs/w*/secret.gz"]).unwrap_err().contains(NOTHING));
    assert!(selected(&scratch, &["logs/*/secret.gz"]).unwrap_err().contains(NOTHING));
    let names = selected(&scratch, &["logs/[dl]*.gz"]).unwrap();
    assert!(names.len() == 2 && names.iter().all(|name| name.contains("symbolic link")), "{names:?}");
    let root = Directory::open(&scratch.path("logs")).unwrap();
    let served = sent(Selection::beneath(&root, &[rel("link/*")], Wording::Patterns, false));
    assert!(served.is_err(), "not even behind a name: {served:?}");
}

#[test]
fn equal_names_from_different_directories_are_refused_and_one_entry_counts_once() {
    let scratch = logs("equal");
    scratch.write("logs/old/e.gz", b"content");
    assert!(selected(&scratch, &["logs/*/*.gz"]).unwrap_err().contains("two sources have the name e.gz"));
    assert_eq!(selected(&scratch, &["logs/a*", "logs/*a.gz"]).unwrap(), ["a.gz"]);
}

#[test]
fn incomplete_files_and_directories_without_rights_are_left_out() {
    as_root_and_as_ordinary_user(|| {
        let scratch = logs(&format!("rights-{}", geteuid().as_raw()));
        scratch.write("logs/.x.0123456789abcdef.fhpart", b"part");
        assert!(selected(&scratch, &["logs/.x*"]).unwrap_err().contains(NOTHING));
        let locked = scratch.path("logs/old");
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o0)).unwrap();
        let found = selected(&scratch, &["logs/*/*.gz"]);
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
        let all: &[&str] = if geteuid().is_root() { &["d.gz", "e.gz"] } else { &["e.gz"] };
        assert_eq!(found.unwrap(), all);
    });
}

#[test]
fn a_selection_knows_its_names() {
    let scratch = logs("paths");
    let root = Directory::open(&scratch.0).unwrap();
    let selection = Selection::beneath(&root, &[rel("logs/*/[de].gz")], Wording::Patterns, false).unwrap();
    assert_eq!((selection.len(), selection.is_empty()), (2, false));
    assert_eq!(selection.names().map(ToString::to_string).collect::<Vec<_>>(), ["d.gz", "e.gz"]);
}

#[test]
fn each_path_alone_has_its_own_result() {
    let scratch = logs("each");
    let root = Directory::open(&scratch.0).unwrap();
    let below = [rel("logs/*.gz"), rel("logs/*.zip"), rel("logs/c.txt")];
    let here: Vec<_> = below.iter().map(|path| scratch.path(&path.to_string())).collect();
    let places = Place::each(&root, &below).unwrap();
    let served: Vec<_> = Selection::each_at(&places, Wording::Patterns, false).map(sent).collect();
    assert_eq!(served, Selection::each_named(&here, Wording::Patterns, false).map(sent).collect::<Vec<_>>());
    assert_eq!((served[0].as_ref().unwrap().len(), served[2].as_ref().unwrap().len()), (2, 1));
    assert!(served[1].as_ref().unwrap_err().contains(NOTHING));
}

#[test]
fn matches_whose_path_is_too_long_are_left_out() {
    let scratch = Scratch::new("long-paths");
    let name = Component::new(&[b'n'; 200]).unwrap();
    let mut at = Directory::open(&scratch.0).unwrap();
    // 20 names and their separators have 4019 bytes.
    for _ in 0..20 {
        (at, _) = at.make_child(&name).unwrap();
    }
    for file in [&[b'a'; 76][..], &[b'b'; 77]] {
        at.make_file(&Component::new(file).unwrap()).unwrap();
    }
    let mut path = std::iter::repeat_n(name, 20).fold(RelPath::root(), |path, name| path.join(name).unwrap());
    path.push(Component::new(b"*").unwrap()).unwrap();
    let root = Directory::open(&scratch.0).unwrap();
    let selection = Selection::beneath(&root, &[path], Wording::Patterns, false).unwrap();
    assert_eq!(selection.len(), 1);
}

#[test]
fn directories_that_match_are_sent_for_recursive_requests() {
    let scratch = logs("directories");
    let root = Directory::open(&scratch.0).unwrap();
    let selection = Selection::beneath(&root, &[rel("logs/[on]*")], Wording::Patterns, true).unwrap();
    let mut source = DiskSource::of(selection);
    let mut paths = Vec::new();
    while let Next::Entry(entry) = source.next_entry(EntryId(0)) {
        source.close(EntryId(0));
        paths.push(entry.path.to_string());
    }
    assert_eq!(paths, ["new", "new/e.gz", "new/f", "old", "old/d.gz"]);
}
