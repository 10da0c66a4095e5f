//! An established connection under packet protection: it opens what arrives for the protocol inside, and seals what that sends.

mod receive;

use bytes::Bytes;
use delegate::delegate;
use farhaul_cc::Controller;
use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::secure::{CloseCode, inner};

use super::client_id::ClientId;
use super::exchange::Exchange;
use super::key_schedule::{KeySchedule, TRAIN, WornOut};
use super::paths::Paths;
use super::protector::Side;
use crate::buffer::Enclose;
use crate::endpoint::closing::CloseKind;
use crate::endpoint::protocol::{Effect, Established, Output, Setup};
use crate::error::{ConnectionLost, SecurityFault};
use crate::stats::Stats;
use crate::transport::{AddressPair, MessageOptions, Protection, StreamError, earliest};
use crate::udt;

/// A client repeats its last messages for so long, until the server speaks. A server answers them for as long.
const ANSWERS: Duration = Duration::from_secs(10);

/// A peer that does not follow to new keys for so long is given up. Its packets need one round trip.
const PATIENCE: Duration = Duration::from_secs(10);

/// Most bytes of a train: the largest payload that UDP over IPv4 has, which the kernel takes as a whole.
const MAX_TRAIN: usize = 65_507;

/// A connection and its packet protection.
pub(crate) struct Sealed {
    udt: udt::UdtConnection,
    key_schedule: KeySchedule,
    paths: Paths,
    side: Side,
    /// The end of the handshake, until both sides know that it is over. Forgotten then, or at this time.
    handshake: Option<(Box<Exchange>, Instant)>,
    client_id: ClientId,
    protection: Protection,
    /// A server owes the client a [`Done`](inner::Message::Done).
    done_due: bool,
    /// Since when nothing can be sealed, because the peer has not followed to the present keys.
    held: Option<Instant>,
    /// The keys cannot be used any more, and whether the peer was told.
    worn_out: Option<WornOut>,
    told: bool,
    /// The connection has unreliable datagrams alone.
    has_datagrams_alone: bool,
}

impl Sealed {
    pub(super) fn new(
        udt: udt::UdtConnection,
        (key_schedule, paths): (KeySchedule, Paths),
        mut handshake: Exchange,
        side: Side,
        now: Instant,
    ) -> Self {
        let (client_id, protection) = (handshake.client_id(), handshake.protection());
        handshake.release();
        Self {
            udt,
            key_schedule,
            paths,
            side,
            client_id,
            protection,
            handshake: Some((Box::new(handshake), now + ANSWERS)),
            done_due: side == Side::Server,
            held: None,
            worn_out: None,
            told: false,
            has_datagrams_alone: false,
        }
    }

    /// The client's random bytes.
    pub(super) const fn client_id(&self) -> ClientId {
        self.client_id
    }

    /// Notes whether the connection has unreliable datagrams alone.
    pub(super) const fn note_datagrams_alone(&mut self, has_datagrams_alone: bool) {
        self.has_datagrams_alone = has_datagrams_alone;
    }

    // ---- unreliable datagrams ----

    /// Appends the packets of datagrams to `out`. Returns the bytes that it took.
    fn seal_datagrams(&mut self, now: Instant, (datagrams, size): (&[u8], usize), out: &mut Vec<u8>) -> usize {
        let mut taken = 0;
        for (number, datagram) in (0..).zip(datagrams.chunks(size.max(1))) {
            let fits = taken == 0 || out.len() + datagram.len() + inner::DATAGRAM_OVERHEAD <= MAX_TRAIN;
            if !fits || (number % TRAIN == 0 && !self.may_send_datagrams(now)) {
                break;
            }
            self.key_schedule.seal_datagram(datagram, out);
            taken += datagram.len();
        }
        taken
    }

    /// Whether unreliable datagrams can be sealed now.
    pub(super) fn may_send_datagrams(&mut self, now: Instant) -> bool {
        let admits = self.worn_out(now).is_none() && !self.done_due;
        admits && self.may_seal(now)
    }

