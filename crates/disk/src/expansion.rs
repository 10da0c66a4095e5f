//! The entries that match a pattern: walked by directory handles, level by level, never through a symbolic link.

use std::io;
use std::sync::Arc;

use farhaul_session::{Component, Pattern, RelPath};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::directory::Directory;
use super::temporary::is_temporary;

/// Most matches of one request, those of parent directories included. More are better copied as a directory.
const MOST_MATCHES: usize = 100_000;
/// Most bytes in the names of these matches. With their overhead, a request then takes at most some 50 MB.
const MOST_BYTES: usize = 16 << 20;
/// Most names that one request compares. A local disk lists as many in a second or two.
const MOST_COMPARED: usize = 2_000_000;

/// The work that the patterns of one request may still cause.
#[derive(Debug)]
pub(super) struct Budget {
    matches: usize,
    bytes: usize,
    compared: usize,
}

/// Entries in one directory: its path below the start, and their names.
pub(super) type Found = (Arc<RelPath>, Vec<Component>);

impl Budget {
    pub(super) const fn new() -> Self {
        Self { matches: MOST_MATCHES, bytes: MOST_BYTES, compared: MOST_COMPARED }
    }

    fn matched(&mut self, bytes: usize) -> io::Result<()> {
        self.matches = self.matches.checked_sub(1).ok_or_else(too_many)?;
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(too_many)?;
        Ok(())
    }

    fn compared(&mut self) -> io::Result<()> {
        self.compared = self.compared.checked_sub(1).ok_or_else(too_many)?;
        Ok(())
    }
}

fn too_many() -> io::Error {
    let message = format!(
        "the pattern matches too much: more than {MOST_MATCHES} names, or it compares more than {MOST_COMPARED}; copy the \
         directory with -r, or use a narrower pattern"
    );
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// The part of a path that names one directory, and the patterns behind it, of which there is at least one.
pub(super) fn divided(path: &[Component]) -> Option<(&[Component], &[Component])> {
    path.iter().position(Pattern::is_in).map(|first| path.split_at(first))
}

/// Finds the entries below `start` that match these patterns, one for each level, in no particular order. Temporary names
/// of incomplete files are left out, and so are directories that may not be read.
pub(super) fn expand(start: &Directory, patterns: &[Component], budget: &mut Budget) -> io::Result<Vec<Found>> {
    let Some((last, before)) = patterns.split_last() else { return Ok(Vec::new()) };
    let mut directories = vec![Arc::new(RelPath::root())];
    for pattern in before {
        let mut deeper = Vec::new();
        for (parent, names) in matching(start, &directories, pattern, MatchedKinds::Directories, budget)? {
            for name in names {
                // A path that is too long is reached by no copy.
                deeper.extend(parent.join(name).ok().map(Arc::new));
            }
        }
        directories = deeper;
    }
    matching(start, &directories, last, MatchedKinds::All, budget)
}

/// The kinds of entries that a pattern matches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchedKinds {
    Directories,
    All,
}

/// The entries of these directories whose names match.
fn matching(
    start: &Directory,
    directories: &[Arc<RelPath>],
    pattern: &Component,
    kinds: MatchedKinds,
    budget: &mut Budget,
) -> io::Result<Vec<Found>> {
    let pattern = Pattern::new(pattern);
    let only = pattern.only_name();
    let mut found = Vec::new();
    for path in directories {
        let directory = match start.descend(path) {
            Ok(directory) => directory,
            // The start is the user's word. What lies below it may be something else, or belong to somebody else.
            Err(error) if !path.is_root() && is_impassable(&error) => continue,
            Err(error) => return Err(error),
        };
        let length = path.to_bytes().len();
        let mut names = Vec::new();
        match &only {
            Some(name) => {
                budget.compared()?;
                if directory.stat(name).is_ok() {
                    budget.matched(length + name.as_bytes().len())?;
                    names.push(name.clone());
                }
            }
            None => directory.each_name(|name, kind| {
                budget.compared()?;
                let may_be = kinds == MatchedKinds::All || matches!(kind, FileType::Directory | FileType::Unknown);
                if may_be
                    && pattern.matches(name)
                    && let Ok(name) = Component::new(name)
                    && !is_temporary(&name)
                {
                    budget.matched(length + name.as_bytes().len())?;
                    names.push(name);
                }
                Ok::<_, io::Error>(())
            })?,
        }
        if !names.is_empty() {
            found.push((Arc::clone(path), names));
        }
    }
    Ok(found)
}

/// Whether an entry is no directory that a pattern may pass: a file, a link, one that is gone, or one that is locked.
pub(super) fn is_impassable(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOTDIR | Errno::LOOP | Errno::NOENT | Errno::ACCESS | Errno::PERM | Errno::XDEV))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends_with_an_error_that_says_what_to_do() {
        let mut budget = Budget { matches: 2, bytes: 100, compared: 3 };
        assert!(budget.matched(10).is_ok());
        let error = budget.matched(91).unwrap_err();
        assert!(error.to_string().contains("-r"), "{error}");
        assert!(budget.matched(0).is_err(), "the matches are counted, too");
        assert!((0..3).all(|_| budget.compared().is_ok()) && budget.compared().is_err());
    }

    #[test]
    fn the_names_before_the_first_pattern_are_taken_as_they_are() {
        let path = RelPath::parse(b"a/b/*/c").unwrap();
        let (before, patterns) = divided(path.components()).unwrap();
        assert_eq!((before.len(), patterns.len()), (2, 2));
        assert!(divided(RelPath::parse(b"a/b").unwrap().components()).is_none());
    }
}
