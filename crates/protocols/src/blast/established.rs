//! An open connection: it joins the channel and both streams.

mod channel;

use farhaul_units::{Duration, Instant};
use farhaul_wire::blast::Tag;

use super::duplex::Duplex;
use super::engine::{Protocol, Transmission};
use super::frame_channel::FrameChannel;
use farhaul_proto::channel::ChannelEnd;
use farhaul_proto::endpoint::closing::CloseKind;
use farhaul_proto::endpoint::control_channel::Request;
use farhaul_proto::endpoint::protocol::{self, Effect, Output, Setup};
use farhaul_proto::error::ConnectionLost;
use farhaul_proto::stats::Stats;

/// An open connection.
#[derive(Debug)]
pub(crate) struct BlastConnection<P: Protocol> {
    /// The name of this side in the peer's datagrams. A carrier has no other check of it.
    tag: Tag,
    channel: FrameChannel,
    duplex: Duplex<P>,
    /// The datagrams that leave next.
    planned: Option<Transmission>,
    /// The peer has sent a frame.
    heard: bool,
    /// It is over for the application.
    over: bool,
}

impl<P: Protocol> BlastConnection<P> {
    pub(super) const fn new(tag: Tag, channel: FrameChannel, duplex: Duplex<P>) -> Self {
        Self { tag, channel, duplex, planned: None, heard: false, over: false }
    }

    /// Whether data moves: the channel is open, and this side has not left.
    const fn is_alive(&self) -> bool {
        self.channel.is_open() && self.channel.leave_by().is_none()
    }

    /// This side found a fault.
    fn fail(&mut self, now: Instant, reason: ConnectionLost) -> Effect {
        self.channel.fail(now, reason);
        Effect::Lost(reason)
    }
}

impl<P: Protocol> protocol::Established for BlastConnection<P> {
    // ---- input ----

    fn begin_batch(&mut self, arrived: Instant) {
        self.duplex.begin_batch(arrived);
    }

    fn on_datagram(&mut self, datagram: &mut [u8], Setup { now, .. }: Setup<'_>) -> Effect {
        match Tag::split(datagram) {
            Ok(_) if self.over => Effect::GoOn,
            Ok((tag, body)) if tag == self.tag && self.duplex.on_datagram(now, body) => Effect::GoOn,
            _ => Effect::Invalid,
        }
    }

    fn finish_batch(&mut self, Setup { now, .. }: Setup<'_>) -> Effect {
        self.duplex.end_batch(now);
        Effect::GoOn
    }

    fn handle_timeout(&mut self, now: Instant) -> Effect {
        if !self.is_alive() {
            self.channel.handle_timeout(now);
            return Effect::GoOn;
        }
        match self.duplex.handle_timeout(now) {
            Ok(()) => Effect::GoOn,
            Err(reason) => self.fail(now, reason),
        }
    }

    fn on_suspended(&mut self, now: Instant, gap: Duration) {
        self.duplex.on_suspended(now, gap);
    }

    // ---- output ----

    fn poll(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Output> {
        if !self.is_alive() {
            return None;
        }
        if self.duplex.poll_probe(now, scratch) {
            return Some(Output::Scratch);
        }
        self.planned = self.duplex.plan(now);
        self.planned.map(|_| Output::Data)
    }

    fn emit<'a>(&'a mut self, now: Instant, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        let planned = self.planned.take()?;
        self.duplex.emit(now, planned, scratch)
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        self.channel.leave_by().or_else(|| self.duplex.deadline(now, self.channel.is_ready()))
    }

    // ---- commands ----

    fn write(&mut self, now: Instant, data: &[u8]) -> usize {
        self.duplex.write(now, data)
    }

    fn room(&self) -> u64 {
        self.duplex.outgoing.room() as u64
    }

    fn has_room_again(&mut self) -> bool {
        self.duplex.outgoing.has_room_again()
    }

    fn read(&mut self, _now: Instant, out: &mut [u8]) -> usize {
        self.duplex.incoming.read(out)
    }

    fn readable(&self) -> u64 {
        self.duplex.incoming.available()
    }

    fn begin_linger(&mut self, now: Instant, linger: Duration) {
        self.duplex.begin_linger(now, linger);
    }

    fn begin_close(&mut self, now: Instant, kind: CloseKind) {
        self.channel.leave(now, kind);
    }

    fn is_close_sent(&self) -> bool {
        !self.channel.is_open()
    }

    fn close(&mut self) {
        self.over = true;
    }

    fn is_gone(&self) -> bool {
        self.channel.is_gone()
    }

    // ---- the control channel ----

    fn on_channel(&mut self, bytes: &[u8], now: Instant) -> Effect {
        self.on_frames(bytes, now)
    }

    fn channel_drained(&mut self) {
        self.channel.on_drained();
    }

    fn channel_ended(&mut self, now: Instant, end: ChannelEnd) -> Effect {
        self.on_channel_end(now, end)
    }

    fn poll_channel(&mut self, now: Instant) -> Option<Request> {
        let Self { channel, duplex, over, .. } = self;
        channel.poll(|out| {
            if !*over {
                duplex.poll_frames(now, out);
            }
        })
    }

    fn channel_bytes(&self) -> &[u8] {
        self.channel.bytes()
    }

    // ---- facts ----

    fn is_flushed(&self) -> bool {
        self.duplex.outgoing.is_delivered()
    }

    fn is_complete(&self) -> bool {
        self.duplex.incoming.is_complete()
    }

    fn was_heard(&self) -> bool {
        self.heard
    }

    fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        self.duplex.fill_stats(now, stats);
    }
}