    /// Whether nothing can be sealed, because the peer has not followed to the present keys.
    pub(super) const fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Whether something can be sealed now. If not, the connection waits for the peer to follow, or ends.
    fn may_seal(&mut self, now: Instant) -> bool {
        match self.key_schedule.prepare(now) {
            Ok(()) => {
                self.held = None;
                return true;
            }
            Err(WornOut::NotFollowed) => {
                self.held.get_or_insert(now);
            }
            Err(reason) => self.worn_out = Some(reason),
        }
        false
    }

    /// The keys that cannot be used any more, once nothing helps.
    fn worn_out(&self, now: Instant) -> Option<WornOut> {
        let held = self.held.is_some_and(|since| now - since >= PATIENCE);
        self.worn_out.or(held.then_some(WornOut::NotFollowed))
    }

    /// Writes the last message of packet protection, once. Returns false if it was written, or no key is left for it.
    fn poll_close(&mut self, scratch: &mut Vec<u8>) -> bool {
        let first = !std::mem::replace(&mut self.told, true);
        let writes = first && self.key_schedule.has_number();
        if writes {
            inner::Message::Close(CloseCode::KeyLimit, "the keys are worn out").encode(scratch);
            self.key_schedule.seal_alone(scratch);
        }
        writes
    }

    /// A client must also know that the server has admitted it. Otherwise a stream without data would end well.
    const fn is_admitted(&self) -> bool {
        matches!(self.side, Side::Server) || self.handshake.is_none()
    }

    /// Writes the word of a server that its client is verified. Returns false if none is due.
    fn poll_done(&mut self, scratch: &mut Vec<u8>) -> bool {
        let writes = std::mem::take(&mut self.done_due);
        if writes {
            inner::Message::Done.encode(scratch);
            self.key_schedule.seal_alone(scratch);
        }
        writes
    }
}

