//! Each kind of request, and its answer.

use super::*;
use crate::capabilities::Capabilities;
use crate::failure::FailCode;
use crate::field::Fields;
use crate::handshake::Open;
use crate::manifest::{Mtime, Owner, Properties};

fn code(answer: Result<Answer, Failure>) -> FailCode {
    answer.unwrap_err().code
}

#[test]
fn every_request_survives_encoding() {
    let mtime = Some(Mtime { seconds: -5, nanos: 999_999_999 });
    let full =
        Put { place: place("a/b"), size: Some(7), existing: Existing::Replace, parents: false, mode: 0o7, mtime };
    let both = Move { parents: true, ..moving("a", "b/c", Existing::Replace) };
    for request in [
        FileRequest::Stat(place("")),
        FileRequest::List { place: place("d"), cursor: vec![0, 255], most: 9 },
        read("a", ReadFrom::Start(u64::MAX), 1),
        read("a", ReadFrom::End(3), u64::MAX),
        FileRequest::Put(full),
        put("\u{202e}", None, Existing::Keep),
        FileRequest::MakeDirectory(MakeDirectory { place: place("d"), parents: true }),
        FileRequest::Remove(Remove { place: place("d"), removing: Removing::Tree(9) }),
        FileRequest::Remove(Remove { place: place("d"), removing: Removing::EmptyDirectory }),
        FileRequest::Rename(both.clone()),
        FileRequest::Copy(both),
        FileRequest::Digest(place("a")),
        FileRequest::ListTree(ListTree { place: place("d"), depth: 2, from: TreeCursor::default(), most: 9 }),
        FileRequest::ListTree(ListTree {
            place: place(""),
            depth: u32::MAX,
            from: TreeCursor { path: path("a/b"), name: vec![0, 255] },
            most: u32::MAX,
        }),
    ] {
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        let decoded = FileRequest::decode(bytes[0], &mut Fields::new(&bytes[1..]));
        assert_eq!(decoded, Ok(Some(request.clone())));
        for len in 0..bytes.len() - 1 {
            assert!(FileRequest::decode(bytes[0], &mut Fields::new(&bytes[1..1 + len])).is_err(), "a part");
        }
        bytes.push(0);
        assert!(FileRequest::decode(bytes[0], &mut Fields::new(&bytes[1..])).is_err(), "{request:?} and more");
    }
    assert_eq!(FileRequest::decode(99, &mut Fields::new(b"anything")), Ok(None));
}

#[test]
fn ranges_begin_anywhere_and_end_with_the_file() {
    let mut pair = Pair::new(&[("d/", 0), ("d/f", 200_000), ("empty", 0)]);
    let whole = pattern(200_000);
    for (from, length, expected) in [
        (ReadFrom::Start(0), u64::MAX, 0..200_000),
        (ReadFrom::Start(70_000), 100_000, 70_000..170_000),
        (ReadFrom::Start(199_999), 5, 199_999..200_000),
        (ReadFrom::Start(500_000), 5, 200_000..200_000),
        (ReadFrom::End(10), 4, 199_990..199_994),
        (ReadFrom::End(999_999), 3, 0..3),
        (ReadFrom::Start(3), 0, 3..3),
    ] {
        let range = pair.ranged(&read("d/f", from, length));
        assert_eq!(range.bytes, whole[expected.clone()], "{from:?} {length}");
        assert_eq!((range.at_end, range.version.stamp.size), (expected.end == 200_000, 200_000), "{from:?}");
    }
    assert_eq!(pair.ranged(&read("empty", ReadFrom::Start(0), 9)).bytes, b"");
    assert_eq!(code(pair.asked(&read("d", ReadFrom::Start(0), 9))), FailCode::IsDirectory);
    assert_eq!(code(pair.asked(&read("none", ReadFrom::Start(0), 9))), FailCode::NotFound);
    assert_eq!(pair.asked(&FileRequest::Digest(place("d/f"))), written(200_000, &whole));
    pair.ends();
}

