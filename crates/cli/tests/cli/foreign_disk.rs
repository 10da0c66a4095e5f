//! A file system of the tests' own, with the habits of others: it ignores case as exFAT, or the form of characters as HFS+, and has no
//! links, no attributes or no inodes. It keeps everything in memory, and stands for targets that no test machine has.
//!
//! ```ignore
//! let Some(disk) = Foreign::mount(&scratch.dir("disk"), Habits { ignores_case: true, ..Habits::LIKE_EXT4 }) else { return };
//! ```
//!
//! It needs root and /dev/fuse. Without them, tests are skipped by name.

mod memory;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fuser::{BackgroundSession, Config, MountOption};

use self::memory::Memory;
use crate::requirement::skip;

/// What the file system does otherwise than ext4.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// Takes names for one that differ in case. It keeps the spelling of the first.
    pub(crate) ignores_case: bool,
    /// Takes names for one whose characters are composed or not, and stores them decomposed.
    pub(crate) decomposes: bool,
    /// Each spelling of a name has an inode number of its own, as in file systems without such numbers.
    pub(crate) numbers_spellings: bool,
    /// Knows RENAME_NOREPLACE and RENAME_EXCHANGE.
    pub(crate) rename_flags: bool,
    /// The precision of its times.
    pub(crate) tick: Duration,
    pub(crate) hard_links: bool,
    pub(crate) symlinks: bool,
    /// Refuses names with `:` or `?`, and those that end in a dot, with EINVAL.
    pub(crate) refuses_names: bool,
    /// Most bytes of an extended attribute, and the error for a longer one. `None`: there are no attributes.
    pub(crate) attributes: Option<(usize, i32)>,
    /// Entries that may be made.
    pub(crate) inodes: u64,
    /// Modes and owners can be changed.
    pub(crate) modes: bool,
}

impl Habits {
    /// Those that the tests expect elsewhere.
    pub(crate) const LIKE_EXT4: Self = Self {
        ignores_case: false,
        decomposes: false,
        numbers_spellings: false,
        rename_flags: true,
        tick: Duration::from_nanos(1),
        hard_links: true,
        symlinks: true,
        refuses_names: false,
        attributes: Some((64 << 10, libc::E2BIG)),
        inodes: u64::MAX,
        modes: true,
    };
}

/// A mounted file system. It is gone with its files when it is dropped.
pub(crate) struct Foreign(Option<BackgroundSession>, PathBuf);

impl Foreign {
    /// Mounts it at a directory. `None`, with a line, if that is not possible here.
    pub(crate) fn mount(at: impl AsRef<Path>, habits: Habits) -> Option<Self> {
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("foreign".to_owned())];
        match fuser::spawn_mount(Memory::new(habits), &at, &config) {
            Ok(session) => Some(Self(Some(session), at.as_ref().to_owned())),
            Err(error) => skip(&format!("no file system can be mounted by /dev/fuse: {error}")),
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if let Some(session) = self.0.take() {
            // Of a test that failed, a server may still have files open there.
            if session.umount_and_join().is_err() {
                let _ = Command::new("umount").arg("--lazy").arg(&self.1).status();
            }
        }
    }
}
