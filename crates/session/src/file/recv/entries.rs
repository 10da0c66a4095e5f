//! Input of a receiver: entries, and the end.

use std::sync::Arc;

use super::content::Pending;
use super::{RecvPhase, RecvState};
use crate::course::Course;
use crate::error::{SessionError, Violation};
use crate::failure::{FailCode, Failure};
use crate::field::Fields;
use crate::figures::Figures;
use crate::file::{FileEvent, Side, Totals};
use crate::frame_kind::FrameKind;
use crate::framing::decode_whole;
use crate::handshake::Accept;
use crate::manifest::{Entry, EntryId, EntryKind, ShownPath};
use crate::path_rules::RelPath;
use crate::refusal::received_abort;
use crate::sender_request::Unable;
use crate::store::{Store, Verdict};

/// Most claimed ranges of chunks in one answer. Further chunks are sent.
const MAX_CLAIMS: usize = 500;

/// Before the first entry, there is no path.
static ROOT: RelPath = RelPath::root();

/// Mode bits without set-user-id, set-group-id and sticky.
const PERMISSIONS: u32 = 0o777;

impl RecvState {
    pub(super) fn on_frame<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        kind: FrameKind,
        body: &[u8],
    ) -> Result<(), SessionError> {
        if self.awaits_accept {
            let unable = Unable::in_capabilities(Accept::awaited(kind, body)?.capabilities);
            self.awaits_accept = false;
            self.events.push_back(FileEvent::Accepted);
            if unable.is_any() {
                self.events.push_back(FileEvent::Unable(unable));
            }
            return Ok(());
        }
        let receives = self.course.is_at(RecvPhase::Receiving);
        let repairs = self.course.is_at(RecvPhase::Ended) && self.awaits_content();
        match kind {
            FrameKind::Abort => Err(received_abort(body)),
            // The entries of a tree run ahead, also in the middle of content.
            FrameKind::Entry if receives => self.on_entry(store, body),
            FrameKind::Expected if receives => {
                let (files, bytes) = decode_whole(kind, body, |fields| Ok((fields.u64()?, fields.u64()?)))?;
                self.events.push_back(FileEvent::Expected { files, bytes });
                Ok(())
            }
            FrameKind::Skipped if receives => self.on_skipped(body),
            FrameKind::End if receives && self.content.is_none() => self.on_end(store, body),
            FrameKind::Content if receives || repairs => self.on_content(store, body),
            FrameKind::Seek if receives || repairs => self.on_seek(body),
            FrameKind::Zeros if receives || repairs => self.on_zeros(store, body),
            FrameKind::Chunk if receives || repairs => self.on_chunk(store, body),
            FrameKind::Keep if receives || repairs => self.on_keep(store, body),
            FrameKind::Digest if receives || repairs => {
                self.on_digest(store, body)?;
                self.finish_if_complete(store)
            }
            FrameKind::Failed if receives || repairs => {
                self.on_failed(store, body)?;
                self.finish_if_complete(store)
            }
            _ => Err(Violation::OutOfPlace(kind).into()),
        }
    }

    fn on_entry<S: Store + ?Sized>(&mut self, store: &mut S, body: &[u8]) -> Result<(), SessionError> {
        let other = self.last.as_ref().map_or(&ROOT, |last| &last.path);
        let mut entry = Entry::decode_beside(body, other).map_err(|reason| reason.in_frame(FrameKind::Entry))?;
        self.drop_unkept(&mut entry);
        if self.requested.as_mut().is_some_and(|requested| !requested.allows(&entry)) {
            return Err(Violation::NotRequested(entry.path.to_string()).into());
        }
        let depth = self.open.admit(&entry.path).map_err(|_| Violation::EntryOrder(entry.path.to_string()))?;
        self.count_entry()?;
        if self.directories.unanswered().is_beyond(2) {
            return Err(Violation::Limit("entries without an answer").into());
        }
        self.leave_directories(store, depth)?;
        let id = EntryId(self.entries);
        self.entries += 1;
        let entry = Arc::new(entry);
        self.last = Some(Arc::clone(&entry));
        let parent = self.open.innermost().copied();
        self.directories.expect(parent, &entry);
        if !self.directories.stands(parent) {
            if entry.kind == EntryKind::Directory {
                self.open.open(entry.name().clone(), id);
                self.directories.add(id, Arc::clone(&entry), parent, None);
            }
            // Its further names may be in directories that stand.
            if entry.kind == EntryKind::File {
                self.expect_links(store, id, &entry)?;
            }
            return self.refuse_entry(store, id, (&entry, parent), FailCode::ParentFailed.into());
        }
        match entry.kind {
            EntryKind::Directory => self.begin_directory(store, id, entry, parent),
            EntryKind::File => self.examine(store, id, entry, parent),
            EntryKind::Symlink => {
                let made = store.make_symlink(id, &entry);
                self.conclude_link(store, id, (entry, parent), made)
            }
            EntryKind::HardLink => self.hard_link(store, id, entry, parent),
        }
    }

    /// Drops what the copy does not keep, so that nobody holds it.
    fn drop_unkept(&self, entry: &mut Entry) {
        if !self.keep.special_bits {
            entry.mode &= PERMISSIONS;
        }
        let Some(properties) = &mut entry.properties else { return };
        if !self.keep.owners {
            properties.owner = None;
        }
        if entry.kind == EntryKind::HardLink || !(self.keep.attributes || self.keep.acls) {
            properties.attributes = Vec::new();
        }
        if entry.kind != EntryKind::Symlink {
            properties.link_target = Vec::new();
        }
    }

    fn count_entry(&self) -> Result<(), Violation> {
        if self.entries + self.skipped >= self.limits.entries { Err(Violation::Limit("entries")) } else { Ok(()) }
    }

    fn begin_directory<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        id: EntryId,
        entry: Arc<Entry>,
        parent: Option<EntryId>,
    ) -> Result<(), SessionError> {
        let made = store.make_dir(id, &entry);
        self.open.open(entry.name().clone(), id);
        let stands = made.as_ref().ok().copied();
        self.directories.add(id, Arc::clone(&entry), parent, stands);
        match made {
            Ok(_) => Ok(()),
            Err(failure) => self.refuse_entry(store, id, (&entry, parent), failure),
        }
    }

    /// A refused directory is answered when it is left, like any other.
    fn refuse_entry<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        id: EntryId,
        (entry, parent): (&Entry, Option<EntryId>),
        failure: Failure,
    ) -> Result<(), SessionError> {
        if entry.kind == EntryKind::Directory {
            return self.tell_failed(id, entry, failure);
        }
        self.refuse(store, id, (entry, parent), failure)
    }

    fn examine<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        id: EntryId,
        entry: Arc<Entry>,
        parent: Option<EntryId>,
    ) -> Result<(), SessionError> {
        self.expect_links(store, id, &entry)?;
        if store.compares_enough() || !self.later.is_empty() {
            self.later.push_back((id, entry, parent));
            return Ok(());
        }
        self.answer_file(store, id, (entry, parent))
    }

    /// Examines files that had to wait, as far as the store can compare them.
    pub(super) fn examine_later<S: Store + ?Sized>(&mut self, store: &mut S) -> Result<(), SessionError> {
        while !self.later.is_empty() && !store.compares_enough() && self.has_room() {
            let Some((id, entry, parent)) = self.later.pop_front() else { break };
            self.answer_file(store, id, (entry, parent))?;
        }
        Ok(())
    }

    /// Takes a file out of those that wait, because the sender is ahead of its answer.
    pub(super) fn take_later(&mut self, id: EntryId) -> Option<(Arc<Entry>, Option<EntryId>)> {
        let place = self.later.binary_search_by_key(&id, |(its, ..)| *its).ok()?;
        self.later.remove(place).map(|(_, entry, parent)| (entry, parent))
    }

    /// Examines a file, and answers whether its content is wanted.
    pub(super) fn answer_file<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        id: EntryId,
        (entry, parent): (Arc<Entry>, Option<EntryId>),
    ) -> Result<(), SessionError> {
        let verdict = match entry.has_size() && entry.size > self.limits.file_size {
            true => Err(FailCode::TooLarge.into()),
            false => store.examine(id, &entry),
        };
        match verdict {
            Ok(Verdict::Want(change, mut claimed)) => {
                claimed.truncate(MAX_CLAIMS);
                self.out.put(FrameKind::Want, |out| {
                    out.extend_from_slice(&id.0.to_be_bytes());
                    out.push(change as u8);
                    for range in &claimed {
                        out.extend_from_slice(&range.start.to_be_bytes());
                        out.extend_from_slice(&range.end.to_be_bytes());
                    }
                });
                self.pending.insert(id, Pending::new(entry, parent, change));
                Ok(())
            }
            Ok(Verdict::Have(change)) => {
                self.totals.keep(&entry);
                self.out.put(FrameKind::Have, |out| {
                    out.extend_from_slice(&id.0.to_be_bytes());
                    out.push(change as u8);
                });
                self.events.push_back(FileEvent::Kept(Arc::clone(&entry), change));
                self.make_links(store, id, &entry.path)?;
                self.answered(store, parent, &entry)
            }
            Err(failure) => self.refuse(store, id, (&entry, parent), failure),
        }
    }

    fn on_skipped(&mut self, body: &[u8]) -> Result<(), SessionError> {
        let mut fields = Fields::new(body);
        let bad = |reason: crate::field::Malformed| reason.in_frame(FrameKind::Skipped);
        let is_left_out = fields.u8().map_err(bad)? != 0;
        let path = ShownPath::decode(&mut fields).map_err(bad)?;
        let failure = Failure::decode(&mut fields).map_err(bad)?;
        self.count_entry()?;
        self.skipped += 1;
        if is_left_out {
            self.totals.left_out += 1;
            self.events.push_back(FileEvent::LeftOut(path, failure));
            return Ok(());
        }
        self.report_failed(path, failure, Side::Peer);
        Ok(())
    }

    fn on_end<S: Store + ?Sized>(&mut self, store: &mut S, body: &[u8]) -> Result<(), SessionError> {
        let (counts, figures) = decode_whole(FrameKind::End, body, |fields| {
            Ok(((fields.u64()?, fields.u64()?), Figures::decode(fields)?))
        })?;
        // The counts show that the stream lost and added nothing.
        let lacks_content = !self.later.is_empty() || self.pending.values().any(|pending| !pending.is_begun);
        if counts != (self.entries, self.skipped) || figures.bytes != self.received || lacks_content {
            return Err(Violation::Counts.into());
        }
        self.leave_directories(store, 0)?;
        self.peer = Some(figures);
        self.course = Course::At(RecvPhase::Ended);
        self.on_store(store)
    }

    /// Totals for events.
    pub(super) const fn done(&self) -> Totals {
        self.totals
    }
}
