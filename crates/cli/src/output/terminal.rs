//! All text to a terminal goes through here: whatever a peer, a remote host or a file name put into it controls nothing there.
//!
//! Texts of others are escaped where they come in, so that they cannot pass for lines of this program. This is the second fence, at
//! the output, for every line and every record.

use std::borrow::Cow;
use std::fmt::Write;

use farhaul_session::escape;

/// Lines for people. Line breaks and tabs stay, and so do the colours of this program if it wants any.
pub(super) fn lines(text: &str, coloured: bool) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return text.into();
    }
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(character) = rest.chars().next() {
        let len = match colour(rest).filter(|_| coloured) {
            Some(len) => {
                shown.push_str(&rest[..len]);
                len
            }
            None if matches!(character, '\n' | '\t' | '\\') => {
                shown.push(character);
                1
            }
            None => {
                shown.push_str(&escape(&rest.as_bytes()[..character.len_utf8()]));
                character.len_utf8()
            }
        };
        rest = &rest[len..];
    }
    shown.into()
}

/// The length of the sequence at the beginning of `text` that sets a colour (SGR of ECMA-48: `ESC [`, numbers, `m`).
fn colour(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\x1b[")?;
    let end = numbers.find(|character: char| !(character.is_ascii_digit() || character == ';'))?;
    numbers[end..].starts_with('m').then_some(2 + end + 1)
}

/// A record as JSON. Its strings escape the characters, too, that JSON permits and a terminal obeys: those from U+0080 to U+009F.
pub(super) fn record(json: &str) -> Cow<'_, str> {
    if json.is_ascii() && !json.contains('\x7f') {
        return json.into();
    }
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        let (mut bytes, mut units) = ([0; 4], [0; 2]);
        let text = &*character.encode_utf8(&mut bytes);
        if character.is_ascii() && character != '\x7f' || escape(text.as_bytes()) == text {
            shown.push(character);
        } else {
            for unit in character.encode_utf16(&mut units) {
                write!(shown, "\\u{unit:04x}").expect("writing to a String cannot fail");
            }
        }
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_colours_of_this_program_reach_a_terminal() {
        let hostile = "\x1b[32mgreen\x1b[0m \x1b[2J\x1b]0;title\x07 \u{9b}31m \u{202e}txt.exe \r back\\slash\n\tGröße";
        let ours = "\x1b[32mgreen\x1b[0m \\x1b[2J\\x1b]0;title\\x07 \\x9b31m \\u{202e}txt.exe \\r back\\slash\n\tGröße";
        assert_eq!(lines(hostile, true), ours);
        assert!(!lines(hostile, false).contains('\x1b'), "without colours there is no such sequence at all");
        assert_eq!(lines("\x1b[", true), "\\x1b[");
    }

    #[test]
    fn a_record_stays_the_same_value_and_controls_no_terminal() {
        let text = "\u{9b}2J \u{7f} \u{202e}x Größe \u{e0041} 写真";
        let json = serde_json::json!({ "message": text }).to_string();
        let shown = record(&json);
        assert!(!shown.contains(['\u{9b}', '\u{7f}', '\u{202e}', '\u{e0041}']) && shown.contains("Größe"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["message"], text);
    }

    proptest! {
        #[test]
        fn no_text_has_another_control_character(text in any::<String>(), coloured: bool) {
            let shown = lines(&text, coloured);
            prop_assert!(shown.chars().all(|c| !c.is_control() || "\n\t".contains(c) || coloured && c == '\x1b'));
        }

        #[test]
        fn any_record_stays_the_same_value(text in any::<String>()) {
            let json = serde_json::json!([text]).to_string();
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&record(&json)).unwrap(), serde_json::json!([text]));
        }
    }
}
