//! A store that builds a received tree on the disk.

mod claiming;
mod made_root;
mod setup;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use farhaul_session::{
    Change, ChunkDigest, Commit, Digest, Ending, Ends, Entry, EntryId, FailCode, Failure, KnownChunk, Leftover, Made,
    RelPath, Rules, Scratch, ShownPath, Skip, Store, SyncPolicy, Verdict,
};
use rustix::fs::Stat;

use self::made_root::MadeRoot;
use super::caps::Caps;
use super::commits::{Commits, Complete, DirectoryCommit, FileCommit};
use super::compared::{Compared, Same};
use super::failure::failure;
use super::known::KnownChunks;
use super::links::{self, HardLink};
use super::lock_wait::LockWait;
use super::partial::{Commitment, Partial};
use super::patience::{Patience, patiently};
use super::place::{Places, StoredPlace};
use super::properties::Writer;
use super::remains::Remain;
use super::small_file::SmallFile;
use super::source_file::size;
use super::surplus::Surplus;
use super::target::Target;
use super::time_steps::TimeSteps;

/// Most ranges of chunks that are claimed of one file. The others are sent again.
const MOST_RANGES: usize = 400;
/// Most files that are compared at a time. Each may have another directory open. A sender permits 256 with claims.
const MOST_COMPARED: usize = 64;

/// Builds received trees: each file under a temporary name until it is complete, verified and safe from a crash.
///
/// The last steps of each file wait for the disk, so threads of the store perform them. Dropping the store waits for
/// running commits.
///
/// A store holds few descriptors besides those of its commits, regardless of the depth of the tree. The limit of open files
/// bounds the commits of all stores of the process together.
#[derive(Debug)]
pub struct DiskStore {
    places: Places,
    /// The root, if the store made it and the copy is not complete.
    made: Option<MadeRoot>,
    rules: Rules,
    writer: Writer,
    /// What earlier copies left of files whose content is wanted.
    remains: BTreeMap<EntryId, Remain>,
    /// Existing files that are compared, until their content comes.
    compared: BTreeMap<EntryId, Compared>,
    /// Files whose names nothing had, until their content comes.
    new: BTreeSet<EntryId>,
    known: KnownChunks,
    time_steps: TimeSteps,
    files: BTreeMap<EntryId, Open>,
    commits: Commits,
    surplus: Surplus,
    /// What waits while the disk is full.
    patience: Option<Arc<Patience>>,
    /// The wait for incomplete files of copies whose senders may be dead.
    lock_wait: Option<LockWait>,
    /// Whether the copy ends.
    ends: Ends,
    /// The caps of the peer's key, for files that take the place of hard links.
    caps: Option<Arc<dyn Caps>>,
}

/// A file whose content arrives.
#[derive(Debug)]
enum Open {
    Partial(Box<Partial>, Entry),
    Small(SmallFile, Entry),
    /// The target has all of it so far.
    Same(Box<Same>, Entry),
}

/// Files from this size on are begun only if they fit on the disk. For smaller ones, the writes tell.
const CHECK_SPACE_FROM: u64 = 1 << 20;

impl DiskStore {
    /// Removes a target directory that the store made and that is still empty.
    fn remove_made(&mut self) {
        if let Some(made) = self.made.take() {
            made.remove();
        }
    }

    const fn syncs(&self) -> bool {
        !matches!(self.rules.sync, SyncPolicy::Never)
    }

    /// Makes a file with the content of that at `first`, where no hard link to it can be made.
    fn copy_first(
        &mut self,
        id: EntryId,
        place: &StoredPlace,
        first: &StoredPlace,
        (change, there): (Change, Option<Stat>),
    ) -> Result<(Change, Commit), Failure> {
        let there = there.filter(|_| matches!(self.rules.skip, Skip::SizeTime | Skip::Exists));
        let charge = |bytes| self.caps.as_ref().map_or(Ok(()), |caps| caps.charge_copy(bytes));
        let how = (&self.writer, self.patience.as_deref(), &self.ends);
        let Some((partial, properties)) = links::copy_first(place, first, there, how, charge)? else {
            return Ok((Change::None, Commit::Done));
        };
        let (keeps_permissions, syncs, patience) = (true, self.syncs(), self.patience.clone());
        let how = Commitment { properties, keeps_permissions, syncs, patience, verify: None, ends: self.ends.clone() };
        self.commits.file(FileCommit { id, content: Complete::Written(Box::new(partial)), how });
        Ok((change, Commit::Pending))
    }

