//! Whether a file has the time of the source, on file systems that keep times in steps.
//!
//! FAT keeps steps of 2 s, exFAT of 10 ms, NTFS and SMB of 100 ns, older systems of 1 s. A time there is that of the source if both lie
//! in one step. Only the file system itself can tell that it has steps: a file that was written a second after the copy has other
//! content. So a file that the store makes and removes is given a time, and what comes back shows the step.

use std::collections::BTreeMap;

use farhaul_session::{Component, Mtime};
use farhaul_units::Duration;
use rustix::fs::{Stat, Timespec, Timestamps, fstat, futimens};

use super::directory::{Directory, mtime};
use super::temporary::temporary_name;

/// The steps in which file systems keep times, ns: NTFS and SMB, UDF, many network file systems, exFAT, HFS+ and ext3, FAT.
const STEPS: [i128; 6] = [100, 1_000, 1_000_000, 10_000_000, SECOND, 2 * SECOND];
const SECOND: i128 = 1_000_000_000;
/// A time that each step changes, and 1 s and 2 s differently, unless they round up.
const PROBE: Mtime = Mtime { seconds: 1_000_000_001, nanos: 123_456_789 };

/// The steps that were seen.
#[derive(Debug, Default)]
pub(super) struct TimeSteps {
    /// In ns, by device. Without steps: 0.
    seen: BTreeMap<u64, i128>,
}

impl TimeSteps {
    /// Whether the file `there`, which is in `directory`, has the time `wanted`, or one no farther from it than `window`. In a dry run
    /// no file can be made, and whole seconds are taken for a step.
    pub(super) fn is_same(
        &mut self,
        (wanted, there): (Mtime, &Stat),
        directory: &Directory,
        window: Duration,
        dry_run: bool,
    ) -> bool {
        let has = mtime(there);
        let apart = (nanos(wanted) - nanos(has)).abs();
        if apart <= i128::try_from(window.as_nanos()).unwrap_or(i128::MAX) {
            return true;
        }
        if apart >= STEPS[STEPS.len() - 1] || nanos(has) % STEPS[0] != 0 {
            return false;
        }
        let assumed = if nanos(has) % SECOND == 0 { SECOND } else { 0 };
        let step = match self.seen.get(&there.st_dev) {
            Some(step) => *step,
            None if dry_run => assumed,
            None => match probe(directory) {
                Some(step) => *self.seen.entry(there.st_dev).or_insert(step),
                None => assumed,
            },
        };
        apart < step
    }
}

fn nanos(time: Mtime) -> i128 {
    i128::from(time.seconds) * SECOND + i128::from(time.nanos)
}

/// The step of the file system of this directory. `None` if no file can be made there.
fn probe(directory: &Directory) -> Option<i128> {
    let name = temporary_name(&Component::new(b"time").ok()?).ok()?;
    let file = directory.make_file(&name).ok()?;
    let time = Timespec { tv_sec: PROBE.seconds, tv_nsec: PROBE.nanos.into() };
    let seen = futimens(&file, &Timestamps { last_access: time, last_modification: time }).and_then(|()| fstat(&file));
    let _ = directory.remove(&name);
    Some(step_of(mtime(&seen.ok()?)))
}

/// The largest step that makes this of the probe.
fn step_of(seen: Mtime) -> i128 {
    let lost = (nanos(PROBE) - nanos(seen)).abs();
    if lost == 0 {
        return 0;
    }
    STEPS.into_iter().rev().find(|step| lost < *step && nanos(seen) % step == 0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_read_off_what_came_back() {
        let of = |step: i128| {
            let seen = nanos(PROBE) / step * step;
            let seconds = i64::try_from(seen / SECOND).unwrap();
            step_of(Mtime { seconds, nanos: u32::try_from(seen % SECOND).unwrap() })
        };
        assert_eq!(step_of(PROBE), 0);
        assert_eq!(STEPS.map(of), STEPS);
        assert_eq!(step_of(Mtime { seconds: PROBE.seconds + 1, nanos: 0 }), 2 * SECOND, "exfat-fuse rounds up");
        assert_eq!(step_of(Mtime { seconds: 0, nanos: 0 }), 0, "times that are not kept at all prove nothing");
    }

    #[test]
    fn a_time_within_a_step_is_the_same_where_the_file_system_has_steps() {
        let folder = std::env::temp_dir().join(format!("farhaul-steps-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let directory = Directory::open(&folder).unwrap();
        std::fs::write(folder.join("file"), b"x").unwrap();
        let whole = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        std::fs::File::open(folder.join("file")).unwrap().set_modified(whole).unwrap();
        let there = directory.stat(&Component::new(b"file").unwrap()).unwrap();
        let later = Mtime { seconds: 1_000_000_001, nanos: 5 };
        let within = Mtime { seconds: 1_000_000_000, nanos: 5 };
        let is_same = |steps: &mut TimeSteps, wanted, window, dry_run| {
            steps.is_same((wanted, &there), &directory, Duration::from_millis(window), dry_run)
        };
        let mut steps = TimeSteps::default();
        assert!(is_same(&mut steps, within, 0, true), "a dry run cannot look");
        assert!(
            !is_same(&mut steps, within, 0, false),
            "this file system keeps each nanosecond, so another program wrote it"
        );
        assert!(is_same(&mut steps, later, 1_001, false) && !is_same(&mut steps, later, 999, false));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing is left");
        for (step, expected) in [(2 * SECOND, true), (SECOND, false)] {
            steps.seen.insert(there.st_dev, step);
            assert_eq!(is_same(&mut steps, later, 0, false), expected);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
