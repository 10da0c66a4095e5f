//! The mark of a directory that a copy made and did not finish.
//!
//! A copy leaves the mode of an existing directory alone. A directory that an earlier copy made and left private, because
//! it was killed, would keep that mode for ever. So a copy marks the directories that it makes, and the next one gives a
//! marked directory its mode. On file systems without extended attributes, such a directory keeps the mode that it has.
//!
//! The target names the directory in `copy -r SOURCE NEW`. Once NEW exists, the same command would mean NEW/SOURCE. So the mark
//! also has the name of the source, and the next copy of it goes on in NEW.

use farhaul_session::Component;
use rustix::fs::{Mode, XattrFlags, fgetxattr, fremovexattr, fsetxattr};
use rustix::process::geteuid;

use super::directory::Directory;

/// The extended attribute. Its value is the mode that the copy left, in octal: whoever changes the mode takes the mark off. After
/// a space follows the name of the source, if the target has named the directory.
pub(super) const NAME: &str = "user.farhaul.unfinished";
/// Bits with which others could set the mark.
const WRITABLE: u32 = 0o022;
/// More than the digits of any mode, and the longest name.
const LONGEST: usize = 8 + 255;

impl Directory {
    /// Marks it as unfinished, with this mode, and with the name of its source if the target has named it.
    pub(super) fn mark_unfinished(&self, mode: u32, source: Option<&Component>) {
        let mut value = format!("{mode:o}").into_bytes();
        if let Some(source) = source {
            value.push(b' ');
            value.extend_from_slice(source.as_bytes());
        }
        // Without the mark, the next copy keeps the mode.
        let _ = fsetxattr(self, NAME, &value, XattrFlags::empty());
    }

    /// Takes the mark off.
    pub(super) fn unmark(&self) {
        // There may be none.
        let _ = fremovexattr(self, NAME);
    }

    /// Whether a copy of this user made it, and nobody has changed its mode since.
    pub(super) fn is_unfinished(&self) -> bool {
        self.mark().is_some()
    }

    /// The name of the source of an unfinished directory that the target has named.
    pub(super) fn unfinished_source(&self) -> Option<Component> {
        let mark = self.mark()?;
        let (_, source) = mark.split_at(mark.iter().position(|&byte| byte == b' ')?);
        Component::new(&source[1..]).ok()
    }

    /// The mark. One that somebody else could have set counts for nothing.
    fn mark(&self) -> Option<Vec<u8>> {
        let stat = rustix::fs::fstat(self).ok()?;
        let mode = Mode::from_raw_mode(stat.st_mode).bits() & 0o777;
        if stat.st_uid != geteuid().as_raw() || mode & WRITABLE != 0 {
            return None;
        }
        let mut value = vec![0; LONGEST];
        let len = fgetxattr(self, NAME, &mut value[..]).ok()?;
        value.truncate(len);
        let its_mode = value.split(|&byte| byte == b' ').next()?;
        (*its_mode == *format!("{mode:o}").as_bytes()).then_some(value)
    }
}
