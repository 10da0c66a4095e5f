//! Data arrival: stores packets, finds gaps, measures, and sizes the window.

mod fragments;
mod full_size;
mod socket_window;

use farhaul_cc::{Control, DataPacket};
use farhaul_units::{Duration, Instant, SeqNo};
use farhaul_wire::udt4::{Ack, DataHeader, DropRequest, Fragment, Receipt, SocketId, Timestamp};

use self::fragments::Fragments;
use self::full_size::FullSize;
use self::socket_window::SocketWindow;
use super::ack::{Acks, Decision, Facts};
use super::nak::Naks;
use super::receipts::Receipts;
use crate::buffer::{Insert, RecvBuffer};
use crate::config::Mode;
use crate::consts::{IP_UDP_HEADER, SYN_INTERVAL};
use crate::estimate::{ArrivalRate, Capacity, Rtt};
use crate::transport::earliest;

/// Initial window, packets: libudt's default receive buffer.
const INITIAL_WINDOW: u32 = 8192;
/// The window is this multiple of the packets of one RTT, because start-up may grow fourfold per RTT.
const GROWTH: u32 = 4;

/// The receiving half of a connection.
#[derive(Debug)]
pub(crate) struct Receiver {
    mode: Mode,
    pub(crate) buffer: RecvBuffer,
    pub(crate) acks: Acks,
    pub(crate) naks: Naks,
    /// `None` if the peer wants none.
    receipts: Option<Receipts>,
    /// When the furthest packet was sent.
    front_left: Timestamp,
    arrival: ArrivalRate,
    socket_window: SocketWindow,
    capacity: Capacity,
    full: FullSize,
    fragments: Fragments,
    sizes: Sizes,
    round: Round,
    /// New packets, without duplicates.
    stored: u64,
    /// When the present batch reached this computer.
    arrived: Instant,
    /// Packets of the present batch, the new ones among them, and whether one of those was short.
    batch: u32,
    batch_new: u32,
    batch_short: bool,
    /// The last new packet was short, so it ended the sender's present data.
    ended: bool,
    /// The packets of the present batch; `None` if no controller wants to know them.
    heard: Option<Heard>,
    /// The latest new packet.
    latest: SeqNo,
    pub(crate) packets: u64,
    pub(crate) duplicates: u64,
    pub(crate) bytes: u64,
}

/// The packets of a batch, for a controller.
#[derive(Debug)]
struct Heard {
    packets: Vec<DataPacket>,
    /// Whether packets carry the number of their message.
    numbered: bool,
}

impl Heard {
    fn note(&mut self, header: &DataHeader, payload: &[u8]) {
        let message = self.numbered.then_some(header.field.message);
        self.packets.push(DataPacket::new(header.seq, message, payload.len() as u32));
    }
}

impl Receiver {
    /// For a peer whose first packet is `first`. The window grows up to `sizes.max_window` packets.
    pub(crate) fn new(first: SeqNo, mode: Mode, sizes: Sizes, tolerance: u32, now: Instant) -> Self {
        let window = INITIAL_WINDOW.min(sizes.max_window);
        // Full packets without a gap between them are read at once, and become blocks.
        let mut buffer = RecvBuffer::new(first, sizes.full, window);
        buffer.set_limit(sizes.largest.unwrap_or_default().max(sizes.storage));
        Self {
            mode,
            buffer,
            acks: Acks::new(first, window),
            naks: Naks::new(first, tolerance),
            receipts: sizes.receipts.then(|| Receipts::new(first, now)),
            front_left: Timestamp::ZERO,
            arrival: ArrivalRate::default(),
            socket_window: SocketWindow::default(),
            capacity: Capacity::new(sizes.receipts),
            full: FullSize::new(sizes.full, sizes.largest.is_some()),
            fragments: Fragments::default(),
            sizes,
            round: Round { since: now, stored: 0, reader: first, reads: false },
            stored: 0,
            arrived: now,
            batch: 0,
            batch_new: 0,
            batch_short: false,
            ended: false,
            heard: None,
            latest: first,
            packets: 0,
            duplicates: 0,
            bytes: 0,
        }
    }

    /// The next packets reached this computer at `arrived`.
    pub(crate) fn begin_batch(&mut self, arrived: Instant) {
        self.arrived = arrived;
    }

    /// When the present batch reached this computer.
    pub(crate) const fn arrived(&self) -> Instant {
        self.arrived
    }

