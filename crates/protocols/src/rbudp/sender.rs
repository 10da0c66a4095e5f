//! The sending engine: blasts at a rate, and repetitions by bitmap.

mod round;
mod supply;

use farhaul_units::{Duration, Instant, Rate, SendPeriod, SeqNo};
use farhaul_wire::rbudp::{EndOfBlast, HEADER_LEN, bitmap_len, encode_length};

use self::round::{Blast, Phase};
use self::supply::{Cut, Supply};
use super::model::Model;
use super::options::{Options, Spacing, packet_size, payload_rate};
use super::{Division, Numbering};
use crate::blast::engine::{self, Feedback, Setup, Transmission};
use crate::blast::rate::{RateChoice, RateControl};
use crate::blast::sending::{MAX_TRAIN_BYTES, SenderState};
use farhaul_proto::endpoint::limit::Limit;
use farhaul_proto::error::PeerMisbehaved;
use farhaul_proto::pacer::Pacer;
use farhaul_proto::stats::Stats;

/// Longest wait for more data before a blast begins, in parts of an RTT and as time. A blast that begins with the first
/// write would be short, and cost an RTT.
const GATHER_PART: u32 = 8;
const LONGEST_GATHER: Duration = Duration::from_millis(10);
/// Catch-up speed of a driver that woke late, as a multiple of the rate. A burst at once would overflow short queues,
/// and a loss costs a round.
const CATCH_UP_PACE: f64 = 1.1;
/// Slowest rate. Zero would switch pacing off.
const SLOWEST: Rate = Rate::from_bits_per_second(1_000);

/// The sending end of a direction.
#[derive(Debug)]
pub struct Sender {
    state: SenderState,
    supply: Supply,
    options: Options,
    numbering: Numbering,
    /// Bytes that stand before the payload on the wire.
    header: usize,
    send_buffer: u64,
    rate: RateControl,
    pacer: Pacer,
    blast: Option<Blast>,
    /// Records that the channel has not taken.
    control: Vec<u8>,
    /// Bitmaps in a row that reported no new packet.
    fruitless: u32,
}

/// The bitmap of a blast, as far as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Bitmap {
    /// Packets of the blast.
    pub packets: u32,
    /// Bytes of the blast.
    pub length: u64,
    /// Bytes of the bitmap that is awaited. The whole last one if none is awaited now.
    pub read: usize,
    /// Packets that these bytes report missing.
    pub missing: u32,
    /// The number of bitmaps before this one.
    pub round: u32,
}

impl Sender {
    /// A sender of packets with `payload` bytes.
    pub fn new(options: &Options, payload: usize, division: Division, setup: Setup<'_>) -> Self {
        let mut pacer = Pacer::default();
        pacer.set_burst_time(match options.spacing {
            Spacing::Bursts => setup.config.burst_time.min(farhaul_proto::pacer::BURST_TIME),
            Spacing::Even => Duration::ZERO,
        });
        match options.rate {
            RateChoice::Fixed(_) => pacer.keep_schedule(),
            RateChoice::Auto => pacer.set_catch_up_pace(Some(CATCH_UP_PACE)),
        }
        let mut sender = Self {
            state: SenderState::new(&setup),
            supply: Supply::new(super::first_number(&setup), payload, setup.prefix, division),
            options: options.clone(),
            numbering: setup.prefix.into(),
            header: setup.prefix.length() + HEADER_LEN,
            send_buffer: setup.config.send_buffer,
            rate: RateControl::of(options.rate, &setup),
            pacer,
            blast: None,
            control: Vec::new(),
            fruitless: 0,
        };
        sender.begin_if_due(setup.now);
        sender
    }

    /// Begins the next file of an original's dialogue. The last one was delivered.
    pub fn give(&mut self, now: Instant, division: Division) {
        self.supply.divide(division);
        self.begin_if_due(now);
    }

    /// Whether the file was delivered as a whole.
    pub fn has_given(&self) -> bool {
        self.blast.is_none() && self.supply.is_cut_up()
    }

    /// Whether the sender waits for a bitmap.
    pub fn awaits_bitmap(&self) -> bool {
        self.blast.as_ref().is_some_and(|blast| matches!(blast.phase, Phase::Awaiting(_)))
    }

