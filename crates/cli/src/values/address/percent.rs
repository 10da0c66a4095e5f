//! Percent-encoding of names in an address (RFC 3986, section 2.1).

use std::fmt::Write as _;

/// The decoded bytes of `text`.
///
/// # Errors
/// A `%` without two hexadecimal digits behind it.
pub(crate) fn decoded(text: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        bytes.push(match (byte, behind) {
            (b'%', [high, low, after @ ..]) => {
                rest = after;
                let (high, low) = digit(*high).zip(digit(*low)).ok_or(NO_BYTE)?;
                high << 4 | low
            }
            (b'%', _) => return Err(NO_BYTE),
            _ => byte,
        });
    }
    Ok(bytes)
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
