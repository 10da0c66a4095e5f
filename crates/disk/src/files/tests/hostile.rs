//! Links, races and names that must lead nowhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

#[test]
fn no_request_goes_through_a_link() {
    let mut world = World::new("links");
    let outside = world.base.join("outside");
    symlink(&outside, world.at("out")).unwrap();
    symlink(outside.join("victim"), world.at("file")).unwrap();
    world.write("inside", "inside");
    for existing in [Existing::Keep, Existing::Replace] {
        assert_eq!(code(world.put("out/new", existing, "x")), FailCode::SpecialFile);
        assert_eq!(code(world.put("out/new/deep", existing, "x")), FailCode::SpecialFile);
        assert_eq!(code(world.put("file", existing, "x")), FailCode::Exists);
        assert_eq!(code(world.rename("inside", "out/x", existing)), FailCode::SpecialFile);
        assert_eq!(code(world.rename("inside", "file", existing)), FailCode::Exists, "no link is replaced");
        assert_eq!(code(world.rename("out/victim", "x", existing)), FailCode::SpecialFile);
        assert_eq!(code(world.copy("inside", "file", existing)), FailCode::Exists);
    }
    assert_eq!(code(world.list("out", 9)), FailCode::SpecialFile);
    assert_eq!(code(world.files.open(&place("file"))), FailCode::SpecialFile);
    assert_eq!(code(world.files.open(&place("out/victim"))), FailCode::SpecialFile);
    assert_eq!(code(world.files.stat(&place("out/victim"))), FailCode::SpecialFile);
    assert_eq!(code(world.make("out/d", true)), FailCode::SpecialFile);
    assert_eq!(code(world.copy("file", "x", Existing::Keep)), FailCode::SpecialFile);
    assert_eq!(code(world.remove("out/victim", Removing::Either)), FailCode::SpecialFile);
    assert_eq!(world.remove("out", Removing::Tree(9)), Ok(1), "the link itself goes");
    assert_eq!(world.remove("file", Removing::File), Ok(1));
    assert_eq!((world.victim(), world.names("")), ("untouched".to_owned(), vec!["inside".to_owned()]));
}

#[test]
fn a_removal_takes_links_away_and_nothing_behind_them() {
    let mut world = World::new("removed-links");
    world.write("t/d/f", "x");
    symlink(world.base.join("outside"), world.at("t/d/out")).unwrap();
    symlink("..", world.at("t/d/up")).unwrap();
    assert_eq!(world.remove("t", Removing::Tree(9)), Ok(5));
    assert_eq!(world.victim(), "untouched");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let mut world = World::new("names");
    for name in ["..", "../outside/victim", "a/../../outside/victim", "a//b", "/../x", "a/./b"] {
        assert_eq!(code(world.files.stat(&place(name))), FailCode::NameRefused, "{name}");
        assert_eq!(code(world.put(name, Existing::Replace, "x")), FailCode::NameRefused, "{name}");
        assert_eq!(code(world.remove(name, Removing::Tree(9))), FailCode::NameRefused, "{name}");
    }
    assert_eq!(
        code(world.put(".a.0123456789abcdef.fhpart", Existing::Keep, "x")),
        FailCode::NameRefused,
        "as incomplete files"
    );
    world.write("a", "x");
    assert_eq!(code(world.rename("a", ".a.0123456789abcdef.fhpart", Existing::Keep)), FailCode::NameRefused);
    for name in [".a.0123456789abcdef.fhpart", ".a.0123456789abcdef.fhjournal", "d/.a.0123456789abcdef.fhpart/deep/d"] {
        assert_eq!(code(world.make(name, true)), FailCode::NameRefused, "{name}");
        assert_eq!(code(world.put(&format!("{name}/f"), Existing::Keep, "x")), FailCode::NameRefused, "{name}");
    }
    world.remove("d", Removing::Tree(9)).unwrap();
    assert!(ServicePath::new(b"a\0b").is_err() && ServicePath::new(&[b'a'; 4_097]).is_err());
    let long = "x".repeat(300);
    assert_eq!(code(world.put(&long, Existing::Keep, "x")), FailCode::NameRefused);
    world.put("na\u{202e}me\n", Existing::Keep, "x").unwrap();
    assert_eq!(world.list("", 9).unwrap(), ["a", "na\\u{202e}me\\n"]);
}

