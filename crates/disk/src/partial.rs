//! An incomplete file under its temporary name.

mod made;

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, LazyLock};

use farhaul_session::{CHUNK_LEN, ChunkDigest, Component, Ends, Entry, FailCode, Failure, chunk_count, chunk_range};
use rustix::fs::{FallocateFlags, Mode, RenameFlags, fallocate};
use rustix::io::retry_on_intr;
use rustix::process::{Resource, getrlimit};

use self::made::{make, make_journal, make_locked};
use super::claims::Claims;
use super::directory::{Directory, no_modes_here};
use super::failure::{failure, io_failure};
use super::journal::Journal;
use super::patience::Patience;
use super::properties::TargetProperties;
use super::remains::{self, Remain};
use super::replacement::mode_after;
use super::reservation::Reservation;
use super::small_file::SmallFile;
use super::target::Target;
use super::temporary::journal_of;

/// The mode of an incomplete file.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// An incomplete file. If it is dropped before its commit or removal, the bytes that arrived stay under the temporary name,
/// without the space that was reserved for others. Without any bytes, it is removed.
///
/// It is locked, so that another copy to the same target neither continues nor removes it. A [new small file](Self::small) is not.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) directory: Arc<Directory>,
    file: File,
    /// Its name until the commit.
    temporary: Component,
    /// Its final name.
    name: Component,
    space: Reservation,
    /// The end of the bytes that were written or were there.
    end: Cell<u64>,
    /// Bytes that the file gets.
    size: u64,
    /// Notes chunks, from the first one on, of a file of several chunks.
    journal: Notes,
    /// Chunks that the journal of the earlier copy noted. They are being checked.
    noted: Vec<(u64, ChunkDigest)>,
    /// The file of which known chunks are taken over.
    basis: Option<File>,
    /// Bytes of earlier copies may lie where holes come.
    is_continued: bool,
    /// It is a [small](Self::small) one.
    is_small: bool,
    /// A file had its final name a moment ago.
    replaces: bool,
    /// It has its final name, or none.
    is_over: bool,
    /// What the same copy has made in the directory.
    claims: Arc<Claims>,
}

/// The state of a journal.
#[derive(Debug)]
enum Notes {
    /// Nothing is noted yet.
    None,
    Open(Journal),
    /// The disk does not take it. The copy goes on, and cannot be continued later.
    Failed,
}

impl Partial {
    /// Creates the file for `name`, and reserves the first part of the space for `size` bytes, unless it has holes, if the file system can.
    pub(super) fn begin(
        directory: Arc<Directory>,
        name: Component,
        (size, is_sparse): (u64, bool),
        claims: Arc<Claims>,
    ) -> Result<Self, Failure> {
        check_limit(size)?;
        let (temporary, file) = make_locked(&directory, &name)?;
        // Holes in reserved space would take room.
        let reserve = |file| if is_sparse { Ok(Reservation::none()) } else { Reservation::begin(file, size) };
        match claim(&claims, &directory, (&temporary, &name), &file).and_then(|()| reserve(&file)) {
            Ok(space) => Ok(Self::empty(directory, file, (temporary, name), (size, space), claims)),
            Err(error) => {
                remains::remove(&directory, &temporary, &file);
                Err(error)
            }
        }
    }

    /// Creates a small file with its content, for a name that nothing had when the copy looked. It replaces nothing and is not locked,
    /// so another copy may take it for what a dead one left and remove it. Then, or if a file has the name by now,
    /// [`take_name`](Self::take_name) fails with [`FailCode::NotFound`], and it takes a file that is [begun](Self::begin) instead.
    pub(super) fn small(small: &SmallFile) -> Result<Self, Failure> {
        let SmallFile { directory, name, claims, content, .. } = small;
        let size = content.len() as u64;
        check_limit(size)?;
        let (temporary, file) = make(directory, name)?;
        let (directory, claims, names) = (Arc::clone(directory), Arc::clone(claims), (temporary, name.clone()));
        let mut partial = Self::empty(directory, file, names, (size, Reservation::none()), claims);
        partial.is_small = true;
        claim(&partial.claims, &partial.directory, (&partial.temporary, &partial.name), &partial.file)?;
        partial.write_quietly(0, content)?;
        Ok(partial)
    }

