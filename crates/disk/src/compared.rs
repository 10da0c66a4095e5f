//! Files of the target that may have the content of the source: nothing is written unless a chunk differs.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use farhaul_session::{Component, Ends, Entry, FailCode, Failure, chunk_count};
use rustix::fs::Stat;

use super::claims::Claims;
use super::directory::{Directory, is_same, mtime};
use super::failure::{failure, io_failure};
use super::partial::Partial;
use super::place::StoredPlace;
use super::properties::TargetProperties;
use super::source_file::size;

/// A file as it was when it was examined.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    directory: Arc<Directory>,
    name: Component,
    claims: Arc<Claims>,
    there: Stat,
}

impl Compared {
    pub(super) fn new(place: &StoredPlace, there: Stat) -> Self {
        let StoredPlace { directory, name, claims, .. } = place;
        Self { directory: Arc::clone(directory), name: name.clone(), claims: Arc::clone(claims), there }
    }

    /// Opens it.
    ///
    /// # Errors
    /// It is another file by now, or has changed.
    pub(super) fn open(&self) -> Result<File, Failure> {
        let file = self.directory.open_file(&self.name).map_err(|error| failure("open what is there", error))?;
        self.check(&file)?;
        Ok(file)
    }

    pub(super) fn len(&self) -> u64 {
        size(&self.there)
    }

    /// Whether `file` is as it was examined. A change of its time of change alone, as by a further name, is none.
    fn check(&self, file: &File) -> Result<(), Failure> {
        let now = rustix::fs::fstat(file).map_err(|error| failure("read what is there", error))?;
        let stamp = |stat: &Stat| (size(stat), mtime(stat));
        if is_same(&now, &self.there) && stamp(&now) == stamp(&self.there) {
            return Ok(());
        }
        Err(Failure::new(FailCode::SourceChanged, "the file at the target changed while it was compared"))
    }
}

/// A file whose chunks come, and are those of the target so far.
#[derive(Debug)]
pub(super) struct Same {
    compared: Compared,
    file: File,
    /// The chunks, in ranges, in the order in which they came.
    kept: Vec<Range<u64>>,
}

impl Same {
    pub(super) fn begin(compared: Compared) -> Result<Self, Failure> {
        let file = compared.open()?;
        Ok(Self { compared, file, kept: Vec::new() })
    }

    /// The size of the target's file.
    pub(super) fn len(&self) -> u64 {
        self.compared.len()
    }

    pub(super) fn keep(&mut self, index: u64) {
        match self.kept.last_mut().filter(|last| last.end == index) {
            Some(last) => last.end += 1,
            None => self.kept.push(index..index + 1),
        }
    }

    /// A file under a temporary name, with the chunks so far, for a source that has this entry.
    pub(super) fn differs(&self, entry: &Entry, ends: &Ends) -> Result<Partial, Failure> {
        let Compared { directory, name, claims, .. } = self.compared.clone();
        let basis = self.file.try_clone().map_err(|error| io_failure("open what is there", &error))?;
        let partial = Partial::begin(directory, name, (entry.size, entry.is_sparse()), claims)?;
        let partial = partial.with_basis(Some(basis));
        let mut chunks = self.kept.iter().cloned().flatten().filter(|index| *index < chunk_count(entry.size));
        chunks.try_for_each(|index| ends.check().and_then(|()| partial.keep(index)))?;
        Ok(partial)
    }

    /// All chunks are those of the target. Gives it the properties that the copy wants.
    ///
    /// # Errors
    /// It has changed, or its properties cannot be set.
    pub(super) fn commit(self, properties: &TargetProperties) -> Result<(), Failure> {
        let Self { compared, file, .. } = self;
        compared.check(&file)?;
        let named = compared.directory.stat(&compared.name).map_err(|error| failure("read what is there", error))?;
        if !is_same(&named, &compared.there) {
            return Err(Failure::new(FailCode::SourceChanged, "another file got its name while it was compared"));
        }
        let read = |error| failure("read its properties", error);
        if mtime(&named) == properties.mtime && !properties.is_missing_in(&file, &named).map_err(read)? {
            return Ok(());
        }
        properties.set(&file).map_err(|error| failure("set its properties", error))
    }
}
