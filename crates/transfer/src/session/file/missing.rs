//! What a request selects, and the answer if that cannot be sent: a report for each path.

use std::io;

use farhaul_disk::Selection;
use farhaul_session::{Chunk, EntryId, FailCode, Failure, Next, ShownPath, Source, Stamp};

/// A source without files.
pub(crate) struct Missing {
    reports: Vec<(ShownPath, Failure)>,
}

/// Selects what a request names. `single` is for targets that take one entry. `each` selects every path alone: if the
/// whole request cannot be sent, the report has the reason for each of them.
pub(crate) fn select<E: Iterator<Item = (ShownPath, io::Result<Selection>)>>(
    all: io::Result<Selection>,
    single: bool,
    each: impl FnOnce() -> E,
) -> Result<Selection, Missing> {
    let checked = |selected: io::Result<Selection>| match selected {
        Ok(selection) if single && selection.len() > 1 => Err(too_many(selection.len())),
        selected => selected,
    };
    checked(all).map_err(|error| Missing::new(each().map(|(path, alone)| (path, checked(alone))), &error))
}

fn too_many(len: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, too_many_for_one(len))
}

/// The reason why a target that takes one entry gets none.
pub(crate) fn too_many_for_one(len: usize) -> String {
    format!("it matches {len} names, and the target takes one; write TARGET/ for a directory")
}

impl Missing {
    /// Reports why the only path cannot be sent.
    pub(crate) fn one(path: ShownPath, error: &io::Error) -> Self {
        Self { reports: vec![(path, failure(error))] }
    }

    /// Reports a reason for each path, from the attempt to select it alone. `error` is the reason for the first one.
    fn new(each: impl Iterator<Item = (ShownPath, io::Result<Selection>)>, error: &io::Error) -> Self {
        let reports = each.map(|(path, selected)| {
            let failure = match selected {
                Err(error) => failure(&error),
                Ok(_) => Failure::new(FailCode::GivenUp, format!("another path of the same copy failed: {error}")),
            };
            (path, failure)
        });
        let mut reports: Vec<_> = reports.collect();
        reports.reverse();
        Self { reports }
    }
}

/// The reason why nothing is selected. Words of the system add nothing to a missing name.
fn failure(error: &io::Error) -> Failure {
    let words = error.get_ref().map(ToString::to_string);
    match (error.kind(), words) {
        (io::ErrorKind::NotFound, words) => Failure::new(FailCode::NotFound, words.unwrap_or_default()),
        (io::ErrorKind::NotADirectory, None) => FailCode::NotDirectory.into(),
        (_, Some(words)) => Failure::new(FailCode::NotSelected, words),
        (_, None) => Failure::new(FailCode::Io, error.to_string()),
    }
}

impl Source for Missing {
    fn next_entry(&mut self, _: EntryId) -> Next {
        self.reports.pop().map_or(Next::End, |(path, failure)| Next::Skipped(path, failure))
    }

    fn open(&mut self, _: EntryId) -> Result<Stamp, Failure> {
        Err(FailCode::NotFound.into())
    }

    fn read(&mut self, _: EntryId, _: u64, _: &mut [u8]) -> Result<Chunk, Failure> {
        Err(FailCode::NotFound.into())
    }

    fn recheck(&mut self, _: EntryId) -> Result<Stamp, Failure> {
        Err(FailCode::NotFound.into())
    }

    fn close(&mut self, _: EntryId) {}
}
