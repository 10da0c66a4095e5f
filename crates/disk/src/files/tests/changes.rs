//! Writing, renaming, removing and copying.

use super::*;

#[test]
fn a_put_appears_whole_or_not_at_all() {
    let mut world = World::new("puts");
    world.put("new/deep/f", Existing::Keep, "content").unwrap();
    assert_eq!(world.read("new/deep/f"), "content");
    world.write("old", "old");
    fs::set_permissions(world.at("old"), fs::Permissions::from_mode(0o604)).unwrap();
    let mut begun = world.begin("old", Existing::Replace).unwrap();
    world.files.write(&mut begun, b"half").unwrap();
    assert_eq!(world.names("").len(), 3, "and a temporary file");
    drop(begun);
    assert_eq!((world.names(""), world.read("old")), (vec!["new".to_owned(), "old".to_owned()], "old".to_owned()));
    world.put("old", Existing::Replace, "other").unwrap();
    let mode = fs::metadata(world.at("old")).unwrap().permissions().mode() & 0o777;
    assert_eq!((world.read("old"), mode), ("other".to_owned(), 0o604), "a file hands its permissions on");
    assert_eq!(code(world.put("old", Existing::Keep, "x")), FailCode::Exists);
    assert_eq!(code(world.put("new", Existing::Replace, "x")), FailCode::Exists);
    assert_eq!(code(world.put("old/below", Existing::Keep, "x")), FailCode::NotDirectory);
    let needed = Put {
        place: place("huge"),
        size: Some(u64::MAX / 2),
        existing: Existing::Keep,
        parents: true,
        mode: 0o666,
        mtime: None,
    };
    assert_eq!(code(world.files.create(&needed)), FailCode::NoSpace);
    assert_eq!(world.names(""), ["new", "old"]);
}

#[test]
fn a_put_may_need_existing_directories_and_sets_mode_and_time() {
    let mut world = World::new("metadata");
    let mtime = Some(Mtime { seconds: 1_000_000_000, nanos: 123_456_789 });
    let put = |name: &str| Put {
        place: place(name),
        size: None,
        existing: Existing::Keep,
        parents: false,
        mode: 0o640,
        mtime,
    };
    assert_eq!(code(world.files.create(&put("missing/f"))), FailCode::NotFound);
    let file = world.files.create(&put("f")).unwrap();
    world.files.commit(file, &Digest::of(b"")).unwrap();
    let info = world.files.stat(&place("f")).unwrap();
    assert_eq!((Some(info.mtime), info.mode), (mtime, 0o640 & !super::super::super::umask()));
}

#[test]
fn names_are_given_to_files_and_directories() {
    let mut world = World::new("renames");
    world.write("a", "a");
    world.write("b", "b");
    world.write("d/x", "x");
    fs::create_dir(world.at("empty")).unwrap();
    assert_eq!(code(world.rename("a", "b", Existing::Keep)), FailCode::Exists);
    world.rename("a", "b", Existing::Replace).unwrap();
    assert_eq!(world.read("b"), "a");
    world.rename("b", "made/for/b", Existing::Keep).unwrap();
    assert_eq!(code(world.rename("d", "empty", Existing::Keep)), FailCode::Exists);
    world.rename("d", "empty", Existing::Replace).unwrap();
    assert_eq!(world.read("empty/x"), "x");
    fs::create_dir(world.at("d2")).unwrap();
    assert_eq!(code(world.rename("d2", "empty", Existing::Replace)), FailCode::NotEmpty);
    assert_eq!(code(world.rename("d2", "empty/x", Existing::Replace)), FailCode::Exists, "no file for a directory");
    assert_eq!(code(world.rename("empty/x", "d2", Existing::Replace)), FailCode::Exists, "no directory for a file");
    assert_eq!(code(world.rename("empty", "empty/x/in", Existing::Keep)), FailCode::NotDirectory);
    assert_eq!(code(world.rename("empty", "empty/in", Existing::Keep)), FailCode::NameRefused, "into itself");
    assert_eq!(code(world.rename("none", "other/none", Existing::Keep)), FailCode::NotFound);
    assert!(!world.at("other").exists() && !world.at("empty/in").exists(), "nothing is made for nothing");
    world.rename("d2", "d2", Existing::Keep).unwrap();
    assert_eq!(world.names(""), ["d2", "empty", "made"]);
}

