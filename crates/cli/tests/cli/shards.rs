//! Copies that several runs share: `--shard`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::thread;

use serde_json::Value;

use crate::process::{Run, Scratch, Server, farhaul};
use crate::whole_trees::Far;

const PARTS: u64 = 3;

/// A tree of 40 files, two of them with a second name, and a link.
fn make_source(scratch: &Scratch, at: &str) -> String {
    for number in 0..40 {
        scratch.file(&format!("{at}/{}/file-{number}", number % 5), 100 + number);
    }
    let source = scratch.at(at);
    for number in [3, 4] {
        fs::hard_link(format!("{source}/{number}/file-{number}"), format!("{source}/0/other-{number}")).unwrap();
    }
    symlink("0/file-0", format!("{source}/link")).unwrap();
    source
}

/// The number that a record's field has in all runs together.
fn sum(runs: &[Run], field: &str) -> u64 {
    runs.iter().map(|run| run.end()[field].as_u64().unwrap()).sum()
}

/// Every path below a directory, and what it is: its content, its link, or a directory.
fn tree(at: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![at.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let is = if metadata.is_dir() {
                folders.push(path.clone());
                "directory".to_owned()
            } else if metadata.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else {
                format!("{} links, {:?}", metadata.nlink(), fs::read(&path).unwrap())
            };
            all.insert(path.strip_prefix(at).unwrap().display().to_string(), is);
        }
    }
    all
}

/// Every file came exactly once, and everything is there.
#[track_caller]
fn are_one_copy(runs: &[Run], scratch: &Scratch, source: &str, at: &str) {
    for run in runs {
        run.succeeds();
        assert!(run.end()["files"].as_u64().unwrap() > 2, "no part is empty");
    }
    // Two second names and a symbolic link.
    assert_eq!((sum(runs, "files"), sum(runs, "links")), (40, 3));
    assert_eq!(sum(runs, "directories"), 6 * PARTS);
    assert_eq!(tree(Path::new(&scratch.at(at))), tree(Path::new(source)));
}

fn part(index: u64) -> String {
    format!("{index}/{PARTS}")
}

#[test]
fn runs_at_one_time_push_a_tree_to_a_server_and_pull_it() {
    let scratch = Scratch::new();
    let source = make_source(&scratch, "root/src");
    let server = Server::begin(&["serve", "--root", &scratch.at("root")]);
    let place = |path: &str| format!("udt://{}/{path}", server.address);
    for (from, to, at) in
        [(source.clone(), place("pushed/"), "root/pushed"), (place("src"), scratch.at("pulled/"), "pulled")]
    {
        let run = |index| farhaul(&["copy", "--plain", "--json", "-a", "--shard", &part(index), &from, &to]);
        let runs: Vec<Run> = thread::scope(|scope| {
            let runs: Vec<_> = (1..=PARTS).map(|index| scope.spawn(move || run(index))).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        are_one_copy(&runs, &scratch, &source, &format!("{at}/src"));
        let start = runs[0].records().into_iter().find(|record| record["event"] == "start").unwrap();
        assert_eq!(start["settings"]["shard"], Value::from(part(1)));
    }
}

#[test]
fn the_parts_go_over_ssh_in_both_directions_and_between_two_hosts() {
    let far = Far::new();
    let scratch = &far.scratch;
    let source = make_source(scratch, "src");
    for (from, to, at) in [
        (source.clone(), format!("far:{}/", scratch.at("pushed")), "pushed"),
        (format!("far:{source}"), scratch.at("pulled/"), "pulled"),
        (format!("one:{source}"), format!("two:{}/", scratch.at("between")), "between"),
    ] {
        let run = |index| far.copies(&["--json", "-a", "--shard", &part(index)], &from, &to);
        let runs: Vec<Run> = (1..=PARTS).map(run).collect();
        are_one_copy(&runs, scratch, &source, &format!("{at}/src"));
    }
}

#[test]
fn a_part_that_is_copied_again_sends_nothing_and_touches_no_other_part() {
    let scratch = Scratch::new();
    let source = make_source(&scratch, "src");
    let server = Server::begin(&["serve", "--root", &scratch.dir("root")]);
    let to = format!("udt://{}/", server.address);
    let copy = |index| farhaul(&["copy", "--plain", "--json", "-a", "--shard", &part(index), &source, &to]);
    copy(1).succeeds();
    let first = tree(Path::new(&scratch.at("root/src")));
    let again = copy(1);
    assert_eq!((again.code, again.end()["bytes"].as_u64()), (0, Some(0)));
    assert_eq!(tree(Path::new(&scratch.at("root/src"))), first);
    let other = copy(2);
    assert!(other.end()["bytes"].as_u64() > Some(0));
    let both = tree(Path::new(&scratch.at("root/src")));
    assert!(first.iter().all(|(path, is)| both[path] == *is) && both.len() > first.len());
}

#[test]
fn parts_that_do_not_exist_and_copies_without_parts_are_usage_errors() {
    let to = "udt://127.0.0.1:9/x";
    let copy = |more: &[&str]| farhaul(&[&["copy", "--plain", "-r"], more].concat());
    for part in ["0/3", "4/3", "3", "1/0", "one/3"] {
        let run = copy(&["--shard", part, ".", to]);
        assert!(run.code == 2 && run.stderr.contains("write a part as I/N"), "{}", run.stderr);
    }
    copy(&["--shard", "1/3", "src", to]).fails(2, &["a directory as their target", "write TARGET/"]);
    copy(&["--shard", "1/3", "-", to]).fails(2, &["a stream has no parts"]);
    let run = copy(&["--shard", "1/3", "--delete", ".", "udt://127.0.0.1:9/x/"]);
    assert!(run.code == 2 && run.stderr.contains("--delete"), "{}", run.stderr);
    farhaul(&["copy", "--plain", "--shard", "1/3", "tsunami://127.0.0.1:9/x", "."])
        .fails(2, &["--shard has no effect on a copy from an original Tsunami server"]);
}
