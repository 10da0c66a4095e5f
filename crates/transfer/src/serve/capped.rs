//! A source or store within the caps of its client.

use std::sync::Arc;
use std::time::Duration;

use delegate::delegate;
use farhaul_disk::MUNGED;
use farhaul_keys::{Claim, Permit};
use farhaul_session::{
    CHUNK_LEN, Change, Chunk, ChunkDigest, Commit, Digest, Ending, Entry, EntryId, Failure, Figures, KnownChunk,
    Leftover, Made, NameList, Next, RelPath, Scratch, ShownPath, Source, Stamp, Store, Verdict,
};
use farhaul_udp::Clock;

use crate::session::file::Holding;

/// A source or store, and the permit of the session.
#[derive(Debug)]
pub(crate) struct Capped<T> {
    inner: T,
    permit: Arc<Permit>,
    clock: Clock,
    holding: Holding,
    /// The bytes that the file under way is said to get.
    claim: Claim,
    /// Waits for the rate since the session could last tell what the store knows.
    untold: Duration,
    /// The client may read no more files.
    is_over: bool,
    /// Links of the client are stored so that they lead nowhere.
    munges_links: bool,
}

/// Waits for the rate between two answers to the peer. As long as a wait for one portion of data.
const TURN: Duration = Duration::from_millis(100);

impl<T> Capped<T> {
    /// `holding` counts the waits for the cap of the rate.
    pub(crate) fn new(inner: T, permit: impl Into<Arc<Permit>>, clock: Clock, holding: Holding) -> Self {
        let (claim, untold, is_over, munges_links) = (Claim::default(), Duration::ZERO, false, false);
        Self { inner, permit: permit.into(), clock, holding, claim, untold, is_over, munges_links }
    }

    /// The same for a client whose links are stored so that they lead nowhere.
    pub(crate) fn munging_links(self, munges_links: bool) -> Self {
        Self { munges_links, ..self }
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Failure> {
        let waited = self.permit.charge_claimed(bytes, &mut self.claim, self.clock)?;
        self.holding.add(waited);
        Ok(())
    }

    /// The same for a hole.
    fn charge_hole(&mut self, bytes: u64) -> Result<(), Failure> {
        let waited = self.permit.charge_hole(bytes, &mut self.claim, self.clock)?;
        self.holding.add(waited);
        Ok(())
    }

    /// The same for bytes that are compared.
    fn charge_work(&mut self, bytes: u64) -> Result<(), Failure> {
        let waited = self.permit.charge_work(bytes, self.clock)?;
        self.holding.add(waited);
        Ok(())
    }
}

/// The part of a hole at `offset` that a session hashes at once: no more than the rest of its chunk.
fn at_once(offset: u64, hole: u64) -> u64 {
    hole.min(CHUNK_LEN - offset % CHUNK_LEN)
}

impl<T> Capped<T> {
    /// Counts what comes with an entry beside its content: attributes, access control lists, and the target of a link.
    fn charge_properties(&mut self, entry: &Entry) -> Result<(), Failure> {
        let Some(properties) = &entry.properties else { return Ok(()) };
        let of_attributes: usize = properties.attributes.iter().map(|its| its.name.len() + its.value.len()).sum();
        match of_attributes + properties.link_target.len() {
            0 => Ok(()),
            bytes => {
                self.holding.add(self.permit.charge(bytes, self.clock)?);
                Ok(())
            }
        }
    }
}

impl<T: Source> Source for Capped<T> {
    delegate! {
        to self.inner {
            fn restrict(&mut self, names: NameList);
            fn close(&mut self, id: EntryId);
            fn figures(&mut self) -> Figures;
            fn open(&mut self, id: EntryId) -> Result<Stamp, Failure>;
            fn forget(&mut self, id: EntryId);
            fn recheck(&mut self, id: EntryId) -> Result<Stamp, Failure>;
        }
    }

    fn next_entry(&mut self, id: EntryId) -> Next {
        if self.is_over {
            return Next::End;
        }
        let mut next = self.inner.next_entry(id);
        let Next::Entry(entry) = &mut next else { return next };
        if let Some(properties) = &mut entry.properties
            && let Some(target) = properties.link_target.strip_prefix(MUNGED)
        {
            properties.link_target = target.to_vec();
        }
        match self.permit.charge_file().map_err(Failure::from).and_then(|()| self.charge_properties(entry)) {
            Ok(()) => next,
            Err(used_up) => {
                // One failure stands for all that follow, which are not even looked for.
                self.is_over = true;
                self.inner.forget(id);
                Next::Skipped(ShownPath::from(&entry.path), used_up)
            }
        }
    }

    fn read_known(&mut self, id: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        let chunk = self.inner.read_known(id, offset, out)?;
        match chunk {
            Chunk::Data(bytes) => self.charge_work(bytes as u64)?,
            Chunk::Zeros(bytes) => self.charge_work(at_once(offset, bytes))?,
            Chunk::Pending | Chunk::End => {}
        }
        Ok(chunk)
    }

