//! What a path of a client means, and who may reach it.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use farhaul_session::{Component, FailCode, Failure, PathError, RelPath, ServicePath};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::{FileChange, failed};
use crate::directory::{Directory, no_modes_here, split_last};
use crate::failure::cannot_make;
use crate::held::Place;
use crate::temporary::refuse_reserved;
use crate::umask::umask;

/// What a client may do at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Look, and read.
    Read,
    /// Make and replace entries.
    Write,
    /// Take entries away.
    Delete,
}

/// Decides what a client may do below a root, and counts what it moves.
pub trait Guard {
    /// The bytes that a new file is still said to get.
    type Claim: Default + fmt::Debug;

    /// Where a path below the root leads, if the client has this right there.
    fn place(&self, root: &Arc<Directory>, right: Right, path: RelPath) -> Result<Place, Failure>;
    /// Bytes to move at once.
    fn portion(&self) -> usize;
    /// Counts a file or directory that is made or read.
    fn charge_file(&mut self) -> Result<(), Failure>;
    /// Counts bytes, and waits as long as the cap of the rate demands.
    fn charge(&mut self, bytes: usize) -> Result<(), Failure> {
        self.charge_claimed(bytes, &mut Self::Claim::default())
    }
    /// The same for bytes of a file that has claimed them.
    fn charge_claimed(&mut self, bytes: usize, claim: &mut Self::Claim) -> Result<(), Failure>;
    /// Claims the bytes of a new file.
    fn claim(&mut self, bytes: u64) -> Result<Self::Claim, Failure>;
    /// Notes a change that was made.
    fn changed(&self, place: &ServicePath, change: FileChange<'_>);
}

/// Everything is permitted, and nothing counted: the client is the user of this process.
#[derive(Debug)]
pub struct Unguarded;

impl Guard for Unguarded {
    type Claim = ();

    fn place(&self, root: &Arc<Directory>, _: Right, path: RelPath) -> Result<Place, Failure> {
        Ok(Place { start: Arc::clone(root), below: path })
    }

    fn portion(&self) -> usize {
        usize::MAX
    }

    fn charge_file(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn charge_claimed(&mut self, _: usize, _: &mut ()) -> Result<(), Failure> {
        Ok(())
    }

    fn claim(&mut self, _: u64) -> Result<(), Failure> {
        Ok(())
    }

    fn changed(&self, _: &ServicePath, _: FileChange<'_>) {}
}

/// Gives a path of a client the home directory that it begins with.
type WithHome<'a> = Box<dyn Fn(&[u8]) -> Result<PathBuf, Failure> + 'a>;

/// What paths of a client mean.
pub enum Reach<'a> {
    /// They are below this root, and lead through no link.
    Beneath(Arc<Directory>),
    /// They are those of the user of this process. Links in its path are followed, since the user names them.
    Own(WithHome<'a>),
}

impl fmt::Debug for Reach<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Beneath(_) => "Beneath",
            Self::Own(_) => "Own",
        })
    }
}