    /// Continues the file of an earlier copy. What its journal says is being checked, and stays until then: this copy may break off, too.
    pub(super) fn resume(
        directory: Arc<Directory>,
        name: Component,
        entry: &Entry,
        remain: Remain,
        claims: Arc<Claims>,
    ) -> Result<Self, Failure> {
        check_limit(entry.size)?;
        let Remain { file, temporary, len, noted } = remain;
        let noted = noted.chunks_within(entry.size, len);
        // The copy before may have given it its mode already.
        no_modes_here(rustix::fs::fchmod(&file, PRIVATE)).map_err(|error| failure("make it private", error))?;
        if len > entry.size {
            file.set_len(entry.size).map_err(|error| io_failure("shorten", &error))?;
        }
        claim(&claims, &directory, (&temporary, &name), &file)?;
        let size = (entry.size, Reservation::none());
        let mut partial = Self::empty(directory, file, (temporary, name), size, claims);
        partial.end.set(len.min(entry.size));
        partial.noted = noted;
        partial.is_continued = true;
        Ok(partial)
    }

    /// A file that gets `size` bytes, and has none yet.
    fn empty(
        directory: Arc<Directory>,
        file: File,
        (temporary, name): (Component, Component),
        (size, space): (u64, Reservation),
        claims: Arc<Claims>,
    ) -> Self {
        Self {
            directory,
            file,
            temporary,
            name,
            space,
            end: Cell::new(0),
            size,
            journal: Notes::None,
            noted: Vec::new(),
            basis: None,
            is_continued: false,
            is_small: false,
            replaces: false,
            is_over: false,
            claims,
        }
    }

    /// The same, which takes known chunks over from `basis`.
    pub(super) fn with_basis(mut self, basis: Option<File>) -> Self {
        self.basis = basis;
        self
    }

    /// Bytes that it may still need on the disk.
    pub(super) fn needs(entry: &Entry, remain: Option<&Remain>) -> u64 {
        entry.size.saturating_sub(remain.map_or(0, |remain| remain.len))
    }

    /// The source changed, and has this size now.
    pub(super) fn resize(&mut self, entry: &Entry) -> Result<(), Failure> {
        check_limit(entry.size)?;
        if entry.size < self.end.get() {
            self.file.set_len(entry.size).map_err(|error| io_failure("shorten", &error))?;
            self.end.set(entry.size);
        }
        self.size = entry.size;
        self.noted = Vec::new();
        self.is_continued = true;
        Ok(())
    }

