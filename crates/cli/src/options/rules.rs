//! Options of copies of trees: what is kept, skipped and removed.

use std::fmt::Display;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use farhaul_session::{Kept, Rules, Shard, Skip, SyncPolicy};
use farhaul_transfer::internal::lists;
use farhaul_units::parse_duration;

use crate::exit::Fault;
use crate::values::{Named, named};

/// What a copy keeps, skips and removes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Trees")]
pub(crate) struct RulesOptions {
    /// Copy a whole tree: -r with links, owners, modes, attributes and access control lists
    #[arg(short, long)]
    pub(crate) archive: bool,
    /// Keep the numbers of users and groups instead of their names
    #[arg(long, requires = "archive", hide_short_help = true)]
    numeric_ids: bool,
    /// Files not to send, because the target has them
    #[arg(
        long,
        value_name = "RULE",
        value_parser = named(SKIP_RULES),
        default_value = "size-time",
        hide_short_help = true
    )]
    skip: Skip,
    /// Remove from the target directories what the source lacks, once everything has arrived
    #[arg(long)]
    delete: bool,
    /// Remove nothing if it would be more than so many entries [default: no limit]
    #[arg(long, value_name = "N", requires = "delete", hide_short_help = true)]
    max_delete: Option<u64>,
    /// Change nothing, and list what would change
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Leave out what matches, by the rules of a .gitignore file at the top of the copy: '*.o', '/cache/'
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Copy all the same what --exclude matches
    #[arg(long, value_name = "PATTERN", hide_short_help = true)]
    include: Vec<String>,
    /// Read such patterns from a file, as a .gitignore file has them
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    exclude_from: Vec<PathBuf>,
    /// Copy only the I-th of N parts of the files, so that N runs on any machines together copy each file once: 3/8
    ///
    /// The bytes of a file's path decide its part. Every run makes all directories. The target must be a directory: TARGET/.
    #[arg(long, value_name = "I/N", conflicts_with = "delete", hide_short_help = true)]
    pub(crate) shard: Option<Shard>,
    /// When files are synced to the disk: file: before they get their names; chunk: also while they arrive
    #[arg(long, value_name = "WHEN", value_parser = named(SYNC_RULES), default_value = "file", hide_short_help = true)]
    fsync: SyncPolicy,
    /// Read each file again from the disk before it gets its name
    #[arg(long, value_enum, value_name = "WHERE", hide_short_help = true)]
    verify: Option<Verify>,
    /// Write the digests of all files to this file, as b3sum prints them; `farhaul verify` compares them
    ///
    /// Files that the target has are read by both sides then, as by --skip digest.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) manifest: Option<PathBuf>,
    /// Take times for the same that are no farther apart: 2s. A file system that keeps times coarsely, as FAT, is found out without it
    #[arg(long, value_name = "TIME", default_value = "0s", hide_default_value = true, value_parser = parse_duration, hide_short_help = true)]
    modify_window: Duration,
    /// Wait up to 9 min while the disk of the target is full, instead of ending the copy
    #[arg(long, hide_short_help = true)]
    wait_for_space: bool,
    /// Accept a file that changes all the time as it was read last, for instance a log
    #[arg(long, hide_short_help = true)]
    allow_changing: bool,
}

const SKIP_RULES: &[Named<Skip>] = &[
    ("size-time", "Those of the same size and time", Skip::SizeTime),
    ("digest", "Those of the same content, which both sides read", Skip::Digest),
    ("exists", "All that exist", Skip::Exists),
    ("never", "None", Skip::Never),
];
const SYNC_RULES: &[Named<SyncPolicy>] =
    &[("never", "", SyncPolicy::Never), ("file", "", SyncPolicy::File), ("chunk", "", SyncPolicy::Chunk)];

/// What is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Verify {
    /// The disk of the target
    Disk,
}

impl RulesOptions {
    /// The rules.
    pub(crate) fn rules(&self) -> Result<Rules, Fault> {
        let keep = if self.archive { Kept { numeric_ids: self.numeric_ids, ..Kept::ALL } } else { Kept::default() };
        Ok(Rules {
            keep,
            skip: match self.skip {
                // A manifest proves every file.
                Skip::SizeTime if self.manifest.is_some() => Skip::Digest,
                rule => rule,
            },
            delete: self.delete.then(|| self.max_delete.unwrap_or(u64::MAX)),
            whole: false,
            dry_run: self.dry_run,
            verify_disk: self.verify == Some(Verify::Disk),
            sync: self.fsync,
            allow_changing: self.allow_changing,
            wait_for_space: self.wait_for_space,
            modify_window: self.modify_window,
            filters: self.filters()?,
            shard: self.shard,
        })
    }

    /// The patterns, as lines of a .gitignore file. Of those that match, the last one counts.
    fn filters(&self) -> Result<Vec<Vec<u8>>, Fault> {
        let mut lines = Vec::new();
        for path in &self.exclude_from {
            let refused =
                |why: &dyn Display| Fault::usage(format!("cannot read the patterns in {}: {why}", path.display()));
            let text = fs::read(path).map_err(|error| refused(&error))?;
            for (line, number) in lists::lines(&text).map_err(|error| refused(&error))?.zip(1..) {
                if line.contains(&0) {
                    return Err(refused(&format_args!("line {number} has a NUL character")));
                }
                lines.extend((!line.is_empty()).then(|| line.to_vec()));
            }
        }
        lines.extend(self.exclude.iter().map(|pattern| pattern.clone().into_bytes()));
        lines.extend(self.include.iter().map(|pattern| format!("!{pattern}").into_bytes()));
        Ok(lines)
    }
}
