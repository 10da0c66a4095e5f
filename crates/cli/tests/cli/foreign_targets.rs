//! Copies to file systems with other habits than those of the source.

use std::fs;
use std::os::unix::fs::symlink;

use crate::foreign_disk::{Foreign, Habits};
use crate::whole_trees::Far;

const IGNORES_CASE: Habits = Habits { ignores_case: true, ..Habits::LIKE_EXT4 };
/// The kinds that ignore case: as a local disk, and as a network file system without inode numbers.
const IGNORING_CASE: [Habits; 2] =
    [IGNORES_CASE, Habits { numbers_spellings: true, rename_flags: false, ..IGNORES_CASE }];

/// A host with a source `src`, and a disk with these habits that is empty.
fn foreign(habits: Habits) -> Option<(Far, Foreign)> {
    let far = Far::new();
    let disk = Foreign::mount(far.scratch.dir("disk"), habits)?;
    far.scratch.dir("src");
    Some((far, disk))
}

/// All paths below a directory, in order.
fn paths(far: &Far, directory: &str) -> Vec<String> {
    let mut all = Vec::new();
    for name in far.scratch.names(directory) {
        let path = format!("{directory}/{name}");
        if fs::symlink_metadata(far.scratch.at(&path)).unwrap().is_dir() {
            all.extend(paths(far, &path));
        }
        all.push(path);
    }
    all.sort();
    all
}

#[test]
fn what_was_renamed_by_case_alone_survives_delete_and_gets_its_new_spelling() {
    for habits in IGNORING_CASE {
        let Some((far, _disk)) = foreign(habits) else { return };
        let scratch = &far.scratch;
        for name in ["src/a.txt", "src/d/inner/x", "src/changed"] {
            scratch.file(name, 10);
        }
        let push = |options: &[&str]| {
            far.copies(
                &[&["-a", "--delete"], options].concat(),
                &scratch.at("src"),
                &format!("far:{}/", scratch.at("disk")),
            )
        };
        push(&[]).succeeds();
        scratch.file("disk/src/d/surplus", 1);
        for (from, to) in [("a.txt", "A.txt"), ("d", "D"), ("changed", "Changed")] {
            fs::rename(scratch.at(&format!("src/{from}")), scratch.at(&format!("src/{to}"))).unwrap();
        }
        scratch.file("src/Changed", 20);
        let dry = push(&["-n"]);
        dry.succeeds();
        assert!(!dry.stderr.contains("a.txt") && dry.stderr.contains("delete     src/D/surplus"), "{}", dry.stderr);
        let run = push(&["--json"]);
        run.succeeds();
        assert_eq!(run.end()["deleted"], 1);
        assert_eq!(
            paths(&far, "disk/src"),
            ["disk/src/A.txt", "disk/src/Changed", "disk/src/D", "disk/src/D/inner", "disk/src/D/inner/x"]
        );
        assert_eq!(fs::metadata(scratch.at("disk/src/Changed")).unwrap().len(), 20);
    }
}

#[test]
fn two_names_that_are_one_to_the_target_are_a_failure_that_names_both() {
    for habits in IGNORING_CASE {
        let Some((far, _disk)) = foreign(habits) else { return };
        let scratch = &far.scratch;
        for name in ["src/README", "src/readme", "src/Dir/a", "src/dir/b", "src/H", "src/J"] {
            fs::create_dir_all(scratch.at(name)).unwrap();
            fs::remove_dir(scratch.at(name)).unwrap();
            fs::write(scratch.at(name), name).unwrap();
        }
        symlink("one", scratch.at("src/LINK")).unwrap();
        symlink("two", scratch.at("src/link")).unwrap();
        fs::hard_link(scratch.at("src/H"), scratch.at("src/h")).unwrap();
        fs::hard_link(scratch.at("src/J"), scratch.at("src/k")).unwrap();
        let (source, disk, manifest) = (scratch.at("src"), scratch.at("disk"), scratch.at("manifest"));
        let options = ["-a", "--delete", "--verify", "disk", "--manifest", &manifest];
        let copies = [(source.clone(), format!("far:{disk}/")), (format!("far:{source}"), format!("{disk}/"))];
        // A second copy finds the entries of the first.
        for (from, to) in [&copies[0], &copies[0], &copies[1]] {
            let run = far.copies(&options, from, to);
            run.fails(3, &["another entry of this copy"]);
            for (name, other) in [("readme", "README"), ("dir", "Dir"), ("link", "LINK"), ("h", "H")] {
                let words = format!("takes {name} for the name of {other}, another entry of this copy");
                assert!(run.stderr.contains(&words), "{words}: {}", run.stderr);
            }
            let there = ["Dir", "Dir/a", "H", "J", "LINK", "README", "k"].map(|name| format!("disk/src/{name}"));
            assert_eq!(paths(&far, "disk/src"), there);
            for name in ["README", "Dir/a", "H"] {
                assert_eq!(fs::read_to_string(scratch.at(&format!("disk/src/{name}"))).unwrap(), format!("src/{name}"));
            }
            assert_eq!(fs::read_link(scratch.at("disk/src/LINK")).unwrap().to_str(), Some("one"));
            let listed = fs::read_to_string(&manifest).unwrap();
            assert!(listed.contains("README") && !listed.contains("readme"), "{listed}");
        }
    }
}

#[test]
fn a_target_that_stores_other_forms_of_characters_is_no_different_to_delete() {
    let habits = Habits { decomposes: true, ..Habits::LIKE_EXT4 };
    for habits in [habits, Habits { numbers_spellings: true, ..habits }] {
        let Some((far, _disk)) = foreign(habits) else { return };
        let scratch = &far.scratch;
        for name in ["src/\u{e9}/\u{fc}", "src/\u{e9}/z", "src/\u{e0}"] {
            scratch.file(name, 10);
        }
        let push = |options: &[&str]| {
            let to = format!("far:{}/", scratch.at("disk"));
            far.copies(&[&["-a", "--delete", "--json"], options].concat(), &scratch.at("src"), &to)
        };
        push(&[]).succeeds();
        fs::remove_file(scratch.at("src/\u{e9}/z")).unwrap();
        let run = push(&[]);
        run.succeeds();
        assert_eq!((&run.end()["kept"], &run.end()["deleted"]), (&2.into(), &1.into()));
        assert_eq!(paths(&far, "disk/src").len(), 3);
        // Both forms in one directory are one name there.
        fs::write(scratch.at("src/a\u{300}"), "other").unwrap();
        push(&[]).fails(3, &["another entry of this copy, because it ignores case or form"]);
    }
}
