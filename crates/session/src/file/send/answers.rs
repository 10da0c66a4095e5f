//! Input of a sender: grants, and the result of each entry.

use super::{SendPhase, SendState, Unconfirmed};
use crate::course::Course;
use crate::error::{SessionError, Violation};
use crate::figures::Figures;
use crate::file::{FileEvent, Side, decode_failed, entry_id};
use crate::frame_kind::FrameKind;
use crate::framing::decode_whole;
use crate::integrity::Digest;
use crate::manifest::{EntryKind, ShownPath};
use crate::opening::{Accept, received_abort};

impl SendState {
    pub(super) fn on_frame(&mut self, kind: FrameKind, body: &[u8]) -> Result<(), SessionError> {
        if kind == FrameKind::Abort {
            return Err(received_abort(body));
        }
        if self.awaits_accept {
            if kind != FrameKind::Accept {
                return Err(SessionError::NotFarhaul);
            }
            self.awaits_accept = false;
            self.events.push_back(FileEvent::Accepted);
            self.granted = self.granted.max(Accept::decode(body)?.credit);
            return Ok(());
        }
        match kind {
            FrameKind::Grant => self.on_grant(body)?,
            FrameKind::Verified => self.on_verified(body)?,
            FrameKind::Made => self.on_made(body)?,
            FrameKind::Failed => self.on_failed(body)?,
            FrameKind::Done => self.on_done(body)?,
            other => return Err(Violation::OutOfPlace(other).into()),
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

    fn on_verified(&mut self, body: &[u8]) -> Result<(), Violation> {
        let (id, digest) = decode_whole(FrameKind::Verified, body, |fields| {
            Ok((entry_id(fields)?, Digest::from_bytes(fields.array()?)))
        })?;
        let Unconfirmed { entry, digest: sent } = self.unconfirmed.remove(&id).ok_or(Violation::UnknownEntry)?;
        let sent = sent.ok_or(Violation::UnknownEntry)?;
        if sent != digest {
            return Err(Violation::WrongDigest(entry.path.to_string()));
        }
        self.totals.files += 1;
        self.totals.bytes += entry.size;
        self.events.push_back(FileEvent::Verified(entry, digest));
        Ok(())
    }

    fn on_made(&mut self, body: &[u8]) -> Result<(), Violation> {
        let id = decode_whole(FrameKind::Made, body, entry_id)?;
        let Unconfirmed { entry, .. } = self.unconfirmed.remove(&id).ok_or(Violation::UnknownEntry)?;
        if entry.kind != EntryKind::Directory {
            return Err(Violation::UnknownEntry);
        }
        self.totals.directories += 1;
        self.events.push_back(FileEvent::Made(entry));
        Ok(())
    }

    /// The answer may cross this side's own report about the same entry. Then that report counts.
    fn on_failed(&mut self, body: &[u8]) -> Result<(), Violation> {
        let (id, failure) = decode_failed(body)?;
        if id.0 >= self.entries {
            return Err(Violation::UnknownEntry);
        }
        let Some(Unconfirmed { entry, .. }) = self.unconfirmed.remove(&id) else { return Ok(()) };
        if let Some(current) = self.current.as_mut().filter(|current| current.id == id) {
            current.refused = true;
        }
        self.report_failed(ShownPath::from(&entry.path), failure, Side::Peer);
        Ok(())
    }

    fn on_done(&mut self, body: &[u8]) -> Result<(), Violation> {
        if !self.course.is_at(SendPhase::Ended) {
            return Err(Violation::OutOfPlace(FrameKind::Done));
        }
        let (files, figures) =
            decode_whole(FrameKind::Done, body, |fields| Ok((fields.u64()?, Figures::decode(fields)?)))?;
        if !self.unconfirmed.is_empty() || files != self.totals.files || figures.bytes != self.sent {
            return Err(Violation::Counts);
        }
        self.peer = Some(figures);
        self.course = Course::Done;
        self.stored = self.sent;
        self.events.push_back(FileEvent::Done(self.totals));
        Ok(())
    }
}
