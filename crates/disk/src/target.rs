//! The final name of a complete file. The file replaces a regular file or nothing. Any other entry keeps its name.

use std::sync::MutexGuard;

use farhaul_session::{Component, FailCode, Failure};
use rustix::fs::{FileType, RenameFlags, Stat};
use rustix::io::Errno;

use super::claims::{Claimed, Claims};
use super::directory::{Directory, kind};
use super::failure::{cannot_change, cannot_make};

/// Attempts to take a name that somebody else creates and removes all the time.
const ATTEMPTS: usize = 16;

/// A name in an open directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'a> {
    pub(super) directory: &'a Directory,
    pub(super) name: &'a Component,
}

/// The entry that has a name.
#[derive(Clone, Copy, Debug)]
struct Standing {
    kind: FileType,
    inode: u64,
}

/// The reason why a file did not get its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// An entry of this kind has the name.
    InTheWay(FileType),
    /// A file of the same copy has the name.
    Claimed(Failure),
    System(Errno),
}

impl Target<'_> {
    /// Refuses a name that no file can take, before the file is created. Returns the regular file that has the name.
    pub(super) fn check(self, claims: &Claims) -> Result<Option<Stat>, Failure> {
        match self.directory.stat(self.name) {
            Ok(stat) => {
                claims.lock().permit(self.directory, self.name, stat.st_ino)?;
                if kind(&stat) == FileType::RegularFile { Ok(Some(stat)) } else { Err(self.in_the_way(kind(&stat))) }
            }
            // If the system does not tell, creating the file will.
            Err(_) => Ok(None),
        }
    }

    /// Gives a name that nothing has.
    pub(super) fn take_free(self, temporary: &Component, claims: &Claims) -> Result<(), Refusal> {
        let _claimed = self.exclusively(claims);
        self.rename(temporary, RenameFlags::NOREPLACE)
    }

    /// Keeps other threads from giving names in the directory, unless the file system tells this one from all others.
    fn exclusively(self, claims: &Claims) -> Option<MutexGuard<'_, Claimed>> {
        Some(claims.lock()).filter(|claimed| !claimed.tells_apart(self.name))
    }

    /// The regular file that has the name now.
    pub(super) fn replaced(self) -> Option<Stat> {
        self.directory.stat(self.name).ok().filter(|stat| kind(stat) == FileType::RegularFile)
    }

    /// Gives the name to the file called `temporary`.
    ///
    /// The kernel checks and renames in one step, so an entry that appears at the last moment stays. On file systems
    /// without such steps, a rename follows the check and replaces an entry that appears in between.
    ///
    /// A file that this copy has made under another name stays.
    pub(super) fn take(self, temporary: &Component, claims: &Claims) -> Result<(), Failure> {
        // Most names are new.
        self.take_free(temporary, claims).or_else(|_| self.take_any(temporary, claims))
    }

    /// The same for a name that a file is likely to have.
    pub(super) fn take_any(self, temporary: &Component, claims: &Claims) -> Result<(), Failure> {
        let mut claimed = self.exclusively(claims);
        let mut taken = Err(Refusal::System(Errno::EXIST));
        for _ in 0..ATTEMPTS {
            taken = self.standing().map_err(Refusal::System).and_then(|standing| match standing {
                None => self.rename(temporary, RenameFlags::NOREPLACE),
                Some(Standing { kind, inode }) => {
                    let permitted = match &mut claimed {
                        Some(claimed) => claimed.permit(self.directory, self.name, inode),
                        None => claims.lock().permit(self.directory, self.name, inode),
                    };
                    permitted.map_err(Refusal::Claimed).and_then(|()| match kind {
                        FileType::RegularFile => self.replace(temporary),
                        kind => Err(Refusal::InTheWay(kind)),
                    })
                }
            });
            match taken {
                // Somebody created or removed it meanwhile.
                Err(Refusal::System(Errno::EXIST | Errno::NOENT)) => {}
                // The file system has no such steps.
                Err(Refusal::System(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::XDEV)) => {
                    taken = self.rename(temporary, RenameFlags::empty());
                    break;
                }
                _ => break,
            }
        }
        taken.map_err(|refusal| self.failure(refusal))
    }

    fn failure(self, refusal: Refusal) -> Failure {
        match refusal {
            Refusal::InTheWay(kind) => self.in_the_way(kind),
            Refusal::Claimed(failure) => failure,
            Refusal::System(error) => cannot_change("give the file its name", self.directory, self.name, error),
        }
    }

    /// Takes the name of a regular file. If another kind of entry has it by now, nothing changes.
    pub(super) fn replace(self, temporary: &Component) -> Result<(), Refusal> {
        self.rename(temporary, RenameFlags::EXCHANGE)?;
        match self.directory.stat(temporary).map(|stat| kind(&stat)) {
            Ok(FileType::RegularFile) => self.directory.remove(temporary).map_err(Refusal::System),
            Ok(kind) => {
                self.rename(temporary, RenameFlags::EXCHANGE)?;
                Err(Refusal::InTheWay(kind))
            }
            Err(error) => Err(Refusal::System(error)),
        }
    }

    /// The failure to create a directory of that name, caused by `error`.
    pub(super) fn no_directory(self, claims: &Claims, error: Errno) -> Failure {
        match self.standing() {
            Ok(Some(standing))
                if let Err(failure) = claims.lock().permit(self.directory, self.name, standing.inode) =>
            {
                failure
            }
            Ok(Some(standing)) if standing.kind != FileType::Directory => self.in_the_way(standing.kind),
            _ => cannot_make("directory", self.directory, error),
        }
    }

    pub(super) fn rename(self, temporary: &Component, flags: RenameFlags) -> Result<(), Refusal> {
        self.directory.rename(temporary, self.name, flags).map_err(Refusal::System)
    }

    /// The entry that has the name now.
    fn standing(self) -> Result<Option<Standing>, Errno> {
        match self.directory.stat(self.name) {
            Ok(stat) => Ok(Some(Standing { kind: kind(&stat), inode: stat.st_ino })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn in_the_way(self, kind: FileType) -> Failure {
        Failure::new(FailCode::Exists, format!("{} is {}", self.name, words(kind)))
    }
}

/// The name of a kind in messages.
pub(super) const fn words(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "neither file nor directory",
    }
}
