//! The entries of one directory that a copy has made or taken. A file system that ignores case, or the form of characters,
//! takes two names of a copy for one. The second one then finds an entry that the first one claimed.
//!
//! An entry is known by its inode, and by its name without case and form, because some file systems give each spelling of a name an
//! inode number of its own. Both are a suspicion alone: a hard link has the inode of another name. Two entries are proved by a
//! directory that lists both names.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use farhaul_session::{Component, FailCode, Failure};
use rustix::io::Errno;

use super::directory::Directory;
use super::folded::folded;

/// Most entries that are remembered of one directory, as 50 MB or so. Beyond that, a file replaces nothing in a directory
/// that ignores case.
const MOST_REMEMBERED: usize = 1 << 20;
/// Times that all names of one directory are read. Afterwards, a suspicion is taken for a proof.
const MOST_LOOKS: usize = 64;
/// ASCII characters that are the canonical form of another one: the Kelvin sign, the Greek question mark and the Greek varia
/// (Unicode, `UnicodeData.txt`, singleton decompositions).
const CANONICAL_FORMS: &[u8] = b"K;`";

/// The claims of one copy in one directory.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<Claimed>);

/// The claimed entries. Who holds it is alone in giving names in this directory.
#[derive(Debug, Default)]
pub(super) struct Claimed {
    /// Names as hashes, by inodes, and by hashes of what is left of them without case and form. A collision is one more suspicion.
    inodes: BTreeMap<u64, u64>,
    names: BTreeMap<u64, u64>,
    /// The names in the directory when it was read last, as ascending hashes.
    listed: Vec<u64>,
    looks: usize,
    case: Case,
    /// The copy has made an entry in the directory.
    has_made: bool,
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
    /// Claims a file that this copy has made in `directory` as `temporary`, and that will be `name`. `inode` tells its number if that
    /// matters.
    pub(super) fn claim_file(
        &self,
        directory: &Directory,
        temporary: &Component,
        name: &Component,
        inode: impl FnOnce() -> Result<u64, Errno>,
    ) -> Result<(), Errno> {
        let mut claimed = self.lock();
        claimed.has_made = true;
        if !claimed.tells_apart(name) {
            let inode = inode()?;
            claimed.learn(directory, temporary, inode);
            claimed.remember(name, inode);
        }
        Ok(())
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
        claimed.has_made |= is_new;
        claimed.learn(directory, name, inode);
        // The number of a new one may have been that of an entry that is gone.
        if !is_new {
            claimed.permit(directory, name, inode)?;
        }
        claimed.remember(name, inode);
        Ok(())
    }

    /// Whether this copy may have made an entry in the directory.
    pub(super) fn has_made(&self) -> bool {
        self.lock().has_made
    }

    /// The claims. Nobody else gives names in this directory meanwhile.
    pub(super) fn lock(&self) -> MutexGuard<'_, Claimed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claimed {
    /// Refuses the entry that `name` leads to, if this copy has claimed it under another name.
    pub(super) fn permit(&mut self, directory: &Directory, name: &Component, inode: u64) -> Result<(), Failure> {
        if self.inodes.is_empty() {
            return Ok(());
        }
        let (own, folded) = hashes(name);
        let is_other = |other: &&u64| **other != own;
        let by_name = || self.names.get(&folded);
        match self.inodes.get(&inode).filter(is_other).or_else(|| by_name().filter(is_other)).copied() {
            None if self.is_full => Err(Failure::new(
                FailCode::NameRefused,
                format!(
                    "the file system ignores the case of names, and of more than {MOST_REMEMBERED} files in one directory it is \
                     not known whether two have this name"
                ),
            )),
            None => Ok(()),
            Some(other) => match self.told_apart(directory, name, other) {
                Ok(()) => Ok(()),
                Err(its_name) => Err(same_name(name, its_name)),
            },
        }
    }

