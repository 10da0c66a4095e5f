//! Lists and settings that people write: by editors of any system, with their line ends and byte order marks.
//!
//! A line ends with LF, or with CR LF. So a name that ends in CR has no place in a list of lines. Lists that end their names with
//! NUL have one for it. The last line needs no end. A byte order mark of UTF-8 is left out.

/// The byte order mark of UTF-8, which some editors write.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Why a text is refused. Otherwise, none of its lines would mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Its characters have 16 bits or more.
    #[error("it is UTF-16, and must be UTF-8; save it as UTF-8")]
    Wide,
    /// It has no line ends but those of old Macs.
    #[error("its lines end with CR alone, and must end with LF or CR LF; save it with such line ends")]
    OldMac,
    /// It is a text in another encoding, or none.
    #[error("it is not UTF-8; save it as UTF-8")]
    NotUtf8,
}

/// The lines of a list, without their ends.
///
/// # Errors
/// It is no text of lines in an encoding that agrees with ASCII.
pub fn lines(text: &[u8]) -> Result<impl Iterator<Item = &[u8]>, TextError> {
    let has = |wanted| text.contains(&wanted);
    if !has(b'\n') && without_end(text).contains(&b'\r') {
        return Err(TextError::OldMac);
    }
    Ok(unmarked(text)?.split(|&byte| byte == b'\n').map(without_end))
}

/// The text of a list or of settings.
///
/// # Errors
/// It is not UTF-8.
pub fn utf8(text: &[u8]) -> Result<&str, TextError> {
    str::from_utf8(unmarked(text)?).map_err(|_| TextError::NotUtf8)
}

/// The text, or its first line, without a byte order mark.
///
/// # Errors
/// It is UTF-16.
pub fn unmarked(text: &[u8]) -> Result<&[u8], TextError> {
    // Of two bytes of a character that ASCII has too, one is zero.
    let is_wide = matches!(text, [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, ..] | [_, 0, ..]);
    if is_wide { Err(TextError::Wide) } else { Ok(text.strip_prefix(MARK).unwrap_or(text)) }
}

/// A line without the CR of its end.
pub fn without_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_same_lines_whichever_editor_wrote_it() {
        for text in ["a b\n\n*.o", "a b\n\n*.o\n", "a b\r\n\r\n*.o\r\n", "a b\r\n\r\n*.o", "\u{feff}a b\r\n\r\n*.o\r\n"]
        {
            let found: Vec<_> = lines(text.as_bytes()).unwrap().filter(|line| !line.is_empty()).collect();
            assert_eq!(found, [&b"a b"[..], b"*.o"], "{text:?}");
        }
        assert_eq!(lines(b"a\r\r\nb\rc\n").unwrap().collect::<Vec<_>>(), [&b"a\r"[..], b"b\rc", b""]);
        assert_eq!(lines(b"\xff\r\n").unwrap().next(), Some(&b"\xff"[..]), "names need not be UTF-8");
        assert_eq!(utf8("\u{feff}é".as_bytes()), Ok("é"));
    }

    #[test]
    fn a_text_whose_lines_mean_nothing_is_refused() {
        let wide = |order: fn(u16) -> [u8; 2], text: &str| text.encode_utf16().flat_map(order).collect::<Vec<_>>();
        for order in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
            for text in ["\u{feff}a\r\n", "a\n", "\u{feff}é"] {
                assert_eq!(lines(&wide(order, text)).err(), Some(TextError::Wide), "{text:?}");
            }
        }
        assert_eq!(lines(b"a\rb\r").err(), Some(TextError::OldMac));
        assert_eq!(utf8(b"\xff\xff"), Err(TextError::NotUtf8));
    }
}