#[test]
fn a_file_that_changes_while_it_is_read_says_so() {
    let mut pair = Pair::new(&[("f", 10)]);
    assert!(!pair.ranged(&read("f", ReadFrom::Start(0), 10)).changed);
    let mut files = pair.ends();
    files.changing.insert(path("f"));
    let mut pair = Pair::new(&[]);
    pair.server = {
        let mut client = FileClient::connect();
        let (_, open) = Acceptor::new().handle_received(client.poll_write()).unwrap();
        client.finish();
        FileServer::answer(&open.unwrap(), files)
    };
    assert!(pair.ranged(&read("f", ReadFrom::Start(0), 10)).changed);
    assert_eq!(code(pair.asked(&FileRequest::Digest(place("f")))), FailCode::SourceChanged);
}

#[test]
fn pages_go_on_behind_their_cursor_whatever_changes_meanwhile() {
    let names: Vec<String> = (0..25).map(|number| format!("d/{number:02}")).collect();
    let mut entries: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 3)).collect();
    entries.extend([("d/", 0), ("d/05/", 0), ("d/05/deep", 1)]);
    let mut pair = Pair::new(&entries);
    let (mut cursor, mut seen) = (Vec::new(), Vec::new());
    for page in 0.. {
        let list = FileRequest::List { place: place("d"), cursor: cursor.clone(), most: 7 };
        let Ok(Answer::Page(ListPage { entries, next })) = pair.asked(&list) else { panic!() };
        seen.extend(entries.iter().map(|entry| entry.name.to_string()));
        // The entry of the cursor goes, and one before it comes.
        let gone = Remove { place: place(&format!("d/{}", seen.last().unwrap())), removing: Removing::Either };
        assert_eq!(pair.asked(&FileRequest::Remove(gone)), Ok(Answer::Removed(1)));
        let new = FileRequest::MakeDirectory(MakeDirectory { place: place(&format!("d/!{page}")), parents: false });
        assert_eq!(pair.asked(&new), Ok(Answer::Made(true)));
        cursor = next;
        if cursor.is_empty() {
            break;
        }
    }
    assert_eq!(seen, (0..25).map(|number| format!("{number:02}")).collect::<Vec<_>>());
    let list = FileRequest::List { place: place("none"), cursor: Vec::new(), most: 7 };
    assert_eq!(code(pair.asked(&list)), FailCode::NotFound);
}

#[test]
fn a_put_replaces_only_if_it_may_and_makes_its_parents() {
    let mut pair = Pair::new(&[("d/", 0), ("old", 5)]);
    let bytes = pattern(300_000);
    assert_eq!(pair.puts(&put("new/deep/f", Some(300_000), Existing::Keep), &bytes), written(300_000, &bytes));
    assert_eq!(pair.puts(&put("unknown", None, Existing::Keep), &bytes), written(300_000, &bytes));
    assert_eq!(pair.puts(&put("empty", None, Existing::Keep), b""), written(0, b""));
    assert_eq!(code(pair.puts(&put("old", None, Existing::Keep), &bytes)), FailCode::Exists);
    assert_eq!(code(pair.puts(&put("d", None, Existing::Replace), &bytes)), FailCode::Exists);
    assert_eq!(pair.puts(&put("old", None, Existing::Replace), b"new"), written(3, b"new"));
    let files = pair.ends();
    assert_eq!(files.tree[&path("new/deep/f")].content, bytes);
    assert_eq!(files.tree[&path("old")].content, b"new");
    assert_eq!(files.tree[&path("new/deep/f")].mode, 0o640);
}

#[test]
fn a_put_of_another_length_than_announced_leaves_nothing() {
    let mut pair = Pair::new(&[]);
    assert_eq!(code(pair.puts(&put("f", Some(9), Existing::Keep), b"ten bytes!")), FailCode::SourceChanged);
    assert_eq!(code(pair.puts(&put("f", Some(9), Existing::Keep), b"less")), FailCode::SourceChanged);
    assert!(pair.ends().tree.is_empty());
}