    /// Takes bytes of the bitmap that is awaited, up to its end, and returns their number.
    ///
    /// # Errors
    /// None is awaited, or no receiver sends it.
    pub fn take_bitmap(&mut self, now: Instant, bytes: &[u8]) -> Result<usize, PeerMisbehaved> {
        let blast = self.blast.as_mut().ok_or_else(|| PeerMisbehaved::out_of_turn("a bitmap"))?;
        let (used, missing) = blast.read_bitmap(bytes)?;
        if let Some(missing) = missing {
            self.on_bitmap(missing);
            self.begin_if_due(now);
        }
        self.note_limit(now);
        Ok(used)
    }

    /// The bitmap of the blast under way; `None` between two blasts.
    pub fn bitmap(&self) -> Option<Bitmap> {
        let blast = self.blast.as_ref()?;
        let (read, missing) = match &blast.phase {
            Phase::Awaiting(reader) => (reader.bytes_read(), reader.missing()),
            // The last one was read as a whole.
            _ if blast.round() > 0 => (bitmap_len(blast.cut.packets), 0),
            _ => (0, 0),
        };
        let Cut { packets, length, .. } = blast.cut;
        Some(Bitmap { packets, length, read, missing, round: blast.round() })
    }

    /// Bitmaps in a row that reported no new packet.
    pub const fn fruitless_rounds(&self) -> u32 {
        self.fruitless
    }

    /// The packets of the blast under way if its bitmaps say that none has arrived.
    pub fn lost_altogether(&self) -> Option<u32> {
        let blast = self.blast.as_ref().filter(|blast| blast.round() > 0)?;
        (blast.missing == blast.cut.packets).then_some(blast.missing)
    }

    fn rate(&self) -> Rate {
        self.rate.rate().max(SLOWEST)
    }

    /// Bytes of the next blast at the present rate.
    fn blast_bytes(&self) -> u64 {
        let rate = payload_rate(self.rate(), self.supply.payload(), self.header);
        self.options.blast_bytes(rate, self.state.round_trip, self.send_buffer)
    }

    /// The goodput of the analytic model at the present rate and RTT, and with the loss so far.
    fn predicted(&self, payload: usize) -> Rate {
        let rate = payload_rate(self.rate(), payload, self.header);
        let loss = self.state.counts.lost as f64 / self.state.counts.sent.max(1) as f64;
        let payload = u32::try_from(payload).unwrap_or(u32::MAX);
        Model { rate, round_trip: self.state.round_trip, payload, loss }.goodput(self.blast_bytes())
    }

    fn gather(&self) -> Duration {
        (self.state.round_trip / GATHER_PART).min(LONGEST_GATHER)
    }

    /// Begins the next blast if its data is there, or has waited long enough for more.
    fn begin_if_due(&mut self, now: Instant) {
        if self.blast.is_some() {
            return;
        }
        let bytes = self.blast_bytes();
        let stream = self.supply.waiting(bytes).filter(|&(since, ready)| ready || now >= since + self.gather());
        let begun = match self.supply.cut_file() {
            Some(cut) => Some(Blast::new(cut, Phase::Sending)),
            None => stream.and_then(|_| self.supply.cut_stream(now, bytes)).map(|cut| {
                self.control.extend_from_slice(&encode_length(cut.length));
                Blast::new(cut, Phase::Announcing)
            }),
        };
        if begun.is_some() {
            // The wait between two blasts earns no burst.
            self.pacer.hold();
            self.blast = begun;
        }
    }

    /// A bitmap was read. Its `missing` packets are listed.
    fn on_bitmap(&mut self, missing: u32) {
        let Some(blast) = &mut self.blast else { return };
        self.pacer.hold();
        if missing == 0 {
            self.state.counts.acks += 1;
            self.fruitless = 0;
            self.supply.release(&blast.cut);
            self.blast = None;
            return;
        }
        self.state.counts.naks += 1;
        self.state.counts.lost += u64::from(missing);
        self.fruitless = if missing < blast.missing { 0 } else { self.fruitless + 1 };
        blast.repeat(missing);
    }

    /// Sets the present limit.
    fn note_limit(&mut self, now: Instant) {
        let limit = match &self.blast {
            Some(blast) if blast.is_starved(&self.supply) => Limit::Application,
            Some(_) => Limit::Congestion,
            None if self.supply.written > self.supply.cut => Limit::Application,
            None => Limit::Idle,
        };
        self.state.limits.set(limit, now);
    }

    /// Whether packets could leave now if they were due.
    fn has_packets(&self) -> bool {
        self.blast.as_ref().is_some_and(|blast| blast.is_sending() && !blast.is_starved(&self.supply))
    }
}