    /// Leaves a hole of `count` bytes.
    pub(super) fn zeros(&self, offset: u64, count: u64) -> Result<(), Failure> {
        check_limit(offset.saturating_add(count))?;
        // The space of a hole must not stay reserved, and bytes of an earlier attempt must go.
        if self.is_continued || self.space.reaches(offset) {
            let punched = fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, count);
            if punched.is_err() && self.is_continued {
                return self.write_zeros(offset, count);
            }
        }
        self.space.stop();
        self.end.set(self.end.get().max(offset + count));
        Ok(())
    }

    /// For file systems without holes.
    fn write_zeros(&self, offset: u64, count: u64) -> Result<(), Failure> {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        let mut done = 0;
        while done < count {
            let step = usize::try_from(count - done).unwrap_or(ZEROS.len()).min(ZEROS.len());
            self.write(offset + done, &ZEROS[..step])?;
            done += step as u64;
        }
        Ok(())
    }

    /// Takes over a known chunk. It is there already, unless it comes from another file.
    pub(super) fn keep(&self, index: u64) -> Result<(), Failure> {
        let range = chunk_range(index, self.size);
        let Some(basis) = &self.basis else {
            self.end.set(self.end.get().max(range.end));
            return Ok(());
        };
        let mut done = range.start;
        while done < range.end {
            let wanted = usize::try_from(range.end - done).unwrap_or(usize::MAX);
            // Where the file system can, both files share the blocks.
            match rustix::fs::copy_file_range(basis, Some(&mut { done }), &self.file, Some(&mut { done }), wanted) {
                Ok(0) => return Err(Failure::new(FailCode::SourceChanged, "the target became shorter just now")),
                Ok(count) => done += count as u64,
                Err(_) => return self.copy(basis, done, range.end),
            }
        }
        self.end.set(self.end.get().max(range.end));
        Ok(())
    }

    /// Takes over all bytes of another file. On failure the file is removed.
    pub(super) fn with_content_of(mut self, other: File, ends: &Ends) -> Result<Self, Failure> {
        self.basis = Some(other);
        let kept = (0..chunk_count(self.size)).try_for_each(|index| ends.check().and_then(|()| self.keep(index)));
        self.basis = None;
        match kept {
            Ok(()) => Ok(self),
            Err(failure) => {
                self.remove();
                Err(failure)
            }
        }
    }

    fn copy(&self, basis: &File, from: u64, to: u64) -> Result<(), Failure> {
        let mut room = vec![0; usize::try_from(to - from).unwrap_or(usize::MAX).min(1 << 20)];
        basis.read_exact_at(&mut room, from).map_err(|error| io_failure("read the target", &error))?;
        self.write(from, &room)
    }

    /// Notes a chunk that has arrived.
    pub(super) fn note(&mut self, index: u64, digest: &ChunkDigest, entry: &Entry) {
        if self.size <= CHUNK_LEN {
            return;
        }
        if let Notes::None = self.journal {
            let begun = self.begin_journal(entry);
            self.journal = begun.map_or(Notes::Failed, Notes::Open);
        }
        if let Notes::Open(journal) = &mut self.journal
            && journal.note(index, digest).is_err()
        {
            self.journal = Notes::Failed;
        }
    }

    fn begin_journal(&mut self, entry: &Entry) -> Option<Journal> {
        let name = journal_of(&self.temporary);
        if !self.is_continued {
            return Journal::begin(self.directory.make_file(&name).ok()?, &self.name, entry).ok();
        }
        // The old journal stays until the new one says as much.
        let (new, file) = make_journal(&self.directory, &self.name).ok()?;
        let mut journal = Journal::begin(file, &self.name, entry).ok()?;
        let noted = journal.note_all(&std::mem::take(&mut self.noted));
        let renamed = noted.is_ok() && self.directory.rename(&new, &name, RenameFlags::empty()).is_ok();
        if !renamed {
            let _ = self.directory.remove(&new);
        }
        renamed.then_some(journal)
    }

    /// Writes all bytes so far to the disk.
    pub(super) fn sync(&self) -> Result<(), Failure> {
        retry_on_intr(|| rustix::fs::fdatasync(&self.file)).map_err(|error| failure("write to the disk", error))
    }

    /// Writes bytes. A failure names the file that keeps the bytes written before.
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.write_quietly(offset, bytes).map_err(|mut failure| {
            if self.end.get() > 0 {
                failure.message += &format!("; the bytes written before are in {}", self.temporary);
            }
            failure
        })
    }

    /// Writes bytes of a file that does not outlive a failure.
    pub(super) fn write_quietly(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let end = offset.saturating_add(bytes.len() as u64);
        check_limit(end)?;
        self.space.extend(&self.file, bytes.len() as u64)?;
        self.file.write_all_at(bytes, offset).map_err(|error| io_failure("write", &error))?;
        self.end.set(self.end.get().max(end));
        Ok(())
    }

    /// Makes the content survive a crash and gives the file its final name. The directory is not yet synchronised. On
    /// failure the file is removed, because a repeated fsync may not report the error again.
    pub(super) fn commit(mut self, commit: &Commitment) -> Result<(), Failure> {
        self.prepare(commit)?;
        if commit.syncs {
            self.sync_all()?;
        }
        self.take_name(commit)
    }

    /// Sets the size and the properties. On failure the file is removed.
    ///
    /// A file that has the name already gives its permissions to the new one, unless the copy keeps those of the source.
    pub(super) fn prepare(&mut self, commit: &Commitment) -> Result<(), Failure> {
        let mut properties = commit.properties.clone();
        if !commit.keeps_permissions
            && !self.is_small
            && let Some(old) = (Target { directory: &self.directory, name: &self.name }).replaced()
        {
            properties.mode = Some(mode_after(&old, &self.file));
            self.replaces = true;
        }
        let prepared = self
            .set_size()
            .and_then(|()| properties.set(&self.file).map_err(|error| failure("set its properties", error)));
        prepared.inspect_err(|_| self.remove())
    }

    /// Makes content and properties survive a crash. On failure the file is removed.
    pub(super) fn sync_all(&mut self) -> Result<(), Failure> {
        let synced =
            retry_on_intr(|| rustix::fs::fsync(&self.file)).map_err(|error| failure("write to the disk", error));
        synced.inspect_err(|_| self.remove())
    }

    /// Gives a prepared file its final name. On failure the file is removed.
    pub(super) fn take_name(mut self, commit: &Commitment) -> Result<(), Failure> {
        let verified = commit.verify.as_ref().map_or(Ok(()), |digest| verify(&self.file, digest, &commit.ends));
        let done = verified.and_then(|()| {
            let target = Target { directory: &self.directory, name: &self.name };
            if !self.replaces {
                match target.take_free(&self.temporary, &self.claims) {
                    Ok(()) => return Ok(()),
                    // It would hand its permissions on.
                    Err(_) if self.is_small && target.replaced().is_some() => return Err(FailCode::NotFound.into()),
                    Err(_) => {}
                }
            }
            target.take_any(&self.temporary, &self.claims)
        });
        match done {
            Ok(()) => {
                self.is_over = true;
                if !matches!(self.journal, Notes::None) || self.is_continued {
                    let _ = self.directory.remove(&journal_of(&self.temporary));
                }
            }
            Err(_) => self.remove(),
        }
        done
    }

    /// Sets the size if the file ends with a hole, or was longer before.
    fn set_size(&self) -> Result<(), Failure> {
        if self.is_small {
            return Ok(());
        }
        let len = rustix::fs::fstat(&self.file).map_err(|error| failure("read", error))?.st_size;
        if u64::try_from(len).is_ok_and(|len| len == self.end.get()) {
            return Ok(());
        }
        self.file.set_len(self.end.get()).map_err(|error| io_failure("set its size", &error))
    }

    /// Removes the file, unless something else has its temporary name.
    pub(super) fn remove(&mut self) {
        self.is_over = true;
        remains::remove(&self.directory, &self.temporary, &self.file);
        if let Notes::Open(_) = self.journal {
            // Somebody else may have removed the file alone.
            remains::remove_orphan(&self.directory, &journal_of(&self.temporary));
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        match self.end.get() {
            _ if self.is_over => {}
            0 => self.remove(),
            // The system gives reserved space back even if the size stays. If it refuses, the file is larger than its bytes.
            end => drop(self.file.set_len(end)),
        }
    }
}

