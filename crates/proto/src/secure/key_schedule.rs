//! The key schedule of an established connection: sealing, opening, and new keys before the old ones wear out.
//!
//! ```text
//! epoch    … previous │ current │ next
//! opens    for a while│ always  │ the first packet of the peer that opens makes it the current one
//! seals               │ always  │
//! ```
//!
//! Either side begins the next epoch by sealing with its key. The other one follows at once. A side begins no further
//! epoch before the peer has followed, so both are at most one epoch apart.

use farhaul_units::{Duration, Instant};
use farhaul_wire::secure::{
    ConnectionName, DataForm, Epoch, HEADER_LEN, Header, NUMBERS, PacketNumber, TAG_LEN, inner,
};
use farhaul_wire::udt4;

use super::protector::{Generations, Keys};
use super::replay::Replay;

/// Packets after which an epoch ends: half of what AES-GCM permits with one key (2^23, RFC 9001, section 6.6), so that a
/// slow peer can follow.
const MOST_PACKETS: u64 = 1 << 22;
/// Bytes after which an epoch ends.
const MOST_BYTES: u64 = 1 << 37;
/// Time after which an epoch ends, so that a key that leaks tells of an hour at most.
const LONGEST: Duration = Duration::from_secs(3_600);
/// Most packets that are sealed after one check of the limits: those of a train.
pub(super) const TRAIN: u64 = 64;
/// Keys of the epoch before are kept for so long after the peer has followed: no packet is that late.
const KEPT: Duration = Duration::from_secs(3);

/// One generation of keys.
struct Generation {
    keys: Keys,
    epoch: Epoch,
    /// Its number: generations before it.
    generation: u32,
    /// Packets of the peer that were opened.
    replay: Replay,
}

impl Generation {
    fn new(keys: Keys, epoch: Epoch, generation: u32) -> Self {
        Self { keys, epoch, generation, replay: Replay::default() }
    }

    /// Packets that may be sealed with its key.
    fn most(&self) -> u64 {
        self.keys.local.confidentiality_limit().min(NUMBERS)
    }

    /// Opens a datagram in place, unless it was seen before.
    fn open(&mut self, header: &Header, datagram: &mut [u8]) -> Opened {
        if !self.replay.is_new(header.number) {
            return Opened::Seen;
        }
        let is_newest = self.replay.is_newest(header.number);
        let Some((head, body)) = datagram.split_first_chunk_mut::<HEADER_LEN>() else { return Opened::Not };
        if !self.keys.remote.open(header.number, head, body) {
            return Opened::Not;
        }
        self.replay.note(header.number);
        // The number has 24 bits.
        let order = self.generation.wrapping_mul(NUMBERS as u32).wrapping_add(header.number as u32);
        if is_newest { Opened::Newest(order) } else { Opened::Late(order) }
    }
}

impl Opened {
    /// The place of the packet in the order in which packets left, if its content counts. It wraps.
    pub(super) const fn order(self) -> Option<u32> {
        match self {
            Self::Newest(order) | Self::Late(order) => Some(order),
            Self::Seen | Self::Not => None,
        }
    }
}

/// The result of opening a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    /// No packet that the peer sent later has arrived.
    Newest(u32),
    /// A later packet overtook it.
    Late(u32),
    /// It was seen before, or is too old to tell.
    Seen,
    /// It is damaged or forged.
    Not,
}

/// The keys of both directions.
pub(super) struct KeySchedule {
    /// The name of this connection at the peer.
    peer: ConnectionName,
    form: DataForm,
    current: Generation,
    /// Made when a packet names it, or this side begins it: most connections never need it.
    next: Option<Generation>,
    /// The one before, and until when it opens; without end before the peer has followed.
    previous: Option<(Generation, Option<Instant>)>,
    generations: Box<dyn Generations>,
    /// The number of the next packet of this side.
    number: PacketNumber,
    bytes: u64,
    since: Instant,
    /// The peer has used the current epoch.
    followed: bool,
    /// Packets that did not open with the current keys, and those of all epochs.
    failed: u64,
    failed_in_all: u64,
}

/// Why nothing more can be sealed or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WornOut {
    /// The peer does not follow to new keys.
    NotFollowed,
    /// Too many forgeries were tried with a key.
    Forgeries,
}

impl KeySchedule {
    /// A schedule with the first keys of the application.
    pub(super) fn new(
        (peer, form): (ConnectionName, DataForm),
        keys: Keys,
        generations: Box<dyn Generations>,
        now: Instant,
    ) -> Self {
        Self {
            peer,
            form,
            current: Generation::new(keys, Epoch::FIRST_APPLICATION, 0),
            next: None,
            previous: None,
            generations,
            number: 0,
            bytes: 0,
            since: now,
            followed: false,
            failed: 0,
            failed_in_all: 0,
        }
    }

    /// Packets that did not open.
    pub(super) const fn failures(&self) -> u64 {
        self.failed_in_all
    }

    // ---- sealing ----

    /// Prepares for sealing further packets: begins an epoch if the present one has worn out.
    ///
    /// # Errors
    /// Nothing may be sealed any more.
    pub(super) fn prepare(&mut self, now: Instant) -> Result<(), WornOut> {
        let limit = self.current.most();
        let worn =
            self.number >= MOST_PACKETS.min(limit / 2) || self.bytes >= MOST_BYTES || now - self.since >= LONGEST;
        if worn && self.followed {
            self.advance(now);
        }
        if self.number + TRAIN > self.current.most() { Err(WornOut::NotFollowed) } else { Ok(()) }
    }

