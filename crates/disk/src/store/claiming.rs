//! Finds in the target all of a file, chunks of an earlier copy, or a file that is compared.

use farhaul_session::{CHUNK_LEN, Change, Entry, EntryId, FailCode, Failure, Skip, Store, chunk_count};
use rustix::fs::Stat;

use super::{DiskStore, Open};
use crate::compared::Compared;
use crate::directory::is_same;
use crate::failure::failure;
use crate::known::{Chunks, Claimed, Held};
use crate::patience::patiently;
use crate::place::StoredPlace;
use crate::source_file::size;

/// Most files whose remains are held open until their content comes. Copies leave few.
const MOST_REMAINS: usize = 32;

impl DiskStore {
    /// Whether the target has the file `there`, as the rules have it. Its other properties are set then.
    pub(super) fn has(&mut self, place: &StoredPlace, entry: &Entry, there: &Stat) -> Result<Option<Change>, Failure> {
        let skip = self.rules.skip;
        match skip {
            Skip::Exists => Ok(Some(Change::None)),
            Skip::SizeTime if entry.size == size(there) && self.is_same_time(place, entry, there) => {
                self.set_properties(place, entry, there).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Whether a file has the time of the source.
    fn is_same_time(&mut self, place: &StoredPlace, entry: &Entry, there: &Stat) -> bool {
        let (window, dry_run) = (self.rules.modify_window, self.rules.dry_run);
        self.time_steps.is_same((entry.mtime, there), &place.directory, window, dry_run)
    }

    /// Gives an existing file the properties that the copy keeps.
    fn set_properties(&self, place: &StoredPlace, entry: &Entry, there: &Stat) -> Result<Change, Failure> {
        let properties = self.writer.properties_for(entry, false);
        if !properties.is_any() {
            return Ok(Change::None);
        }
        let file = match place.directory.open_file(&place.name) {
            Ok(file) => file,
            // Nobody may look at it. What can be compared is the same.
            Err(rustix::io::Errno::ACCESS) => return Ok(Change::None),
            Err(error) => return Err(failure("open", error)),
        };
        // In a directory of another user, another file may have the name by now, which would get the owner of this one.
        if !rustix::fs::fstat(&file).is_ok_and(|opened| is_same(&opened, there)) {
            return Err(Failure::new(FailCode::Io, "somebody else replaced it just now"));
        }
        if !properties.is_missing_in(&file, there).map_err(|error| failure("read its properties", error))? {
            return Ok(Change::None);
        }
        if !self.rules.dry_run {
            properties.set(&file).map_err(|error| failure("set its properties", error))?;
        }
        Ok(Change::Properties)
    }

    /// Whether the properties of an existing file are those of the source, if it has the content.
    fn compare_properties(&mut self, place: &StoredPlace, entry: &Entry, there: &Stat) -> Result<Change, Failure> {
        if !self.is_same_time(place, entry, there) {
            return Ok(Change::Properties);
        }
        let properties = self.writer.properties_for(entry, false);
        let is_missing = || properties.is_missing_in(place.directory.open_file(&place.name)?, there);
        match properties.is_any() && is_missing().map_err(|error| failure("read its properties", error))? {
            true => Ok(Change::Properties),
            false => Ok(Change::None),
        }
    }

    /// The chunks that the target may have of a file that is wanted, and what changes if it has all of them.
    pub(super) fn claim(
        &mut self,
        id: EntryId,
        place: &StoredPlace,
        entry: &Entry,
        there: Option<&Stat>,
    ) -> Result<Option<(Claimed, Change)>, Failure> {
        // What cannot be continued is removed, whatever the size of the file.
        let remain = match self.rules.dry_run {
            true => None,
            false => self.places.remain(place, entry, self.lock_wait.as_ref()).filter(|_| entry.size > CHUNK_LEN),
        };
        if !entry.has_size() {
            return Ok(None);
        }
        if let Some(remain) = remain.filter(|_| self.remains.len() < MOST_REMAINS) {
            let chunks = remain.noted.chunks_within(entry.size, remain.len);
            let chunks = Chunks::Noted(chunks);
            let Ok(file) = remain.file.try_clone() else { return Ok(None) };
            self.remains.insert(id, remain);
            let change = if there.is_some() { Change::Content } else { Change::New };
            return Ok(Some((Claimed { id, file: Held::Open(file), size: entry.size, chunks }, change)));
        }
        let Some(there) = there.filter(|_| self.rules.skip == Skip::Digest && !self.compares_enough()) else {
            return Ok(None);
        };
        let change = match size(there) == entry.size {
            true => self.compare_properties(place, entry, there)?,
            false => Change::Content,
        };
        let whole = if size(there) >= entry.size { chunk_count(entry.size) } else { size(there) / CHUNK_LEN };
        let compared = Compared::new(place, *there);
        self.compared.insert(id, compared.clone());
        let claimed = Claimed { id, file: Held::Closed(compared), size: entry.size, chunks: Chunks::First(whole) };
        Ok(Some((claimed, change)))
    }

    /// Moves a file that differs from that of the target to a temporary name. In a dry run nothing is written.
    pub(super) fn differ(&mut self, id: EntryId) -> Result<(), Failure> {
        if let Some(open @ Open::Same(..)) = self.files.get_mut(&id)
            && !self.rules.dry_run
            && let Open::Same(same, entry) = open
        {
            let partial = patiently(self.patience.as_deref(), || same.differs(entry, &self.ends))?;
            *open = Open::Partial(Box::new(partial), entry.clone());
        }
        Ok(())
    }
}
