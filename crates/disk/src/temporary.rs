//! The names of incomplete files and their journals: `.NAME.RANDOM.fhpart` and `.NAME.RANDOM.fhjournal`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use farhaul_session::{Component, FailCode, Failure};

/// Suffix of incomplete files, by which people and clean-up jobs recognise them.
const PARTIAL: &str = ".fhpart";
/// Suffix of their journals.
const JOURNAL: &str = ".fhjournal";
/// What stands before the target of a link that leads nowhere. Nobody has a directory of this name.
pub const MUNGED: &[u8] = b"/farhaul-munged/";
/// Hexadecimal digits of the 64 random bits in a temporary name.
const RANDOM_DIGITS: usize = 16;
/// Longest part of a file's own name within its temporary names: 255 bytes less two dots, the digits and the longer suffix.
const SHOWN_NAME: usize = 255 - 2 - RANDOM_DIGITS - JOURNAL.len();

/// A new name for the incomplete file that will be `name`: hidden, beside the target, and impossible to guess.
pub(super) fn temporary_name(name: &Component) -> Result<Component, Failure> {
    let end = format!(".{:016x}{PARTIAL}", next_random()?);
    Component::new(&[b".", shown_part(name), end.as_bytes()].concat()).map_err(|_| FailCode::NameRefused.into())
}

/// The next 64 bits of a sequence that looks random to whoever lacks the key of this process. A call of the system for each name would
/// cost more. A process and its fork share the sequence, so a name may exist already.
fn next_random() -> Result<u64, Failure> {
    static KEY: OnceLock<[u8; blake3::KEY_LEN]> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let key = match KEY.get() {
        Some(key) => key,
        None => {
            let mut key = [0; blake3::KEY_LEN];
            getrandom::fill(&mut key).map_err(|error| Failure::new(FailCode::Io, error.to_string()))?;
            KEY.get_or_init(|| key)
        }
    };
    let mut bits = [0; 8];
    let count = COUNT.fetch_add(1, Ordering::Relaxed).to_ne_bytes();
    blake3::Hasher::new_keyed(key).update(&count).finalize_xof().fill(&mut bits);
    Ok(u64::from_ne_bytes(bits))
}

/// The part of a name that its temporary names show.
pub(super) fn shown_part(name: &Component) -> &[u8] {
    &name.as_bytes()[..name.as_bytes().len().min(SHOWN_NAME)]
}

/// The part of a file's own name in its temporary name.
pub(super) fn shown_of(temporary: &Component) -> Option<&[u8]> {
    let bytes = temporary.as_bytes();
    let start = bytes.strip_suffix(PARTIAL.as_bytes()).or_else(|| bytes.strip_suffix(JOURNAL.as_bytes()))?;
    let shown = start.len().checked_sub(RANDOM_DIGITS).map(|at| &start[..at])?;
    shown.strip_prefix(b".")?.strip_suffix(b".")
}

/// The name of the journal of an incomplete file.
pub(super) fn journal_of(partial: &Component) -> Component {
    let bytes = partial.as_bytes();
    let start = bytes.strip_suffix(PARTIAL.as_bytes()).unwrap_or(bytes);
    Component::new(&[start, JOURNAL.as_bytes()].concat()).unwrap_or_else(|_| partial.clone())
}

/// The name of the incomplete file of a journal.
pub(super) fn partial_of(journal: &Component) -> Option<Component> {
    let start = journal.as_bytes().strip_suffix(JOURNAL.as_bytes())?;
    Component::new(&[start, PARTIAL.as_bytes()].concat()).ok()
}

/// Whether a file with this name is incomplete.
pub(super) fn is_partial(name: &Component) -> bool {
    has_form(name.as_bytes(), PARTIAL)
}

/// Whether a file with this name is a journal.
pub(super) fn is_journal(name: &Component) -> bool {
    has_form(name.as_bytes(), JOURNAL)
}

/// Whether a file with this name belongs to a copy under way, or to one that broke off, and is no part of a tree.
pub(super) fn is_temporary(name: &Component) -> bool {
    is_temporary_form(name.as_bytes())
}

/// The same for the bytes of a name.
pub(super) fn is_temporary_form(name: &[u8]) -> bool {
    has_form(name, PARTIAL) || has_form(name, JOURNAL)
}

/// Refuses such a name for an entry, which would be left out of copies and lists, and removed as a left-over. Refuses the name
/// into which munged links lead as well.
pub(super) fn refuse_reserved(name: &Component) -> Result<(), Failure> {
    let why = if is_temporary(name) {
        "names of incomplete files are for incomplete files"
    } else if MUNGED[1..MUNGED.len() - 1].eq_ignore_ascii_case(name.as_bytes()) {
        "nothing may have this name, because munged links of clients would lead there"
    } else {
        return Ok(());
    };
    Err(Failure::new(FailCode::NameRefused, why))
}

fn has_form(name: &[u8], suffix: &str) -> bool {
    let Some(start) = name.strip_suffix(suffix.as_bytes()) else { return false };
    let Some((shown, random)) = start.len().checked_sub(RANDOM_DIGITS).map(|at| start.split_at(at)) else {
        return false;
    };
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    matches!(shown, [b'.', _, .., b'.']) && random.iter().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_are_told_from_others() {
        for name in [&b"a"[..], b".a", b"a.fhpart", &[b'x'; 255], b"\xff"] {
            let temporary = temporary_name(&Component::new(name).unwrap()).unwrap();
            assert!(is_partial(&temporary) && is_temporary(&temporary), "{temporary}");
            let journal = journal_of(&temporary);
            assert!(is_journal(&journal) && !is_partial(&journal) && is_temporary(&journal), "{journal}");
            assert_eq!(partial_of(&journal), Some(temporary));
        }
        for name in [
            ".fhpart",
            "a.fhpart",
            ".a.0123456789abcde.fhpart",
            "a.0123456789abcdef.fhpart",
            "..0123456789abcdef.fhpart",
            ".a.0123456789abcdeg.fhpart",
            ".a.0123456789abcdef.fhpart2",
        ] {
            assert!(!is_temporary(&Component::new(name.as_bytes()).unwrap()), "{name}");
        }
    }

    #[test]
    fn temporary_names_do_not_repeat() {
        let name = Component::new(b"a").unwrap();
        let names: std::collections::BTreeSet<_> = (0..1_000).map(|_| temporary_name(&name).unwrap()).collect();
        assert_eq!(names.len(), 1_000);
    }

    #[test]
    fn no_entry_gets_the_name_into_which_munged_links_lead() {
        for (name, may) in [("farhaul-munged", false), ("Farhaul-Munged", false), ("farhaul-munged2", true)] {
            assert_eq!(refuse_reserved(&Component::new(name.as_bytes()).unwrap()).is_ok(), may, "{name}");
        }
    }
}
