//! What file systems that take several names for one look at in a name.

use farhaul_session::Component;
use unicode_normalization::UnicodeNormalization;

/// A name without what such file systems ignore: the case of letters, and whether characters are composed. File systems differ in
/// their tables, so equal results are a suspicion and no proof.
pub(super) fn folded(name: &Component) -> Vec<u8> {
    match str::from_utf8(name.as_bytes()) {
        Ok(text) if text.is_ascii() => text.to_ascii_lowercase().into_bytes(),
        // Of letters with several forms in one case, each has the same form in the other one.
        Ok(text) => text.nfd().collect::<String>().to_uppercase().to_lowercase().nfd().collect::<String>().into_bytes(),
        Err(_) => name.as_bytes().to_ascii_lowercase(),
    }
}

/// Whether two names differ in more than the composition of characters.
pub(super) fn differ_in_letters(one: &[u8], other: &[u8]) -> bool {
    one != other
        && match (str::from_utf8(one), str::from_utf8(other)) {
            (Ok(one), Ok(other)) => one.nfd().ne(other.nfd()),
            _ => true,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_some_file_system_takes_for_one_have_one_form() {
        let folded = |name: &[u8]| folded(&Component::new(name).unwrap());
        for (one, other) in
            [("README", "readme"), ("\u{e9}", "E\u{301}"), ("\u{212a}", "k"), ("ς", "Σ"), ("STRASSE", "straße")]
        {
            assert_eq!(folded(one.as_bytes()), folded(other.as_bytes()), "{one} {other}");
        }
        assert_ne!(folded(b"a"), folded("á".as_bytes()));
        assert_eq!(folded(b"\xffA"), b"\xffa");
    }
}
