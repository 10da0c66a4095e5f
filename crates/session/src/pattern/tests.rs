use proptest::prelude::*;

use super::*;

fn matches(pattern: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> bool {
    Pattern::new(&Component::new(pattern.as_ref()).unwrap()).matches(name.as_ref())
}

#[test]
fn stars_and_question_marks_stand_for_characters() {
    for (pattern, name, expected) in [
        ("*", "a", true),
        ("*.gz", "a.gz", true),
        ("*.gz", "a.gz.old", false),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "a-c-b", false),
        ("**a", "a", true),
        ("a*", "a", true),
        ("?", "ab", false),
        ("a?c", "abc", true),
        ("a?", "a", false),
        ("???", "größ", false),
        ("gr??", "größ", true),
        ("gr????", "größ", false),
        ("*.GZ", "a.gz", false),
    ] {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
}

#[test]
fn brackets_stand_for_one_of_their_characters() {
    for (pattern, name, expected) in [
        ("[abc]", "b", true),
        ("[abc]", "d", false),
        ("x[0-9].log", "x7.log", true),
        ("x[0-9].log", "x77.log", false),
        ("[!0-9]", "7", false),
        ("[^0-9]", "a", true),
        ("[]a]", "]", true),
        ("[!]a]", "]", false),
        ("[a-]", "-", true),
        ("[-a]", "-", true),
        ("[z-a]", "m", false),
        ("[ä-ö]", "ï", true),
        ("[\\]]", "]", true),
        ("[a\\-c]", "b", false),
        // Without an end, the bracket stands for itself.
        ("[ab", "[ab", true),
        ("[]", "[]", true),
        ("[a-", "[a-", true),
        ("a[b", "ab", false),
    ] {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
}

#[test]
fn a_backslash_takes_the_meaning_away() {
    for (pattern, name, expected) in [
        ("\\*", "*", true),
        ("\\*", "a", false),
        ("a\\?b", "a?b", true),
        ("\\[a]", "[a]", true),
        ("\\\\", "\\", true),
        ("a\\", "a\\", true),
        ("\\a", "a", true),
    ] {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
}

#[test]
fn hidden_names_match_only_a_pattern_with_a_dot() {
    for (pattern, name, expected) in
        [("*", ".a", false), ("?a", ".a", false), ("[.]a", ".a", false), (".*", ".a", true), ("\\.*", ".a", true)]
    {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
}

#[test]
fn names_need_not_be_utf_8() {
    assert!(matches("a?b", b"a\xffb") && matches(b"\xff*", b"\xfftail") && matches(b"[\xfe-\xff]", b"\xff"));
    assert!(!matches("a?b", b"a\xff\xfeb") && !matches(b"[\xfe]", "þ"));
}

#[test]
fn a_pattern_without_special_parts_has_one_name() {
    let only = |pattern: &str| Pattern::new(&Component::new(pattern.as_bytes()).unwrap()).only_name();
    assert_eq!(only("a\\*b").unwrap().as_bytes(), b"a*b");
    assert_eq!(only("plain").unwrap().as_bytes(), b"plain");
    assert!(only("a*").is_none() && only("[a]").is_none());
    assert!(only("\\.").is_none(), "it is no name");
}

#[test]
fn the_worst_pattern_takes_a_bounded_time() {
    let pattern = "*a".repeat(127);
    let name = [b'a'; 255];
    assert!(matches(&pattern, name));
    assert!(!matches(format!("{pattern}b"), name));
}

/// The same by the rules alone: every split is tried.
fn tried(parts: &[Part], name: &[u8]) -> bool {
    let Some((first, parts)) = parts.split_first() else { return name.is_empty() };
    let step = |from: &[u8]| character(from).map_or(0, |(_, length)| length);
    match first {
        Part::Any => tried(parts, name) || (step(name) > 0 && tried_any(parts, &name[step(name)..])),
        one => one.taken(name).is_some_and(|taken| tried(parts, &name[taken..])),
    }
}

fn tried_any(parts: &[Part], name: &[u8]) -> bool {
    tried(parts, name) || character(name).is_some_and(|(_, length)| tried_any(parts, &name[length..]))
}

proptest! {
    #[test]
    fn one_retry_finds_what_trying_everything_finds(pattern in "[ab*?ä\\[\\]!\\\\-]{1,8}", name in "[abä\\[-]{1,8}") {
        let pattern = Pattern::new(&Component::new(pattern.as_bytes()).unwrap());
        prop_assert_eq!(pattern.matches(name.as_bytes()), tried(&pattern.parts, name.as_bytes()));
    }

    #[test]
    fn a_quoted_name_matches_itself(name in proptest::collection::vec(1u8..=255, 1..60), other: Vec<u8>) {
        let Ok(pattern) = Component::new(&Pattern::quoted(&name)) else { return Ok(()) };
        let pattern = Pattern::new(&pattern);
        prop_assert!(pattern.matches(&name));
        prop_assert!(other == name || !pattern.matches(&other));
    }

    #[test]
    fn every_name_is_a_pattern(pattern in proptest::collection::vec(1u8..=255, 1..255), name: Vec<u8>) {
        if let Ok(pattern) = Component::new(&pattern) {
            let _ = Pattern::new(&pattern).matches(&name);
        }
    }
}
