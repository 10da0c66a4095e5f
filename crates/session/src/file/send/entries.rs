//! Output of a sender: the entries of the source, which run ahead of content.

use std::sync::Arc;

use super::{Names, Pending, SendPhase, SendState, Stage};
use crate::course::Course;
use crate::failure::{FailCode, Failure};
use crate::figures::Figures;
use crate::file::{FileEvent, MAX_EVENTS, MAX_PENDING, MAX_WORK, Side};
use crate::frame_kind::FrameKind;
use crate::framing::put_frame;
use crate::manifest::{Entry, EntryId, EntryKind, ShownPath};
use crate::store::{Change, Next, Source};

/// Entries between two pieces of content. A slow directory delays content by no more than these.
const ENTRIES_BETWEEN: u32 = 64;
/// Most entries that are announced at a time: some 50 KB. So the receiver begins while this side goes on, and its answers free what waits.
const MOST_AT_ONCE: u64 = 1024;

impl SendState {
    pub(super) fn fill<S: Source + ?Sized>(&mut self, source: &mut S) {
        if self.course.error().is_some() {
            if let Some(current) = self.current.take() {
                source.close(current.id);
            }
            return;
        }
        match std::mem::replace(&mut self.names, Names::None) {
            Names::Complete(names) => source.restrict(names),
            incomplete => self.names = incomplete,
        }
        // In ascending order, as the source has them.
        self.forgotten.drain(..).for_each(|id| source.forget(id));
        self.work = 0;
        let most = self.entries + MOST_AT_ONCE;
        while !self.course.is_over() && self.has_room() && self.entries < most {
            if self.work >= MAX_WORK && !self.out.pending().is_empty() {
                break;
            }
            let announces = self.between < ENTRIES_BETWEEN || !self.has_content();
            if announces && self.announce(source) {
                self.between += 1;
            } else if self.send_content(source) {
                self.between = 0;
            } else if !self.announce(source) {
                self.end_if_sent(source);
                break;
            }
        }
    }

    /// Announces the next entry. Returns whether more may be possible at once.
    fn announce<S: Source + ?Sized>(&mut self, source: &mut S) -> bool {
        if self.is_walked || matches!(self.names, Names::Incomplete(_)) {
            return false;
        }
        // What this side gave up is still to be answered.
        let is_beyond = self.waiting.is_beyond(1) || self.waiting.count + self.given_up.len() >= MAX_PENDING;
        if is_beyond || self.events.len() >= MAX_EVENTS || !self.has_room() {
            return false;
        }
        let id = EntryId(self.entries);
        match source.next_entry(id) {
            Next::Pending => return false,
            Next::Skipped(path, failure) => self.skip(path, failure),
            Next::LeftOut(path, failure) => {
                self.put_skipped(&path, &failure, true);
                self.totals.left_out += 1;
                self.events.push_back(FileEvent::LeftOut(path, failure));
            }
            Next::Entry(entry) => match self.open.admit(&entry.path) {
                Ok(depth) => self.begin(id, entry, depth),
                Err(_) => {
                    source.forget(id);
                    let failure = Failure::new(FailCode::NameRefused, "the name is a duplicate or out of order");
                    self.skip(ShownPath::from(&entry.path), failure);
                }
            },
            Next::End => {
                self.is_walked = true;
                self.put_expected();
            }
        }
        true
    }

    /// Tells what has to move.
    fn put_expected(&mut self) {
        let Some((files, bytes)) = self.expected else { return };
        self.out.put(|out| {
            put_frame(out, FrameKind::Expected, |out| {
                out.extend_from_slice(&files.to_be_bytes());
                out.extend_from_slice(&bytes.to_be_bytes());
            });
        });
        self.events.push_back(FileEvent::Expected { files, bytes });
    }

    fn skip(&mut self, path: ShownPath, failure: Failure) {
        self.put_skipped(&path, &failure, false);
        self.report_failed(path, failure, Side::Here);
    }

    fn put_skipped(&mut self, path: &ShownPath, failure: &Failure, is_left_out: bool) {
        self.out.put(|out| {
            put_frame(out, FrameKind::Skipped, |out| {
                out.push(u8::from(is_left_out));
                path.encode(out);
                failure.encode(out);
            });
        });
        self.skipped += 1;
    }

    fn begin(&mut self, id: EntryId, entry: Entry, depth: usize) {
        while let Some(closed) = self.open.close_to(depth) {
            if let Some(pending) = self.pending.get_mut(closed) {
                let weight = *pending.weight.insert(pending.entry.weight());
                self.waiting.add(weight);
            }
        }
        self.entries += 1;
        self.out.put(|out| put_frame(out, FrameKind::Entry, |out| entry.encode(out)));
        match entry.kind {
            EntryKind::Directory => self.open.open(entry.name().clone(), id),
            EntryKind::File => {
                self.undecided += 1;
                self.expected = self
                    .expected
                    .filter(|_| entry.has_size())
                    .map(|(files, bytes)| (files + 1, bytes.saturating_add(entry.size)));
                if !self.is_heard {
                    self.unrequested.push_back(id);
                }
            }
            EntryKind::Symlink | EntryKind::HardLink => {}
        }
        let (is_answered, is_open) = (entry.kind != EntryKind::File, entry.kind == EntryKind::Directory);
        let weight = (!is_open).then(|| entry.weight());
        if let Some(weight) = weight {
            self.waiting.add(weight);
        }
        let (entry, change) = (Arc::new(entry), Change::default());
        let stage = Stage::Announced;
        let pending = Pending { entry, weight, stage, change, is_answered, has_sent: false, repairs: 0 };
        self.pending.insert(id, pending);
    }

    /// Ends this side's part once every file is sent, or answered. Files that were sent before their answer need no round trip for it.
    fn end_if_sent<S: Source + ?Sized>(&mut self, source: &mut S) {
        let is_sent = self.is_walked && self.undecided == 0 && !self.has_content();
        if !is_sent || !self.course.is_at(SendPhase::Sending) {
            return;
        }
        let (entries, skipped) = (self.entries, self.skipped);
        let figures = Figures { bytes: self.sent, ..source.figures() };
        self.out.put(|out| {
            put_frame(out, FrameKind::End, |out| {
                out.extend_from_slice(&entries.to_be_bytes());
                out.extend_from_slice(&skipped.to_be_bytes());
                figures.encode(out);
            });
        });
        self.course = Course::At(SendPhase::Ended);
    }

    pub(super) fn report_failed(&mut self, path: ShownPath, failure: Failure, by: Side) {
        self.totals.failed += 1;
        self.events.push_back(FileEvent::Failed { path, failure, by });
    }
}
