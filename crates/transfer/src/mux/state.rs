//! Both directions of the stream, what waits for the pipe, and the end.

use std::collections::VecDeque;
use std::time::Duration;

use farhaul::{ConnectionLost, Stats};
use farhaul_proto::PeerMisbehaved;
use farhaul_units::{Instant, Rate};

use super::frame::{Frame, HEADER, MOST_DATA, append, is_data, is_message};
use super::{Gone, SILENCE, WINDOW};

/// Bytes that wait for the writer: one frame under way, and the next ones.
const QUEUE: usize = 4 * (HEADER + MOST_DATA);
/// Bytes of messages that wait for the writer, before who says more waits.
const MOST_SAID: usize = 1 << 20;
/// Bytes that may be underway at first. The window grows by what arrives, as that of TCP below it does in its slow start, from four times the
/// ten packets of that (RFC 6928). So little waits in ssh when the stream moves to UDP soon.
const FIRST_WINDOW: u64 = 64 << 10;
/// Bytes after whose arrival the peer is told: a part of its window, which has grown by all that arrived.
const TOLD_AFTER: (u64, u64) = (FIRST_WINDOW / 4, WINDOW / 8);
/// Time after which it is told in any case: that of UDT's acknowledgements (paper B, SYN).
const TOLD_WITHIN: Duration = Duration::from_millis(10);
/// Time without anything to say, after which the peer is told all the same.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Blocks that wait to be used again.
const SPARE: usize = 8;
/// Weight of a new round-trip time, as in UDT: one eighth.
const RTT_WEIGHT: u32 = 8;

/// What both threads and all handles share.
#[derive(Debug)]
pub(super) struct State {
    out: Outgoing,
    into: Incoming,
    /// Why the stream is over for this side.
    over: Option<Over>,
    /// The stream is used: the peer is to be heard from now on.
    has_begun: bool,
    began: Instant,
    /// When the peer said something, and when this side did.
    heard: Instant,
    spoke: Instant,
    /// The longest silence of a peer that is not lost.
    pub(super) silence: Duration,
    /// Others carry the stream, so its silence means nothing.
    rests: bool,
    /// A reader that waits is to look up.
    pub(super) is_woken: bool,
    /// The pipe takes no more.
    is_out_gone: bool,
    /// Nothing is said any more once everything was written.
    hangs_up: bool,
    counts_received: u64,
    counts_sent: u64,
    pub(super) read_timeout: Option<Duration>,
    pub(super) write_timeout: Option<Duration>,
}

/// The end of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// This side has left it. What was taken is on its way.
    Left,
    /// This side has given it up.
    GivenUp,
    Lost(ConnectionLost),
}

#[derive(Debug, Default)]
struct Outgoing {
    frames: VecDeque<Vec<u8>>,
    /// Bytes of the frames of a stream among them, and of the one that the writer has in hand.
    waiting: usize,
    in_hand: usize,
    /// Bytes of the messages among them.
    said: usize,
    /// Most bytes underway.
    window: u64,
    /// Bytes of the stream that were taken, and that have arrived; the end counts as one more.
    taken: u64,
    arrived: u64,
    limit: u64,
    has_ended: bool,
    cap: Option<Rate>,
    /// Time for which the peer had no room.
    no_room: Duration,
    timing: Timing,
}

#[derive(Debug, Default)]
struct Incoming {
    blocks: VecDeque<Vec<u8>>,
    /// Bytes of the first block that were read.
    used: usize,
    received: u64,
    read: u64,
    has_ended: bool,
    /// What the peer was told last.
    told: u64,
    told_limit: u64,
    /// When it is to be told again.
    due: Option<Instant>,
    spare: Vec<Vec<u8>>,
}

/// Round-trip times: from an offset that is taken to its arrival.
#[derive(Debug, Default)]
struct Timing {
    probe: Option<(u64, Instant)>,
    smoothed: Duration,
    least: Option<Duration>,
}

