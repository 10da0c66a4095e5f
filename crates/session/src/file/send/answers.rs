//! Input of a sender: grants, and the answers for each entry.

use std::ops::Range;
use std::sync::Arc;

use super::plan::Plan;
use super::{Names, Pending, SendPhase, SendState, Stage};
use crate::course::Course;
use crate::error::{SessionError, Violation};
use crate::failure::Failure;
use crate::field::Malformed;
use crate::figures::Figures;
use crate::file::{FileEvent, MAX_ATTEMPTS, Side, decode_failed, entry_id};
use crate::frame_kind::FrameKind;
use crate::framing::decode_whole;
use crate::handshake::Accept;
use crate::integrity::{ChunkDigest, Digest};
use crate::manifest::{EntryId, EntryKind, ShownPath};
use crate::refusal::received_abort;
use crate::store::Change;

/// Most files with claimed chunks without their last answer. A store of this project has 64.
const MAX_CLAIMED: usize = 256;
/// Most digests of claimed chunks that wait, of one file if no other has claims: those of 1 TiB.
const MAX_KNOWN: usize = 1 << 20;
/// Most files whose damaged chunks wait to be sent again. A receiver of this project has 64.
const MAX_REPAIRS: usize = 256;

impl SendState {
    pub(super) fn on_frame(&mut self, kind: FrameKind, body: &[u8]) -> Result<(), SessionError> {
        if self.awaits_accept {
            self.granted = self.granted.max(Accept::awaited(kind, body)?.credit);
            self.awaits_accept = false;
            self.events.push_back(FileEvent::Accepted);
            return Ok(());
        }
        match kind {
            FrameKind::Abort => return Err(received_abort(body)),
            FrameKind::Names => self.on_names(body)?,
            FrameKind::WaitsForSpace => self.events.push_back(FileEvent::WaitsForSpace),
            FrameKind::Grant => self.on_grant(body)?,
            FrameKind::Want => self.on_want(body)?,
            FrameKind::Have => self.on_have(body)?,
            FrameKind::Known => self.on_known(body)?,
            FrameKind::Again => self.on_again(body)?,
            FrameKind::Verified => self.on_verified(body)?,
            FrameKind::Made => self.on_made(body)?,
            FrameKind::Deleted => self.on_deleted(body)?,
            FrameKind::Failed => self.on_failed(body)?,
            FrameKind::Done => self.on_done(body)?,
            other => return Err(Violation::OutOfPlace(other).into()),
        }
        Ok(())
    }

    fn on_names(&mut self, body: &[u8]) -> Result<(), Violation> {
        let Names::Incomplete(builder) = &mut self.names else { return Err(Violation::OutOfPlace(FrameKind::Names)) };
        if builder.handle_frame(body)? {
            self.names = Names::Complete(std::mem::take(builder).build());
        }
        Ok(())
    }

    fn on_grant(&mut self, body: &[u8]) -> Result<(), Violation> {
        let (granted, stored) = decode_whole(FrameKind::Grant, body, |fields| Ok((fields.u64()?, fields.u64()?)))?;
        if granted < self.granted || stored < self.stored || stored > self.sent {
            return Err(Violation::CreditWithdrawn);
        }
        (self.granted, self.stored) = (granted, stored);
        Ok(())
    }

    /// The first answer about a file. Content without one is sent no more. `None` if this side gave up the file meanwhile.
    fn first_answer(&mut self, id: EntryId) -> Result<Option<&mut Pending>, Violation> {
        self.is_heard = true;
        self.unrequested.clear();
        if self.given_up.remove(&id) {
            return Ok(None);
        }
        let pending = self.pending.get_mut(id).filter(|pending| !pending.is_answered).ok_or(Violation::UnknownEntry)?;
        self.undecided -= u64::from(pending.is_undecided());
        pending.is_answered = true;
        Ok(Some(pending))
    }

