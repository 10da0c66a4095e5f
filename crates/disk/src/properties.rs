//! Owners, mode bits, extended attributes and access control lists of entries: reading them, and setting them by handle.

use std::cell::RefCell;
use std::os::fd::{AsFd, AsRawFd};

use farhaul_session::{Attribute, Component, Entry, FailCode, Failure, Kept, MAX_ATTRIBUTES, Mtime, Properties};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, Stat, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags, fchmod, fchown, fgetxattr,
    flistxattr, fremovexattr, fsetxattr, futimens, lgetxattr, llistxattr,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::acl::{self, ACLS};
use super::directory::{Directory, kind, mtime, no_modes_here, permissions};
use super::failure::failure;
use super::owners::{OwnerIds, OwnerNames};
use super::unfinished;

/// Attributes that every owner may set.
const OF_USERS: &[u8] = b"user.";
/// Attributes that need privileges. `security.selinux` and its like belong to the policy of a host and stay there.
const OF_ROOT: [&[u8]; 2] = [b"trusted.", b"security.capability"];
/// All mode bits that chmod(2) sets, and those that it sets for programs and shared directories.
const MODE_BITS: u32 = 0o7777;
const PERMISSIONS: u32 = 0o777;
/// Bytes that are free on a disk that is not full. No attributes of one entry need as much.
const ROOM: u64 = 1 << 20;
/// Most bytes of a list of names: Linux has no longer ones (`XATTR_LIST_MAX`).
const LONGEST_LIST: usize = 64 << 10;

/// The mode bits of an entry that a copy sends.
pub(super) fn mode_of(stat: &Stat, keep: Kept) -> u32 {
    if keep.special_bits { stat.st_mode & MODE_BITS } else { permissions(stat) }
}

/// Which attributes a copy keeps.
#[derive(Clone, Copy, Debug, Default)]
struct Chosen {
    attributes: bool,
    acls: bool,
    of_root: bool,
}

impl Chosen {
    fn has(self, name: &[u8]) -> bool {
        let is_own = name == unfinished::NAME.as_bytes();
        self.acls && ACLS.contains(&name)
            || self.attributes && name.starts_with(OF_USERS) && !is_own
            || self.attributes && self.of_root && OF_ROOT.iter().any(|start| name.starts_with(start))
    }

    const fn is_empty(self) -> bool {
        !self.attributes && !self.acls
    }
}

/// Reads the properties that a copy keeps.
#[derive(Debug, Default)]
pub(super) struct Reader {
    keep: Kept,
    chosen: Chosen,
    owners: RefCell<OwnerNames>,
}

impl Reader {
    pub(super) fn of(keep: Kept) -> Self {
        let chosen = Chosen { attributes: keep.attributes, acls: keep.acls, of_root: geteuid().is_root() };
        Self { keep, chosen, owners: RefCell::default() }
    }

    /// The properties of an entry. `None` if the copy keeps none.
    pub(super) fn properties(
        &self,
        parent: &Directory,
        name: &Component,
        stat: &Stat,
    ) -> Result<Option<Properties>, Failure> {
        let owner = self.keep.owners.then(|| self.owners.borrow_mut().of(stat, self.keep.numeric_ids));
        let attributes = match self.chosen.is_empty() {
            true => Vec::new(),
            false => self.attributes(parent, name, stat)?,
        };
        let is_any = owner.is_some() || !attributes.is_empty();
        Ok(is_any.then(|| Properties { owner, attributes, ..Properties::default() }))
    }

