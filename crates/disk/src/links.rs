//! Symbolic and hard links at a target, and files in the place of hard links. Like files, they get a temporary name first, and then
//! their own in one step.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use farhaul_session::{Change, Component, Ends, Entry, FailCode, Failure};
use rustix::fs::{FileType, RenameFlags, Stat, Timestamps, fstat, readlinkat};
use rustix::io::Errno;

use super::directory::{Directory, is_same, kind, mtime};
use super::failure::{cannot_change, cannot_make, failure, io_failure};
use super::partial::Partial;
use super::patience::{Patience, patiently};
use super::place::StoredPlace;
use super::properties::{TargetProperties, Writer};
use super::source_file::size;
use super::target::words;
use super::temporary::temporary_name;

/// Makes a symbolic link, or replaces one that leads elsewhere.
pub(super) fn make_symlink(
    place: &StoredPlace,
    entry: &Entry,
    properties: &TargetProperties,
    dry_run: bool,
) -> Result<Change, Failure> {
    let StoredPlace { directory, name, claims, .. } = place;
    let target = entry.link_target().ok_or_else(|| Failure::from(FailCode::Io))?;
    let mut claimed = claims.lock();
    let there = directory.stat(name);
    if let Ok(there) = &there {
        claimed.permit(directory, name, there.st_ino)?;
    }
    let change = match there {
        Err(Errno::NOENT) => Change::New,
        Err(error) => return Err(failure("read", error)),
        Ok(stat) if kind(&stat) != FileType::Symlink => return Err(in_the_way(place, kind(&stat))),
        Ok(stat) => match directory.link_target(name) {
            Ok(there) if there == target => {
                let differs = mtime(&stat) != entry.mtime || properties.owner_differs(&stat);
                claimed.claim_link(directory, name);
                if !differs {
                    return Ok(Change::None);
                }
                if !dry_run {
                    let link = hold(directory, name, target)?;
                    set_properties(&link, (directory, name), properties)?;
                }
                return Ok(Change::Properties);
            }
            _ => Change::Content,
        },
    };
    if dry_run {
        return Ok(change);
    }
    let temporary = temporary_name(name)?;
    directory.make_link(&temporary, target).map_err(|error| match error {
        Errno::PERM | Errno::OPNOTSUPP if !directory.is_fixed(None) => {
            Failure::new(FailCode::Unsupported, "the file system has no symbolic links; -r leaves them out")
        }
        error => cannot_make("link", directory, error),
    })?;
    let done = hold(directory, &temporary, target).and_then(|link| {
        set_properties(&link, (directory, &temporary), properties)?;
        let named = directory.stat(&temporary).map_err(|error| failure("read", error))?;
        match fstat(&link).is_ok_and(|link| is_same(&link, &named)) {
            true => take(place, &temporary, change, FileType::Symlink),
            false => Err(replaced()),
        }
    });
    match done {
        Ok(()) => claimed.claim_link(directory, name),
        Err(_) => drop(directory.remove(&temporary)),
    }
    done.map(|()| change)
}

/// Holds the link with this name. In a directory that belongs to another user, that user may have put another entry there, and would
/// get that one with the owner of the link.
fn hold(directory: &Directory, name: &Component, target: &[u8]) -> Result<OwnedFd, Failure> {
    let link = directory.hold(name).map_err(|error| failure("open", error))?;
    let is_link = fstat(&link).is_ok_and(|stat| kind(&stat) == FileType::Symlink);
    let leads_there = || readlinkat(&link, "", Vec::new()).is_ok_and(|its| its.as_bytes() == target);
    if is_link && leads_there() { Ok(link) } else { Err(replaced()) }
}

fn set_properties(
    link: &OwnedFd,
    (directory, name): (&Directory, &Component),
    properties: &TargetProperties,
) -> Result<(), Failure> {
    let by_name = |times: &Timestamps| directory.set_times(name, times);
    properties.set_of_link(link, by_name).map_err(|error| failure("set its properties", error))
}

/// Whether two names show the same properties, where file systems may number each name of a file.
fn is_like(one: &Stat, other: &Stat) -> bool {
    let shown = |stat: &Stat| (stat.st_mode, stat.st_uid, stat.st_gid, stat.st_size, mtime(stat));
    shown(one) == shown(other)
}

fn replaced() -> Failure {
    Failure::new(FailCode::Io, "somebody else replaced it just now")
}

/// A hard link that was made.
#[derive(Clone, Copy, Debug)]
pub(super) enum HardLink {
    Made(Change),
    /// The file system, or this user, makes none. A file of the same content takes its place, with this change. It may be there.
    Impossible(Change, Option<Stat>),
}