#[test]
fn trees_of_any_size_are_removed_up_to_the_bound() {
    let mut world = World::new("removals");
    for number in 0..700 {
        world.write(&format!("t/{}/{number}", number % 3), "x");
    }
    let deep = "d/".repeat(300);
    fs::create_dir_all(world.at(&format!("t/{deep}"))).unwrap();
    world.write("t/.a.0123456789abcdef.fhpart", "part");
    assert_eq!(code(world.remove("t", Removing::EmptyDirectory)), FailCode::NotEmpty);
    assert_eq!(code(world.remove("t", Removing::Either)), FailCode::NotEmpty);
    assert_eq!(code(world.remove("t", Removing::File)), FailCode::IsDirectory);
    let few = world.remove("t", Removing::Tree(100)).unwrap_err();
    assert!(few.code == FailCode::Limit && few.message.contains("100 entries"), "{few}");
    let all = 1 + 3 + 700 + 300 + 1;
    assert_eq!(world.remove("t", Removing::Tree(u64::MAX)), Ok(all - 100));
    assert!(!world.at("t").exists());
    world.write("f", "x");
    assert_eq!(code(world.remove("f", Removing::EmptyDirectory)), FailCode::NotDirectory);
    assert_eq!(world.remove("f", Removing::Tree(1)), Ok(1));
    fs::create_dir(world.at("e")).unwrap();
    assert_eq!(world.remove("e", Removing::Either), Ok(1));
    assert_eq!(code(world.remove("e", Removing::Either)), FailCode::NotFound);
    assert_eq!(code(world.remove("", Removing::Tree(9))), FailCode::NameRefused, "the root stays");
}

#[test]
fn a_file_is_copied_on_this_host() {
    let mut world = World::new("copies");
    let content = "0123456789".repeat(200_000);
    world.write("f", &content);
    fs::set_permissions(world.at("f"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(world.copy("f", "to/g", Existing::Keep), Ok(2_000_000));
    assert_eq!(world.read("to/g"), content);
    assert_eq!(fs::metadata(world.at("to/g")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(code(world.copy("f", "to/g", Existing::Keep)), FailCode::Exists);
    world.write("to/g", "old");
    assert_eq!(world.copy("f", "to/g", Existing::Replace), Ok(2_000_000));
    assert_eq!(code(world.copy("to", "x", Existing::Keep)), FailCode::IsDirectory);
    let mut begun = world.files.copy(&moving("f", "changed", Existing::Keep)).unwrap();
    assert_eq!(world.files.step(&mut begun), Ok(Progressing::More));
    fs::write(world.at("f"), "other").unwrap();
    let last = std::iter::repeat_with(|| world.files.step(&mut begun)).find(|step| *step != Ok(Progressing::More));
    assert_eq!(last.unwrap().unwrap_err().code, FailCode::SourceChanged);
    drop(begun);
    assert_eq!(world.names(""), ["f", "to"]);
}

#[test]
fn directories_are_made_with_their_parents_if_wanted() {
    let mut world = World::new("directories");
    assert_eq!(code(world.make("a/b", false)), FailCode::NotFound);
    assert_eq!(
        (world.make("a/b", true), world.make("a/b", true), world.make("", true)),
        (Ok(true), Ok(false), Ok(false))
    );
    assert_eq!(code(world.make("a/b", false)), FailCode::Exists);
    world.write("f", "x");
    assert_eq!(code(world.make("f", true)), FailCode::Exists);
    assert_eq!(code(world.make("f/d", true)), FailCode::NotDirectory);
    assert_eq!(
        fs::metadata(world.at("a")).unwrap().permissions().mode() & 0o777,
        0o777 & !super::super::super::umask()
    );
}
