//! Percent-encoding of names in an address (RFC 3986, section 2.1).

use std::fmt::Write as _;

use farhaul_session::Pattern;

/// The decoded bytes of `text`.
///
/// # Errors
/// A `%` without two hexadecimal digits behind it.
pub(crate) fn decoded(text: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    decode(text, |byte, _| bytes.push(byte)).map(|()| bytes)
}

/// The decoded bytes of a pattern. Those that were escaped stand for themselves there.
///
/// # Errors
/// As [`decoded`].
pub(super) fn decoded_pattern(text: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    decode(text, |byte, is_escaped| match is_escaped {
        true => bytes.extend(Pattern::quoted(&[byte])),
        false => bytes.push(byte),
    })
    .map(|()| bytes)
}

/// Passes each decoded byte, and whether it was escaped.
fn decode(text: &[u8], mut pass: impl FnMut(u8, bool)) -> Result<(), &'static str> {
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, behind) {
            (b'%', [high, low, after @ ..]) => {
                rest = after;
                let (high, low) = digit(*high).zip(digit(*low)).ok_or(NO_BYTE)?;
                pass(high << 4 | low, true);
            }
            (b'%', _) => return Err(NO_BYTE),
            _ => pass(byte, false),
        }
    }
    Ok(())
}

const NO_BYTE: &str = "% needs two hexadecimal digits behind it; write % itself as %25";

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// The printable, encoded form of `path` for [`decoded`]. Letters of any script stay.
pub(crate) fn encoded(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '%' => escape(&mut text, b"%"),
                _ if character.is_ascii_graphic() || character.is_alphanumeric() => text.push(character),
                _ => escape(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        escape(&mut text, chunk.invalid());
    }
    text
}

/// The same for a pattern: characters behind a backslash are escaped in its place.
pub(super) fn encoded_pattern(pattern: &[u8]) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\').filter(|at| at + 1 < rest.len()) {
        text.push_str(&encoded(&rest[..at]));
        escape(&mut text, &rest[at + 1..at + 2]);
        rest = &rest[at + 2..];
    }
    text.push_str(&encoded(rest));
    text
}

fn escape(text: &mut String, bytes: &[u8]) {
    bytes.iter().for_each(|byte| write!(text, "%{byte:02X}").expect("writing to a String cannot fail"));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn digits_are_of_either_case_and_nothing_else() {
        assert_eq!(decoded(b"a%fF%25"), Ok(b"a\xff%".to_vec()));
        for text in ["%", "%2", "%2g", "%+1", "a%%"] {
            assert_eq!(decoded(text.as_bytes()), Err(NO_BYTE), "{text}");
        }
        assert_eq!(encoded("ä b\u{202e}\\".as_bytes()), "ä%20b%E2%80%AE\\");
    }

    proptest! {
        #[test]
        fn encoded_paths_decode_to_themselves(path: Vec<u8>) {
            prop_assert_eq!(decoded(encoded(&path).as_bytes()), Ok(path));
        }
    }
}