    fn on_want(&mut self, body: &[u8]) -> Result<(), Violation> {
        let (id, change, claimed) = decode_whole(FrameKind::Want, body, |fields| {
            let (id, change) = (entry_id(fields)?, Change::decode(fields)?);
            let mut claimed: Vec<Range<u64>> = Vec::new();
            while fields.end().is_err() {
                let range = fields.u64()?..fields.u64()?;
                if range.is_empty() || claimed.last().is_some_and(|last| last.end >= range.start) {
                    return Err(Malformed::Value("claimed chunks"));
                }
                claimed.push(range);
            }
            Ok((id, change, claimed))
        })?;
        if self.first_answer(id)?.is_none() {
            return Ok(());
        }
        if !claimed.is_empty() {
            if self.claimed.len() >= MAX_CLAIMED {
                return Err(Violation::Limit("files with claimed chunks"));
            }
            self.claimed.insert(id);
        }
        let Some(pending) = self.pending.get_mut(id) else { return Ok(()) };
        pending.change = change;
        match pending.stage {
            Stage::Announced => {
                let mut plan = Box::new(Plan::unanswered(&pending.entry));
                plan.want(&claimed);
                pending.stage = Stage::Wanted(plan);
                self.wanted.push_back(id);
            }
            Stage::Sending => {
                if let Some(current) = self.current.as_mut().filter(|current| current.id == id) {
                    current.plan.want(&claimed);
                }
            }
            // All of it was in flight already.
            Stage::Sent(_) => {}
            Stage::Wanted(_) => return Err(Violation::UnknownEntry),
        }
        Ok(())
    }

    fn on_have(&mut self, body: &[u8]) -> Result<(), Violation> {
        let (id, change) =
            decode_whole(FrameKind::Have, body, |fields| Ok((entry_id(fields)?, Change::decode(fields)?)))?;
        let Some(pending) = self.first_answer(id)? else { return Ok(()) };
        let entry = Arc::clone(&pending.entry);
        self.drop_pending(id);
        self.totals.keep(&entry);
        self.events.push_back(FileEvent::Kept(entry, change));
        Ok(())
    }

    fn on_known(&mut self, body: &[u8]) -> Result<(), Violation> {
        let (id, index, digest) = decode_whole(FrameKind::Known, body, |fields| {
            let (id, index) = (entry_id(fields)?, fields.u64()?);
            let digest = match fields.end() {
                Ok(()) => None,
                Err(_) => Some(ChunkDigest::from_bytes(fields.array()?)),
            };
            Ok((id, index, digest))
        })?;
        let most = MAX_KNOWN / self.claimed.len().max(1);
        if let Some(current) = self.current.as_mut().filter(|current| current.id == id) {
            return if current.plan.resolve(index, digest, most) || current.is_refused {
                Ok(())
            } else {
                Err(Violation::UnknownEntry)
            };
        }
        match self.pending.get_mut(id).map(|pending| &mut pending.stage) {
            // It comes before the file's turn.
            Some(Stage::Wanted(plan)) => plan.resolve(index, digest, most).then_some(()).ok_or(Violation::UnknownEntry),
            // The file failed meanwhile, or was sent in another attempt.
            _ if id.0 < self.entries => Ok(()),
            _ => Err(Violation::UnknownEntry),
        }
    }

    fn on_again(&mut self, body: &[u8]) -> Result<(), Violation> {
        let (id, chunks) = decode_whole(FrameKind::Again, body, |fields| {
            let id = entry_id(fields)?;
            let mut chunks = Vec::new();
            while fields.end().is_err() {
                chunks.push(fields.u64()?);
            }
            Ok((id, chunks))
        })?;
        let Some(pending) = self.pending.get_mut(id).filter(|pending| matches!(pending.stage, Stage::Sent(_))) else {
            return Err(Violation::UnknownEntry);
        };
        pending.repairs += 1;
        if pending.repairs >= MAX_ATTEMPTS || self.repairs.len() >= MAX_REPAIRS {
            return Err(Violation::Limit("repairs"));
        }
        let count = crate::integrity::chunk_count(pending.entry.size);
        // An empty file has no chunks, and yet a digest that may arrive damaged.
        if chunks.is_empty() && count > 0 || chunks.iter().any(|&index| index >= count) {
            return Err(Violation::UnknownEntry);
        }
        let entry = Arc::clone(&pending.entry);
        self.events.push_back(FileEvent::Repaired { entry, chunks: chunks.len() as u64 });
        self.repairs.push_back((id, chunks));
        Ok(())
    }

