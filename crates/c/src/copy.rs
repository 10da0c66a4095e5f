//! Copies of files and trees between any two ends.

use std::ffi::{OsStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use farhaul_session::{Kept, Rules, Shard, Skip};
use farhaul_transfer::{Cancellation, CopyJob, Environment, Error, Location, Report};

use crate::access::FarhaulAccess;
use crate::argument::{self, millis, need, put};
use crate::border::{border, border_of, change, give};
use crate::error::FarhaulError;
use crate::event::{FarhaulEventCallback, Listener, environment};
use crate::fault::Fault;
use crate::fork::leave;
use crate::result::FarhaulResult;

/// Copy directories with their contents.
pub const FARHAUL_COPY_RECURSIVE: u32 = 1;
/// Keep a whole tree as it is: links, owners, modes, attributes, access control lists. Includes `FARHAUL_COPY_RECURSIVE`.
pub const FARHAUL_COPY_ARCHIVE: u32 = 2;
/// Change nothing, and report what would change.
pub const FARHAUL_COPY_DRY_RUN: u32 = 4;
/// Read each file again from the disk before it gets its name.
pub const FARHAUL_COPY_VERIFY_DISK: u32 = 8;
/// Compare files that the target has by their content, and not by size and time.
pub const FARHAUL_COPY_COMPARE_CONTENT: u32 = 16;
/// Leave files that exist at the target as they are.
pub const FARHAUL_COPY_KEEP_EXISTING: u32 = 32;

const ALL_FLAGS: u32 = FARHAUL_COPY_RECURSIVE
    | FARHAUL_COPY_ARCHIVE
    | FARHAUL_COPY_DRY_RUN
    | FARHAUL_COPY_VERIFY_DISK
    | FARHAUL_COPY_COMPARE_CONTENT
    | FARHAUL_COPY_KEEP_EXISTING;

/// A copy to be run, once or again. One thread at a time changes it.
pub struct FarhaulCopy {
    places: Vec<Location>,
    is_recursive: bool,
    rules: Rules,
    access: FarhaulAccess,
    give_up: Duration,
}

/// Ends copies from another thread.
pub struct FarhaulCancellation {
    inner: Cancellation,
}

/// What a copy did.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FarhaulReport {
    /// Bytes of content of the files that were copied.
    pub bytes: u64,
    /// Files that were copied.
    pub files: u64,
    /// Files that the target had already.
    pub kept: u64,
    /// Directories that were made or completed.
    pub directories: u64,
    /// Files and directories that were not copied.
    pub failed: u64,
    /// Entries that were removed from the target.
    pub deleted: u64,
    /// Microseconds from connecting to the last confirmation.
    pub elapsed_us: u64,
    /// Payload per second at the receiver, in bits; zero if no time passed.
    pub goodput: u64,
    /// Data packets sent again.
    pub packets_retransmitted: u64,
    /// Both sides have compared digests.
    pub verified: bool,
}

impl FarhaulReport {
    fn of(report: &Report) -> Self {
        Self {
            bytes: report.bytes,
            files: report.files.unwrap_or(0),
            kept: report.kept.unwrap_or(0),
            directories: report.directories.unwrap_or(0),
            failed: report.failed.unwrap_or(0),
            deleted: report.deleted.unwrap_or(0),
            elapsed_us: Duration::try_from_secs_f64(report.seconds)
                .map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
            goodput: report.goodput_bps.unwrap_or(0),
            packets_retransmitted: report.packets_retransmitted,
            verified: report.verified,
        }
    }
}

/// Describes a copy of `count` sources to a target. `flags` are `FARHAUL_COPY_…` together. `access` may be null.
///
/// A place is a path of this host, `[user@]host:path` over SSH, or `udt://host:port/path` below the root of a server, as the
/// command has them. At least one side is another host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_copy_new(
    sources: *const *const c_char,
    count: usize,
    target: *const c_char,
    flags: u32,
    access: Option<&FarhaulAccess>,
    out: Option<&mut MaybeUninit<*mut FarhaulCopy>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    give(out, error, || {
        if flags & !ALL_FLAGS != 0 {
            return Err(Fault::invalid("`flags` has more than FARHAUL_COPY_…"));
        }
        // SAFETY: the caller gives texts as documented.
        let (mut places, target) =
            unsafe { (argument::list(sources, count, "sources")?, argument::bytes(target, "target")?) };
        places.push(target);
        let place = |bytes: &[u8]| Location::read(OsStr::from_bytes(bytes)).map_err(Fault::invalid);
        let places = places.into_iter().map(place).collect::<Result<Vec<_>, _>>()?;
        if places.contains(&Location::Standard) {
            return Err(Fault::invalid(
                "`-` is a stream of a command; a program copies with farhaul_read and farhaul_write",
            ));
        }
        if places.iter().any(|place| matches!(place, Location::Original(_))) {
            return Err(Fault::invalid("original programs are for the command alone"));
        }
        let has = |flag| flags & flag != 0;
        let skip = match (has(FARHAUL_COPY_COMPARE_CONTENT), has(FARHAUL_COPY_KEEP_EXISTING)) {
            (true, true) => return Err(Fault::invalid("existing files are either kept or compared")),
            (true, false) => Skip::Digest,
            (false, true) => Skip::Exists,
            (false, false) => Skip::default(),
        };
        let rules = Rules {
            keep: if has(FARHAUL_COPY_ARCHIVE) { Kept::ALL } else { Kept::default() },
            skip,
            dry_run: has(FARHAUL_COPY_DRY_RUN),
            verify_disk: has(FARHAUL_COPY_VERIFY_DISK),
            ..Rules::default()
        };
        let is_recursive = has(FARHAUL_COPY_RECURSIVE) || has(FARHAUL_COPY_ARCHIVE);
        // What no copy can be is told here, and not when it runs.
        CopyJob::new(&places, is_recursive)?;
        let access = access.cloned().unwrap_or_default();
        Ok(FarhaulCopy { places, is_recursive, rules, access, give_up: Duration::ZERO })
    })
}