/// Makes `place` a further name of the file at `first`.
pub(super) fn make_hard_link(place: &StoredPlace, first: &StoredPlace, dry_run: bool) -> Result<HardLink, Failure> {
    let StoredPlace { directory, name, claims, .. } = place;
    let file = match first.directory.stat(&first.name) {
        Ok(stat) if kind(&stat) == FileType::RegularFile => stat,
        Err(Errno::NOENT) if dry_run => return Ok(HardLink::Made(Change::New)),
        Ok(_) => return Err(Failure::new(FailCode::SourceChanged, "its first name is no file any more")),
        Err(error) => return Err(failure("read its first name", error)),
    };
    let mut claimed = claims.lock();
    let there = directory.stat(name);
    if let Ok(there) = &there {
        claimed.permit(directory, name, there.st_ino)?;
    }
    let change = match &there {
        Err(Errno::NOENT) => Change::New,
        Err(error) => return Err(failure("read", *error)),
        Ok(there) if is_same(there, &file) => {
            claimed.claim_link(directory, name);
            return Ok(HardLink::Made(Change::None));
        }
        Ok(there) if kind(there) != FileType::RegularFile => return Err(in_the_way(place, kind(there))),
        Ok(_) => Change::Content,
    };
    if dry_run {
        return Ok(HardLink::Made(change));
    }
    let temporary = temporary_name(name)?;
    match directory.make_hard_link(&temporary, &first.directory, &first.name) {
        Ok(()) => {}
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
            return Ok(HardLink::Impossible(change, there.ok()));
        }
        Err(error) => return Err(cannot_make("link", directory, error)),
    }
    let done = match directory.stat(&temporary) {
        Ok(named) if is_same(&named, &file) || is_like(&named, &file) => {
            take(place, &temporary, change, FileType::RegularFile)
        }
        _ => Err(replaced()),
    };
    // A rename between two names of one file does nothing (rename(2)), and a failure leaves the temporary one.
    let _ = directory.remove(&temporary);
    if done.is_ok() {
        claimed.claim_link(directory, name);
    }
    done.map(|()| HardLink::Made(change))
}

/// Makes an incomplete file for `place` with the content and the properties of that at `first`. `None` if the one that is `there`
/// has the same size and time, and stays. `charge` counts the bytes before they are copied.
pub(super) fn copy_first(
    StoredPlace { directory, name, claims, .. }: &StoredPlace,
    first: &StoredPlace,
    there: Option<Stat>,
    (writer, patience, ends): (&Writer, Option<&Patience>, &Ends),
    charge: impl FnOnce(u64) -> Result<(), Failure>,
) -> Result<Option<(Partial, TargetProperties)>, Failure> {
    let file = first.directory.open_file(&first.name).map_err(|error| failure("open its first name", error))?;
    let stat = rustix::fs::fstat(&file).map_err(|error| failure("read its first name", error))?;
    if let Some(there) = there.filter(|there| size(there) == size(&stat) && mtime(there) == mtime(&stat)) {
        claims.claim_existing(directory, name, (there.st_ino, false))?;
        return Ok(None);
    }
    charge(size(&stat))?;
    let properties = writer.as_of(&file, &stat).map_err(|error| failure("read its properties", error))?;
    let partial = patiently(patience, || {
        let (directory, claims) = (Arc::clone(directory), Arc::clone(claims));
        let file = file.try_clone().map_err(|error| io_failure("open its first name", &error))?;
        Partial::begin(directory, name.clone(), (size(&stat), false), claims)?.with_content_of(file, ends)
    })?;
    Ok(Some((partial, properties)))
}

/// Gives the name to the link called `temporary`. It replaces an entry of this kind, or nothing.
fn take(place: &StoredPlace, temporary: &Component, change: Change, replaces: FileType) -> Result<(), Failure> {
    let StoredPlace { directory, name, .. } = place;
    let cannot = |error| cannot_change("give the link its name", directory, name, error);
    if change == Change::New {
        return match directory.rename(temporary, name, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS) => directory.rename(temporary, name, RenameFlags::empty()).map_err(cannot),
            done => done.map_err(cannot),
        };
    }
    match directory.rename(temporary, name, RenameFlags::EXCHANGE) {
        Ok(()) => {}
        Err(Errno::INVAL | Errno::NOSYS) => {
            return directory.rename(temporary, name, RenameFlags::empty()).map_err(cannot);
        }
        Err(error) => return Err(cannot(error)),
    }
    match directory.stat(temporary).map(|stat| kind(&stat)) {
        Ok(kind) if kind == replaces => directory.remove(temporary).map_err(cannot),
        Ok(kind) => {
            // Something else came there just now.
            directory.rename(temporary, name, RenameFlags::EXCHANGE).map_err(cannot)?;
            Err(in_the_way(place, kind))
        }
        Err(error) => Err(cannot(error)),
    }
}

fn in_the_way(place: &StoredPlace, kind: FileType) -> Failure {
    Failure::new(FailCode::Exists, format!("{} is {}", place.name, words(kind)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// What another user does to a name in their own directory, between two steps of a copy.
    #[test]
    fn an_entry_that_took_the_place_of_a_new_link_is_never_taken_for_it() {
        let base = std::env::temp_dir().join(format!("farhaul-links-{}", std::process::id()));
        fs::create_dir_all(&base).unwrap();
        let directory = Directory::open(&base).unwrap();
        let [name, other] = [&b"link"[..], b"other"].map(|name| Component::new(name).unwrap());
        let holds = || hold(&directory, &name, b"target").is_ok();
        directory.make_link(&name, b"target").unwrap();
        assert!(holds());
        fs::write(base.join("other"), "secret").unwrap();
        directory.rename(&other, &name, RenameFlags::empty()).unwrap();
        assert!(!holds(), "a file");
        directory.remove(&name).unwrap();
        directory.make_link(&name, b"elsewhere").unwrap();
        assert!(!holds(), "a link that leads elsewhere");
        directory.remove(&name).unwrap();
        directory.make_child(&name).unwrap();
        assert!(!holds(), "a directory");
        fs::remove_dir_all(&base).unwrap();
    }
}