    /// Moves a file from memory to the disk: one of unknown size that becomes long.
    fn spill(&mut self, id: EntryId) -> Result<&Partial, Failure> {
        let Some(Open::Small(file, entry)) = self.files.remove(&id) else { return Err(not_open()) };
        let partial = Box::new(patiently(self.patience.as_deref(), || file.spill())?);
        match self.files.entry(id).or_insert(Open::Partial(partial, entry)) {
            Open::Partial(partial, _) => Ok(partial),
            Open::Small(..) | Open::Same(..) => Err(not_open()),
        }
    }
}

impl Store for DiskStore {
    fn make_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Made, Failure> {
        self.surplus.saw(&entry.path, &self.places);
        patiently(self.patience.as_deref(), || self.places.make_dir(id, entry, self.rules.dry_run))
    }

    fn examine(&mut self, id: EntryId, entry: &Entry) -> Result<Verdict, Failure> {
        self.surplus.saw(&entry.path, &self.places);
        let Some(place) = self.places.find(entry)? else { return Ok(Verdict::Have(Change::New)) };
        let StoredPlace { directory, name, claims, .. } = &place;
        // In a directory of this copy, nothing has the name yet. If something has it all the same, the commit finds out.
        let is_free = place.is_in_new && self.rules.skip != Skip::Exists;
        let there = if is_free { None } else { Target { directory, name }.check(claims)? };
        if let Some(there) = &there
            && let Some(change) = self.has(&place, entry, there)?
        {
            claims.claim_existing(directory, name, (there.st_ino, false))?;
            if !self.rules.dry_run && !place.is_in_finished {
                // Whatever an earlier copy left of it is of no use.
                if let Some(remain) = self.places.remain(&place, entry, None) {
                    remain.remove(directory);
                }
            }
            return Ok(Verdict::Have(change));
        }
        let change = if there.is_some() { Change::Content } else { Change::New };
        let may_be_same = self.rules.skip == Skip::Digest && there.is_some_and(|there| size(&there) == entry.size);
        if self.rules.dry_run && !may_be_same {
            return Ok(Verdict::Have(change));
        }
        if there.is_none() {
            self.new.insert(id);
        }
        let mut ranges = Vec::new();
        let Some((mut claimed, change)) = self.claim(id, &place, entry, there.as_ref())? else {
            return Ok(if self.rules.dry_run { Verdict::Have(change) } else { Verdict::Want(change, ranges) });
        };
        if let Some(there) = there.filter(|_| may_be_same) {
            claims.claim_existing(directory, name, (there.st_ino, false))?;
        }
        claimed.limit(MOST_RANGES);
        ranges = claimed.ranges();
        if ranges.is_empty() || !self.known.read(claimed) {
            ranges.clear();
        }
        Ok(Verdict::Want(change, ranges))
    }

    fn compares_enough(&self) -> bool {
        self.compared.len() >= MOST_COMPARED
    }

    fn poll_known(&mut self) -> Option<(EntryId, KnownChunk)> {
        self.known.poll()
    }

    fn has_unknown(&self) -> bool {
        self.known.is_reading()
    }

