//! Users and groups by numbers and names, as this host's databases have them. Each is looked up once.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use farhaul_session::Owner;
use rustix::fs::{Gid, Stat, Uid};

/// Most remembered owners of each kind. A tree has few, and a hostile one must not fill the memory.
const MOST_REMEMBERED: usize = 4096;

/// The owners that a source has met.
#[derive(Debug, Default)]
pub(super) struct OwnerNames {
    users: BTreeMap<u32, Vec<u8>>,
    groups: BTreeMap<u32, Vec<u8>>,
}

impl OwnerNames {
    /// The owner of an entry, with names unless `numeric`.
    pub(super) fn of(&mut self, stat: &Stat, numeric: bool) -> Owner {
        let (uid, gid) = (stat.st_uid, stat.st_gid);
        if numeric {
            return Owner { uid, gid, ..Owner::default() };
        }
        Owner { uid, gid, user: self.user(uid), group: self.group(gid) }
    }

    /// The name of a user. Empty without one.
    pub(super) fn user(&mut self, uid: u32) -> Vec<u8> {
        remembered(&mut self.users, uid, |uid| {
            uzers::get_user_by_uid(*uid).map(|user| user.name().as_bytes().to_vec()).unwrap_or_default()
        })
    }

    /// The name of a group. Empty without one.
    pub(super) fn group(&mut self, gid: u32) -> Vec<u8> {
        remembered(&mut self.groups, gid, |gid| {
            uzers::get_group_by_gid(*gid).map(|group| group.name().as_bytes().to_vec()).unwrap_or_default()
        })
    }
}

/// The owners that a store has met.
#[derive(Debug, Default)]
pub(super) struct OwnerIds {
    users: BTreeMap<Vec<u8>, Option<u32>>,
    groups: BTreeMap<Vec<u8>, Option<u32>>,
}

impl OwnerIds {
    /// The numbers of this owner here.
    pub(super) fn here(&mut self, owner: &Owner, numeric: bool) -> (Uid, Gid) {
        let (uid, gid) = match numeric {
            true => (owner.uid, owner.gid),
            false => (self.user(owner.uid, &owner.user), self.group(owner.gid, &owner.group)),
        };
        (Uid::from_raw(uid), Gid::from_raw(gid))
    }

    /// The number here of a user with this number and name there: that of the name, or `uid` without a name or if this host does
    /// not know it. User 0 is the same everywhere.
    pub(super) fn user(&mut self, uid: u32, name: &[u8]) -> u32 {
        if uid == 0 || name.is_empty() {
            return uid;
        }
        let find = |name: &Vec<u8>| uzers::get_user_by_name(OsStr::from_bytes(name)).map(|user| user.uid());
        remembered(&mut self.users, name.to_vec(), find).unwrap_or(uid)
    }

    /// The same for a group.
    pub(super) fn group(&mut self, gid: u32, name: &[u8]) -> u32 {
        if gid == 0 || name.is_empty() {
            return gid;
        }
        let find = |name: &Vec<u8>| uzers::get_group_by_name(OsStr::from_bytes(name)).map(|group| group.gid());
        remembered(&mut self.groups, name.to_vec(), find).unwrap_or(gid)
    }
}

fn remembered<K: Ord, V: Clone>(all: &mut BTreeMap<K, V>, key: K, find: impl FnOnce(&K) -> V) -> V {
    if let Some(value) = all.get(&key) {
        return value.clone();
    }
    let value = find(&key);
    if all.len() < MOST_REMEMBERED {
        all.insert(key, value.clone());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_and_numbers_stand_for_unknown_ones() {
        let mut ids = OwnerIds::default();
        let owner = |uid, user: &[u8]| Owner { uid, gid: 0, user: user.to_vec(), group: b"root".to_vec() };
        let uid = |ids: &mut OwnerIds, owner, numeric| ids.here(&owner, numeric).0.as_raw();
        assert_eq!(uid(&mut ids, owner(4711, b"root"), false), 0, "the name");
        assert_eq!(uid(&mut ids, owner(4711, b"root"), true), 4711, "the number");
        assert_eq!(uid(&mut ids, owner(4711, b"nobody-has-this-name"), false), 4711);
        assert_eq!(uid(&mut ids, owner(0, b"nobody-has-this-name"), false), 0, "root is root everywhere");
        let stat = rustix::fs::stat("/").unwrap();
        let here = OwnerNames::default().of(&stat, false);
        assert_eq!((here.uid, here.user.as_slice()), (stat.st_uid, b"root".as_slice()));
    }
}
