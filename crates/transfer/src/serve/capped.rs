//! A source or store within the caps of its client.

use farhaul_session::{
    Chunk, Commit, Digest, Ending, Entry, EntryId, EntryKind, FailCode, Failure, Figures, Leftover, Next, ShownPath,
    Source, Stamp, Store,
};
use farhaul_udp::Clock;

use crate::keys::{Claim, Exhausted, Permit};
use crate::session::file::Holding;

/// A source or store, and the permit of the session.
#[derive(Debug)]
pub(crate) struct Capped<T> {
    inner: T,
    permit: Permit,
    clock: Clock,
    holding: Holding,
    /// The bytes that the file under way is said to get.
    claim: Claim,
    /// The client may read no more files.
    is_over: bool,
}

impl<T> Capped<T> {
    /// `holding` counts the waits for the cap of the rate.
    pub(crate) fn new(inner: T, permit: Permit, clock: Clock, holding: Holding) -> Self {
        Self { inner, permit, clock, holding, claim: Claim::default(), is_over: false }
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Failure> {
        let waited = self.permit.charge_claimed(bytes, &mut self.claim, self.clock).map_err(given_up)?;
        self.holding.add(waited);
        Ok(())
    }
}

fn given_up(used_up: Exhausted) -> Failure {
    Failure::new(FailCode::GivenUp, used_up.0)
}

impl<T: Source> Source for Capped<T> {
    fn next_entry(&mut self, id: EntryId) -> Next {
        if self.is_over {
            return Next::End;
        }
        let next = self.inner.next_entry(id);
        let Next::Entry(entry) = &next else { return next };
        match self.permit.charge_file() {
            Ok(()) => next,
            Err(used_up) => {
                // One failure stands for all that follow, which are not even looked for.
                self.is_over = true;
                if entry.kind == EntryKind::File {
                    self.inner.close(id);
                }
                Next::Skipped(ShownPath::from(&entry.path), given_up(used_up))
            }
        }
    }

    fn read(&mut self, id: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        let portion = self.permit.portion().min(out.len());
        let chunk = self.inner.read(id, offset, &mut out[..portion])?;
        if let Chunk::Data(bytes) = chunk {
            self.charge(bytes)?;
        }
        Ok(chunk)
    }

    fn recheck(&mut self, id: EntryId) -> Result<Stamp, Failure> {
        self.inner.recheck(id)
    }

    fn close(&mut self, id: EntryId) {
        self.inner.close(id);
    }

    fn figures(&mut self) -> Figures {
        self.inner.figures()
    }
}

impl<T: Store> Store for Capped<T> {
    fn make_dir(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure> {
        self.permit.charge_file().map_err(given_up)?;
        self.inner.make_dir(id, entry)
    }

    fn begin(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure> {
        let claim = self.permit.claim(entry.size).map_err(given_up)?;
        self.permit.charge_file().map_err(given_up)?;
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

    fn finish_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Commit, Failure> {
        self.inner.finish_dir(id, entry)
    }

    fn abort(&mut self, id: EntryId, leftover: Leftover) {
        self.claim = Claim::default();
        self.inner.abort(id, leftover);
    }

    fn backlog(&self) -> u64 {
        self.inner.backlog()
    }

    fn settle(&mut self) {
        self.inner.settle();
    }

    fn conclude(&mut self, ending: Ending) {
        self.inner.conclude(ending);
    }

    fn poll_committed(&mut self) -> Option<(EntryId, Result<(), Failure>)> {
        self.inner.poll_committed()
    }

    fn figures(&mut self) -> Figures {
        self.inner.figures()
    }
}
