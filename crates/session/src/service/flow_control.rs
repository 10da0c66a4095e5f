//! Credit for the bytes of blocks, in both directions.

use crate::error::Violation;
use crate::field::Malformed;
use crate::frame_kind::{BLOCK_HEADER, FrameKind};
use crate::framing::decode_whole;
use crate::handshake::INITIAL_CREDIT;
use crate::outbox::Outbox;

/// Bytes of blocks that a side may send ahead of what the other one has taken. Neither side holds that much: a server writes on
/// arrival, and a client has room for what it requests. As for copies.
const WINDOW: u64 = 256 << 20;
/// A grant is sent once it is worth this part of the window.
const GRANT_PART: u64 = 8;

/// The bytes of blocks so far, and the limits of both sides.
#[derive(Debug)]
pub(super) struct FlowControl {
    sent: u64,
    /// The limit that the peer has set.
    credit: u64,
    received: u64,
    /// The limit that this side has set. The first frame tells it.
    pub(super) granted: u64,
}

impl FlowControl {
    /// Before any block, with this credit.
    pub(super) fn new(credit: u64) -> Self {
        Self { sent: 0, credit, received: 0, granted: WINDOW.max(INITIAL_CREDIT) }
    }

    /// Bytes that this side may send.
    pub(super) const fn room(&self) -> u64 {
        self.credit.saturating_sub(self.sent)
    }

    /// The peer's first frame has this limit.
    pub(super) fn begin(&mut self, credit: u64) {
        self.credit = self.credit.max(credit);
    }

    pub(super) fn on_grant(&mut self, body: &[u8]) -> Result<(), Violation> {
        let credit = decode_whole(FrameKind::Grant, body, |fields| fields.u64())?;
        if credit < self.credit {
            return Err(Violation::CreditWithdrawn);
        }
        self.credit = credit;
        Ok(())
    }

    /// Sends bytes of a request.
    pub(super) fn put_block(&mut self, out: &mut Outbox, id: u32, bytes: &[u8]) {
        self.sent += bytes.len() as u64;
        out.put(FrameKind::Block, |out| {
            out.extend_from_slice(&id.to_be_bytes());
            out.extend_from_slice(bytes);
        });
    }

    /// The number of the request of a block, and its bytes.
    pub(super) fn on_block<'a>(&mut self, body: &'a [u8]) -> Result<(u32, &'a [u8]), Violation> {
        let short = || Malformed::Short.in_frame(FrameKind::Block);
        let (id, bytes) = body.split_first_chunk::<BLOCK_HEADER>().ok_or_else(short)?;
        if bytes.is_empty() {
            return Err(short());
        }
        self.received += bytes.len() as u64;
        if self.received > self.granted {
            return Err(Violation::CreditExceeded);
        }
        Ok((u32::from_be_bytes(*id), bytes))
    }

    /// The blocks so far are taken. Tells the peer, if that is worth it.
    pub(super) fn grant(&mut self, out: &mut Outbox) {
        let granted = self.received.saturating_add(WINDOW);
        if granted >= self.granted.saturating_add(WINDOW / GRANT_PART) {
            self.granted = granted;
            out.put(FrameKind::Grant, |out| out.extend_from_slice(&granted.to_be_bytes()));
        }
    }
}