/// Refuses a file that ends beyond the largest size that this process may write. The limit is that of the first file.
fn check_limit(end: u64) -> Result<(), Failure> {
    static LIMIT: LazyLock<Option<u64>> = LazyLock::new(|| getrlimit(Resource::Fsize).current);
    match *LIMIT {
        Some(limit) if end > limit => {
            let message = format!("this process may write no file beyond {limit} bytes (ulimit -f)");
            Err(Failure::new(FailCode::TooLarge, message))
        }
        _ => Ok(()),
    }
}

/// What a commit does besides giving the name.
#[derive(Clone, Debug)]
pub(super) struct Commitment {
    pub(super) properties: TargetProperties,
    /// Whether the file gets the mode of the source, whatever it replaces.
    pub(super) keeps_permissions: bool,
    /// Whether the content is to survive a crash.
    pub(super) syncs: bool,
    /// What waits while the disk is full.
    pub(super) patience: Option<Arc<Patience>>,
    /// The digest, if the file is to be read again from the disk, unless the copy ends.
    pub(super) verify: Option<farhaul_session::Digest>,
    pub(super) ends: Ends,
}

/// Reads a file again from its disk, and compares its digest.
fn verify(file: &File, digest: &farhaul_session::Digest, ends: &Ends) -> Result<(), Failure> {
    // Pages that are not written yet stay in the cache, so the file must be synchronised before.
    let _ = rustix::fs::fdatasync(file);
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    let mut hasher = blake3::Hasher::new();
    let (mut room, mut offset) = (vec![0; 1 << 20], 0);
    loop {
        ends.check()?;
        let read = retry_on_intr(|| rustix::io::pread(file, &mut *room, offset));
        match read.map_err(|error| failure("read it again", error))? {
            0 => break,
            len => {
                hasher.update(&room[..len]);
                offset += len as u64;
            }
        }
    }
    match *hasher.finalize().as_bytes() == *digest.as_bytes() {
        true => Ok(()),
        false => Err(Failure::new(FailCode::DigestMismatch, "the disk gives back other bytes than were written")),
    }
}

/// Claims an incomplete file and its final name.
fn claim(
    claims: &Claims,
    directory: &Directory,
    (temporary, name): (&Component, &Component),
    file: &File,
) -> Result<(), Failure> {
    let inode = || rustix::fs::fstat(file).map(|stat| stat.st_ino);
    claims.claim_file(directory, temporary, name, inode).map_err(|error| failure("read", error))
}

#[cfg(test)]
mod tests;
