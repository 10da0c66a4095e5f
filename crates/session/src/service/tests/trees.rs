//! Listings of trees.

use super::*;
use crate::failure::FailCode;
use crate::frame_kind::FrameKind;
use crate::framing::put_frame;
use crate::handshake::Accept;

fn list(at: &str, depth: u32, from: TreeCursor, most: u32) -> FileRequest {
    FileRequest::ListTree(ListTree { place: place(at), depth, from, most })
}

impl Pair {
    /// The whole listing, with the number of requests that it took. Directories end in `/`, and those that failed in `!`.
    fn lists(&mut self, at: &str, depth: u32, most: u32) -> (Vec<String>, usize) {
        let (mut all, mut from, mut last) = (Vec::new(), TreeCursor::default(), None);
        for requests in 1.. {
            let page = match self.asked(&list(at, depth, from, most)) {
                Ok(Answer::Tree(page)) => page,
                other => panic!("{other:?}"),
            };
            for ListedDirectory { path, entries, failure } in page.directories {
                if last.replace(path.clone()).is_none_or(|last| last != path) {
                    all.push(format!("{path}/"));
                }
                all.extend(entries.iter().map(|entry| format!("{path}:{}", entry.name)));
                all.extend(failure.map(|failure| format!("{path}! {failure}")));
            }
            match page.next {
                Some(next) => from = next,
                None => return (all, requests),
            }
        }
        unreachable!()
    }
}

/// Twelve directories with twelve files and twelve directories each, of which the last one has a file.
fn wide() -> Vec<String> {
    let mut names = Vec::new();
    for outer in 0..12 {
        names.push(format!("top/{outer:02}/"));
        for inner in 0..12 {
            names.extend([format!("top/{outer:02}/d{inner:02}/"), format!("top/{outer:02}/f{inner:02}")]);
        }
        names.push(format!("top/{outer:02}/d11/last"));
    }
    names
}

fn pair_of(names: &[String]) -> Pair {
    let entries: Vec<_> = names.iter().map(|name| (name.as_str(), 1)).collect();
    Pair::new(&[&[("top/", 0)], &*entries].concat())
}

/// What a client sees that lists one directory after the other.
fn by_directories(pair: &mut Pair, at: &str, depth: usize) -> Vec<String> {
    let (mut all, mut left) = (Vec::new(), vec![RelPath::root()]);
    while let Some(path) = left.pop() {
        let whole = if path.is_root() { at.to_owned() } else { format!("{at}/{path}") };
        let request = FileRequest::List { place: place(&whole), cursor: Vec::new(), most: 1024 };
        let Ok(Answer::Page(page)) = pair.asked(&request) else { panic!("{whole}") };
        all.push(format!("{path}/"));
        all.extend(page.entries.iter().map(|entry| format!("{path}:{}", entry.name)));
        let below = page.entries.iter().rev().filter(|entry| entry.info.kind == NodeKind::Directory);
        let below = below.map(|entry| path.join(entry.name.clone()).unwrap());
        left.extend(below.filter(|path| path.components().len() < depth));
    }
    all
}

#[test]
fn one_request_lists_what_one_for_each_directory_does() {
    let mut pair = pair_of(&wide());
    for (at, depth) in [("top", usize::MAX), ("top", 1), ("top", 2), ("top/03", 7), ("top/03/d11", 1)] {
        let (listed, requests) = pair.lists(at, u32::try_from(depth).unwrap_or(u32::MAX), 1 << 20);
        assert_eq!((listed, requests), (by_directories(&mut pair, at, depth), 1), "{at} {depth}");
    }
    pair.ends();
}

#[test]
fn a_listing_goes_on_behind_any_record_within_the_bytes_that_an_answer_may_have() {
    let mut pair = pair_of(&wide());
    let whole = pair.lists("top", u32::MAX, 1 << 20).0;
    for most in [64, 100, 333, 1000, 5000] {
        let (listed, requests) = pair.lists("top", u32::MAX, most);
        assert!(listed == whole && requests > 1, "{most}: {requests} {listed:?}");
    }
    assert_eq!(pair.asked(&list("top", 9, TreeCursor::default(), 20)).unwrap_err().code, FailCode::Limit);
}

