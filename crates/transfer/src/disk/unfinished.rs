//! The mark of a directory that a copy made and did not finish.
//!
//! A copy leaves the mode of an existing directory alone. A directory that an earlier copy made and left private, because
//! it was killed, would keep that mode for ever. So a copy marks the directories that it makes, and the next one gives a
//! marked directory its mode. On file systems without extended attributes, such a directory keeps the mode that it has.

use rustix::fs::{Mode, XattrFlags, fgetxattr, fremovexattr, fsetxattr};
use rustix::process::geteuid;

use super::directory::Directory;

/// The extended attribute. Its value is the mode that the copy left, in octal: whoever changes the mode takes the mark off.
pub(super) const NAME: &str = "user.farhaul.unfinished";
/// Bits with which others could set the mark.
const WRITABLE: u32 = 0o022;
/// More than the digits of any mode.
const LONGEST: usize = 8;

impl Directory {
    /// Marks it as unfinished, with this mode.
    pub(super) fn mark_unfinished(&self, mode: u32) {
        // Without the mark, the next copy keeps the mode.
        let _ = fsetxattr(self, NAME, format!("{mode:o}").as_bytes(), XattrFlags::empty());
    }

    /// Takes the mark off.
    pub(super) fn unmark(&self) {
        // There may be none.
        let _ = fremovexattr(self, NAME);
    }

    /// Whether a copy of this user made it, and nobody has changed its mode since. A mark that somebody else could have set
    /// counts for nothing.
    pub(super) fn is_unfinished(&self) -> bool {
        let Ok(stat) = rustix::fs::fstat(self) else { return false };
        let mode = Mode::from_raw_mode(stat.st_mode).bits() & 0o777;
        if stat.st_uid != geteuid().as_raw() || mode & WRITABLE != 0 {
            return false;
        }
        let mut value = [0; LONGEST];
        fgetxattr(self, NAME, &mut value).is_ok_and(|len| value[..len] == *format!("{mode:o}").as_bytes())
    }
}