    fn read(&mut self, id: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        let portion = self.permit.portion().min(out.len());
        let chunk = self.inner.read(id, offset, &mut out[..portion])?;
        match chunk {
            Chunk::Data(bytes) => self.charge(bytes)?,
            Chunk::Zeros(bytes) => self.charge_hole(at_once(offset, bytes))?,
            Chunk::Pending | Chunk::End => {}
        }
        Ok(chunk)
    }
}

impl<T: Store> Store for Capped<T> {
    delegate! {
        to self.inner {
            fn compares_enough(&self) -> bool;
            fn chunk(&mut self, id: EntryId, index: u64, digest: &ChunkDigest);
            fn figures(&mut self) -> Figures;
            fn can_repair(&self) -> bool;
            fn scratch(&mut self) -> Result<Box<dyn Scratch>, Failure>;
            fn delete_next(&mut self) -> Option<(ShownPath, Result<(), Failure>)>;
            fn backlog(&self) -> u64;
            fn finish_commits(&mut self);
            fn conclude(&mut self, ending: Ending);
            fn poll_committed(&mut self) -> Option<(EntryId, Result<(), Failure>)>;
            fn finish_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Commit, Failure>;
            fn has_unknown(&self) -> bool;
            fn keep(&mut self, id: EntryId, index: u64) -> Result<(), Failure>;
            fn forget(&mut self, id: EntryId);
        }
    }

    fn make_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Made, Failure> {
        self.permit.charge_file()?;
        self.charge_properties(entry)?;
        self.inner.make_dir(id, entry)
    }

    fn begin(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure> {
        // A file that begins again claims its new size alone.
        self.claim = Claim::default();
        let claim = self.permit.claim(entry.size)?;
        self.permit.charge_file()?;
        self.inner.begin(id, entry)?;
        self.claim = claim;
        Ok(())
    }

    fn write(&mut self, id: EntryId, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.charge(bytes.len())?;
        self.inner.write(id, offset, bytes)
    }

    fn commit(&mut self, id: EntryId, entry: &Entry, digest: &Digest) -> Result<Commit, Failure> {
        self.claim = Claim::default();
        self.inner.commit(id, entry, digest)
    }

    fn abort(&mut self, id: EntryId, leftover: Leftover) {
        self.claim = Claim::default();
        self.inner.abort(id, leftover);
    }

    fn examine(&mut self, id: EntryId, entry: &Entry) -> Result<Verdict, Failure> {
        self.charge_properties(entry)?;
        self.inner.examine(id, entry)
    }

    fn poll_known(&mut self) -> Option<(EntryId, KnownChunk)> {
        // The session asks on until there is nothing, and then tells what it got.
        if self.untold >= TURN {
            self.untold = Duration::ZERO;
            return None;
        }
        let known = self.inner.poll_known()?;
        // It was read and hashed already. A key that may do no more finds out at its next byte.
        self.untold += self.permit.charge_work(CHUNK_LEN, self.clock).map_or(TURN, |waited| {
            self.holding.add(waited);
            waited
        });
        Some(known)
    }

    fn zeros(&mut self, id: EntryId, offset: u64, count: u64) -> Result<(), Failure> {
        self.charge_hole(count)?;
        self.inner.zeros(id, offset, count)
    }

    fn make_symlink(&mut self, id: EntryId, entry: &Entry) -> Result<(Change, Commit), Failure> {
        self.permit.charge_file()?;
        self.charge_properties(entry)?;
        if !self.munges_links {
            return self.inner.make_symlink(id, entry);
        }
        let mut munged = entry.clone();
        if let Some(properties) = &mut munged.properties {
            properties.link_target.splice(..0, MUNGED.iter().copied());
        }
        self.inner.make_symlink(id, &munged)
    }

    fn make_hard_link(&mut self, id: EntryId, entry: &Entry, first: &RelPath) -> Result<(Change, Commit), Failure> {
        self.permit.charge_file()?;
        self.charge_properties(entry)?;
        self.inner.make_hard_link(id, entry, first)
    }
}

#[cfg(test)]
mod tests {
    use farhaul::security::{AuthorizedKeys, PublicKey};
    use farhaul_session::{Attribute, EntryKind, FailCode, Kept, MemoryStore, Mtime, Properties, RelPath, Rules};

    use super::*;
    use farhaul_disk::{Directory, DiskSource, DiskStore};
    use farhaul_keys::Usages;

