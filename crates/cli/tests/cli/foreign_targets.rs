//! Copies to file systems with other habits than those of the source.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{XattrFlags, getxattr, setxattr};

use crate::foreign_disk::{Foreign, Habits};
use crate::process::{Run, farhaul};
use crate::requirement::runs;
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
            assert!(!Path::new(&manifest).exists(), "a copy that lacks files has no manifest");
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

/// Pushes the source to a disk with these habits.
fn pushed(far: &Far) -> Run {
    far.copies(&["-a"], &far.scratch.at("src"), &format!("far:{}/", far.scratch.at("disk")))
}

#[test]
fn a_hard_link_is_a_file_of_its_own_where_there_are_none() {
    let Some((far, _disk)) = foreign(Habits { hard_links: false, ..Habits::LIKE_EXT4 }) else { return };
    let scratch = &far.scratch;
    for (name, len) in [("src/large", 3_000_000), ("src/small", 10), ("src/empty", 0)] {
        scratch.file(name, len);
        fs::hard_link(scratch.at(name), scratch.at(&format!("{name}-link"))).unwrap();
    }
    fs::set_permissions(scratch.at("src/small"), fs::Permissions::from_mode(0o750)).unwrap();
    setxattr(scratch.at("src/small"), "user.note", b"kept", XattrFlags::empty()).unwrap();
    for _ in 0..2 {
        pushed(&far).succeeds();
        for name in ["large", "small", "empty"] {
            let at = |end: &str| scratch.at(&format!("disk/src/{name}{end}"));
            assert_eq!(fs::read(at("")).unwrap(), fs::read(at("-link")).unwrap(), "{name}");
            let [one, other] = ["", "-link"].map(|end| fs::metadata(at(end)).unwrap());
            assert_eq!((one.mode(), one.mtime_nsec()), (other.mode(), other.mtime_nsec()), "{name}");
        }
    }
    let mut value = [0; 10];
    assert_eq!(getxattr(scratch.at("disk/src/small-link"), "user.note", &mut value).unwrap(), 4);
    let inode = || fs::metadata(scratch.at("disk/src/large-link")).unwrap().ino();
    let before = inode();
    pushed(&far).succeeds();
    assert_eq!(inode(), before, "what is there is not copied again");
}

#[test]
fn an_entry_that_the_target_cannot_hold_fails_alone_and_says_why() {
    let habits = Habits { symlinks: false, refuses_names: true, ..Habits::LIKE_EXT4 };
    for error in [libc::ENOSPC, libc::E2BIG, libc::ERANGE] {
        let Some((far, _disk)) = foreign(Habits { attributes: Some((100, error)), ..habits }) else { return };
        let scratch = &far.scratch;
        for name in ["src/a:b", "src/dot.", "src/long", "src/other", "src/q?/x"] {
            scratch.file(name, 10);
        }
        setxattr(scratch.at("src/long"), "user.long", &[b'x'; 200], XattrFlags::empty()).unwrap();
        setxattr(scratch.at("src/other"), "user.short", b"short", XattrFlags::empty()).unwrap();
        symlink("other", scratch.at("src/link")).unwrap();
        let run = pushed(&far);
        run.fails(3, &["were not copied"]);
        for (name, words) in [
            ("a:b", "name refused: the file system takes no such name"),
            ("dot.", "name refused: the file system takes no such name"),
            ("q?", "name refused: the file system takes no such name"),
            ("long", "its extended attributes are longer than the file system can hold; -r leaves them out"),
            ("link", "the file system has no symbolic links; -r leaves them out"),
        ] {
            let is_said = |line: &str| line.contains(&format!("src/{name}: ")) && line.contains(words);
            assert!(run.stderr.lines().any(is_said), "{name}: {}", run.stderr);
        }
        assert_eq!(paths(&far, "disk/src"), ["disk/src/other"]);
    }
}

#[test]
fn used_up_inodes_are_no_full_disk_in_words() {
    let Some((far, _disk)) = foreign(Habits { inodes: 3, ..Habits::LIKE_EXT4 }) else { return };
    for name in ["src/a", "src/b", "src/c", "src/d"] {
        far.scratch.file(name, 10);
    }
    pushed(&far).fails(7, &["no space left", "the file system has no inode left"]);
}

#[test]
fn a_target_without_attributes_and_with_coarse_times_is_up_to_date_after_a_copy() {
    let habits = Habits { attributes: None, tick: Duration::from_secs(2), ..Habits::LIKE_EXT4 };
    let Some((far, _disk)) = foreign(habits) else { return };
    far.scratch.file("src/d/a", 10);
    pushed(&far).succeeds();
    pushed(&far).succeeds();
    assert_eq!(paths(&far, "disk/src"), ["disk/src/d", "disk/src/d/a"]);
}

#[test]
fn a_target_without_modes_takes_files_and_refuses_to_keep_permissions() {
    let Some((far, _disk)) = foreign(Habits { modes: false, ..Habits::LIKE_EXT4 }) else { return };
    far.scratch.file("src/d/a", 10);
    let to = format!("far:{}/new/", far.scratch.at("disk"));
    far.copies(&["-r"], &far.scratch.at("src"), &to).succeeds();
    assert_eq!(paths(&far, "disk/new/src"), ["disk/new/src/d", "disk/new/src/d/a"]);
    far.copies(&["-a", "--skip", "never"], &far.scratch.at("src"), &to).fails(3, &["cannot set"]);
}

#[test]
fn a_free_name_is_taken_without_steps_for_it_and_without_hard_links() {
    let Some((far, _disk)) = foreign(Habits { rename_flags: false, hard_links: false, ..Habits::LIKE_EXT4 }) else {
        return;
    };
    let scratch = &far.scratch;
    for name in ["disk/one", "disk/two"] {
        scratch.file(name, name.len());
    }
    let (ssh, disk) = (scratch.at("ssh"), scratch.at("disk"));
    let rename = |from: &str, to: &str| {
        let [from, to] = [from, to].map(|name| format!("far:{disk}/{name}"));
        farhaul(&["mv", "-n", "--ssh", &ssh, "--remote-path", env!("CARGO_BIN_EXE_farhaul"), &from, &to])
    };
    rename("one", "three").succeeds();
    rename("two", "three").fails(3, &["three"]);
    assert_eq!(scratch.names("disk"), ["three", "two"]);
}

#[test]
fn an_immutable_entry_is_named_with_what_permits_changes() {
    let far = Far::new();
    let scratch = &far.scratch;
    for name in ["src/fixed", "src/other", "disk/src/fixed", "disk/src/surplus"] {
        scratch.file(name, 10 + name.len());
    }
    let fixed = [scratch.at("disk/src/fixed"), scratch.at("disk/src/surplus")];
    let chattr = |how: &str| runs(&["chattr", how, &fixed[0], &fixed[1]], "it makes files immutable");
    let Some(()) = chattr("+i") else { return };
    let run = pushed(&far);
    fs::remove_file(scratch.at("src/fixed")).unwrap();
    let to = format!("far:{}/", scratch.at("disk"));
    let removal = far.copies(&["-a", "--delete"], &scratch.at("src"), &to);
    chattr("-i");
    run.fails(3, &["permission denied", "fixed is immutable or append-only there; chattr -i -a permits changes"]);
    removal.fails(3, &["cannot remove", "is immutable or append-only there"]);
}