    /// One data packet arrived.
    #[inline]
    pub(crate) fn on_data(&mut self, header: &DataHeader, payload: &[u8], now: Instant, rtt: &Rtt) {
        self.batch += 1;
        if let Some(heard) = &mut self.heard {
            heard.note(header, payload);
        }
        self.capacity.on_arrival(header.seq, header.timestamp, self.arrived);
        let end = self.buffer.end();
        match self.buffer.insert(header.seq, header.field, payload) {
            Insert::New => {
                // Useless packets are answered by timer, so that a flood of them causes no flood of answers.
                self.ended = self.full.is_short(payload.len());
                self.batch_short |= self.ended;
                self.batch_new += 1;
                self.latest = header.seq;
                self.stored += 1;
                self.bytes += payload.len() as u64;
                if header.seq.is_before(end) {
                    self.naks.on_late(header.seq, header.timestamp, now, rtt);
                } else {
                    self.front_left = header.timestamp;
                }
                if self.mode == Mode::Message {
                    self.buffer.note_unordered(header.seq);
                }
            }
            Insert::Duplicate => {
                self.duplicates += 1;
                self.acks.on_useless(now);
            }
            Insert::Rejected => self.acks.on_useless(now),
        }
    }

    /// A fragment of a data packet arrived. With the last one, the packet has.
    pub(crate) fn on_fragment(&mut self, fragment: &Fragment<'_>, timestamp: Timestamp, now: Instant, rtt: &Rtt) {
        if !self.buffer.wants(fragment.seq) || usize::from(fragment.total) > self.buffer.limit() {
            return self.acks.on_useless(now);
        }
        if let Some(payload) = self.fragments.on_fragment(fragment) {
            let header =
                DataHeader { seq: fragment.seq, field: fragment.field, timestamp, destination: SocketId::NONE };
            self.on_data(&header, &payload, now, rtt);
            self.fragments.give_back(payload);
        }
    }

    /// Lists the packets of a batch from now on. `numbered` is whether they carry the number of their message.
    pub(crate) fn hear(&mut self, numbered: bool) {
        self.heard = Some(Heard { packets: Vec::new(), numbered });
    }

    /// Lists no packets from now on.
    pub(crate) fn hear_nothing(&mut self) {
        self.heard = None;
    }

    /// Takes the packets of the batch that ended. [`give_back`](Self::give_back) takes the list for reuse.
    pub(crate) fn take_heard(&mut self) -> Vec<DataPacket> {
        self.heard.as_mut().map_or_else(Vec::new, |heard| std::mem::take(&mut heard.packets))
    }

    pub(crate) fn give_back(&mut self, mut packets: Vec<DataPacket>) {
        if let Some(heard) = &mut self.heard {
            packets.clear();
            heard.packets = packets;
        }
    }

    /// Ends a batch and updates everything that does not depend on single packets. Returns whether it held data.
    pub(crate) fn finish_batch(&mut self, now: Instant, rtt: &Rtt) -> bool {
        let packets = std::mem::take(&mut self.batch);
        if packets == 0 {
            return false;
        }
        self.packets += u64::from(packets);
        self.arrival.on_arrival(self.arrived, u64::from(packets));
        self.acks.on_arrival(now, packets, std::mem::take(&mut self.batch_short));
        if let Some(receipts) = &mut self.receipts {
            let new = std::mem::take(&mut self.batch_new);
            receipts.on_arrival(new, self.latest, self.arrived, now, rtt.smoothed());
        }
        self.naks.on_arrival(&self.buffer, self.front_left, now, rtt);
        self.naks.acknowledge(self.buffer.ack_point());
        self.size_window(now, rtt);
        true
    }

    /// The sender gave up a message.
    pub(crate) fn on_drop_request(&mut self, request: &DropRequest, now: Instant) {
        if self.mode == Mode::Message {
            self.buffer.skip(request.range, request.message);
            self.naks.acknowledge(self.buffer.ack_point());
            self.acks.on_useless(now);
        }
    }

    /// Sizes the window by the new packets of one RTT, those behind a gap among them, if the application reads. An
    /// application that does not read costs no more memory, however fast a peer sends (attack B10). A message that does
    /// not fit also widens the window.
    fn size_window(&mut self, now: Instant, rtt: &Rtt) {
        let max_window = self.max_window();
        let arrived = u32::try_from(self.stored - self.round.stored).unwrap_or(u32::MAX);
        if arrived > self.buffer.capacity() / GROWTH && self.reader_keeps_up() {
            self.buffer.raise_capacity(arrived.saturating_mul(GROWTH).min(max_window));
        }
        if now - self.round.since >= rtt.smoothed().max(SYN_INTERVAL) {
            let reader = self.buffer.next_to_read();
            self.round = Round { since: now, stored: self.stored, reader, reads: reader != self.round.reader };
        }
        if self.mode == Mode::Message && self.buffer.free() == 0 && self.buffer.next_message().is_none() {
            self.buffer.raise_capacity((self.buffer.capacity() * 2).min(max_window));
        }
    }

    /// Whether the application reads at least a quarter of the data in order. A gap that leaves it nothing to read for
    /// an RTT, the time of a retransmission, is not its fault. A peer could leave a gap open for longer on purpose.
    fn reader_keeps_up(&self) -> bool {
        let Round { reader, reads, .. } = self.round;
        let read = self.buffer.next_to_read().distance_from(reader).unsigned_abs();
        let readable = self.buffer.ack_point().distance_from(reader).unsigned_abs();
        read >= readable.div_ceil(GROWTH) && (read > 0 || reads)
    }