    fn attributes(&self, parent: &Directory, name: &Component, stat: &Stat) -> Result<Vec<Attribute>, Failure> {
        // The system reads attributes by an open file or by a path. A path through the handle of the directory is as good
        // as the handle, and opens no file.
        let path =
            [format!("/proc/self/fd/{}/", parent.as_fd().as_raw_fd()).as_bytes(), &*parent.spelled(name)].concat();
        let by_path =
            attributes(self.chosen, |list| llistxattr(&*path, list), |name, value| lgetxattr(&*path, name, value));
        let found = match by_path {
            // There is no /proc. Attributes of links are left out then.
            Err(Errno::NOENT) if kind(stat) == FileType::RegularFile => {
                let file = parent.open_file(name).map_err(|error| failure("open", error))?;
                of_open(self.chosen, &file)
            }
            Err(Errno::NOENT) if kind(stat) == FileType::Directory => {
                let directory = parent.child(name).map_err(|error| failure("open", error))?;
                of_open(self.chosen, &directory)
            }
            found => found,
        };
        match found {
            Ok(mut attributes) => {
                let len = |attribute: &Attribute| attribute.name.len() + attribute.value.len();
                if attributes.iter().map(len).sum::<usize>() > MAX_ATTRIBUTES {
                    let message = format!("its extended attributes are longer than {MAX_ATTRIBUTES} bytes");
                    return Err(Failure::new(FailCode::TooLarge, message));
                }
                if self.keep.acls && !self.keep.numeric_ids {
                    acl::add_names(&mut attributes, &mut self.owners.borrow_mut());
                }
                Ok(attributes)
            }
            // The file system has none, or the entry is gone, which its content will show.
            Err(Errno::OPNOTSUPP | Errno::NOENT) => Ok(Vec::new()),
            Err(error) => Err(failure("read the extended attributes", error)),
        }
    }
}

fn of_open(chosen: Chosen, file: impl AsFd) -> Result<Vec<Attribute>, Errno> {
    attributes(chosen, |list| flistxattr(&file, list), |name, value| fgetxattr(&file, name, value))
}

/// The chosen attributes, by these calls for their names and for one value. Ascending.
fn attributes(
    chosen: Chosen,
    list: impl Fn(&mut [u8]) -> Result<usize, Errno>,
    get: impl Fn(&[u8], &mut [u8]) -> Result<usize, Errno>,
) -> Result<Vec<Attribute>, Errno> {
    let mut names = vec![0; 256];
    let len = loop {
        match list(&mut names) {
            Err(Errno::RANGE) if names.len() < LONGEST_LIST => names.resize(names.len() * 4, 0),
            len => break len?,
        }
    };
    let mut all = Vec::new();
    for name in names[..len].split(|&byte| byte == 0).filter(|name| chosen.has(name)) {
        let mut value = vec![0; 256];
        let len = loop {
            match get(name, &mut value) {
                Err(Errno::RANGE) if value.len() < MAX_ATTRIBUTES => value.resize(value.len() * 16, 0),
                len => break len,
            }
        };
        match len {
            Ok(len) => {
                value.truncate(len);
                all.push(Attribute { name: name.to_vec(), value });
            }
            // It was removed just now.
            Err(Errno::NODATA) => {}
            Err(error) => return Err(error),
        }
    }
    all.sort_unstable();
    Ok(all)
}

/// Sets the properties that a copy keeps.
#[derive(Debug)]
pub(super) struct Writer {
    keep: Kept,
    chosen: Chosen,
    umask: u32,
    owners: RefCell<OwnerIds>,
}

/// The properties that an entry at the target gets.
#[derive(Clone, Debug)]
pub(super) struct TargetProperties {
    /// The mode. `None` leaves that of an existing entry.
    pub(super) mode: Option<u32>,
    /// Whether the copy keeps permissions, and so fails where there are none.
    keeps_mode: bool,
    pub(super) mtime: Mtime,
    owner: Option<(Uid, Gid)>,
    /// `None` if the copy keeps no attributes.
    attributes: Option<(Chosen, Vec<Attribute>)>,
}

impl Writer {
    /// For entries of a peer. Owners, attributes that need privileges, and bits that lend them are left out unless it
    /// `is_trusted`.
    pub(super) fn of(keep: Kept, umask: u32, is_trusted: bool) -> Self {
        let of_root = is_trusted && geteuid().is_root();
        let keep = if is_trusted { keep } else { Kept { owners: false, special_bits: false, ..keep } };
        let chosen = Chosen { attributes: keep.attributes, acls: keep.acls, of_root };
        Self { keep, chosen, umask, owners: RefCell::default() }
    }

    /// Whether existing entries get the mode of the source.
    pub(super) const fn keeps_permissions(&self) -> bool {
        self.keep.permissions
    }

