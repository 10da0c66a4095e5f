//! Sources that send one part of the files.

use std::collections::BTreeMap;
use std::sync::Arc;

use farhaul_session::{Kept, NameListBuilder, Rules, Shard};

use super::*;

fn rules(index: u32, count: u32, keep: Kept) -> Rules {
    Rules { keep, shard: Some(Shard::new(index, count).unwrap()), ..Rules::default() }
}

/// What a source sends: paths, with `/` behind those of directories, the first name behind that of a link, and failures.
fn sent(mut source: DiskSource) -> Vec<String> {
    let mut names = Vec::new();
    let mut paths = BTreeMap::new();
    loop {
        let id = EntryId(paths.len() as u64);
        match source.next_entry(id) {
            Next::Entry(entry) => {
                let first = entry.properties.as_deref().and_then(|its| its.first_name);
                names.push(match (entry.kind, first) {
                    (EntryKind::Directory, _) => format!("{}/", entry.path),
                    (_, Some(first)) => format!("{} = {}", entry.path, paths[&first]),
                    _ => entry.path.to_string(),
                });
                paths.insert(id, entry.path);
            }
            Next::Skipped(path, failure) | Next::LeftOut(path, failure) => names.push(format!("{path}: {failure}")),
            Next::Pending => {}
            Next::End => return names,
        }
    }
}

/// What the parts of a copy send together, and that of the whole. Directories count once.
fn together(scratch: &Scratch, count: u32, keep: Kept) -> (Vec<String>, Vec<String>) {
    let source = || DiskSource::new(&[scratch.path("src")], true).unwrap();
    let mut whole = sent(source().under_rules(&Rules { keep, ..Rules::default() }).unwrap());
    let directories: Vec<String> = whole.iter().filter(|name| name.ends_with('/')).cloned().collect();
    let mut parts = directories.clone();
    for index in 1..=count {
        let part = sent(source().under_rules(&rules(index, count, keep)).unwrap());
        let (dirs, files): (Vec<String>, Vec<String>) = part.into_iter().partition(|name| name.ends_with('/'));
        assert_eq!(dirs, directories, "every part makes all directories");
        parts.extend(files);
    }
    parts.sort_unstable();
    whole.sort_unstable();
    (parts, whole)
}

fn tree(test: &str) -> Scratch {
    let scratch = Scratch::new(test);
    for number in 0..60 {
        scratch.write(&format!("src/{}/{number}", number % 7), b"content");
    }
    scratch.write("src/empty/below/one", b"");
    for number in 0..9 {
        symlink("0/0", scratch.path(&format!("src/link-{number}"))).unwrap();
    }
    scratch
}

#[test]
fn parts_send_every_entry_exactly_once() {
    let scratch = tree("shards");
    for count in [1, 2, 5, 200] {
        for keep in [Kept::default(), Kept::ALL] {
            let (parts, whole) = together(&scratch, count, keep);
            assert_eq!(parts, whole, "of {count}");
        }
    }
}

#[test]
fn all_names_of_a_file_are_in_one_part() {
    let scratch = tree("shards-links");
    for number in 0..20 {
        // The other names come before and behind, in several directories.
        for name in [format!("src/a{number}"), format!("src/3/z{number}"), format!("src/z{number}")] {
            std::fs::hard_link(scratch.path(&format!("src/1/{}", 1 + 7 * (number % 8))), scratch.path(&name)).unwrap();
        }
    }
    for count in [2, 3, 16] {
        let (parts, whole) = together(&scratch, count, Kept::ALL);
        assert_eq!(parts, whole, "of {count}");
        assert_eq!(whole.iter().filter(|name| name.contains(" = ")).count(), 60);
        // Without links to keep, each name is a file of its own.
        let (parts, whole) = together(&scratch, count, Kept::default());
        assert_eq!(parts, whole, "of {count}");
    }
}

#[test]
fn one_part_reports_a_listed_name_that_does_not_exist() {
    let scratch = tree("shards-missing");
    let names = ["1/1", "2/none", "3", "none/a", "none/b", "none/c", "1/1/within"];
    let mut list = NameListBuilder::default();
    names.iter().for_each(|name| list.push(&rel(name)).unwrap());
    let list = Arc::new(list.build());
    let by_names = |rules: &Rules| {
        let source = DiskSource::by_names(&scratch.path("src"), Arc::clone(&list), true).unwrap();
        sent(source.under_rules(rules).unwrap())
    };
    let mut whole: Vec<String> = by_names(&Rules::default()).into_iter().filter(|name| !name.ends_with('/')).collect();
    let parts = (1..=4).flat_map(|index| by_names(&rules(index, 4, Kept::default())));
    let mut parts: Vec<String> = parts.filter(|name| !name.ends_with('/')).collect();
    assert!(whole.iter().filter(|name| name.contains("not found")).count() >= 4, "{whole:?}");
    parts.sort_unstable();
    whole.sort_unstable();
    assert_eq!(parts, whole);
}