impl Established for Sealed {
    // Packet protection changes packets alone.
    delegate! {
        to self.udt {
            fn begin_batch(&mut self, arrived: Instant);
            fn finish_batch(&mut self, setup: Setup<'_>) -> Effect;
            fn note_drops(&mut self, now: Instant, buffer: u64);
            fn write(&mut self, now: Instant, data: &[u8]) -> usize;
            fn write_block(&mut self, now: Instant, block: Bytes) -> usize;
            fn read_block(&mut self, now: Instant) -> Bytes;
            fn room(&self) -> u64;
            fn whole_trains(&self, bytes: usize) -> usize;
            fn has_room_again(&mut self) -> bool;
            fn read(&mut self, now: Instant, out: &mut [u8]) -> usize;
            fn readable(&self) -> u64;
            fn can_read(&mut self) -> bool;
            fn has_half_close(&self) -> bool;
            fn finish_sending(&mut self, now: Instant);
            fn begin_linger(&mut self, now: Instant, linger: Duration);
            fn begin_close(&mut self, now: Instant, kind: CloseKind);
            fn is_close_sent(&self) -> bool;
            fn close(&mut self);
            fn set_max_rate(&mut self, now: Instant, rate: Option<Rate>) -> bool;
            fn set_controller(&mut self, now: Instant, controller: Box<dyn Controller>) -> bool;
            fn is_gone(&self) -> bool;
            fn write_message(&mut self, now: Instant, message: &[u8], options: MessageOptions) -> Result<bool, StreamError>;
            fn read_message(&mut self, out: &mut [u8]) -> Option<usize>;
            fn signal_error(&mut self, code: u32);
            fn send_custom(&mut self, kind: u16, body: &[u8]);
            fn is_read_to_end(&self) -> bool;
            fn is_complete(&self) -> bool;
            fn close_kind(&self) -> CloseKind;
            fn explain(&self, reason: ConnectionLost) -> ConnectionLost;
        }
    }

    // ---- input ----

    fn on_datagram(&mut self, datagram: &mut [u8], setup: Setup<'_>) -> Effect {
        self.receive(datagram, setup.now)
    }

    fn on_datagram_from(&mut self, from: AddressPair, datagram: &mut [u8], setup: Setup<'_>) -> Effect {
        self.receive_from(from, datagram, setup)
    }

    fn handle_timeout(&mut self, now: Instant) -> Effect {
        if self.handshake.as_ref().is_some_and(|(_, until)| now >= *until) {
            if self.side == Side::Client {
                // Its proof never arrived, or the server's word about it.
                return Effect::Lost(ConnectionLost::ConnectTimeout(ANSWERS));
            }
            self.handshake = None;
        }
        self.paths.handle_timeout(now);
        match self.worn_out(now) {
            Some(reason) if self.told => Effect::Lost(lost(reason)),
            Some(_) => Effect::GoOn,
            // Nothing that the timers cause could leave.
            None if self.held.is_some() => Effect::GoOn,
            None => self.udt.handle_timeout(now),
        }
    }

    fn on_suspended(&mut self, now: Instant, gap: Duration) {
        if let Some((_, until)) = &mut self.handshake {
            *until += gap;
        }
        self.held = self.held.map(|since| since + gap);
        self.key_schedule.on_suspended(gap);
        self.paths.on_suspended(gap);
        self.udt.on_suspended(now, gap);
    }

    // ---- output ----

    fn poll(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Output> {
        if let Some((handshake, _)) = &mut self.handshake
            && self.side == Side::Client
            && handshake.poll(now, scratch)
        {
            return Some(Output::Scratch);
        }
        if self.worn_out(now).is_some() {
            return self.poll_close(scratch).then_some(Output::Scratch);
        }
        if !self.may_seal(now) {
            return None;
        }
        if self.poll_done(scratch) {
            return Some(Output::Scratch);
        }
        if let Some((to, message)) = self.paths.poll(now) {
            message.encode(scratch);
            self.key_schedule.seal_alone(scratch);
            return Some(Output::Detour(to));
        }
        let output = self.udt.poll(now, scratch)?;
        if matches!(output, Output::Scratch | Output::Probe) {
            self.key_schedule.seal_alone(scratch);
        }
        Some(output)
    }

    fn emit<'a>(&'a mut self, now: Instant, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        let mut overhead = 0;
        let seal: Enclose<'_> = &mut |head, payload, out| overhead = self.key_schedule.seal(head, payload, out);
        let segment_size = self.udt.emit_by(now, (scratch, Some(seal)))?.segment_size;
        Some((segment_size + overhead, scratch))
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        let handshake = self.handshake.as_ref().map(|(exchange, until)| match self.side {
            Side::Client => exchange.deadline().unwrap_or(*until).min(*until),
            Side::Server => *until,
        });
        if self.worn_out(now).is_some() {
            return Some(now);
        }
        let inner = match self.held {
            Some(since) => Some(since + PATIENCE),
            None => earliest(self.paths.deadline(), self.udt.deadline(now)),
        };
        earliest(handshake, inner)
    }

    // ---- unreliable datagrams ----

    fn send_datagrams(
        &mut self,
        now: Instant,
        (datagrams, size): (&[u8], usize),
        out: &mut Vec<u8>,
    ) -> Option<(usize, usize)> {
        let taken = self.seal_datagrams(now, (datagrams, size), out);
        (taken > 0).then_some((taken, size + inner::DATAGRAM_OVERHEAD))
    }

    fn has_datagrams_alone(&self) -> bool {
        self.has_datagrams_alone
    }

    // ---- facts ----

    fn protection(&self) -> Option<&Protection> {
        Some(&self.protection)
    }

    fn is_flushed(&self) -> bool {
        self.is_admitted() && self.udt.is_flushed()
    }

    fn may_close(&self) -> bool {
        self.is_admitted() && self.udt.may_close()
    }

    fn has_ended_both(&self) -> bool {
        self.is_admitted() && self.udt.has_ended_both()
    }

    fn was_heard(&self) -> bool {
        // Both sides have proved who they are.
        true
    }

    fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        self.udt.fill_stats(now, stats);
        stats.totals.packets_invalid += self.key_schedule.failures();
        stats.memory += self.key_schedule.memory() as u64;
    }
}

/// The end of a connection without usable keys.
const fn lost(reason: WornOut) -> ConnectionLost {
    ConnectionLost::Insecure(match reason {
        WornOut::NotFollowed => SecurityFault::KeyLimit,
        WornOut::Forgeries => SecurityFault::Forgeries,
    })
}