    /// What a copy of this file gets, as far as the copy keeps it.
    pub(super) fn as_of(&self, file: impl AsFd, stat: &Stat) -> Result<TargetProperties, Errno> {
        let attributes = match self.chosen.is_empty() {
            true => None,
            false => match of_open(self.chosen, file) {
                Ok(all) => Some((self.chosen, all)),
                Err(Errno::OPNOTSUPP) => None,
                Err(error) => return Err(error),
            },
        };
        let owner = self.keep.owners.then(|| (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid)));
        let bits = if self.keep.special_bits { MODE_BITS } else { PERMISSIONS };
        Ok(TargetProperties {
            mode: Some(stat.st_mode & bits),
            keeps_mode: self.keep.permissions,
            mtime: mtime(stat),
            owner,
            attributes,
        })
    }

    /// What a new entry gets. The mode of an existing one stays, unless the copy keeps permissions.
    pub(super) fn properties_for(&self, entry: &Entry, is_new: bool) -> TargetProperties {
        let sent = if self.keep.special_bits { entry.mode } else { entry.mode & PERMISSIONS };
        let mode = match (self.keep.permissions, is_new) {
            (true, _) => Some(sent),
            (false, true) => Some(sent & !self.umask),
            (false, false) => None,
        };
        let properties = entry.properties.as_deref();
        let owner = properties.and_then(|properties| properties.owner.as_ref()).filter(|_| self.keep.owners);
        let owner = owner.map(|owner| self.owners.borrow_mut().here(owner, self.keep.numeric_ids));
        let attributes = (!self.chosen.is_empty()).then(|| {
            let all = properties.map(|properties| properties.attributes.as_slice()).unwrap_or_default();
            let mut all = match self.keep.numeric_ids {
                true => all.to_vec(),
                false => acl::localized(all, &mut self.owners.borrow_mut()),
            };
            all.retain(|attribute| self.chosen.has(&attribute.name));
            (self.chosen, all)
        });
        TargetProperties { mode, keeps_mode: self.keep.permissions, mtime: entry.mtime, owner, attributes }
    }
}

impl TargetProperties {
    /// A mode and a time alone.
    pub(super) const fn plain(mode: Option<u32>, mtime: Mtime) -> Self {
        Self { mode, keeps_mode: false, mtime, owner: None, attributes: None }
    }

    /// The same without a mode.
    pub(super) fn without_mode(&self) -> Self {
        Self { mode: None, ..self.clone() }
    }

    /// Sets all of it, the time last.
    pub(super) fn set(&self, handle: impl AsFd) -> Result<(), Errno> {
        self.set_but_time(&handle)?;
        self.set_time(handle)
    }

    /// Sets all but the time. The owner comes first, since the system then takes off set-user-id bits.
    pub(super) fn set_but_time(&self, handle: impl AsFd) -> Result<(), Errno> {
        self.set_owner(&handle)?;
        if let Some((chosen, attributes)) = &self.attributes {
            set_attributes(&handle, *chosen, attributes)?;
        }
        if let Some(mode) = self.mode {
            // An access control list holds the bits of the group, and this sets its mask as the source had it.
            self.if_there_are_modes(fchmod(&handle, Mode::from_raw_mode(mode)))?;
        }
        Ok(())
    }

    /// The result of an attempt to set the mode.
    pub(super) fn if_there_are_modes(&self, set: Result<(), Errno>) -> Result<(), Errno> {
        if self.keeps_mode { set } else { no_modes_here(set) }
    }

    /// Sets the owner, as far as this process may. Without privileges, a user still chooses among their groups.
    fn set_owner(&self, handle: impl AsFd) -> Result<(), Errno> {
        let Some((uid, gid)) = self.owner else { return Ok(()) };
        let stat = rustix::fs::fstat(&handle)?;
        if (stat.st_uid, stat.st_gid) == (uid.as_raw(), gid.as_raw()) {
            return Ok(());
        }
        match fchown(&handle, Some(uid), Some(gid)) {
            Err(Errno::PERM | Errno::INVAL) => match fchown(&handle, None, Some(gid)) {
                Err(Errno::PERM | Errno::INVAL) => Ok(()),
                set => set,
            },
            set => set,
        }
    }

    pub(super) fn set_time(&self, handle: impl AsFd) -> Result<(), Errno> {
        futimens(handle, &times(self.mtime))
    }

