//! The channel of an open connection: frames of both ends.

use farhaul_units::Instant;
use farhaul_wire::blast::Frame;

use super::BlastConnection;
use crate::blast::engine::Protocol;
use crate::blast::frame_channel::reason_of_abort;
use farhaul_proto::channel::ChannelEnd;
use farhaul_proto::endpoint::protocol::{Effect, Established as _};
use farhaul_proto::error::{ConnectionLost, PeerIncompatible};

impl<P: Protocol> BlastConnection<P> {
    /// Takes the first frame in `bytes`. Returns its length, which is zero if bytes are missing. Nothing is taken once
    /// `ended` is set.
    fn on_frame(&mut self, bytes: &[u8], now: Instant, ended: &mut Option<Effect>) -> Result<usize, ConnectionLost> {
        if ended.is_some() {
            return Ok(0);
        }
        let frame = Frame::decode(bytes).map_err(|_| ConnectionLost::PeerIncompatible(PeerIncompatible::NoFarhaul))?;
        let Some((frame, length)) = frame else { return Ok(0) };
        self.heard = true;
        match frame {
            Frame::End => {
                self.duplex.incoming.on_end();
                *ended = Some(Effect::PeerClosed { complete: self.is_complete(), delivered: self.is_flushed() });
            }
            Frame::Abort(code) => *ended = Some(Effect::Lost(reason_of_abort(code))),
            _ => self.duplex.on_frame(now, &frame).map_err(ConnectionLost::PeerMisbehaved)?,
        }
        Ok(length)
    }

    /// Takes frames, in any division.
    pub(super) fn on_frames(&mut self, bytes: &[u8], now: Instant) -> Effect {
        self.duplex.liveness.on_heard(now);
        let mut unread = std::mem::take(&mut self.channel.unread);
        let mut ended = None;
        match unread.feed(bytes, |bytes| self.on_frame(bytes, now, &mut ended)) {
            Err(reason) => return self.fail(now, reason),
            Ok(()) => self.channel.unread = unread,
        }
        if ended.is_some() {
            self.channel.finish();
        }
        ended.unwrap_or(Effect::GoOn)
    }

    /// The channel ended.
    pub(super) fn on_channel_end(&mut self, now: Instant, end: ChannelEnd) -> Effect {
        let alive = self.is_alive();
        self.channel.on_ended(end);
        if !alive {
            return Effect::GoOn;
        }
        let reason = match end {
            ChannelEnd::Refused => ConnectionLost::ChannelRefused,
            // A peer that has nothing more to say says so in a frame.
            ChannelEnd::Finished => ConnectionLost::Aborted,
            ChannelEnd::Failed => ConnectionLost::ChannelBroken,
        };
        self.fail(now, reason)
    }
}
