//! Paths from a directory down to another one, without following symbolic links.

use std::io;

use farhaul_session::{Component, RelPath};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::directory::{Directory, OPEN_DIR};

/// Longest path that the kernel accepts in one call: `PATH_MAX` less its NUL.
const LONGEST: usize = 4095;

impl Directory {
    /// Opens the directory at `path` below this one, without following links.
    ///
    /// # Errors
    /// There is no such directory, or a component is a link.
    pub fn descend(&self, path: &RelPath) -> io::Result<Self> {
        Ok(self.descend_along(path.components())?)
    }

    /// Opens the parent of `path`, and returns it with the last name. `None` for the root itself.
    pub(super) fn descend_to_parent(&self, path: &RelPath) -> io::Result<Option<(Self, Component)>> {
        let Some((name, parents)) = path.split_last() else { return Ok(None) };
        Ok(Some((self.descend_along(parents)?, name.clone())))
    }

    /// Opens the directory reached by these names, one below the other. Needs at most two descriptors at a time,
    /// regardless of their number.
    pub(super) fn descend_along<'a>(&self, names: impl IntoIterator<Item = &'a Component>) -> Result<Self, Errno> {
        let mut at = None;
        let mut names = names.into_iter().peekable();
        while names.peek().is_some() {
            let mut path = Vec::new();
            while let Some(name) = names.next_if(|name| path.len() + name.as_bytes().len() < LONGEST) {
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(&self.spelled(name));
            }
            at = Some(at.as_ref().unwrap_or(self).descend_at_once(&path)?);
        }
        at.map_or_else(|| self.reopened(), Ok)
    }

    fn descend_at_once(&self, path: &[u8]) -> Result<Self, Errno> {
        let resolve = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);
        match rustix::fs::openat2(self, path, OPEN_DIR, Mode::empty(), resolve) {
            // Linux before 5.6, or a sandbox without the call.
            Err(Errno::NOSYS | Errno::PERM) => self.descend_by_steps(path),
            opened => self.opened_below(opened?),
        }
    }

    /// The same, one name at a time. As with one call, its parent directories need not be readable.
    fn descend_by_steps(&self, path: &[u8]) -> Result<Self, Errno> {
        let mut at = None;
        let mut names = path.split(|&byte| byte == b'/').peekable();
        while let Some(name) = names.next() {
            let flags = if names.peek().is_some() { OPEN_DIR.union(OFlags::PATH) } else { OPEN_DIR };
            let from = at.as_ref().unwrap_or(self);
            at = Some(self.opened_below(rustix::fs::openat(
                from,
                name,
                flags.union(OFlags::NOFOLLOW),
                Mode::empty(),
            )?)?);
        }
        at.ok_or(Errno::NOENT)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use super::*;

    /// A directory that is removed with everything in it.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("farhaul-descent-{}-{test}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn both(root: &Directory, path: &str) -> [Result<Directory, Errno>; 2] {
        [root.descend_at_once(path.as_bytes()), root.descend_by_steps(path.as_bytes())]
    }

    #[test]
    fn both_ways_down_lead_to_the_same_place_and_neither_follows_a_link() {
        let scratch = Scratch::new("descent");
        fs::create_dir_all(scratch.0.join("root/a/b/c")).unwrap();
        fs::create_dir(scratch.0.join("outside")).unwrap();
        symlink("../../outside", scratch.0.join("root/a/out")).unwrap();
        symlink("b", scratch.0.join("root/a/in")).unwrap();
        fs::write(scratch.0.join("root/a/file"), b"").unwrap();
        let root = Directory::open(&scratch.0.join("root")).unwrap();
        let there = Directory::open(&scratch.0.join("root/a/b/c")).unwrap();
        for found in both(&root, "a/b/c") {
            assert!(found.unwrap().is_same(&there));
        }
        for path in ["a/out", "a/in", "a/in/c", "a/file", "a/file/x", "a/no/c"] {
            for found in both(&root, path) {
                assert!(found.is_err(), "{path}");
            }
        }
    }

    #[test]
    fn paths_longer_than_the_kernel_takes_are_found() {
        let scratch = Scratch::new("long");
        let name = Component::new(&[b'n'; 200]).unwrap();
        let mut at = Directory::open(&scratch.0).unwrap();
        for _ in 0..50 {
            (at, _) = at.make_child(&name).unwrap();
        }
        let root = Directory::open(Path::new(&scratch.0)).unwrap();
        assert!(root.descend_along(std::iter::repeat_n(&name, 50)).unwrap().is_same(&at));
    }
}