    /// Claims an entry that a link has made or taken.
    pub(super) fn claim_link(&mut self, directory: &Directory, name: &Component) {
        self.has_made = true;
        // An entry that is gone already needs no claim.
        if (self.case != Case::Matters || has_other_forms(name))
            && let Ok(stat) = directory.stat(name)
        {
            self.learn(directory, name, stat.st_ino);
            self.remember(name, stat.st_ino);
        }
    }

    /// Proves that `name` and the name with the hash `other` are of two entries. Otherwise, returns the other name if it is found.
    fn told_apart(&mut self, directory: &Directory, name: &Component, other: u64) -> Result<(), Option<Component>> {
        let own = hash(name.as_bytes());
        let has_both = |listed: &[u64]| [own, other].iter().all(|wanted| listed.binary_search(wanted).is_ok());
        if has_both(&self.listed) {
            return Ok(());
        }
        if self.looks == MOST_LOOKS {
            return Err(None);
        }
        self.looks += 1;
        self.listed.clear();
        let (wanted, mut found) = (folded(name), None);
        // A directory that cannot be read proves nothing.
        let _ = directory.each_name(|listed, _| {
            let its = hash(listed);
            self.listed.extend((self.listed.len() < MOST_REMEMBERED).then_some(its));
            if its != own && found.is_none() {
                found = Component::new(listed).ok().filter(|listed| its == other || folded(listed) == wanted);
            }
            Ok::<_, Errno>(())
        });
        self.listed.sort_unstable();
        if has_both(&self.listed) { Ok(()) } else { Err(found) }
    }

    /// Finds out whether case matters in the directory, where `known` leads to this entry.
    fn learn(&mut self, directory: &Directory, known: &Component, inode: u64) {
        if self.case != Case::Unknown || !known.as_bytes().iter().any(u8::is_ascii_alphabetic) {
            return;
        }
        let other: Vec<u8> = known.as_bytes().iter().map(|&byte| swapped(byte)).collect();
        if let Some(other) = Component::new(&other).ok().filter(|other| other != known) {
            let is_one = directory.stat(&other).is_ok_and(|stat| {
                stat.st_ino == inode || self.told_apart(directory, known, hash(other.as_bytes())).is_err()
            });
            // A file without a lock may have gone meanwhile. Then its other name says nothing.
            if is_one {
                self.case = Case::Ignored;
            } else if directory.stat(known).is_ok_and(|stat| stat.st_ino == inode) {
                self.case = Case::Matters;
            }
        }
    }

    /// Whether the file system takes no other name for this one, so that it needs no claim.
    pub(super) fn tells_apart(&self, name: &Component) -> bool {
        self.case == Case::Matters && !has_other_forms(name)
    }

    fn remember(&mut self, name: &Component, inode: u64) {
        if self.tells_apart(name) {
            return;
        }
        if self.inodes.len() < MOST_REMEMBERED {
            let (own, folded) = hashes(name);
            self.inodes.insert(inode, own);
            self.names.entry(folded).or_insert(own);
        } else {
            self.is_full |= self.case == Case::Ignored;
        }
    }
}

/// Whether other characters are the same name in another form.
fn has_other_forms(name: &Component) -> bool {
    name.as_bytes().iter().any(|byte| !byte.is_ascii() || CANONICAL_FORMS.contains(byte))
}

/// A name as a hash, and what is left of it without case and form.
fn hashes(name: &Component) -> (u64, u64) {
    let bytes = name.as_bytes();
    let own = hash(bytes);
    let is_folded = bytes.iter().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    (own, if is_folded { own } else { hash(&folded(name)) })
}

fn hash(name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// The letter in the other case.
const fn swapped(byte: u8) -> u8 {
    if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() }
}

fn same_name(name: &Component, other: Option<Component>) -> Failure {
    let other = match other {
        Some(other) => format!("{other}, another entry of this copy"),
        None => "another entry of this copy".to_owned(),
    };
    Failure::new(
        FailCode::NameRefused,
        format!("the file system takes {name} for the name of {other}, because it ignores case or form"),
    )
}
