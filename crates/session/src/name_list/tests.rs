use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::framing::{Decoded, Decoder};

fn path(text: &str) -> RelPath {
    RelPath::parse(text.as_bytes()).unwrap()
}

fn list(names: &[&str]) -> NameList {
    let mut builder = NameListBuilder::default();
    names.iter().for_each(|name| builder.push(&path(name)).unwrap());
    builder.build()
}

fn shown(names: impl IntoIterator<Item = impl ToString>) -> Vec<String> {
    names.into_iter().map(|name| name.to_string()).collect()
}

#[test]
fn a_list_takes_its_names_what_is_within_them_and_their_parents() {
    let list = list(&["b/deep/x", "a", "b-c", "a", "b/y"]);
    assert_eq!(list.len(), 4);
    for (text, expected) in [
        ("a", Listed::Itself),
        ("a/any/thing", Listed::Within),
        ("b", Listed::Above),
        ("b/deep", Listed::Above),
        ("b/deep/x", Listed::Itself),
        ("b/z", Listed::Outside),
        ("b-", Listed::Outside),
        ("", Listed::Above),
    ] {
        assert_eq!(list.place_of(&path(text), true), expected, "{text}");
    }
    assert_eq!(list.place_of(&path("a/any"), false), Listed::Outside, "a directory alone");
    assert_eq!(list.name_within(&path("b"), 1).map(|name| name.to_string()), Some("b/y".into()));
    assert_eq!(list.name_within(&path("b"), 2), None);
    assert_eq!(shown(list.children(&RelPath::root())), ["a", "b", "b-c"]);
    assert_eq!(shown(list.children(&path("b"))), ["deep", "y"]);
    assert_eq!(shown(list.names_within(&path("b"))), ["b/deep/x", "b/y"]);
    assert!(list.children(&path("a")).is_empty() && list.children(&path("b-")).is_empty());
}

#[test]
fn the_root_stands_for_everything() {
    let list = list(&["", "a/b"]);
    assert_eq!(list.place_of(&RelPath::root(), true), Listed::Itself);
    assert_eq!(list.place_of(&path("other/x"), true), Listed::Within);
    assert_eq!(shown(list.children(&RelPath::root())), ["a"]);
}

#[test]
fn a_list_has_bounds() {
    let mut builder = NameListBuilder::default();
    let long = path(&vec!["n".repeat(255); 15].join("/"));
    let fit = MAX_LISTED_BYTES / long.to_bytes().len();
    (0..fit).for_each(|_| builder.push(&long).unwrap());
    assert_eq!(builder.push(&long), Err(ListTooLong));
    assert_eq!(builder.build().len(), 1);
    let mut builder = NameListBuilder::default();
    (0..MAX_LISTED_NAMES).for_each(|_| builder.push(&path("a")).unwrap());
    let mut body = Vec::new();
    path("a").encode(&mut body);
    assert_eq!(builder.handle_frame(&body), Err(Violation::Limit("listed names")));
}

#[test]
fn names_that_leave_the_source_are_refused() {
    for name in [&b".."[..], b"/", b"a/b", b"."] {
        let body = [&[0, 1, name.len() as u8], name].concat();
        let refused = NameListBuilder::default().handle_frame(&body);
        assert!(matches!(refused, Err(Violation::Malformed { kind: FrameKind::Names, .. })), "{name:?}");
    }
}

fn frames(list: &NameList) -> NameList {
    let (mut bytes, mut decoder, mut builder) = (Vec::new(), Decoder::default(), NameListBuilder::default());
    list.put(&mut bytes);
    let mut rest = bytes.as_slice();
    while let Some(Decoded::Frame(FrameKind::Names, body)) = decoder.next(&mut rest).unwrap() {
        if builder.handle_frame(body).unwrap() {
            assert!(rest.is_empty());
            return builder.build();
        }
    }
    panic!("the list has no end");
}

#[test]
fn a_long_list_takes_several_frames() {
    let names: Vec<String> = (0..40_000).map(|index| format!("directory/{index:06}")).collect();
    let list = list(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(frames(&list).names_within(&RelPath::root()).eq(list.names_within(&RelPath::root())));
}

proptest! {
    #[test]
    fn a_list_agrees_with_a_set_of_paths(
        names in proptest::collection::vec("[ab]{1,2}(/[ab-]{1,2}){0,3}", 0..12),
        asked in "[ab]{1,2}(/[ab-]{1,2}){0,3}",
    ) {
        let list = frames(&list(&names.iter().map(String::as_str).collect::<Vec<_>>()));
        let (set, asked) = (names.iter().map(|name| path(name)).collect::<BTreeSet<_>>(), path(&asked));
        let starts = |long: &RelPath, short: &RelPath| {
            long != short && long.components().starts_with(short.components())
        };
        let expected = if set.contains(&asked) {
            Listed::Itself
        } else if set.iter().any(|name| starts(&asked, name)) {
            Listed::Within
        } else if set.iter().any(|name| starts(name, &asked)) {
            Listed::Above
        } else {
            Listed::Outside
        };
        prop_assert_eq!(list.place_of(&asked, true), expected);
        let depth = asked.components().len();
        let children: BTreeSet<_> =
            set.iter().filter(|name| starts(name, &asked)).map(|name| name.components()[depth].clone()).collect();
        prop_assert!(list.children(&asked).into_iter().eq(children));
        prop_assert!(list.names_within(&asked).eq(set.into_iter().filter(|name| starts(name, &asked))));
    }

    #[test]
    fn arbitrary_bodies_are_names_or_refused(body in proptest::collection::vec(0u8..4, 0..60)) {
        let mut builder = NameListBuilder::default();
        let _ = builder.handle_frame(&body);
        let list = builder.build();
        prop_assert_eq!(&frames(&list).names_within(&RelPath::root()).collect::<Vec<_>>(), &list.names_within(&RelPath::root()).collect::<Vec<_>>());
    }
}
