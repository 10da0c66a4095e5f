//! Entries of the source that a target directory has under another spelling, because its file system ignores case or the form of
//! characters. They are no surplus.

use std::collections::BTreeMap;

use farhaul_session::{Component, FailCode, Failure, RelPath};
use rustix::fs::RenameFlags;

use crate::failure::failure;
use crate::folded::{differ_in_letters, folded};
use crate::place::Places;
use crate::temporary::temporary_name;

/// Most of these names in one directory, and their memory in all. A tree that was renamed on a disk that ignores case has fewer.
pub(super) const MOST_ALIASES: usize = 1 << 16;
const MOST_MEMORY: usize = 16 << 20;

/// Such entries, by directory.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    /// Names of the source that a directory does not list, and leads to all the same. Most are files that got their names just then.
    unlisted: BTreeMap<RelPath, Vec<Component>>,
    /// Bytes of memory of both, roughly.
    weight: usize,
    /// The spelling of the target, and that of the source.
    spared: BTreeMap<(RelPath, Component), Component>,
}

impl Aliases {
    /// The directory at `path` does not list these names of the source, and leads to an entry by each of them.
    ///
    /// # Errors
    /// They are too many to remember.
    pub(super) fn note(&mut self, path: &RelPath, unlisted: Vec<Component>) -> Result<(), Failure> {
        let of_name = |name: &Component| path.weight() + 2 * (size_of::<Component>() + name.as_bytes().len());
        self.weight += unlisted.iter().map(of_name).sum::<usize>();
        if self.weight > MOST_MEMORY || unlisted.len() > MOST_ALIASES {
            let message = "the target has too many names of the source under another spelling";
            return Err(Failure::new(FailCode::NotSelected, message));
        }
        if !unlisted.is_empty() {
            self.unlisted.insert(path.clone(), unlisted);
        }
        Ok(())
    }

    /// Finds the entries that are spared, once everything has its name.
    ///
    /// # Errors
    /// One of them cannot be told from those that the source lacks.
    pub(super) fn find_spared(&mut self, places: &Places) -> Result<(), (RelPath, Failure)> {
        for (path, unlisted) in std::mem::take(&mut self.unlisted) {
            let found = |name: &Component| path.join(name.clone()).unwrap_or_default();
            let spared = spared(places, &path, unlisted).map_err(|(name, failure)| (found(&name), failure))?;
            self.spared.extend(spared.into_iter().map(|(there, name)| ((path.clone(), there), name)));
        }
        Ok(())
    }

    /// Whether the source has this entry of a directory, under another spelling.
    pub(super) fn spare(&self, path: &RelPath, name: &Component) -> bool {
        self.spared.contains_key(&(path.clone(), name.clone()))
    }

    /// Gives entries the spelling of the source. If that fails, they keep theirs.
    pub(super) fn respell(&mut self, places: &Places) {
        for ((path, there), name) in std::mem::take(&mut self.spared) {
            if differ_in_letters(there.as_bytes(), name.as_bytes())
                && let Ok(directory) = places.directory(&path)
                && let Ok(temporary) = temporary_name(&name)
                // To the system, both are one name, and a rename from the one to the other does nothing (rename(2)).
                && directory.rename(&there, &temporary, RenameFlags::empty()).is_ok()
                && directory.rename(&temporary, &name, RenameFlags::empty()).is_err()
            {
                let _ = directory.rename(&temporary, &there, RenameFlags::empty());
            }
        }
    }
}

/// The entries of a directory that `unlisted` names lead to: their spellings there, and these names.
fn spared(
    places: &Places,
    path: &RelPath,
    unlisted: Vec<Component>,
) -> Result<Vec<(Component, Component)>, (Component, Failure)> {
    let opened = places.directory(path).and_then(|directory| {
        let names = directory.names().map_err(|error| failure("read its directory", error))?;
        Ok((directory, names))
    });
    let (mut spared, mut by_folded) = (Vec::new(), BTreeMap::<_, Vec<&Component>>::new());
    for name in unlisted {
        let (directory, names) = opened.as_ref().map_err(|failure| (name.clone(), failure.clone()))?;
        // It has its name by now, or is gone.
        let Ok(stat) = directory.stat(&name) else { continue };
        if names.binary_search(&name).is_ok() {
            continue;
        }
        if by_folded.is_empty() {
            names.iter().for_each(|there| by_folded.entry(folded(there)).or_default().push(there));
        }
        let is_it = |there: &&Component| directory.stat(there).is_ok_and(|its| its.st_ino == stat.st_ino);
        // Some file systems have an inode for each spelling. Then only the form tells, if one name has it.
        let found = match by_folded.get(&folded(&name)).map(Vec::as_slice) {
            Some([there]) => Some(*there),
            Some(several) => several.iter().copied().find(is_it),
            None => names.iter().find(is_it),
        };
        match found {
            Some(there) => spared.push((there.clone(), name)),
            None => {
                let message = "the target has it under a spelling that is not found, so nothing is removed";
                return Err((name, Failure::new(FailCode::NotSelected, message)));
            }
        }
    }
    Ok(spared)
}
