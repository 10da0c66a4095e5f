//! Names that take no part in a copy, by the rules of a .gitignore file at its top (gitignore(5)).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use farhaul_session::RelPath;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The patterns of a copy.
#[derive(Clone, Debug)]
pub struct Filters {
    patterns: Gitignore,
}

impl Default for Filters {
    fn default() -> Self {
        Self { patterns: Gitignore::empty() }
    }
}

impl Filters {
    /// The patterns in these lines. Of those that match a path, the last one counts.
    ///
    /// # Errors
    /// A line is no pattern.
    pub fn of(lines: &[Vec<u8>]) -> Result<Self, String> {
        if lines.is_empty() {
            return Ok(Self::default());
        }
        let mut builder = GitignoreBuilder::new("");
        for line in lines {
            let line = std::str::from_utf8(line).map_err(|_| "a pattern is no UTF-8".to_owned())?;
            builder.add_line(None, line).map_err(|error| error.to_string())?;
        }
        let patterns = builder.build().map_err(|error| error.to_string())?;
        Ok(Self { patterns })
    }

    /// Whether an entry takes no part. Its directory does, so that is not looked at.
    pub fn leave_out(&self, path: &RelPath, is_directory: bool) -> bool {
        if self.patterns.is_empty() {
            return false;
        }
        let bytes = path.to_bytes();
        self.patterns.matched(Path::new(OsStr::from_bytes(&bytes)), is_directory).is_ignore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves_out(lines: &[&str], path: &str) -> bool {
        let lines: Vec<_> = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
        let filters = Filters::of(&lines).unwrap();
        filters.leave_out(&RelPath::parse(path.as_bytes()).unwrap(), path.ends_with('/'))
    }

    #[test]
    fn patterns_are_those_of_gitignore_files() {
        assert!(leaves_out(&["*.o"], "src/deep/a.o") && !leaves_out(&["*.o"], "src/a.c"));
        assert!(leaves_out(&["/cache/"], "cache/") && !leaves_out(&["/cache/"], "a/cache/"));
        assert!(!leaves_out(&["cache/"], "a/cache"), "a slash means a directory");
        assert!(leaves_out(&["*.o", "!keep.o"], "x.o") && !leaves_out(&["*.o", "!keep.o"], "d/keep.o"));
        assert!(leaves_out(&["a/**/z"], "a/b/c/z") && leaves_out(&["[ab]?"], "d/b1"));
        assert!(!leaves_out(&[], "a") && !leaves_out(&["# comment", ""], "comment"));
    }

    #[test]
    fn a_line_that_is_no_pattern_is_named() {
        assert!(Filters::of(&[b"[z-a]".to_vec()]).unwrap_err().contains("[z-a]"));
        assert!(Filters::of(&[b"\xff".to_vec()]).is_err());
    }
}