impl State {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            out: Outgoing { limit: WINDOW, window: FIRST_WINDOW, ..Outgoing::default() },
            into: Incoming { told_limit: WINDOW, ..Incoming::default() },
            over: None,
            has_begun: false,
            began: now,
            heard: now,
            spoke: now,
            silence: SILENCE,
            rests: false,
            is_woken: false,
            is_out_gone: false,
            hangs_up: false,
            counts_received: 0,
            counts_sent: 0,
            read_timeout: None,
            write_timeout: None,
        }
    }

    // What this side sends.

    /// Adds a frame that needs no room.
    pub(super) fn put(&mut self, frame: Frame<'_>) -> Result<(), Gone> {
        if self.is_out_gone || self.hangs_up {
            return Err(Gone);
        }
        let mut bytes = Vec::new();
        frame.put(&mut bytes);
        match frame.is_of_stream() {
            true => self.out.waiting += bytes.len(),
            false => self.out.said += bytes.len(),
        }
        self.out.frames.push_back(bytes);
        Ok(())
    }

    /// Whether there is room for messages, or the pipe is gone.
    pub(super) fn hears_more(&self) -> bool {
        self.out.said < MOST_SAID || self.is_out_gone || self.hangs_up
    }

    /// Adds a frame of another stream, which has a bound of its own.
    pub(super) fn pass(&mut self, frame: &[u8]) {
        if !self.is_out_gone && !self.hangs_up {
            self.out.waiting += frame.len();
            self.out.frames.push_back(frame.to_vec());
        }
    }

    /// Whether frames of another stream have room.
    pub(super) fn has_queue(&self) -> bool {
        self.out.waiting + self.out.in_hand < QUEUE || self.is_out_gone || self.hangs_up
    }

    /// Takes bytes of the stream as far as there is room, and returns their number.
    pub(super) fn take(&mut self, data: &[u8], now: Instant) -> usize {
        let out = &mut self.out;
        let most = out.limit.min(out.arrived + out.window);
        let room = usize::try_from(most.saturating_sub(out.taken)).unwrap_or(usize::MAX);
        let room = room.min(QUEUE.saturating_sub(out.waiting + out.in_hand));
        let data = &data[..data.len().min(room).min(MOST_DATA)];
        if data.is_empty() {
            return 0;
        }
        let taken = match out.frames.back_mut().map_or(0, |last| append(last, data)) {
            0 => {
                let mut frame = Vec::with_capacity(HEADER + MOST_DATA);
                Frame::Data(data).put(&mut frame);
                out.waiting += HEADER;
                out.frames.push_back(frame);
                data.len()
            }
            taken => taken,
        };
        out.waiting += taken;
        out.taken += taken as u64;
        out.timing.probe.get_or_insert((out.taken, now));
        self.begin(now);
        taken
    }

    /// Whether the peer has no room, so that a wait is for it.
    pub(super) fn is_out_of_room(&self) -> bool {
        self.out.taken >= self.out.limit
    }

    pub(super) fn add_no_room(&mut self, time: Duration) {
        self.out.no_room += time;
    }

    pub(super) fn set_cap(&mut self, cap: Option<Rate>) {
        self.out.cap = cap;
    }

    pub(super) fn cap(&self) -> Option<Rate> {
        self.out.cap
    }

    /// The next frame, for the writer.
    pub(super) fn next_frame(&mut self) -> Option<Vec<u8>> {
        let frame = self.out.frames.pop_front()?;
        match is_message(&frame) {
            true => self.out.said -= frame.len(),
            false => {
                self.out.waiting -= frame.len();
                self.out.in_hand = frame.len();
            }
        }
        Some(frame)
    }

    /// The writer has written a frame.
    pub(super) fn wrote(&mut self, now: Instant) {
        self.spoke = now;
        self.out.in_hand = 0;
    }

    /// Whether nothing waits for the writer, which has nothing in hand.
    pub(super) fn is_written(&self) -> bool {
        self.out.frames.is_empty() && self.out.in_hand == 0 && self.into.due.is_none()
    }

    pub(super) fn hang_up(&mut self) {
        self.hangs_up = true;
    }

    pub(super) fn hangs_up(&self) -> bool {
        self.hangs_up
    }

    pub(super) fn is_pipe_gone(&self) -> bool {
        self.is_out_gone
    }

    /// The pipe takes no more.
    pub(super) fn lose_out(&mut self) {
        self.is_out_gone = true;
        self.out.frames.clear();
        (self.out.waiting, self.out.in_hand, self.out.said) = (0, 0, 0);
        self.lose(ConnectionLost::Aborted);
    }

    // What the peer sends.

    /// Takes a frame of the stream.
    pub(super) fn handle(&mut self, frame: Frame<'_>, now: Instant) {
        match frame {
            Frame::Message(_) => {}
            Frame::Data(bytes) => self.arrived(bytes, now),
            Frame::Count { received, limit } => self.counted(received, limit, now),
            Frame::End if self.into.has_ended => self.misbehaved("end of a stream through ssh"),
            Frame::End => {
                self.begin(now);
                self.into.has_ended = true;
                self.into.due = Some(now);
            }
            Frame::Close { in_order } => {
                let out = &self.out;
                let has_all = out.arrived >= out.taken + u64::from(out.has_ended);
                self.lose(match in_order && has_all {
                    true => ConnectionLost::ClosedByPeer,
                    false => ConnectionLost::Aborted,
                });
            }
        }
    }

    fn arrived(&mut self, bytes: &[u8], now: Instant) {
        self.begin(now);
        let into = &mut self.into;
        if into.has_ended || into.received + bytes.len() as u64 > into.told_limit {
            return self.misbehaved("data of a stream through ssh");
        }
        into.received += bytes.len() as u64;
        into.due.get_or_insert(now + TOLD_WITHIN);
        let (least, most) = TOLD_AFTER;
        if into.received - into.told >= (into.received / 8).clamp(least, most) {
            into.due = Some(now);
        }
        if self.over.is_some() {
            // Nobody reads it any more, and the peer's end may be behind it.
            into.read = into.received;
            return;
        }
        match into.blocks.back_mut().filter(|last| last.len() + bytes.len() <= MOST_DATA) {
            Some(last) => last.extend_from_slice(bytes),
            None => {
                let mut block = into.spare.pop().unwrap_or_else(|| Vec::with_capacity(MOST_DATA));
                block.clear();
                block.extend_from_slice(bytes);
                into.blocks.push_back(block);
            }
        }
    }

    fn counted(&mut self, received: u64, limit: u64, now: Instant) {
        self.counts_received += 1;
        let out = &mut self.out;
        if received > out.taken + u64::from(out.has_ended) {
            return self.misbehaved("count of a stream through ssh");
        }
        out.window = (out.window + received.saturating_sub(out.arrived)).min(WINDOW);
        (out.arrived, out.limit) = (out.arrived.max(received), out.limit.max(limit));
        out.timing.arrived(out.arrived, now);
    }

    /// Moves bytes that have arrived into `out`.
    pub(super) fn read(&mut self, out: &mut [u8], now: Instant) -> usize {
        let into = &mut self.into;
        let Some(block) = into.blocks.front() else { return 0 };
        let rest = &block[into.used..];
        let len = rest.len().min(out.len());
        out[..len].copy_from_slice(&rest[..len]);
        into.used += len;
        into.read += len as u64;
        if into.used == block.len() {
            into.used = 0;
            let block = into.blocks.pop_front().unwrap_or_default();
            if into.spare.len() < SPARE {
                into.spare.push(block);
            }
        }
        if into.read + WINDOW - into.told_limit >= TOLD_AFTER.1 {
            into.due = Some(now);
        }
        len
    }

    /// Whether the peer's direction has ended, and everything was read.
    pub(super) fn has_read_all(&self) -> bool {
        self.into.has_ended && self.into.blocks.is_empty()
    }

    /// What is to be told to the peer now, in bytes.
    pub(super) fn count(&mut self, now: Instant) -> Option<Vec<u8>> {
        let keeps_alive = self.is_watched() && now.saturating_since(self.spoke) >= KEEP_ALIVE;
        if !keeps_alive && self.into.due.is_none_or(|due| due > now) {
            return None;
        }
        let into = &mut self.into;
        (into.told, into.told_limit, into.due) = (into.received, into.read + WINDOW, None);
        self.counts_sent += 1;
        let mut bytes = Vec::with_capacity(HEADER + 16);
        let received = into.received + u64::from(into.has_ended);
        Frame::Count { received, limit: into.told_limit }.put(&mut bytes);
        Some(bytes)
    }

    /// When there is something to tell.
    pub(super) fn count_due(&self) -> Option<Instant> {
        let alive = self.is_watched().then_some(self.spoke + KEEP_ALIVE);
        [alive, self.into.due].into_iter().flatten().min()
    }

    // The end.

    fn begin(&mut self, now: Instant) {
        if !self.has_begun {
            self.has_begun = true;
            self.heard = now;
        }
    }

    /// Whether both sides are to hear of each other.
    fn is_watched(&self) -> bool {
        let is_awaited = self.over.is_none() || self.over == Some(Over::Left) && !self.has_arrived();
        self.has_begun && !self.rests && is_awaited && !self.has_closed()
    }

    /// Others carry the stream from now on.
    pub(super) fn rest(&mut self) {
        (self.rests, self.is_woken) = (true, true);
    }

    /// The peer has said something.
    pub(super) fn hear(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Looks whether the peer has been silent for too long.
    pub(super) fn look(&mut self, now: Instant) {
        if self.is_watched() && now.saturating_since(self.heard) >= self.silence {
            self.lose(ConnectionLost::PeerSilent(self.silence));
        }
    }

    /// The pipe gives no more.
    pub(super) fn lose_in(&mut self) {
        self.lose(ConnectionLost::Aborted);
    }

    fn misbehaved(&mut self, what: &'static str) {
        self.lose(ConnectionLost::PeerMisbehaved(PeerMisbehaved::out_of_turn(what)));
    }

    pub(super) fn malformed(&mut self) {
        self.misbehaved("frame through ssh");
    }

    fn lose(&mut self, why: ConnectionLost) {
        match self.over {
            _ if self.has_closed() => {}
            None => self.over = Some(Over::Lost(why)),
            // What was taken is lost.
            Some(Over::Left) if !self.has_arrived() => self.over = Some(Over::Lost(why)),
            Some(_) => {}
        }
    }

    /// Ends this side's direction.
    pub(super) fn end(&mut self) {
        if !self.out.has_ended && self.put(Frame::End).is_ok() {
            self.out.has_ended = true;
        }
    }

    /// Leaves the stream behind everything that was taken.
    pub(super) fn leave(&mut self) {
        self.end();
        if self.has_begun && self.over.is_none() {
            let _ = self.put(Frame::Close { in_order: true });
        }
        self.over.get_or_insert(Over::Left);
    }

    /// Gives the stream up.
    pub(super) fn give_up(&mut self) {
        if self.has_begun && matches!(self.over, None | Some(Over::Lost(_))) && !self.has_closed() {
            self.out.frames.retain(|frame| !is_data(frame));
            self.out.waiting = self.out.frames.iter().filter(|frame| !is_message(frame)).map(Vec::len).sum();
            let _ = self.put(Frame::Close { in_order: false });
        }
        self.over.get_or_insert(Over::GivenUp);
    }

    /// Whether both directions have ended, and everything has arrived.
    pub(super) fn has_closed(&self) -> bool {
        self.has_arrived() && self.into.has_ended
    }

    /// Whether the stream is used.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether this side's direction has ended, and all of it has arrived.
    pub(super) fn has_arrived(&self) -> bool {
        self.out.has_ended && self.out.arrived > self.out.taken
    }

    pub(super) fn has_ended(&self) -> bool {
        self.out.has_ended
    }

    pub(super) fn over(&self) -> Option<Over> {
        self.over
    }

    pub(super) fn stats(&self, now: Instant) -> Stats {
        let mut stats = Stats::default();
        let Self { out, into, .. } = self;
        stats.elapsed = now.saturating_since(self.began);
        stats.silence = Some(now.saturating_since(self.heard));
        stats.max_rate = out.cap;
        stats.rtt = out.timing.smoothed;
        stats.min_rtt = out.timing.least.unwrap_or_default();
        stats.send_buffer_free = QUEUE.saturating_sub(out.waiting + out.in_hand) as u64;
        stats.recv_buffer_free = WINDOW - (into.received - into.read).min(WINDOW);
        stats.memory = (out.waiting + out.in_hand) as u64 + (into.received - into.read);
        let totals = &mut stats.totals;
        (totals.acks_received, totals.acks_sent) = (self.counts_received, self.counts_sent);
        (totals.bytes_written, totals.bytes_acked) = (out.taken, out.arrived.min(out.taken));
        (totals.bytes_received, totals.bytes_read) = (into.received, into.read);
        totals.limited_by_flow_window = out.no_room;
        totals.send_duration = stats.elapsed;
        stats
    }
}

impl Timing {
    fn arrived(&mut self, offset: u64, now: Instant) {
        let Some((_, since)) = self.probe.take_if(|(awaited, _)| *awaited <= offset) else { return };
        let sample = now.saturating_since(since);
        self.smoothed = match self.least {
            None => sample,
            Some(_) => (self.smoothed * (RTT_WEIGHT - 1) + sample) / RTT_WEIGHT,
        };
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
    }
}
