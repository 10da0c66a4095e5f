//! Directories that take different names for one, on a file system that does not.

use std::borrow::Cow;

use farhaul_session::Component;

use super::Directory;

/// What a directory and those below it ignore in names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Folding {
    #[default]
    Nothing,
    /// The case of ASCII letters, as ext4 with casefold, or VFAT.
    Case,
    /// Whether the accent of an é is a character of its own, as a case-sensitive APFS.
    Form,
}

impl Directory {
    /// The same directory, which ignores this.
    pub(crate) fn that_ignores(self, folding: Folding) -> Self {
        Self { folding, ..self }
    }

    /// The bytes of a name as the file system gets them.
    pub(crate) fn spelled<'a>(&self, name: &'a Component) -> Cow<'a, [u8]> {
        match self.folding {
            Folding::Nothing => name.as_bytes().into(),
            Folding::Case => name.as_bytes().to_ascii_lowercase().into(),
            Folding::Form => match str::from_utf8(name.as_bytes()) {
                Ok(text) => text.replace("e\u{301}", "é").into_bytes().into(),
                Err(_) => name.as_bytes().into(),
            },
        }
    }
}