#[test]
fn owners_and_times_of_change_are_told_to_clients_that_can_read_them() {
    let owner = Owner { uid: 1000, gid: 4, user: b"me".to_vec(), group: Vec::new() };
    let properties = Some(Properties { owner: Some(owner.clone()), ..Properties::default() });
    let ctime = Some(Mtime { seconds: 1, nanos: 5 });
    for (capabilities, told, ctime) in [
        (Capabilities::OWNERS.and(Capabilities::CHANGE_TIMES), Some(owner.clone()), ctime),
        (Capabilities::OWNERS, Some(owner), None),
        (Capabilities::CHANGE_TIMES, None, ctime),
        (Capabilities::NONE, None, None),
    ] {
        let mut pair = Pair::new(&[]);
        let mut files = tree(&[("d/", 0), ("d/a", 5), ("d/b", 6)]);
        files.get_mut(&path("d/a")).unwrap().properties.clone_from(&properties);
        let (_, open) = Acceptor::new().handle_received(FileClient::connect().poll_write()).unwrap();
        let open = Open { capabilities, ..open.unwrap() };
        pair.server = FileServer::answer(&open, MemoryFiles::new(files));
        let list = FileRequest::List { place: place("d"), cursor: Vec::new(), most: 9 };
        let Ok(Answer::Page(page)) = pair.asked(&list) else { panic!() };
        let owners: Vec<_> = page.entries.into_iter().map(|entry| (entry.info.owner, entry.info.ctime)).collect();
        assert_eq!(owners, [(told.clone(), ctime), (None, ctime)]);
        assert_eq!(pair.ranged(&read("d/a", ReadFrom::Start(0), 9)).version.ctime, ctime);
        let Ok(Answer::Info(info)) = pair.asked(&FileRequest::Stat(place("d/a"))) else { panic!() };
        assert_eq!((info.owner, info.ctime, info.mode), (told, ctime, 0o644));
    }
}

#[test]
fn a_full_disk_fails_one_put_and_nothing_else() {
    let mut pair = Pair::new(&[("f", 10)]);
    let mut files = MemoryFiles::new(tree(&[("f", 10)]));
    files.room = Some(100_000);
    let (_, open) = Acceptor::new().handle_received(FileClient::connect().poll_write()).unwrap();
    pair.server = FileServer::answer(&open.unwrap(), files);
    let bytes = pattern(3_000_000);
    assert_eq!(code(pair.puts(&put("big", Some(3_000_000), Existing::Keep), &bytes)), FailCode::NoSpace);
    assert_eq!(pair.ranged(&read("f", ReadFrom::Start(0), 99)).bytes, pattern(10));
    // The failed put has given its place back.
    for _ in 0..2 * MAX_REQUESTS {
        assert_eq!(code(pair.puts(&put("big", None, Existing::Keep), &bytes[..200_000])), FailCode::NoSpace);
    }
    assert_eq!(pair.ends().tree.len(), 1);
}

#[test]
fn names_are_given_removed_and_copied() {
    let mut pair = Pair::new(&[("d/", 0), ("d/a", 5), ("d/b", 6), ("f", 7)]);
    let rename = |from, to, existing| FileRequest::Rename(moving(from, to, existing));
    assert_eq!(pair.asked(&rename("f", "d/c", Existing::Keep)), Ok(Answer::Renamed));
    assert_eq!(code(pair.asked(&rename("d/c", "d/a", Existing::Keep))), FailCode::Exists);
    assert_eq!(pair.asked(&rename("d/c", "d/a", Existing::Replace)), Ok(Answer::Renamed));
    assert_eq!(pair.asked(&rename("d", "e", Existing::Keep)), Ok(Answer::Renamed));
    let copy = |from, to| FileRequest::Copy(moving(from, to, Existing::Keep));
    assert_eq!(pair.asked(&copy("e/a", "copy")), written(7, &pattern(7)));
    assert_eq!(code(pair.asked(&copy("e/a", "copy"))), FailCode::Exists);
    assert_eq!(code(pair.asked(&copy("e", "f"))), FailCode::IsDirectory);
    let remove = |name: &str, removing| FileRequest::Remove(Remove { place: place(name), removing });
    assert_eq!(code(pair.asked(&remove("e", Removing::File))), FailCode::IsDirectory);
    assert_eq!(code(pair.asked(&remove("e", Removing::EmptyDirectory))), FailCode::NotEmpty);
    assert_eq!(code(pair.asked(&remove("copy", Removing::EmptyDirectory))), FailCode::NotDirectory);
    assert_eq!(code(pair.asked(&remove("e", Removing::Tree(2)))), FailCode::Limit);
    assert_eq!(pair.asked(&remove("e", Removing::Tree(2))), Ok(Answer::Removed(1)));
    assert_eq!(pair.ends().tree.keys().map(ToString::to_string).collect::<Vec<_>>(), ["copy"]);
}