#[test]
fn more_directories_than_a_walk_remembers_are_visited_all() {
    // Their names take 4 MiB of memory and a half.
    let names: Vec<String> = (0..16_000).map(|number| format!("top/{}{number:05}/", "n".repeat(250))).collect();
    let mut pair = pair_of(&names);
    let (listed, requests) = pair.lists("top", u32::MAX, 16 << 20);
    assert_eq!((listed.len(), requests), (1 + 2 * names.len(), 1));
    assert_eq!(listed.last().map(|last| last.ends_with("15999/")), Some(true));
}

#[test]
fn a_directory_that_cannot_be_read_is_named_and_one_that_is_gone_is_not() {
    let mut pair = Pair::new(&[("top/", 0), ("top/a/", 0), ("top/a/x", 1), ("top/b/", 0), ("top/b/y", 1)]);
    let mut files = pair.server.files().clone();
    files.locked.insert(path("top/a"));
    let (_, open) = Acceptor::new().handle_received(FileClient::connect().poll_write()).unwrap();
    pair.server = FileServer::answer(&open.unwrap(), files);
    let (listed, _) = pair.lists("top", u32::MAX, 1 << 20);
    assert_eq!(listed, ["./", ".:a", ".:b", "a/", "a! permission denied", "b/", "b:y"]);
    let code = |answer: Result<Answer, Failure>| answer.unwrap_err().code;
    let from_the_beginning = |at| list(at, 9, TreeCursor::default(), 1 << 20);
    assert_eq!(code(pair.asked(&from_the_beginning("top/a"))), FailCode::PermissionDenied);
    assert_eq!(code(pair.asked(&from_the_beginning("none"))), FailCode::NotFound);
    assert_eq!(code(pair.asked(&from_the_beginning("top/b/y"))), FailCode::NotDirectory);
    // One answer ended in a directory that is gone for the next.
    let gone = TreeCursor { path: path("aa/deep"), name: b"x".to_vec() };
    let Ok(Answer::Tree(page)) = pair.asked(&list("top", 9, gone, 1 << 20)) else { panic!() };
    assert_eq!(page.directories.iter().map(|each| each.path.to_string()).collect::<Vec<_>>(), ["b"]);
    pair.ends();
}

#[test]
fn a_question_does_not_wait_for_a_tree_and_a_given_up_listing_ends() {
    let mut pair = pair_of(&wide());
    let trees: Vec<_> = (0..8).map(|_| pair.ask(&list("top", 9, TreeCursor::default(), 1 << 20))).collect();
    let stat = pair.ask(&FileRequest::Stat(place("top")));
    pair.client.give_up(trees[7]);
    assert!(pair.answer(stat).is_ok() && trees.iter().all(|tree| !pair.answers.contains_key(tree)));
    for (at, tree) in trees.into_iter().enumerate() {
        assert_eq!(pair.answer(tree).is_ok(), at < 7);
    }
    pair.ends();
}

#[test]
fn a_server_that_sends_more_records_than_asked_or_in_circles_is_found_out() {
    let said = |records: &[u8], end: &[u8]| {
        let mut client = FileClient::connect();
        client.request(&list("d", 9, TreeCursor::default(), 40)).unwrap();
        let mut bytes = Vec::new();
        Accept::new(1 << 20).put(&mut bytes);
        for (kind, body) in [(FrameKind::Block, records), (FrameKind::Answer, end)] {
            put_frame(&mut bytes, kind, |out| {
                out.extend_from_slice(&0_u32.to_be_bytes());
                out.extend_from_slice(body);
            });
        }
        client.handle_received(&bytes)
    };
    let (root, below) = ([0, 0, 0], [0, 0, 1, 1, b'a']);
    assert!(said(&[&root[..], &below[..]].concat(), &[0, 0]).is_ok());
    for (records, end) in [
        ([&below[..], &root[..]].concat(), &[0, 0][..]),
        ([&root[..], &root[..]].concat(), &[0, 0]),
        (vec![0; 42], &[0, 0]),
        (root[..2].to_vec(), &[0, 0]),
        (vec![2, 0, 0], &[0, 0]),
        (vec![3], &[0, 0]),
        (root.to_vec(), &[0, 2]),
        (root.to_vec(), &[0, 1, 0]),
    ] {
        assert!(said(&records, end).is_err(), "{records:?} {end:?}");
    }
}