    /// Whether one more packet may be sealed, beside the trains.
    pub(super) fn has_number(&self) -> bool {
        self.number < self.current.most()
    }

    fn header(&mut self, bytes: usize) -> Header {
        let header = Header { epoch: self.current.epoch, number: self.number, to: self.peer };
        self.number += 1;
        self.bytes += bytes as u64;
        header
    }

    /// Appends a packet of UDT4 in two pieces, protected, to `out`. Returns the bytes that this adds to packets like it.
    pub(super) fn seal(&mut self, head: &[u8; udt4::HEADER_LEN], payload: &[u8], out: &mut Vec<u8>) -> usize {
        let header = self.header(head.len() + payload.len());
        let start = out.len();
        inner::enclose(&header, (head, payload), self.form, out);
        self.encrypt(&header, &mut out[start..]);
        self.form.overhead_of(head)
    }

    /// Appends a datagram of another protocol, protected, to `out`.
    pub(super) fn seal_datagram(&mut self, datagram: &[u8], out: &mut Vec<u8>) {
        let header = self.header(datagram.len());
        let start = out.len();
        inner::enclose_datagram(&header, datagram, out);
        self.encrypt(&header, &mut out[start..]);
    }

    /// Turns the packet of UDT4 or the message in `packet` into a protected packet.
    pub(super) fn seal_alone(&mut self, packet: &mut Vec<u8>) {
        let header = self.header(packet.len());
        if inner::is_message(packet) {
            inner::enclose_message(&header, packet);
        } else {
            inner::enclose_in_place(&header, packet, self.form);
        }
        self.encrypt(&header, packet);
    }

    /// Encrypts a protected packet that is laid out.
    fn encrypt(&self, header: &Header, protected: &mut [u8]) {
        let Some((head, body)) = protected.split_first_chunk_mut::<HEADER_LEN>() else { return };
        let Some((body, tag)) = body.split_last_chunk_mut::<TAG_LEN>() else { return };
        *tag = self.current.keys.local.seal(header.number, head, body);
    }

    // ---- opening ----

    /// Opens a datagram in place.
    ///
    /// # Errors
    /// Nothing may be opened any more.
    pub(super) fn open(&mut self, header: &Header, datagram: &mut [u8], now: Instant) -> Result<Opened, WornOut> {
        let current = self.current.epoch;
        if header.epoch == current {
            let opened = self.current.open(header, datagram);
            if opened.order().is_some() {
                self.on_followed(now);
            }
            return self.count(opened);
        }
        if header.epoch == current.next() {
            let opened = self.prepared().open(header, datagram);
            if opened.order().is_some() {
                self.advance(now);
                self.on_followed(now);
            }
            return self.count(opened);
        }
        let Some((previous, until)) = &mut self.previous else { return Ok(Opened::Not) };
        if until.is_some_and(|until| now >= until) {
            self.previous = None;
        } else if previous.epoch == header.epoch {
            let opened = match previous.open(header, datagram) {
                Opened::Newest(order) if self.followed => Opened::Late(order),
                opened => opened,
            };
            return self.count(opened);
        }
        Ok(Opened::Not)
    }

    /// The peer has used the current epoch, so it no longer begins packets in the one before.
    fn on_followed(&mut self, now: Instant) {
        self.followed = true;
        if let Some((_, until)) = &mut self.previous {
            until.get_or_insert(now + KEPT);
        }
    }

    /// This computer was suspended for `gap`, which does not count.
    pub(super) fn on_suspended(&mut self, gap: Duration) {
        self.since += gap;
        if let Some((_, Some(until))) = &mut self.previous {
            *until += gap;
        }
    }

    fn count(&mut self, opened: Opened) -> Result<Opened, WornOut> {
        if opened == Opened::Not {
            self.failed += 1;
            self.failed_in_all += 1;
            if self.failed >= self.current.keys.remote.integrity_limit() {
                return Err(WornOut::Forgeries);
            }
        }
        Ok(opened)
    }

    /// Whether anything was opened so far.
    pub(super) fn has_opened(&self) -> bool {
        self.followed || self.current.generation != 0
    }

    /// The next generation.
    fn prepared(&mut self) -> &mut Generation {
        let (epoch, generation) = (self.current.epoch.next(), self.current.generation.wrapping_add(1));
        self.next.get_or_insert_with(|| Generation::new(self.generations.next(), epoch, generation))
    }

    fn advance(&mut self, now: Instant) {
        self.prepared();
        let Some(next) = self.next.take() else { return };
        let before = std::mem::replace(&mut self.current, next);
        self.previous = Some((before, None));
        (self.number, self.bytes, self.since) = (0, 0, now);
        (self.followed, self.failed) = (false, 0);
    }

    /// How data packets travel.
    pub(super) const fn form(&self) -> DataForm {
        self.form
    }

    /// Bytes of memory beside the keys.
    pub(super) fn memory(&self) -> usize {
        let previous = self.previous.as_ref().map_or(0, |(previous, _)| previous.replay.memory());
        self.current.replay.memory() + previous
    }
}