    /// The largest window. Once packets are larger than at first, it is what the promised memory holds of those.
    fn max_window(&mut self) -> u32 {
        let Sizes { storage, max_window, memory, .. } = self.sizes;
        if self.buffer.stride() <= storage {
            return max_window;
        }
        let most = u32::try_from(memory / self.buffer.stride() as u64).unwrap_or(u32::MAX).max(2).min(max_window);
        self.buffer.lower_capacity(most);
        most
    }

    /// The socket's receive buffer of so many bytes has overflowed.
    pub(crate) fn note_drops(&mut self, now: Instant, buffer: u64, least_rtt: Option<Duration>) {
        let packets = buffer / (self.full.get() as u64 + u64::from(IP_UDP_HEADER));
        self.socket_window.begin(now, packets, self.on_their_way(least_rtt));
    }

    /// The packets of an RTT at their present rate, if both are known.
    fn on_their_way(&self, least_rtt: Option<Duration>) -> Option<f64> {
        Some(self.arrival.latest()?.packets_in(least_rtt?))
    }

    /// The acknowledgement to send now, if any.
    pub(crate) fn poll_ack(&mut self, now: Instant, rtt: &Rtt) -> Option<Ack> {
        self.socket_window.end_if_over(now, self.on_their_way(rtt.min()));
        self.acks.set_window(self.socket_window.window());
        let facts = self.facts(rtt);
        let decision = self.acks.decide(now, &facts)?;
        let rates = if decision == Decision::Full {
            let arrival = self.arrival.measure(now).map_or(0, |rate| rate.to_wire());
            let capacity = self.capacity.estimate(now).map_or(0, |rate| rate.to_wire());
            (arrival, capacity)
        } else {
            (0, 0)
        };
        if let Some(receipts) = &mut self.receipts {
            receipts.on_acknowledgement(facts.ack_point, self.ended && self.buffer.is_contiguous());
        }
        Some(self.acks.make(decision, now, &facts, rates))
    }

    /// The receipt to send now, if any.
    pub(crate) fn poll_receipt(&mut self, now: Instant) -> Option<Receipt> {
        // An acknowledgement makes the sender forget what a later receipt would name.
        let is_due = self.acks.is_timer_due(now);
        let seq = self.buffer.ack_point();
        let receipt = self.receipts.as_mut()?.poll(now, seq, is_due)?;
        self.acks.light_sent += u64::from(receipt.prompt);
        Some(receipt)
    }

    /// Sets when this side acknowledges. Receipts replace light acknowledgements.
    pub(crate) fn set_policy(&mut self, control: &Control) {
        let interval = control.ack_interval;
        let light = if self.receipts.is_some() { Some(u32::MAX) } else { interval };
        self.acks.set_policy(control.ack_period, light, control.full_ack_interval);
        if let Some(receipts) = &mut self.receipts {
            receipts.set_interval(interval);
        }
    }

    /// When the next acknowledgement or receipt is due.
    pub(crate) fn ack_deadline(&self, now: Instant) -> Option<Instant> {
        earliest(self.acks.deadline(now), self.receipts.as_ref().and_then(Receipts::deadline))
    }

    /// The application read data. The sender may need a window update.
    pub(crate) fn on_read(&mut self, rtt: &Rtt) {
        let facts = self.facts(rtt);
        self.acks.on_read(&facts);
    }

    /// Payload of the peer's full packets.
    pub(crate) const fn full_payload(&self) -> usize {
        self.full.get()
    }

    /// Capacity estimate of the path from the peer to this side.
    pub(crate) fn capacity(&self, now: Instant) -> Option<farhaul_units::PacketRate> {
        self.capacity.estimate(now)
    }

    pub(crate) fn memory(&self) -> usize {
        self.buffer.memory() + self.fragments.memory() + self.acks.memory() + self.naks.memory()
    }

    fn facts(&self, rtt: &Rtt) -> Facts {
        let most = self.socket_window.window().unwrap_or(u32::MAX);
        Facts {
            ack_point: self.buffer.ack_point(),
            free: self.buffer.free().min(most),
            capacity: self.buffer.capacity().min(most),
            rtt: rtt.smoothed(),
            rtt_var: rtt.variation(),
            round_trip: rtt.with_margin(),
        }
    }
}

/// The present RTT period.
#[derive(Clone, Copy, Debug)]
struct Round {
    since: Instant,
    /// New packets before it.
    stored: u64,
    /// The reader's position at its start.
    reader: SeqNo,
    /// Whether the application read in the period before.
    reads: bool,
}

/// Sizes of a receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Largest payload of any packet, bytes.
    pub(crate) storage: usize,
    /// Payload of a full packet, bytes.
    pub(crate) full: usize,
    /// Largest payload that the peer may come to send; `None` if it never sends more than `storage`.
    pub(crate) largest: Option<usize>,
    /// Bytes that may be held for the reader.
    pub(crate) memory: u64,
    /// Largest window, packets.
    pub(crate) max_window: u32,
    /// Whether the peer wants receipts.
    pub(crate) receipts: bool,
}
