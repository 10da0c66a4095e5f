//! Data arrival: stores packets, finds gaps, measures the path.

use farhaul_cc::DataPacket;
use farhaul_units::{Duration, Instant, MsgNo, PacketRate, SeqNo, SeqRange};
use farhaul_wire::udt4::{MessageField, Position};
use farhaul_wire::udt2004::{Ack, SeqNo30};

use super::ack::{Acks, Facts};
use super::arrival_speed::ArrivalSpeed;
use super::delay_trend::DelayTrend;
use super::nak::Naks;
use super::packet_pair::PacketPair;
use farhaul_proto::buffer::{Insert, RecvBuffer};

/// Shortest time between two delay warnings, in RTTs. Source: paper:udt-2004 §3.5.2.
const WARNING_SPACING: u32 = 2;
/// The buffer stores UDT4's message field with each packet. Here all are equal.
const STREAM: MessageField = MessageField { position: Position::Only, in_order: false, message: MsgNo::FIRST };

/// The receiving half of a connection.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) buffer: RecvBuffer,
    /// Largest number of unacknowledged packets of the peer, as agreed in the handshake.
    window: u32,
    pub(super) acks: Acks,
    pub(super) naks: Naks,
    speed: ArrivalSpeed,
    pairs: PacketPair,
    /// `None` if this side never warns.
    trend: Option<DelayTrend>,
    warning_due: bool,
    last_warning: Option<Instant>,
    /// When the datagrams of this receive call reached this computer, and the data packets among them.
    arrived: Instant,
    in_batch: u32,
    /// The data packets of this receive call; `None` if the controller does not ask for them.
    heard: Option<Vec<DataPacket>>,
    /// Packets since the last SYN interval ended.
    in_syn: u64,
    pub(super) packets: u64,
    pub(super) duplicates: u64,
    pub(super) bytes: u64,
    pub(super) warnings_sent: u64,
}

/// Sizes of a receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Payload bytes of the largest packet.
    pub(super) payload: usize,
    /// Largest number of unacknowledged packets of the peer. It is half of the buffer. The other half is for data that
    /// the application has not read.
    pub(super) window: u32,
}

impl Receiver {
    pub(super) fn new(first: SeqNo, sizes: Sizes, patience: u32, warns: bool, now: Instant) -> Self {
        Self {
            buffer: RecvBuffer::new(first, sizes.payload, 2 * sizes.window),
            window: sizes.window,
            acks: Acks::new(first),
            naks: Naks::new(patience),
            speed: ArrivalSpeed::default(),
            pairs: PacketPair::default(),
            trend: warns.then(DelayTrend::default),
            warning_due: false,
            last_warning: None,
            arrived: now,
            in_batch: 0,
            heard: None,
            in_syn: 0,
            packets: 0,
            duplicates: 0,
            bytes: 0,
            warnings_sent: 0,
        }
    }

    /// The next datagrams reached this computer at `arrived`.
    pub(super) const fn begin_batch(&mut self, arrived: Instant) {
        self.arrived = arrived;
    }

    /// A data packet arrived. Returns false if no legitimate peer could have sent it.
    pub(super) fn on_data(&mut self, seq: SeqNo30, payload: &[u8], now: Instant) -> bool {
        let seq = seq.near(self.buffer.ack_point());
        let end = self.buffer.end();
        match self.buffer.insert(seq, STREAM, payload) {
            Insert::Rejected => return false,
            Insert::Duplicate => self.duplicates += 1,
            Insert::New => {
                self.bytes += payload.len() as u64;
                if !seq.is_before(end) {
                    self.pairs.on_arrival(seq, self.arrived);
                }
                //= paper:udt-2004 §3.3 algorithm 2, step 4
                if seq.is_after(end) {
                    self.naks.on_gap(SeqRange::new(end, seq.minus(1)), now);
                }
                self.naks.on_packet(&self.buffer, now);
                self.naks.acknowledge(self.buffer.ack_point());
            }
        }
        if let Some(heard) = &mut self.heard {
            heard.push(DataPacket::new(seq, None, payload.len() as u32));
        }
        self.packets += 1;
        self.in_syn += 1;
        self.in_batch += 1;
        self.acks.on_arrival(now);
        true
    }

