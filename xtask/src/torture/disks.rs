//! Disks that are full, fail, or may not be used.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use anyhow::{Result, ensure};

use super::Outcome;
use super::bed::Bed;
use super::process::has;

/// A receiver under strace, which injects these faults.
fn injected(bed: &Bed, inject: &str) -> Vec<String> {
    let log = bed.at("strace");
    ["strace", "-f", "-qq", "-o", &log, "-e", inject].map(str::to_owned).to_vec()
}

/// Pulls under each of these faults. Each ends with 0 or one of the codes, and the copy after it succeeds.
fn under(bed: &Bed, faults: &[&str], codes: &[i32]) -> Result<Outcome> {
    if !has("strace") {
        return Ok(Outcome::Impossible("strace is missing".into()));
    }
    let source = bed.server(&[], "root", &["--plain"])?;
    let mut failed = 0;
    for fault in faults {
        bed.empty_target()?;
        let wrapper = injected(bed, &format!("inject={fault}"));
        let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
        let run = bed.pull(&wrapper, &source.address, &["--plain"])?.end()?;
        failed += u32::from(run.code != Some(0));
        bed.fails_cleanly(&run, codes, || bed.pull(&[], &source.address, &["--plain"]))
            .map_err(|error| error.context((*fault).to_owned()))?;
    }
    Ok(Outcome::Right(format!("{} faults, {failed} copies failed with their codes, all went on", faults.len())))
}

pub(super) fn full(bed: &Bed) -> Result<Outcome> {
    let faults = [
        "pwrite64:error=ENOSPC:when=1",
        "pwrite64:error=ENOSPC:when=9",
        "pwrite64:error=ENOSPC:when=20+",
        "fsync,fdatasync,syncfs:error=ENOSPC:when=2",
        "renameat2:error=ENOSPC:when=2",
        "mkdirat:error=ENOSPC:when=1",
        "pwrite64:error=EDQUOT:when=5",
    ];
    under(bed, &faults, &[3, 7])
}

/// The same for pushes: the faults are those of the side that has the source.
fn under_push(bed: &Bed, faults: &[&str], codes: &[i32]) -> Result<u32> {
    let mut failed = 0;
    for fault in faults {
        bed.empty_target()?;
        let target = bed.server(&[], "to", &["--plain"])?;
        let wrapper = injected(bed, &format!("inject={fault}"));
        let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
        let run = bed.push(&wrapper, &target.address, &["--plain"])?.end()?;
        failed += u32::from(run.code != Some(0));
        bed.fails_cleanly(&run, codes, || bed.push(&[], &target.address, &["--plain"]))
            .map_err(|error| error.context((*fault).to_owned()))?;
    }
    Ok(failed)
}

pub(super) fn broken(bed: &Bed) -> Result<Outcome> {
    let faults = [
        "pwrite64:error=EIO:when=1",
        "pwrite64:error=EIO:when=12",
        "fsync,fdatasync,syncfs:error=EIO:when=1",
        "fsync,fdatasync,syncfs:error=EIO:when=3",
        "renameat2:error=EIO:when=1",
        "fchmod:error=EIO:when=2",
        "utimensat:error=EIO:when=2",
        "ftruncate:error=EIO:when=1",
    ];
    let of_source = ["pread64:error=EIO:when=12", "pread64:error=EIO:when=20+", "openat:error=EIO:when=40+5"];
    match under(bed, &faults, &[3, 7])? {
        Outcome::Right(seen) => {
            let failed = under_push(bed, &of_source, &[3, 7])?;
            ensure!(failed > 0, "no fault of the source failed a copy");
            Ok(Outcome::Right(format!("{seen}; {} faults of the source, {failed} failed", of_source.len())))
        }
        other => Ok(other),
    }
}

pub(super) fn short(bed: &Bed) -> Result<Outcome> {
    let faults = [
        "pwrite64:error=EINTR:when=1+3",
        // The first ones are of the loader of programs.
        "pread64:error=EINTR:when=9+3",
        "fsync,fdatasync:error=EINTR:when=1+2",
        "read:error=EINTR:when=5+7",
    ];
    under(bed, &faults, &[])
}

pub(super) fn slow(bed: &Bed) -> Result<Outcome> {
    let faults = ["pwrite64:delay_exit=150000", "fsync,fdatasync,syncfs:delay_exit=300000"];
    let shorter = ["pwrite64:delay_exit=50000", "fsync,fdatasync,syncfs:delay_exit=100000"];
    under(bed, &bed.by_extent(shorter, faults), &[])
}

pub(super) fn limits(bed: &Bed) -> Result<Outcome> {
    if !has("prlimit") {
        return Ok(Outcome::Impossible("prlimit is missing".into()));
    }
    let source = bed.server(&[], "root", &["--plain"])?;
    bed.empty_target()?;
    let run = bed.pull(&["prlimit", "--fsize=1000000"], &source.address, &["--plain"])?.end()?;
    ensure!(run.code == Some(3), "files beyond the limit: exit code {:?}: {}", run.code, run.stderr);
    bed.fails_cleanly(&run, &[3], || bed.pull(&[], &source.address, &["--plain"]))?;
    bed.empty_target()?;
    let run = bed.pull(&["prlimit", "--nofile=64"], &source.address, &["--plain"])?.end()?;
    ensure!(run.code == Some(0), "64 open files: exit code {:?}: {}", run.code, run.stderr);
    bed.is_whole()?;
    Ok(Outcome::Right("large files: exit 3, then whole; 64 open files: whole".into()))
}

pub(super) fn forbidden(bed: &Bed) -> Result<Outcome> {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    if is_root && !has("setpriv") {
        return Ok(Outcome::Impossible("setpriv is missing, and root may read everything".into()));
    }
    let without = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"];
    let wrapper = if is_root { &without[..] } else { &[] };
    for name in ["a", "d/c"] {
        fs::set_permissions(bed.path(&format!("root/t/{name}")), Permissions::from_mode(0o000))?;
    }
    bed.empty_target()?;
    let source = bed.server(wrapper, "root", &["--plain"])?;
    let run = bed.pull(&[], &source.address, &["--plain"])?.end()?;
    ensure!(run.code == Some(3), "exit code {:?}: {}", run.code, run.stderr);
    ensure!(run.end["failed"] == 2 && run.end["files"] == 4, "{}", run.end);
    for name in ["a", "d/c"] {
        fs::set_permissions(bed.path(&format!("root/t/{name}")), Permissions::from_mode(0o644))?;
    }
    bed.fails_cleanly(&run, &[3], || bed.pull(&[], &source.address, &["--plain"]))?;
    Ok(Outcome::Right("2 of 6 files failed by name, exit 3, then whole".into()))
}