impl engine::Sender for Sender {
    fn state_mut(&mut self) -> &mut SenderState {
        &mut self.state
    }

    fn room(&self) -> usize {
        usize::try_from(self.supply.room(self.blast_bytes(), self.send_buffer)).unwrap_or(usize::MAX)
    }

    fn write(&mut self, now: Instant, data: &[u8]) -> usize {
        let taken = data.len().min(self.room());
        if taken > 0 {
            let next = self.blast.as_ref().map(|blast| blast.next);
            self.supply.write(now, &data[..taken], next);
            self.note_limit(now);
        }
        taken
    }

    fn flush(&mut self, _now: Instant) {
        self.supply.flush();
    }

    fn is_delivered(&self) -> bool {
        self.blast.is_none() && self.supply.delivered == self.supply.written
    }

    fn handle_record(&mut self, now: Instant, bytes: &[u8]) -> Result<Option<usize>, PeerMisbehaved> {
        // A bitmap may have 4 MiB, so it is read as its parts arrive.
        if bytes.is_empty() { Ok(None) } else { self.take_bitmap(now, bytes).map(Some) }
    }

    fn poll_control(&mut self, _now: Instant, out: &mut Vec<u8>) {
        out.append(&mut self.control);
        if let Some(blast) = &mut self.blast {
            blast.announced();
        }
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        self.rate.on_feedback(now, feedback);
    }

    fn plan(&mut self, now: Instant) -> Option<Transmission> {
        self.begin_if_due(now);
        self.note_limit(now);
        if !self.has_packets() {
            self.pacer.hold();
            return None;
        }
        let period = SendPeriod::from_rate(self.rate(), packet_size(self.supply.payload(), self.header));
        self.pacer.set_period(period, self.state.round_trip);
        let most = self.pacer.allowance(now).min((MAX_TRAIN_BYTES / self.supply.segment()).max(1) as u32);
        if most == 0 {
            return None;
        }
        self.blast.as_mut()?.plan(&mut self.supply, most)
    }

    fn emit<'a>(&'a mut self, now: Instant, plan: Transmission, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        let blast = self.blast.as_mut()?;
        let first = SeqNo::new(u32::try_from(plan.first).ok()?);
        // Packets of the store bear their numbers and the tag. An original receiver expects neither.
        let borrows = !plan.again && self.numbering == Numbering::Running;
        scratch.clear();
        let mut next = first;
        for _ in 0..plan.packets {
            let Some(seq) = blast.take(next) else { break };
            next = seq.next();
            if !borrows {
                let index = match self.numbering {
                    Numbering::Running => seq.value(),
                    Numbering::PerBlast => seq.distance_from(blast.cut.first).unsigned_abs(),
                };
                self.supply.copy(seq, index, scratch);
            }
        }
        let round = blast.round();
        if blast.end_round() {
            self.control.extend_from_slice(&EndOfBlast { round }.encode());
        }
        self.pacer.on_sent(now, plan.packets);
        self.rate.on_sent(now, plan.packets, plan.packets as usize * self.supply.segment());
        self.state.on_sent(plan);
        let segment = self.supply.segment();
        if borrows {
            return self.supply.run(first, plan.packets).map(|run| (segment, &*run.bytes));
        }
        Some((segment, scratch))
    }

    fn deadline(&self) -> Option<Instant> {
        match &self.blast {
            None => self.supply.waiting(self.blast_bytes()).map(|(since, ready)| match ready {
                true => since,
                false => since + self.gather(),
            }),
            Some(_) if self.has_packets() => Some(self.pacer.deadline().unwrap_or(Instant::ZERO)),
            Some(_) => None,
        }
    }

    fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        self.state.fill_stats(now, stats);
        stats.totals.bytes_written = self.supply.written;
        stats.totals.bytes_acked = self.supply.delivered;
        let payload = self.supply.payload();
        stats.send_period = SendPeriod::from_rate(self.rate(), packet_size(payload, self.header));
        stats.payload_size = u32::try_from(payload).unwrap_or(u32::MAX);
        stats.model = Some(self.predicted(payload));
        stats.in_flight =
            self.blast.as_ref().map_or(0, |blast| blast.next.distance_from(blast.cut.first).unsigned_abs());
        stats.send_buffer_packets = self.supply.packets();
        stats.send_buffer_free = engine::Sender::room(self) as u64;
        stats.memory += self.supply.memory() as u64;
    }
}