/// Removes from the target directories what the source lacks, once everything has arrived. Removes nothing if it would be more
/// than `most` entries.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_copy_delete(
    copy: Option<&mut FarhaulCopy>,
    most: u64,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(copy, "copy", error, |copy| {
        copy.rules.delete = Some(most);
        Ok(())
    })
}

/// Leaves out what a line of a .gitignore file at the top of the copy matches. Of several lines that match, the last one counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_copy_exclude(
    copy: Option<&mut FarhaulCopy>,
    pattern: *const c_char,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(copy, "copy", error, |copy| {
        // SAFETY: the caller gives texts as documented.
        let pattern = unsafe { argument::bytes(pattern, "pattern") }?.to_vec();
        copy.rules.filters.push(pattern);
        Ok(())
    })
}

/// Copies only the `index`-th of `count` parts of the files, from 1 on. All parts together are the whole copy.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_copy_shard(
    copy: Option<&mut FarhaulCopy>,
    index: u32,
    count: u32,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(copy, "copy", error, |copy| {
        let shard = Shard::new(index, count).map_err(|error| Fault::invalid(error.to_string()))?;
        copy.rules.shard = Some(shard);
        Ok(())
    })
}

/// After the connection was lost, tries again until nothing more arrived for this many milliseconds. Default 0: fails at once.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_copy_give_up_after(
    copy: Option<&mut FarhaulCopy>,
    milliseconds: u64,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(copy, "copy", error, |copy| {
        copy.give_up = millis(milliseconds);
        Ok(())
    })
}

/// Runs a copy to its end. `callback`, `cancellation` and `report` may be null. After a failure, the report tells what was done.
///
/// A file gets its final name once both ends computed the same digest. Repeat a copy that failed: it goes on where it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_copy_run(
    copy: Option<&FarhaulCopy>,
    callback: FarhaulEventCallback,
    context: *mut c_void,
    cancellation: Option<&FarhaulCancellation>,
    mut report: Option<&mut MaybeUninit<FarhaulReport>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    // Whatever happens, the caller may read it.
    put(report.as_deref_mut(), FarhaulReport::default());
    border(error, || {
        let mut environment = environment(Listener::new(callback, context));
        if let Some(cancellation) = cancellation {
            environment.cancellation = cancellation.inner.clone();
        }
        let result = need(copy, "copy").map(|copy| copy.run(&environment));
        let (done, result) = match result {
            Err(fault) => (Report::default(), Err(fault)),
            Ok(Ok(done)) => (done, Ok(FarhaulResult::Ok)),
            Ok(Err(mut failed)) => {
                (failed.report.take().map_or_else(Report::default, |report| *report), Err(failed.into()))
            }
        };
        put(report, FarhaulReport::of(&done));
        result
    })
}

impl FarhaulCopy {
    fn run(&self, environment: &Environment) -> Result<Report, Error> {
        let FarhaulAccess { settings, ssh } = self.access.clone();
        CopyJob::new(&self.places, self.is_recursive)?
            .with_settings(settings)
            .with_ssh(ssh)
            .with_rules(self.rules.clone())
            .give_up_after(self.give_up)
            .run(environment)
    }
}

/// Frees a copy, which must not be running.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_copy_free(copy: Option<Box<FarhaulCopy>>) {
    leave(copy);
}

/// Makes a cancellation for any number of copies. Null if the process was forked off a user of this library.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_cancellation_new() -> Option<Box<FarhaulCancellation>> {
    border_of(None, || Some(Box::new(FarhaulCancellation { inner: Cancellation::default() })))
}

/// Ends the copies that were given it, now and later, with `FARHAUL_RESULT_CANCELLED`. Any thread may call it, also a callback.
/// A signal handler may not.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_cancellation_cancel(cancellation: Option<&FarhaulCancellation>) {
    border_of((), || {
        if let Some(cancellation) = cancellation {
            cancellation.inner.cancel();
        }
    });
}

/// Frees a cancellation. Copies that run with it go on.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_cancellation_free(cancellation: Option<Box<FarhaulCancellation>>) {
    leave(cancellation);
}