    #[test]
    fn attributes_and_targets_of_links_count_against_the_bytes_of_a_key() {
        let base = std::env::temp_dir().join(format!("farhaul-capped-{}", std::process::id()));
        std::fs::create_dir_all(&base).unwrap();
        let key = PublicKey::from_bytes([7; 32]);
        let keys = AuthorizedKeys::parse(&format!("{key} bytes=1000B")).unwrap();
        let entry = |kind, properties| {
            let path = RelPath::parse(b"entry").unwrap();
            Entry { properties: Some(Box::new(properties)), ..Entry::new(path, kind, 0, 0o644, Mtime::default()) }
        };
        let attribute = Attribute { name: b"user.a".to_vec(), value: vec![0; 494] };
        let attributes = Properties { attributes: vec![attribute], ..Properties::default() };
        let target = Properties { link_target: vec![b'x'; 500], ..Properties::default() };
        let (file, directory) = (entry(EntryKind::File, attributes.clone()), entry(EntryKind::Directory, attributes));
        let link = entry(EntryKind::Symlink, target);
        // Some may fail for other reasons. What came counts all the same.
        type Step<'a> = &'a dyn Fn(&mut Capped<DiskStore>) -> Option<FailCode>;
        let steps: [Step<'_>; 3] = [
            &|store| store.examine(EntryId(0), &file).err().map(|failure| failure.code),
            &|store| store.make_dir(EntryId(1), &directory).err().map(|failure| failure.code),
            &|store| store.make_symlink(EntryId(2), &link).err().map(|failure| failure.code),
        ];
        for step in steps {
            let permit = Usages::default().begin(&keys.grants()[0]).unwrap();
            let store = DiskStore::into_directory(Directory::open(&base).unwrap());
            let mut capped = Capped::new(store, permit, Clock::start(), Holding::default());
            let codes: Vec<_> = (0..3).map(|_| step(&mut capped)).collect();
            assert!(codes[..2].iter().all(|code| *code != Some(FailCode::GivenUp)), "{codes:?}");
            assert_eq!(codes[2], Some(FailCode::GivenUp));
        }
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_munged_link_leads_nowhere_and_is_sent_as_it_came() {
        let base = std::env::temp_dir().join(format!("farhaul-munged-{}", std::process::id()));
        std::fs::create_dir_all(&base).unwrap();
        let properties = Properties { link_target: b"../../secret".to_vec(), ..Properties::default() };
        let path = RelPath::parse(b"link").unwrap();
        let link = Entry::new(path, EntryKind::Symlink, 0, 0o777, Mtime::default());
        let link = Entry { properties: Some(Box::new(properties)), ..link };
        let rules = Rules { keep: Kept { symlinks: true, ..Kept::default() }, ..Rules::default() };
        for munges in [true, false] {
            let store = DiskStore::into_directory(Directory::open(&base).unwrap()).under_rules(&rules, false);
            let mut store = capped(store).munging_links(munges);
            store.make_symlink(EntryId(0), &link).unwrap();
            let stored = std::fs::read_link(base.join("link")).unwrap();
            assert_eq!(stored.to_str().unwrap(), if munges { "/farhaul-munged/../../secret" } else { "../../secret" });
            let source = DiskSource::new(&[base.join(".")], true).unwrap().under_rules(&rules).unwrap();
            let Next::Entry(sent) = capped(source).next_entry(EntryId(0)) else { panic!() };
            assert_eq!(sent.link_target(), Some(&b"../../secret"[..]));
            // At the root of the host, the link would lead there.
            let path = RelPath::parse(b"farhaul-munged").unwrap();
            let somewhere = Entry::new(path, EntryKind::Directory, 0, 0o755, Mtime::default());
            let made = store.make_dir(EntryId(1), &somewhere);
            assert_eq!(made.map_err(|failure| failure.code), Err(FailCode::NameRefused));
        }
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn what_is_known_is_told_between_waits_for_the_rate() {
        let path = RelPath::parse(b"file").unwrap();
        let mut store = MemoryStore::default();
        store.partial.insert(path.clone(), vec![7; 3 * CHUNK_LEN as usize]);
        let mut capped = Capped::new(store, permit("rate=4mbit"), Clock::start(), Holding::default());
        let file = Entry::new(path, EntryKind::File, 3 * CHUNK_LEN, 0o644, Mtime::default());
        capped.examine(EntryId(0), &file).unwrap();
        for index in 0..3 {
            assert!(capped.has_unknown());
            // A sixteenth of a chunk takes 131 ms.
            assert_eq!(capped.poll_known().map(|(_, known)| known.index), Some(index));
            assert_eq!(capped.poll_known(), None, "the session tells this one first");
        }
        assert!(!capped.has_unknown());
    }

    #[test]
    fn a_file_that_begins_again_claims_its_new_size_alone() {
        let mut capped = Capped::new(MemoryStore::default(), permit("bytes=1000B"), Clock::start(), Holding::default());
        let path = RelPath::parse(b"file").unwrap();
        let file = |size| Entry::new(path.clone(), EntryKind::File, size, 0o644, Mtime::default());
        capped.begin(EntryId(0), &file(600)).unwrap();
        capped.begin(EntryId(0), &file(900)).unwrap();
        assert_eq!(capped.begin(EntryId(0), &file(1_001)).map_err(|failure| failure.code), Err(FailCode::GivenUp));
    }

    fn permit(options: &str) -> Permit {
        let key = PublicKey::from_bytes([7; 32]);
        Usages::default().begin(&AuthorizedKeys::parse(&format!("{key} {options}")).unwrap().grants()[0]).unwrap()
    }

    fn capped<T>(inner: T) -> Capped<T> {
        Capped::new(inner, Permit::default(), Clock::start(), Holding::default())
    }
}
