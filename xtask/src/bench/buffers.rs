//! Kernel limits of socket buffers during a measurement, always restored afterwards.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

/// The folder of the limits.
const FOLDER: &str = "/proc/sys/net/core";
const NAMES: [&str; 2] = ["rmem_max", "wmem_max"];
/// The default of Linux: 256 packets of 256 bytes with their bookkeeping (`SK_RMEM_MAX`).
const KERNEL_DEFAULT: u64 = 212_992;
/// More than libudt requests, and the value in tuning guides for long paths.
const RAISED: u64 = 16 << 20;
/// The right to administer the network, which overrides the limits. Without it a program gets the buffers of any user.
const RIGHT: &str = "net_admin";

/// A setting of the limits and rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Buffers {
    /// High limits, without the right to override them.
    Raised,
    /// The kernel's own limits, without the right to override them.
    KernelDefault,
    /// The kernel's own limits and the right to override them, as for a program of root.
    Forced,
    /// The current limits.
    AsFound,
}

impl Buffers {
    pub(super) fn parse(word: &str) -> Result<Self> {
        Ok(match word {
            "raised" => Self::Raised,
            "default" => Self::KernelDefault,
            "forced" => Self::Forced,
            _ => bail!("unknown setting '{word}' of the socket buffers: use raised, default or forced"),
        })
    }

    /// The label for tables; empty if nothing was set.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Raised => "rmem_max 16777216",
            Self::KernelDefault => "rmem_max 212992",
            Self::Forced => "rmem_max 212992, as root",
            Self::AsFound => "",
        }
    }

    /// The limit in bytes; `None` leaves it unchanged.
    pub(super) const fn limit(self) -> Option<u64> {
        match self {
            Self::Raised => Some(RAISED),
            Self::KernelDefault | Self::Forced => Some(KERNEL_DEFAULT),
            Self::AsFound => None,
        }
    }

    /// Whether the measured programs run without the right to override the limits.
    pub(super) const fn drops_rights(self) -> bool {
        matches!(self, Self::Raised | Self::KernelDefault)
    }
}

/// `program` without the right to override the limits. Its process id stays the same.
pub(super) fn without_rights(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args([format!("--bounding-set=-{RIGHT}"), format!("--inh-caps=-{RIGHT}")]).arg(program);
    command
}

/// Whether `without_rights` works here.
pub(super) fn can_drop_rights() -> bool {
    without_rights(Path::new("true")).status().is_ok_and(|status| status.success())
}

/// Limits that hold until this is dropped, or until this program ends in any way. A small shell keeps the former limits
/// and waits for the end of a pipe to restore them.
#[derive(Debug)]
pub(super) struct Limits {
    keeper: Child,
}

impl Limits {
    /// Sets both limits to `bytes`.
    ///
    /// # Errors
    /// The rights do not suffice.
    pub(super) fn set(bytes: u64) -> Result<Self> {
        Self::set_in(Path::new(FOLDER), bytes)
    }

    fn set_in(folder: &Path, bytes: u64) -> Result<Self> {
        let paths: Vec<PathBuf> = NAMES.iter().map(|name| folder.join(name)).collect();
        let mut keeper = Command::new("sh");
        keeper.args(["-c", "read _; printf %s \"$2\" >\"$1\"; printf %s \"$4\" >\"$3\"", "sh"]);
        for path in &paths {
            let former = fs::read_to_string(path).with_context(|| path.display().to_string())?;
            keeper.arg(path).arg(former.trim());
        }
        // A separate process group, so that an interrupt from the terminal does not reach it.
        let keeper = keeper.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let limits = Self { keeper: keeper.context("starting the shell that restores the limits")? };
        for path in &paths {
            fs::write(path, bytes.to_string()).with_context(|| path.display().to_string())?;
        }
        Ok(limits)
    }
}

impl Drop for Limits {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        if !self.keeper.wait().is_ok_and(|status| status.success()) {
            eprintln!("net.core.{} could not be restored", NAMES.join(" and net.core."));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with files instead of the kernel's.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("farhaul-xtask-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("rmem_max"), "1000\n").unwrap();
        fs::write(folder.join("wmem_max"), "2000\n").unwrap();
        folder
    }

    fn values(folder: &Path) -> [String; 2] {
        NAMES.map(|name| fs::read_to_string(folder.join(name)).unwrap().trim().to_owned())
    }

    #[test]
    fn limits_hold_until_they_are_dropped() {
        let folder = folder("limits");
        let limits = Limits::set_in(&folder, 7).unwrap();
        assert_eq!(values(&folder), ["7", "7"]);
        drop(limits);
        assert_eq!(values(&folder), ["1000", "2000"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn former_limits_return_when_the_second_cannot_be_set() {
        let folder = folder("half");
        fs::remove_file(folder.join("wmem_max")).unwrap();
        fs::create_dir(folder.join("wmem_max")).unwrap();
        Limits::set_in(&folder, 7).unwrap_err();
        assert_eq!(fs::read_to_string(folder.join("rmem_max")).unwrap().trim(), "1000");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn settings_that_are_measured_differ_in_name() {
        let labels = [Buffers::Raised, Buffers::KernelDefault, Buffers::Forced].map(Buffers::label);
        assert!(labels[0] != labels[1] && labels[1] != labels[2] && !labels.contains(&""));
    }
}
