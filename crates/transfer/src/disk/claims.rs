//! The entries of one directory that a copy has made or taken. A file system that ignores case, or the form of characters,
//! takes two names of a copy for one. The second one then finds an entry that the first one claimed.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use farhaul_session::{Component, FailCode, Failure};

use super::directory::Directory;

/// Most entries that are remembered of one directory, as 16 MB or so. Beyond that, a file replaces nothing in a directory
/// that ignores case.
const MOST_REMEMBERED: usize = 1 << 20;
/// ASCII characters that are the canonical form of another one: the Kelvin sign, the Greek question mark and the Greek varia
/// (Unicode, `UnicodeData.txt`, singleton decompositions).
const CANONICAL_FORMS: &[u8] = b"K;`";

/// The claims of one copy in one directory.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<Claimed>);

/// The claimed entries. Who holds it is alone in giving names in this directory.
#[derive(Debug, Default)]
pub(super) struct Claimed {
    inodes: BTreeSet<u64>,
    case: Case,
    /// An entry was not remembered that should have been.
    is_full: bool,
}

/// Whether a directory takes names for one that differ in case alone. File systems decide that, and some for each
/// directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Case {
    /// No entry with a letter in its name has shown it.
    #[default]
    Unknown,
    Matters,
    Ignored,
}

impl Claims {
    /// Claims a file that this copy has made in `directory` as `temporary`, and that will be `name`.
    pub(super) fn claim_file(&self, directory: &Directory, temporary: &Component, name: &Component, inode: u64) {
        let mut claimed = self.lock();
        claimed.learn(directory, temporary, inode);
        claimed.remember(name, inode);
    }

    /// Claims the entry `name` of `directory`: a directory that `is_new` or existed before, or a file that the target has.
    ///
    /// # Errors
    /// Another name of this copy led to it already.
    pub(super) fn claim_existing(
        &self,
        directory: &Directory,
        name: &Component,
        (inode, is_new): (u64, bool),
    ) -> Result<(), Failure> {
        let mut claimed = self.lock();
        claimed.learn(directory, name, inode);
        // The number of a new one may have been that of an entry that is gone.
        if !is_new {
            claimed.permit(name, inode)?;
        }
        claimed.remember(name, inode);
        Ok(())
    }

    /// The claims, if a name could lead to one of them.
    pub(super) fn against(&self) -> Option<MutexGuard<'_, Claimed>> {
        Some(self.lock()).filter(|claimed| !claimed.inodes.is_empty())
    }

    fn lock(&self) -> MutexGuard<'_, Claimed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claimed {
    /// Refuses the entry that `name` leads to, if this copy has claimed it.
    pub(super) fn permit(&self, name: &Component, inode: u64) -> Result<(), Failure> {
        match self.inodes.contains(&inode) {
            true => Err(same_name(name)),
            false if self.is_full => Err(Failure::new(
                FailCode::NameRefused,
                format!(
                    "the file system ignores the case of names, and of more than {MOST_REMEMBERED} files in one directory it is \
                     not known whether two have this name"
                ),
            )),
            false => Ok(()),
        }
    }

    /// Finds out whether case matters in the directory, where `known` leads to this entry.
    fn learn(&mut self, directory: &Directory, known: &Component, inode: u64) {
        if self.case != Case::Unknown {
            return;
        }
        let other: Vec<u8> = known.as_bytes().iter().map(|&byte| swapped(byte)).collect();
        if let Some(other) = Component::new(&other).ok().filter(|other| other != known) {
            let is_one = directory.stat(&other).is_ok_and(|stat| stat.st_ino == inode);
            self.case = if is_one { Case::Ignored } else { Case::Matters };
        }
    }

    fn remember(&mut self, name: &Component, inode: u64) {
        let has_other_forms = name.as_bytes().iter().any(|byte| !byte.is_ascii() || CANONICAL_FORMS.contains(byte));
        if self.case == Case::Matters && !has_other_forms {
            return;
        }
        if self.inodes.len() < MOST_REMEMBERED {
            self.inodes.insert(inode);
        } else {
            self.is_full |= self.case == Case::Ignored;
        }
    }
}

/// The letter in the other case.
const fn swapped(byte: u8) -> u8 {
    if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() }
}

fn same_name(name: &Component) -> Failure {
    Failure::new(
        FailCode::NameRefused,
        format!(
            "the file system takes {name} for the name of another entry of this copy, because it ignores case or form"
        ),
    )
}