    /// Whether an existing entry gets any of them, beside the time.
    pub(super) const fn is_any(&self) -> bool {
        self.mode.is_some() || self.owner.is_some() || self.attributes.is_some()
    }

    /// Whether a directory that existed before has all of it, so that nothing need be written. It gets its time once its names survive a
    /// crash, so a broken copy that gave names in it has left it another time.
    pub(super) fn are_in_directory(&self, directory: impl AsFd) -> bool {
        !self.is_any() && rustix::fs::fstat(directory).is_ok_and(|stat| mtime(&stat) == self.mtime)
    }

    /// Whether an existing entry with this stat lacks something of it.
    fn differs(&self, stat: &Stat) -> bool {
        self.owner_differs(stat) || self.mode.is_some_and(|mode| mode != stat.st_mode & MODE_BITS)
    }

    /// Whether an entry has another owner, which this process may change.
    pub(super) fn owner_differs(&self, stat: &Stat) -> bool {
        geteuid().is_root()
            && self.owner.is_some_and(|(uid, gid)| (stat.st_uid, stat.st_gid) != (uid.as_raw(), gid.as_raw()))
    }

    /// Whether an existing file differs in anything but content.
    pub(super) fn is_missing_in(&self, file: impl AsFd, stat: &Stat) -> Result<bool, Errno> {
        if self.differs(stat) {
            return Ok(true);
        }
        let Some((chosen, attributes)) = &self.attributes else { return Ok(false) };
        match of_open(*chosen, file) {
            Ok(there) => Ok(!same_attributes(&there, attributes)),
            Err(Errno::OPNOTSUPP) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sets owner and time of the link that is held. `by_name` sets the time on a kernel that does not by handle (Linux before 5.8).
    pub(super) fn set_of_link(
        &self,
        link: impl AsFd,
        by_name: impl FnOnce(&Timestamps) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        if let Some((uid, gid)) = self.owner {
            match rustix::fs::chownat(&link, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH) {
                Ok(()) | Err(Errno::PERM | Errno::INVAL | Errno::OPNOTSUPP) => {}
                Err(error) => return Err(error),
            }
        }
        let times = times(self.mtime);
        let set = match rustix::fs::utimensat(&link, "", &times, AtFlags::EMPTY_PATH) {
            Err(Errno::INVAL | Errno::NOENT) => by_name(&times),
            set => set,
        };
        match set {
            // The file system keeps no times of links.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            set => set,
        }
    }
}

/// Sets these attributes, and removes other chosen ones.
fn set_attributes(handle: impl AsFd, chosen: Chosen, attributes: &[Attribute]) -> Result<(), Errno> {
    let there = match of_open(chosen, &handle) {
        Ok(there) => there,
        // The file system has none.
        Err(Errno::OPNOTSUPP) => return Ok(()),
        Err(error) => return Err(error),
    };
    if same_attributes(&there, attributes) {
        return Ok(());
    }
    for Attribute { name, .. } in
        there.iter().filter(|its| !attributes.iter().any(|attribute| attribute.name == its.name))
    {
        match fremovexattr(&handle, &**name) {
            Ok(()) | Err(Errno::NODATA) => {}
            Err(error) => return Err(error),
        }
    }
    for Attribute { name, value } in attributes {
        match fsetxattr(&handle, &**name, value, XattrFlags::empty()) {
            // This file system or this user has no attributes of this name space.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::PERM) => {}
            // The attributes of one entry have a bound of their own, whatever room there is for others.
            Err(Errno::RANGE) => return Err(Errno::TOOBIG),
            Err(Errno::NOSPC) if has_room(&handle) => return Err(Errno::TOOBIG),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether the disk is not full.
fn has_room(handle: impl AsFd) -> bool {
    rustix::fs::fstatvfs(handle).is_ok_and(|system| system.f_bavail.saturating_mul(system.f_frsize) >= ROOM)
}

fn same_attributes(one: &[Attribute], other: &[Attribute]) -> bool {
    one.len() == other.len() && one.iter().all(|attribute| other.contains(attribute))
}

const fn times(mtime: Mtime) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: mtime.seconds, tv_nsec: mtime.nanos as _ },
    }
}