    fn begin(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure> {
        match self.files.get_mut(&id) {
            Some(Open::Partial(partial, its)) => {
                *its = entry.clone();
                return partial.resize(entry);
            }
            // Its content comes as a whole again.
            Some(Open::Small(..)) => drop(self.files.remove(&id)),
            // Of the size that it has now, the target has no file.
            Some(Open::Same(same, its)) => {
                let differs = same.len() != entry.size;
                *its = entry.clone();
                return if differs { self.differ(id) } else { Ok(()) };
            }
            None => {}
        }
        let Some(StoredPlace { directory, name, claims, .. }) = self.places.find(entry)? else {
            return Err(FailCode::ParentFailed.into());
        };
        let remain = self.remains.remove(&id);
        let is_new = self.new.remove(&id);
        let compared = self.compared.remove(&id);
        if let Some(compared) = &compared
            && compared.len() == entry.size
        {
            let same = Box::new(Same::begin(compared.clone())?);
            self.files.insert(id, Open::Same(same, entry.clone()));
            return Ok(());
        }
        let basis = compared.and_then(|compared| compared.open().ok());
        if entry.size <= SmallFile::MOST && remain.is_none() && basis.is_none() {
            let content = Vec::with_capacity(usize::try_from(entry.size).unwrap_or(0));
            let file = SmallFile { directory, name, claims, content, is_new };
            self.files.insert(id, Open::Small(file, entry.clone()));
            return Ok(());
        }
        let needed = Partial::needs(entry, remain.as_ref());
        let patience = self.patience.as_deref();
        if needed >= CHECK_SPACE_FROM && !entry.is_sparse() {
            patiently(patience, || {
                let free = directory.free_space().map_err(|error| failure("ask for the free space", error))?;
                if needed > free {
                    let message = format!("{needed} bytes are needed and {free} are free");
                    return Err(Failure::new(FailCode::NoSpace, message));
                }
                Ok(())
            })?;
        }
        let partial = match remain {
            Some(remain) => Partial::resume(directory, name, entry, remain, claims)?,
            None => patiently(patience, || {
                let (directory, claims) = (Arc::clone(&directory), Arc::clone(&claims));
                Partial::begin(directory, name.clone(), (entry.size, entry.is_sparse()), claims)
            })?,
        };
        let partial = Box::new(partial.with_basis(basis));
        self.files.insert(id, Open::Partial(partial, entry.clone()));
        Ok(())
    }

    fn write(&mut self, id: EntryId, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let end = offset.saturating_add(bytes.len() as u64);
        self.differ(id)?;
        match self.files.get_mut(&id).ok_or_else(not_open)? {
            Open::Partial(partial, _) => patiently(self.patience.as_deref(), || partial.write(offset, bytes)),
            Open::Small(file, _) if end <= SmallFile::MOST => {
                file.put(offset, bytes);
                Ok(())
            }
            Open::Small(..) => {
                self.spill(id)?;
                self.write(id, offset, bytes)
            }
            // A dry run.
            Open::Same(..) => Ok(()),
        }
    }

    fn zeros(&mut self, id: EntryId, offset: u64, count: u64) -> Result<(), Failure> {
        self.differ(id)?;
        match self.files.get_mut(&id).ok_or_else(not_open)? {
            Open::Partial(partial, _) => patiently(self.patience.as_deref(), || partial.zeros(offset, count)),
            Open::Small(file, _) if offset.saturating_add(count) <= SmallFile::MOST => {
                file.put(offset, &vec![0; usize::try_from(count).unwrap_or(0)]);
                Ok(())
            }
            Open::Small(..) => self.spill(id)?.zeros(offset, count),
            Open::Same(..) => Ok(()),
        }
    }

    fn keep(&mut self, id: EntryId, index: u64) -> Result<(), Failure> {
        match self.files.get_mut(&id).ok_or_else(not_open)? {
            Open::Partial(partial, _) => patiently(self.patience.as_deref(), || partial.keep(index)),
            Open::Same(same, _) => {
                same.keep(index);
                Ok(())
            }
            Open::Small(..) => Err(not_open()),
        }
    }

    fn chunk(&mut self, id: EntryId, index: u64, digest: &ChunkDigest) {
        let Some(Open::Partial(partial, entry)) = self.files.get_mut(&id) else { return };
        // What is noted has arrived, whatever the disk does later. If it fails, the commit finds out.
        if self.rules.sync == SyncPolicy::Chunk && partial.sync().is_err() {
            return;
        }
        partial.note(index, digest, entry);
    }

    fn commit(&mut self, id: EntryId, entry: &Entry, digest: &Digest) -> Result<Commit, Failure> {
        let content = match self.files.remove(&id).ok_or_else(not_open)? {
            Open::Partial(partial, _) => Complete::Written(partial),
            Open::Small(file, _) => Complete::Small(file),
            Open::Same(..) if self.rules.dry_run => return Ok(Commit::Done),
            Open::Same(same, _) => {
                same.commit(&self.writer.properties_for(entry, false))?;
                return Ok(Commit::Done);
            }
        };
        let how = Commitment {
            properties: self.writer.properties_for(entry, true),
            keeps_permissions: self.writer.keeps_permissions(),
            syncs: self.syncs(),
            patience: self.patience.clone(),
            verify: self.rules.verify_disk.then_some(*digest),
            ends: self.ends.clone(),
        };
        self.commits.file(FileCommit { id, content, how });
        Ok(Commit::Pending)
    }

    fn finish_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Commit, Failure> {
        self.surplus.finish((&entry.path, entry.mtime), &self.places, || self.places.directory(&entry.path));
        let Some(finished) = self.places.finish_dir(entry)? else { return Ok(Commit::Done) };
        if self.rules.dry_run {
            return Ok(Commit::Done);
        }
        let properties = self.writer.properties_for(entry, finished.is_ours);
        if !finished.is_ours && !finished.has_new && properties.are_in_directory(&finished.directory) {
            return Ok(Commit::Done);
        }
        let (directory, parent, is_ours, syncs) = (finished.directory, finished.parent, finished.is_ours, self.syncs());
        self.commits.directory(DirectoryCommit { id, directory, parent, properties, is_ours, syncs });
        Ok(Commit::Pending)
    }

    fn make_symlink(&mut self, _: EntryId, entry: &Entry) -> Result<(Change, Commit), Failure> {
        self.surplus.saw(&entry.path, &self.places);
        if !self.rules.keep.symlinks {
            return Err(Failure::new(FailCode::SpecialFile, "a symbolic link"));
        }
        let Some(place) = self.places.find(entry)? else { return Ok((Change::New, Commit::Done)) };
        let properties = self.writer.properties_for(entry, true);
        let change = links::make_symlink(&place, entry, &properties, self.rules.dry_run)?;
        Ok((change, Commit::Done))
    }

    fn make_hard_link(&mut self, id: EntryId, entry: &Entry, first: &RelPath) -> Result<(Change, Commit), Failure> {
        self.surplus.saw(&entry.path, &self.places);
        if !self.rules.keep.hard_links {
            return Err(Failure::new(FailCode::SpecialFile, "a hard link"));
        }
        let (Some(place), Some(first)) = (self.places.find(entry)?, self.places.find_finished(first)?) else {
            return Ok((Change::New, Commit::Done));
        };
        match links::make_hard_link(&place, &first, self.rules.dry_run)? {
            HardLink::Made(change) => Ok((change, Commit::Done)),
            HardLink::Impossible(change, there) => self.copy_first(id, &place, &first, (change, there)),
        }
    }

    fn scratch(&mut self) -> Result<Box<dyn Scratch>, Failure> {
        self.places.scratch()
    }

    fn finish_commits(&mut self) {
        self.commits.wait_for_all();
    }

    fn conclude(&mut self, ending: Ending) {
        match ending {
            Ending::Whole => self.made = None,
            Ending::Lacking => {
                self.places.leave();
                self.remove_made();
            }
        }
    }

    fn poll_committed(&mut self) -> Option<(EntryId, Result<(), Failure>)> {
        self.commits.poll()
    }

    fn abort(&mut self, id: EntryId, leftover: Leftover) {
        if let Some(Open::Partial(mut partial, _)) = self.files.remove(&id)
            && leftover == Leftover::Remove
        {
            partial.remove();
        }
    }

    fn forget(&mut self, id: EntryId) {
        self.remains.remove(&id);
        self.compared.remove(&id);
        self.new.remove(&id);
    }

    fn delete_next(&mut self) -> Option<(ShownPath, Result<(), Failure>)> {
        self.surplus.next(&self.places, &self.ends, self.rules.dry_run)
    }
}

impl Drop for DiskStore {
    /// Covers a copy whose connection was lost, where nothing called [`finish_commits`](Store::finish_commits).
    fn drop(&mut self) {
        self.finish_commits();
        self.places.leave();
        self.remove_made();
    }
}

fn not_open() -> Failure {
    Failure::new(FailCode::Io, "it is not open")
}