#[test]
fn directories_of_keys_and_those_above_them_are_neither_removed_nor_renamed_nor_replaced() {
    let mut world = World::new("kept");
    for directory in ["a/b", "empty"] {
        fs::create_dir_all(world.at(directory)).unwrap();
    }
    let held = HeldDirectories::below(Directory::open(&world.at("")).unwrap());
    held.hold([&*world.at("a/b")]);
    world.files = DiskFiles::new(Reach::Beneath(Arc::clone(held.root())), Unguarded);
    for kept in ["a/b", "a"] {
        for existing in [Existing::Keep, Existing::Replace] {
            assert_eq!(code(world.rename(kept, "away", existing)), FailCode::Refused, "{kept}");
        }
        assert_eq!(code(world.rename("empty", "a/b", Existing::Replace)), FailCode::Refused);
        for removing in [Removing::Tree(9), Removing::EmptyDirectory, Removing::Either] {
            assert_eq!(code(world.remove(kept, removing)), FailCode::Refused, "{kept}");
        }
    }
    world.rename("empty", "a/b/c", Existing::Keep).unwrap();
    assert_eq!(world.remove("a/b/c", Removing::Tree(9)), Ok(1), "what is in them may go");
    held.hold([]);
    assert_eq!(world.remove("a", Removing::Tree(9)), Ok(2));
}

#[test]
fn a_name_that_is_taken_at_the_last_moment_stays() {
    let mut world = World::new("exclusive");
    let file = world.begin("f", Existing::Keep).unwrap();
    world.write("f", "first");
    let failure = world.files.commit(file, &Digest::of(b"")).unwrap_err();
    assert_eq!((failure.code, world.read("f")), (FailCode::Exists, "first".to_owned()));
    // One of several that want a name gets it.
    let files: Vec<_> = (0..8).map(|_| world.begin("g", Existing::Keep).unwrap()).collect();
    let committed: Vec<_> = files.into_iter().map(|file| world.files.commit(file, &Digest::of(b""))).collect();
    assert_eq!(committed.iter().filter(|result| result.is_ok()).count(), 1);
    let file = world.begin("h", Existing::Replace).unwrap();
    symlink(world.base.join("outside/victim"), world.at("h")).unwrap();
    assert_eq!(world.files.commit(file, &Digest::of(b"")).unwrap_err().code, FailCode::Exists, "no link is replaced");
    assert_eq!((world.names(""), world.victim()), (["f", "g", "h"].map(String::from).to_vec(), "untouched".to_owned()));
}

/// A directory and a link to another one change places all the time.
#[test]
fn a_racer_that_swaps_a_directory_for_a_link_gains_nothing() {
    let mut world = World::new("races");
    world.write("d/f", "inside");
    symlink(world.base.join("outside"), world.at("link")).unwrap();
    let (base, over) = (world.at(""), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let swap = |one: &Path, other: &Path| {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, other, flags).unwrap();
            };
            while !over.load(Ordering::Acquire) {
                swap(&base.join("d"), &base.join("link"));
            }
        });
        let (mut through, mut refused) = (0, 0);
        for round in 0..100_000 {
            let name = format!("d/new{round}");
            match world.put(&name, Existing::Keep, "x") {
                Ok(()) => through += 1,
                Err(_) => refused += 1,
            }
            let _ = world.put("d/victim", Existing::Replace, "overwritten");
            let _ = world.remove("d/victim", Removing::Either);
            let _ = world.rename("d/f", "d/victim", Existing::Replace);
            let _ = world.rename("d/victim", "d/f", Existing::Replace);
            if let Ok(mut open) = world.files.open(&place("d/victim")) {
                let mut out = [0; 20];
                let len = world.files.read(&mut open, 0, &mut out).unwrap();
                assert_ne!(&out[..len], b"untouched");
            }
            if round >= 500 && through > 0 && refused > 0 {
                break;
            }
        }
        over.store(true, Ordering::Release);
        assert!(through > 0 && refused > 0, "{through} {refused}");
    });
    let outside = fs::read_dir(world.base.join("outside")).unwrap().count();
    assert_eq!((world.victim(), outside), ("untouched".to_owned(), 1));
}
