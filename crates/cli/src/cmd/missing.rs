//! The answer to a request for missing files: a report for each path.

use std::io;

use farhaul::DiskSource;
use farhaul_session::{Chunk, EntryId, FailCode, Failure, Next, ShownPath, Source, Stamp};

/// A source without files.
pub(super) struct Missing {
    reports: Vec<(ShownPath, Failure)>,
}

impl Missing {
    /// Reports a reason for each path, from the attempt to open it alone. `error` is the reason for the first unreadable one.
    pub(super) fn new(each: impl Iterator<Item = (ShownPath, io::Result<DiskSource>)>, error: &io::Error) -> Self {
        let reports = each.map(|(path, opened)| {
            let failure = match opened {
                Err(error) if error.kind() == io::ErrorKind::NotFound => FailCode::NotFound.into(),
                Err(error) => Failure::new(FailCode::Io, error.to_string()),
                Ok(_) => Failure::new(FailCode::GivenUp, format!("another path of the same copy failed: {error}")),
            };
            (path, failure)
        });
        let mut reports: Vec<_> = reports.collect();
        reports.reverse();
        Self { reports }
    }
}

impl Source for Missing {
    fn next_entry(&mut self, _: EntryId) -> Next {
        self.reports.pop().map_or(Next::End, |(path, failure)| Next::Skipped(path, failure))
    }

    fn read(&mut self, _: EntryId, _: u64, _: &mut [u8]) -> Result<Chunk, Failure> {
        Err(FailCode::NotFound.into())
    }

    fn recheck(&mut self, _: EntryId) -> Result<Stamp, Failure> {
        Err(FailCode::NotFound.into())
    }

    fn close(&mut self, _: EntryId) {}
}