    /// Lists packets from now on, for a controller that asks for them.
    pub(super) fn hear(&mut self) {
        self.heard = Some(Vec::new());
    }

    /// The data packets of this receive call, duplicates included, if they are listed.
    pub(super) fn heard(&self) -> &[DataPacket] {
        self.heard.as_deref().unwrap_or_default()
    }

    /// The controller has heard of them.
    pub(super) fn forget_heard(&mut self) {
        if let Some(heard) = &mut self.heard {
            heard.clear();
        }
    }

    /// When the datagrams of this receive call reached this computer.
    pub(super) const fn arrived(&self) -> Instant {
        self.arrived
    }

    /// All datagrams of one receive call were handled. Returns whether data was among them.
    pub(super) fn finish_batch(&mut self) -> bool {
        let packets = std::mem::take(&mut self.in_batch);
        if packets > 0 {
            self.speed.on_arrival(self.arrived, packets);
        }
        packets > 0
    }

    /// A SYN interval has ended.
    pub(super) fn on_syn(&mut self, rtt: Duration) {
        if std::mem::take(&mut self.in_syn) > 0 {
            self.naks.on_syn(rtt, self.speed.mean_interval());
        }
    }

    /// Whether any packet arrived since the last SYN interval ended.
    pub(super) const fn is_busy(&self) -> bool {
        self.in_syn > 0
    }

    /// The peer confirmed an acknowledgement. Returns the raw RTT sample, if the acknowledgement is known.
    pub(super) fn on_ack2(&mut self, id: u16, now: Instant, rtt: Duration) -> Option<Duration> {
        let sample = self.acks.on_ack2(id, now)?;
        if let Some(trend) = &mut self.trend {
            trend.on_sample(sample);
            let rested = self.last_warning.is_none_or(|at| now - at >= rtt * WARNING_SPACING);
            if rested && trend.is_increasing() {
                self.last_warning = Some(now);
                self.warning_due = true;
            }
        }
        Some(sample)
    }

    /// An acknowledgement, if one is due.
    pub(super) fn poll_ack(&mut self, now: Instant, rtt: Duration) -> Option<Ack> {
        let seq = self.acknowledged();
        let facts = Facts { seq, held_back: seq != self.buffer.ack_point(), rtt };
        let id = self.acks.poll(now, &facts)?;
        Some(Ack {
            id,
            seq: seq.into(),
            rtt,
            arrival_speed: self.speed.estimate().map_or(0, PacketRate::to_wire),
            capacity: self.pairs.estimate().map_or(0, PacketRate::to_wire),
        })
    }

    /// Whether a delay warning is due. It counts as sent.
    pub(super) fn poll_warning(&mut self) -> bool {
        let due = std::mem::take(&mut self.warning_due);
        self.warnings_sent += u64::from(due);
        due
    }

    /// The application read data.
    pub(super) fn on_read(&mut self, now: Instant, acknowledged_before: SeqNo) {
        if self.acknowledged() != acknowledged_before {
            self.acks.on_arrival(now);
        }
    }

    /// Everything before this packet is acknowledged. Acknowledgements never permit the peer to send more than the
    /// buffer holds.
    ///
    /// The paper has no receiver window, so unread data delays acknowledgements (departure D133).
    pub(super) fn acknowledged(&self) -> SeqNo {
        let held = self.buffer.capacity() - self.window;
        self.buffer.ack_point().earlier(self.buffer.next_to_read().plus(held))
    }

    pub(super) fn capacity(&self) -> Option<PacketRate> {
        self.pairs.estimate()
    }

    pub(super) fn memory(&self) -> usize {
        self.buffer.memory() + self.acks.memory() + self.naks.memory()
    }
}