impl Reach<'_> {
    /// The directory `under` a place. From the place on, no link is followed.
    pub(super) fn directory(
        &self,
        place: &ServicePath,
        under: &RelPath,
        (guard, right): (&impl Guard, Right),
    ) -> Result<Directory, Failure> {
        let found = match self {
            Self::Beneath(root) => {
                let mut path = below(place)?;
                for name in under.components() {
                    path.push(name.clone()).map_err(|error| name_refused(&error))?;
                }
                let place = guard.place(root, right, path)?;
                place.start.descend(&place.below)
            }
            Self::Own(with_home) => {
                let start = Directory::open(&with_home(place.as_bytes())?);
                if under.is_root() { start } else { start.and_then(|start| start.descend(under)) }
            }
        };
        found.map_err(|error| io_failed("open", &error))
    }

    /// The directory of the entry at a place, and its name there. `None` for a place without a name, which is a directory.
    pub(super) fn parent(
        &self,
        place: &ServicePath,
        (guard, right): (&impl Guard, Right),
    ) -> Result<Option<(Directory, Component)>, Failure> {
        let found = match self {
            Self::Beneath(root) => {
                let place = guard.place(root, right, below(place)?)?;
                place.start.descend_to_parent(&place.below)
            }
            Self::Own(with_home) => Directory::open_parent(&with_home(place.as_bytes())?),
        };
        found.map_err(|error| io_failed("open its directory", &error))
    }

    /// Opens the file at a place for reading. Neither a pipe nor a device makes it wait.
    pub(super) fn open(&self, place: &ServicePath, guard: &impl Guard) -> Result<File, Failure> {
        match self {
            Self::Beneath(_) => {
                let found = self.parent(place, (guard, Right::Read))?;
                let (directory, name) = found.ok_or(FailCode::IsDirectory)?;
                directory.open_file(&name).map_err(|error| match error {
                    Errno::LOOP => Failure::new(FailCode::SpecialFile, "a symbolic link"),
                    error => failed("open", error),
                })
            }
            Self::Own(with_home) => {
                let path = with_home(place.as_bytes())?;
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                let opened = rustix::fs::openat(CWD, &path, flags, Mode::empty());
                opened.map(File::from).map_err(|error| failed("open", error))
            }
        }
    }

    /// The directory of an entry, and its name. Missing directories are made, and survive a crash.
    pub(super) fn make_parent(
        &self,
        place: &ServicePath,
        guard: &mut impl Guard,
    ) -> Result<(Directory, Component), Failure> {
        let no_name = || Failure::from(FailCode::NameRefused);
        match self {
            Self::Beneath(root) => {
                let place = guard.place(root, Right::Write, below(place)?)?;
                let (name, parents) = place.below.split_last().ok_or_else(no_name)?;
                let start = place.start.reopened().map_err(|error| failed("open", error))?;
                Ok((make_all(start, parents.iter().cloned(), guard)?, name.clone()))
            }
            Self::Own(with_home) => {
                let path = with_home(place.as_bytes())?;
                let split = |path: &Path| match split_last(path) {
                    Ok(Some((parent, name))) => Ok((parent.to_owned(), name)),
                    _ => Err(no_name()),
                };
                let (mut at, name) = split(&path)?;
                let mut missing = Vec::new();
                let start = loop {
                    match Directory::open(&at) {
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {
                            let (parent, name) = split(&at)?;
                            missing.push(name);
                            at = parent;
                        }
                        opened => break opened.map_err(|error| io_failed("open", &error))?,
                    }
                };
                Ok((make_all(start, missing.into_iter().rev(), guard)?, name))
            }
        }
    }
}

/// The path below a root. Slashes in front change nothing.
fn below(place: &ServicePath) -> Result<RelPath, Failure> {
    let bytes = place.as_bytes();
    let start = bytes.iter().position(|&byte| byte != b'/').unwrap_or(bytes.len());
    match &bytes[start..] {
        b"." | b"./" => Ok(RelPath::root()),
        path => RelPath::parse(path).map_err(|error| name_refused(&error)),
    }
}

fn name_refused(error: &PathError) -> Failure {
    Failure::new(FailCode::NameRefused, error.to_string())
}

/// The directory reached by these names, of which some may not exist.
fn make_all(
    start: Directory,
    names: impl Iterator<Item = Component>,
    guard: &mut impl Guard,
) -> Result<Directory, Failure> {
    let mut at = start;
    for name in names {
        at = match at.child(&name) {
            Ok(child) => child,
            Err(Errno::NOENT) => {
                refuse_reserved(&name)?;
                guard.charge_file()?;
                make_directory(&at, &name)?;
                at.child(&name).map_err(|error| failed("open", error))?
            }
            Err(error) => return Err(failed("open", error)),
        };
    }
    Ok(at)
}

/// Makes a directory that survives a crash. Returns whether it is new.
pub(super) fn make_directory(parent: &Directory, name: &Component) -> Result<bool, Failure> {
    let (made, is_new) = parent.make_child(name).map_err(|error| match error {
        Errno::NOTDIR | Errno::LOOP => Failure::new(FailCode::Exists, format!("{name} is no directory")),
        error => cannot_make("directory", parent, error),
    })?;
    if is_new {
        no_modes_here(made.set_mode(0o777 & !umask())).map_err(|error| failed("set its mode", error))?;
        parent.sync().map_err(|error| failed("synchronise the directory", error))?;
    }
    Ok(is_new)
}

/// The same failure for an error of the standard library.
pub(super) fn io_failed(action: &str, error: &io::Error) -> Failure {
    match Errno::from_io_error(error) {
        Some(errno) => failed(action, errno),
        None => Failure::new(FailCode::NameRefused, error.to_string()),
    }
}
