//! A control group that holds its processes to a tenth of a core.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Period of the kernel's accounting of a quota in µs. 100 ms is its default.
const PERIOD: u32 = 100_000;
/// Processor time in each period, in µs: a tenth of a core.
const TIME: u32 = PERIOD / 10;
/// Ends the group when its input ends. A group with processes cannot be removed, so this waits up to a minute for them.
const REMOVAL: &str = "read _; for _ in $(seq 600); do rmdir \"$1\" && exit; sleep 0.1; done 2>/dev/null; exit 1";

/// The interface of the control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A control group, removed when this is dropped or this program ends in any way. A small shell waits for the end of a
/// pipe to remove it.
#[derive(Debug)]
pub(in super::super) struct Quota {
    keeper: Child,
    group: PathBuf,
}

impl Quota {
    /// Makes the group.
    ///
    /// # Errors
    /// The machine has no control groups with processor time, or does not permit a new one.
    pub(in super::super) fn tenth_of_a_core() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").context("/proc/self/mounts")?;
        let (version, root) =
            hierarchy(&mounts).context("no control groups (cgroup) with processor time are mounted")?;
        if version == Version::Two {
            let delegated = fs::read_to_string(root.join("cgroup.subtree_control")).unwrap_or_default();
            let has = delegated.split_whitespace().any(|name| name == "cpu");
            ensure!(has, "{} has no cpu in cgroup.subtree_control", root.display());
        }
        let group = root.join(format!("farhaul-bench-{}", std::process::id()));
        fs::create_dir(&group).with_context(|| group.display().to_string())?;
        let mut keeper = Command::new("sh");
        keeper.args(["-c", REMOVAL, "sh"]).arg(&group).process_group(0);
        let keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let quota = Self { keeper: keeper.context("starting the shell that removes the group")?, group };
        limit(version, &quota.group)?;
        Ok(quota)
    }

    /// The beginning of a line for a shell that puts itself into the group.
    pub(super) fn enter(&self) -> String {
        format!("echo $$ >'{}' || exit 1; ", self.group.join("cgroup.procs").display())
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        if !self.keeper.wait().is_ok_and(|status| status.success()) {
            eprintln!("{} could not be removed", self.group.display());
        }
    }
}

/// Writes the limit of a group.
fn limit(version: Version, group: &Path) -> Result<()> {
    let files = match version {
        Version::One => vec![("cpu.cfs_period_us", PERIOD.to_string()), ("cpu.cfs_quota_us", TIME.to_string())],
        Version::Two => vec![("cpu.max", format!("{TIME} {PERIOD}"))],
    };
    for (name, value) in files {
        let file = group.join(name);
        fs::write(&file, value).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// Where processor time is controlled, by the lines of /proc/self/mounts: `DEVICE FOLDER TYPE OPTIONS 0 0`. With both
/// versions mounted, the controller belongs to the first version if that names it.
fn hierarchy(mounts: &str) -> Option<(Version, PathBuf)> {
    let lines = || mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).filter(|words| words.len() > 3);
    let one = lines().find(|words| words[2] == "cgroup" && words[3].split(',').any(|option| option == "cpu"));
    let two = || lines().find(|words| words[2] == "cgroup2").map(|words| (Version::Two, PathBuf::from(words[1])));
    one.map(|words| (Version::One, PathBuf::from(words[1]))).or_else(two)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";

    #[test]
    fn the_hierarchy_of_processor_time_is_found() {
        let one = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
            cgroup /sys/fs/cgroup/cpuacct cgroup rw,cpuacct 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n";
        let both = hierarchy(&format!("{TWO}{one}"));
        assert_eq!(both, Some((Version::One, PathBuf::from("/sys/fs/cgroup/cpu"))));
        assert_eq!(hierarchy(TWO), Some((Version::Two, PathBuf::from("/sys/fs/cgroup/unified"))));
        assert_eq!(hierarchy("tmpfs /tmp tmpfs rw 0 0\n"), None);
    }

    #[test]
    fn the_limit_is_a_tenth_in_both_versions() {
        let folder = std::env::temp_dir().join(format!("farhaul-xtask-quota-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        limit(Version::One, &folder).unwrap();
        limit(Version::Two, &folder).unwrap();
        let read = |name| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!((read("cpu.cfs_quota_us"), read("cpu.cfs_period_us")), ("10000".into(), "100000".into()));
        assert_eq!(read("cpu.max"), "10000 100000");
        fs::remove_dir_all(folder).unwrap();
    }
}
