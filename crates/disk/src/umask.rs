//! The umask of this process, read once.

use std::sync::OnceLock;

/// The umask of a process that cannot know its own: new entries are for their owner alone. The reason for an unknown umask
/// is a confinement, and whoever confines a process wants no wider rights.
const UNKNOWN: u32 = 0o077;
/// Where Linux tells it, proc_pid_status(5). The system call that reads a umask also changes it, and other threads would
/// notice that.
const STATUS: &str = "/proc/self/status";

/// The permission bits that this process removes from new files and directories.
///
/// The first call reads them from the system, and later ones repeat its answer. So a process that will confine itself, or
/// leave its view of /proc, calls it before. An unknown umask counts as 077.
pub fn umask() -> u32 {
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| std::fs::read_to_string(STATUS).ok().as_deref().and_then(told).unwrap_or(UNKNOWN))
}

/// The umask in the text of a status.
fn told(status: &str) -> Option<u32> {
    let octal = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(octal.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_umask_is_read_in_octal_and_a_missing_or_damaged_one_is_unknown() {
        assert_eq!(told("Name:\tfarhaul\nUmask:\t0027\nState:\tR\n"), Some(0o027));
        for status in ["", "Name:\tfarhaul\n", "Umask:\t\n", "Umask:\t9\n"] {
            assert_eq!(told(status), None, "{status:?}");
        }
    }
}
