use proptest::prelude::*;

use super::*;
use crate::field::Fields;

#[test]
fn paths_that_leave_the_root_are_refused() {
    for (text, reason) in [
        (&b"../etc/passwd"[..], PathError::Dots),
        (b"a/../../b", PathError::Dots),
        (b"./a", PathError::Dots),
        (b"/etc/passwd", PathError::Separator),
        (b"a//b", PathError::Empty),
        (b"a/b//", PathError::Empty),
        (b"a\0b", PathError::Separator),
    ] {
        assert_eq!(RelPath::parse(text), Err(reason), "{}", escape(text));
    }
    assert_eq!(Component::new(b"a/b"), Err(PathError::Separator));
}

#[test]
fn a_path_that_ends_in_dots_has_no_name_of_its_own() {
    for (text, name) in [
        ("a", Some("a")),
        ("a/b", Some("b")),
        ("a/b//", Some("b")),
        ("./a/", Some("a")),
        ("a/./b", Some("b")),
        ("...", Some("...")),
        ("a/.", None),
        ("a/./", None),
        ("a/..", None),
        ("/", None),
        (".", None),
        ("", None),
    ] {
        assert_eq!(own_name(text.as_bytes()), name.map(str::as_bytes), "{text}");
    }
}

#[test]
fn names_that_only_look_dangerous_are_allowed() {
    for text in [&b"..."[..], b"..a", b"a..", b"-rf", b"C:\\x", b"\xff\xfe", b" ", b"a/b/"] {
        assert!(RelPath::parse(text).is_ok(), "{}", escape(text));
    }
}

#[test]
fn limits_hold_exactly() {
    assert!(Component::new(&[b'n'; MAX_NAME]).is_ok());
    assert_eq!(Component::new(&[b'n'; MAX_NAME + 1]), Err(PathError::NameTooLong));
    let deep = vec!["d"; MAX_DEPTH].join("/");
    assert!(RelPath::parse(deep.as_bytes()).is_ok());
    assert_eq!(RelPath::parse(format!("{deep}/d").as_bytes()), Err(PathError::TooDeep));
    let long = vec!["n".repeat(255); 16].join("/"); // 16 * 255 + 15 = 4095
    assert!(RelPath::parse(long.as_bytes()).is_ok());
    assert_eq!(RelPath::parse(format!("{long}/n").as_bytes()), Err(PathError::PathTooLong));
}

#[test]
fn terminal_controls_are_escaped() {
    assert_eq!(escape(b"a\nb\x1b[2J\x7f"), "a\\nb\\x1b[2J\\x7f");
    assert_eq!(escape("\u{9b}31m\u{202e}fdp.exe".as_bytes()), "\\x9b31m\\u{202e}fdp.exe");
    assert_eq!(escape(b"\xff\\"), "\\xff\\\\");
    assert_eq!(escape("Größe – 写真.raw".as_bytes()), "Größe – 写真.raw");
}

proptest! {
    #[test]
    fn parsed_paths_stay_below_the_root_and_survive_encoding(text in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(path) = RelPath::parse(&text) {
            for name in path.components() {
                prop_assert!(Component::new(name.as_bytes()).is_ok());
            }
            prop_assert_eq!(path.to_bytes(), text.strip_suffix(b"/").unwrap_or(&text));
            let mut wire = Vec::new();
            path.encode(&mut wire);
            prop_assert_eq!(Fields::new(&wire).path(), Ok(path));
        }
    }

    #[test]
    fn escaped_text_contains_no_controls(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        prop_assert!(escape(&bytes).chars().all(|c| !c.is_control() && !misleads(c)));
    }

    #[test]
    fn wire_paths_never_break_the_rules(body in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(path) = Fields::new(&body).path() {
            prop_assert_eq!(RelPath::parse(&path.to_bytes()), Ok(path));
        }
    }
}

#[test]
fn the_parent_of_a_path_is_the_path_before_its_last_name() {
    for (path, parent) in [("a/bc/d", "a/bc"), ("a", ""), ("", "")] {
        let (path, parent) = (RelPath::parse(path.as_bytes()).unwrap(), RelPath::parse(parent.as_bytes()).unwrap());
        assert_eq!(path.parent(), parent);
        assert_eq!(path.parent().length, parent.length);
    }
}
