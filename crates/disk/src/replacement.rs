//! The permissions of a file that replaces another one.

use std::fs::File;

use rustix::fs::{Gid, Stat};

use super::directory::permissions;

/// Permission bits of the group, and of all others.
const OF_GROUP: u32 = 0o070;
const OF_OTHERS: u32 = 0o007;

/// The mode of `file` once it has replaced `old`: the same permissions for the same people. The file gets the group of `old` if the
/// system permits that. Otherwise its own group gets no more than everybody.
pub(super) fn mode_after(old: &Stat, file: &File) -> u32 {
    let is_of_group = rustix::fs::fstat(file).is_ok_and(|file| file.st_gid == old.st_gid)
        || rustix::fs::fchown(file, None, Some(Gid::from_raw(old.st_gid))).is_ok();
    mode_for(permissions(old), is_of_group)
}

/// The same for a file whose group is that of the old one or not.
const fn mode_for(old: u32, is_of_group: bool) -> u32 {
    let of_everybody = (old & OF_OTHERS) << 3;
    if is_of_group { old } else { old & !OF_GROUP | (old & OF_GROUP & of_everybody) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_group_gets_no_more_than_everybody() {
        for (old, is_of_group, expected) in [
            (0o664, true, 0o664),
            (0o664, false, 0o644),
            (0o670, false, 0o600),
            (0o606, false, 0o606),
            (0o675, false, 0o655),
        ] {
            assert_eq!(mode_for(old, is_of_group), expected, "{old:o}");
        }
    }
}