    fn on_verified(&mut self, body: &[u8]) -> Result<(), Violation> {
        let (id, digest) = decode_whole(FrameKind::Verified, body, |fields| {
            Ok((entry_id(fields)?, Digest::from_bytes(fields.array()?)))
        })?;
        let Some(Pending { entry, stage: Stage::Sent(sent), change, has_sent, is_answered: true, .. }) =
            self.pending.get(id)
        else {
            return Err(Violation::UnknownEntry);
        };
        if *sent != digest {
            return Err(Violation::WrongDigest(entry.path.to_string()));
        }
        let (entry, change) = (Arc::clone(entry), if *has_sent { change.with_content() } else { *change });
        self.drop_pending(id);
        self.totals.verify(&entry, change);
        self.compared += u64::from(change.keeps_content());
        self.events.push_back(FileEvent::Verified(entry, digest, change));
        Ok(())
    }

    fn on_made(&mut self, body: &[u8]) -> Result<(), Violation> {
        let (id, change) =
            decode_whole(FrameKind::Made, body, |fields| Ok((entry_id(fields)?, Change::decode(fields)?)))?;
        let Some(Pending { entry, .. }) = self.pending.get(id) else { return Err(Violation::UnknownEntry) };
        match entry.kind {
            EntryKind::File => return Err(Violation::UnknownEntry),
            EntryKind::Directory => self.totals.directories += 1,
            EntryKind::Symlink | EntryKind::HardLink => self.totals.links += 1,
        }
        let entry = Arc::clone(entry);
        self.drop_pending(id);
        self.events.push_back(FileEvent::Made(entry, change));
        Ok(())
    }

    fn on_deleted(&mut self, body: &[u8]) -> Result<(), Violation> {
        if !self.course.is_at(SendPhase::Ended) {
            return Err(Violation::OutOfPlace(FrameKind::Deleted));
        }
        let (path, failure) = decode_whole(FrameKind::Deleted, body, |fields| {
            let path = ShownPath::decode(fields)?;
            Ok((path, if fields.end().is_ok() { None } else { Some(Failure::decode(fields)?) }))
        })?;
        match failure {
            Some(failure) => self.report_failed(path, failure, Side::Peer),
            None => {
                self.totals.deleted += 1;
                self.events.push_back(FileEvent::Deleted(path));
            }
        }
        Ok(())
    }

    /// The answer may cross this side's own report about the same entry. Then that report counts.
    fn on_failed(&mut self, body: &[u8]) -> Result<(), Violation> {
        let (id, failure) = decode_failed(body)?;
        if id.0 >= self.entries {
            return Err(Violation::UnknownEntry);
        }
        self.is_heard = true;
        self.unrequested.clear();
        self.given_up.remove(&id);
        let Some(pending) = self.pending.get(id) else { return Ok(()) };
        self.undecided -= u64::from(pending.is_undecided());
        let path = ShownPath::from(&pending.entry.path);
        self.drop_pending(id);
        self.report_failed(path, failure, Side::Peer);
        Ok(())
    }

    /// An entry has its last answer.
    fn drop_pending(&mut self, id: EntryId) {
        self.take_pending(id);
        self.forgotten.push(id);
        if let Some(current) = self.current.as_mut().filter(|current| current.id == id) {
            current.is_refused = true;
        }
    }

    fn on_done(&mut self, body: &[u8]) -> Result<(), Violation> {
        if !self.course.is_at(SendPhase::Ended) {
            return Err(Violation::OutOfPlace(FrameKind::Done));
        }
        let (files, figures) =
            decode_whole(FrameKind::Done, body, |fields| Ok((fields.u64()?, Figures::decode(fields)?)))?;
        if !self.pending.is_empty() || files != self.totals.files + self.compared || figures.bytes != self.sent {
            return Err(Violation::Counts);
        }
        self.peer = Some(figures);
        self.course = Course::Done;
        self.stored = self.sent;
        self.events.push_back(FileEvent::Done(self.totals));
        Ok(())
    }
}
