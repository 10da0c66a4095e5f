//! Which packets are known to have arrived, beyond cumulative acknowledgements.
//!
//! | peer | source |
//! | --- | --- |
//! | Farhaul | its receipts, which count deliveries |
//! | libudt | acknowledgements and loss reports: a report of a to b shows that a − 1 and b + 1 have arrived |

use farhaul_cc::{DeliveryEvent, DeliverySample, LostFlight};
use farhaul_units::{Duration, Instant, SeqNo, SeqRange};
use farhaul_wire::udt4::{Receipt, Timestamp};

use super::Sender;
use crate::consts::SYN_INTERVAL;
use crate::estimate::{Delivery, Mark, RateSampler};
use crate::seq_set::SeqSet;

/// News after as long may be of a timer. libudt's runs for 100 ms from the last packet, which came up to a SYN interval after the
/// last acknowledgement.
const LIBUDT_IDLE: Duration = Duration::from_millis(90);

/// The deliveries of a connection's packets at the peer.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    /// `None` if the peer counts them.
    derived: Option<Derived>,
    /// Distinct packets sent and arrived.
    sent: u64,
    received: u64,
    sampler: RateSampler,
    /// Trains among the packets whose arrival is known.
    trains: Delivery,
    /// When an arrival became known that a train may end with.
    marked: Instant,
    /// The window has held packets back since the last delivery.
    window_limited: bool,
}

/// Deliveries derived from acknowledgements and loss reports.
#[derive(Debug)]
struct Derived {
    /// No packet from here on is known to have arrived.
    top: SeqNo,
    /// Packets before it that were reported lost.
    missing: SeqSet,
}

/// News of deliveries.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    /// Packets; negative if some that were thought to have arrived were reported lost.
    packets: i64,
    /// The one that left last, if it left once only.
    latest: Option<SeqNo>,
    /// Others may have arrived, behind a gap.
    lags: bool,
    /// The arrival caused the news. What a timer caused may be late.
    prompt: bool,
}

impl Derived {
    fn on_ack(&mut self, seq: SeqNo) -> News {
        let beyond = seq.distance_from(self.top).max(0);
        let missing = self.missing.len();
        self.missing.advance(seq);
        let repaired = missing - self.missing.len();
        self.top = self.top.later(seq);
        News {
            packets: i64::from(beyond) + i64::from(repaired),
            latest: (beyond > 0).then(|| seq.minus(1)),
            lags: !self.missing.is_empty(),
            prompt: true,
        }
    }

    /// Packets of `range` were reported lost. The next new packet is `next`.
    fn on_report(&mut self, range: SeqRange, next: SeqNo) -> News {
        let before = self.top;
        let behind = range.last.next();
        let arrived = behind.is_before(next) && !behind.is_before(before);
        self.top = before.later(if arrived { behind.next() } else { behind });
        let unknown = range.last.next().distance_from(before.later(range.first)).max(0);
        let inserted = self.missing.insert_range(range);
        let advance = self.top.distance_from(before);
        News {
            packets: i64::from(advance) - i64::from(inserted.max(unknown.unsigned_abs())),
            latest: arrived.then_some(behind),
            // The packet behind has just arrived.
            lags: !arrived,
            prompt: true,
        }
    }
}

impl Deliveries {
    /// For a connection whose first packet is `first`. `counted` is whether the peer sends receipts.
    pub(super) fn new(first: SeqNo, counted: bool) -> Self {
        Self { derived: (!counted).then(|| Derived { top: first, missing: SeqSet::new(first) }), ..Self::default() }
    }

    /// For a connection in mid-transfer, of which `sent` packets from `first` on are in flight. The peer does not count.
    fn beginning_at(first: SeqNo, sent: u32) -> Self {
        Self { sent: sent.into(), ..Self::new(first, false) }
    }

    /// Packets that neither arrived nor are known to be lost, of `in_flight` unacknowledged ones of which `listed` wait for their
    /// retransmission.
    fn outstanding(&self, in_flight: u32, listed: u32) -> u32 {
        let unaccounted = self.sent.saturating_sub(self.received).saturating_sub(u64::from(listed));
        in_flight.min(u32::try_from(unaccounted).unwrap_or(u32::MAX))
    }

    /// New packets leave while `outstanding` are in flight. Each weighs `weight`.
    pub(super) fn on_sent(&mut self, range: SeqRange, weight: f64, outstanding: f64, now: Instant) {
        self.sampler.on_sent(range, f64::from(range.len()) * weight, outstanding, now);
        self.sent += u64::from(range.len());
    }

    /// Withheld packets leave for the first time.
    pub(super) fn on_sent_late(&mut self, packets: u32) {
        self.sent += u64::from(packets);
    }

    /// What an acknowledgement of everything before `seq` shows beyond the receipts so far. The next new packet is `next`.
    ///
    /// The last packets that an application has are acknowledged without a receipt.
    fn floor(&self, seq: SeqNo, next: SeqNo) -> Option<News> {
        let behind = u64::from(next.distance_from(seq).unsigned_abs());
        let packets = self.sent.saturating_sub(behind).checked_sub(self.received).filter(|packets| *packets > 0)?;
        Some(News { packets: i64::try_from(packets).ok()?, latest: Some(seq.minus(1)), lags: false, prompt: false })
    }

    /// The longest train that ends with the packet that left at `left` and arrived at `at`, the last of all known to have.
    ///
    /// Counts stand for numbers: a train is what arrived between two news of deliveries, whatever is missing.
    fn train(&mut self, left: Timestamp, prompt: bool, at: Instant, least: Duration) -> Option<DeliverySample> {
        // libudt acknowledges as a packet comes, or long after the last one.
        let prompt = prompt && (self.derived.is_none() || at - self.marked < LIBUDT_IDLE);
        self.marked = at;
        let mark = Mark { seq: SeqNo::new(self.received as u32 & SeqNo::MAX.value()), at, left, light: prompt };
        self.trains.on_ack(mark, true, least.max(SYN_INTERVAL))
    }

    /// The path is another one.
    pub(super) fn restart_path(&mut self, now: Instant) {
        self.sampler.restart(now);
        self.trains = Delivery::default();
    }

    /// Packets have another size from now on. Of what was one packet before, `factor` are needed.
    pub(super) fn rescale(&mut self, factor: f64) {
        self.trains.rescale(factor);
    }

    /// Frees memory that is kept for reuse only.
    pub(super) fn shrink(&mut self) {
        self.sampler.shrink();
        self.trains.restart();
    }

    /// Everything before `seq` has arrived.
    pub(super) fn acknowledge(&mut self, seq: SeqNo) {
        self.sampler.acknowledge(seq);
    }

    pub(super) fn memory(&self) -> usize {
        self.sampler.memory() + self.derived.as_ref().map_or(0, |derived| derived.missing.memory())
    }
}

impl Sender {
    /// Follows what arrives from now on, if it does not yet. It is derived from acknowledgements and loss reports, because
    /// peers agree on receipts at the begin.
    pub(crate) fn begin_to_follow_deliveries(&mut self) {
        if self.deliveries.is_none() {
            let withheld = self.withholding.as_ref().and_then(|withholding| withholding.held());
            let sent = self.in_flight() - u32::from(withheld.is_some());
            self.deliveries = Some(Box::new(Deliveries::beginning_at(self.buffer.first(), sent)));
        }
    }

    /// Packets in flight that neither arrived nor are known to be lost.
    ///
    /// Packets of messages that were given up never arrive, so once there are any, these are all in flight but those.
    pub(crate) fn outstanding(&self) -> u32 {
        match &self.deliveries {
            Some(deliveries) if self.messages_dropped == 0 => {
                deliveries.outstanding(self.in_flight(), self.repairs.unrepaired())
            }
            _ => self.in_flight().saturating_sub(self.lifetimes.given_up()),
        }
    }

    /// The same, counted in packets of the first size.
    pub(crate) fn outstanding_of_first_size(&self) -> f64 {
        let in_flight = self.in_flight();
        if in_flight == 0 {
            return 0.0;
        }
        f64::from(self.outstanding()) * f64::from(self.in_flight_of_first_size()) / f64::from(in_flight)
    }

    /// Whether samples of the delivery rate are of the application.
    pub(crate) const fn is_sampling_application(&self) -> bool {
        match &self.deliveries {
            Some(deliveries) => deliveries.sampler.is_application_limited(),
            None => false,
        }
    }

    /// The window holds packets back.
    pub(super) fn note_window_limit(&mut self) {
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.window_limited = true;
        }
    }

    /// There is nothing to send.
    pub(super) fn note_application_limit(&mut self) {
        let in_flight = self.outstanding_of_first_size();
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.sampler.on_application_limited(in_flight);
        }
    }

    /// Whether the peer sends receipts.
    pub(crate) fn takes_receipts(&self) -> bool {
        self.deliveries.as_ref().is_some_and(|deliveries| deliveries.derived.is_none())
    }

    /// A receipt arrived. Call before [`on_ack`](Self::on_ack).
    pub(crate) fn on_receipt(&mut self, receipt: &Receipt, now: Instant, least: Duration) -> Option<DeliveryEvent> {
        let deliveries = self.deliveries.as_mut()?;
        let packets = i64::from(receipt.received.wrapping_sub(deliveries.received as u32).cast_signed());
        // An overtaken receipt is no news, and one that counts more than was sent is a lie.
        let unknown = deliveries.sent - deliveries.received;
        if packets <= 0 || packets.unsigned_abs() > unknown {
            return None;
        }
        let sent_once = deliveries.sampler.knows(receipt.latest) && !self.repairs.was_resent(receipt.latest);
        let news = News { packets, latest: sent_once.then_some(receipt.latest), lags: false, prompt: true };
        let at = now.saturating_sub(receipt.delay);
        self.deliver(news, at, least)
    }

    /// Everything before `seq` has arrived, and the acknowledgement was `prompt`: its last packet caused it. Call before
    /// [`on_ack`](Self::on_ack).
    pub(crate) fn derive_from_ack(
        &mut self,
        seq: SeqNo,
        prompt: bool,
        now: Instant,
        least: Duration,
    ) -> Option<DeliveryEvent> {
        let deliveries = self.deliveries.as_mut()?;
        let news = match &mut deliveries.derived {
            Some(derived) => derived.on_ack(seq),
            None => deliveries.floor(seq, self.next)?,
        };
        let latest = news.latest.filter(|latest| !self.repairs.was_resent(*latest));
        self.deliver(News { latest, prompt, ..news }, now, least)
    }

    /// Packets of `range` in flight were reported lost.
    pub(crate) fn derive_from_report(
        &mut self,
        range: SeqRange,
        now: Instant,
        least: Duration,
    ) -> Option<DeliveryEvent> {
        let next = self.next;
        let news = self.deliveries.as_mut()?.derived.as_mut()?.on_report(range, next);
        let latest = news.latest.filter(|latest| !self.repairs.was_resent(*latest));
        self.deliver(News { latest, ..news }, now, least)
    }

    /// Packets of `range` are newly lost: what was in flight with the last of them.
    pub(crate) fn note_lost(&mut self, range: SeqRange, newly_lost: u32) -> Option<LostFlight> {
        if newly_lost == 0 {
            return None;
        }
        let again = self.repairs.was_resent(range.last);
        let weight = f64::from(newly_lost) * self.scale_of_oldest();
        self.deliveries.as_mut()?.sampler.on_lost(range, weight, again)
    }

    fn deliver(&mut self, news: News, at: Instant, least: Duration) -> Option<DeliveryEvent> {
        if news.packets == 0 {
            return None;
        }
        let scale = news.latest.map_or_else(|| self.scale_of_oldest(), |latest| self.scale_at(latest));
        let deliveries = self.deliveries.as_mut()?;
        deliveries.received = deliveries.received.saturating_add_signed(news.packets);
        let left = news.latest.filter(|_| !news.lags).and_then(|latest| self.buffer.stamped(latest));
        let train = left.and_then(|left| deliveries.train(left, news.prompt, at, least));
        let weight = news.packets as f64 * scale;
        deliveries.sampler.set_lag(news.lags);
        let found = deliveries.sampler.on_delivered(weight, news.latest, at, least);
        let mut event = DeliveryEvent::default();
        event.newly_delivered = weight.max(0.0);
        event.delivered = deliveries.sampler.delivered();
        event.window_limited = std::mem::take(&mut deliveries.window_limited);
        event.sample = found.map(|(sample, _)| sample);
        event.rtt = found.map(|(_, rtt)| rtt);
        event.train = train;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u32, last: u32) -> SeqRange {
        SeqRange::new(SeqNo::new(first), SeqNo::new(last))
    }

    fn seq(seq: u32) -> SeqNo {
        SeqNo::new(seq)
    }

    fn derived() -> Derived {
        Derived { top: seq(0), missing: SeqSet::new(seq(0)) }
    }

    fn on_ack(derived: &mut Derived, at: u32) -> (i64, Option<u32>) {
        let News { packets, latest, .. } = derived.on_ack(seq(at));
        (packets, latest.map(SeqNo::value))
    }

    fn on_report(derived: &mut Derived, lost: SeqRange, next: u32) -> (i64, Option<u32>) {
        let News { packets, latest, .. } = derived.on_report(lost, seq(next));
        (packets, latest.map(SeqNo::value))
    }

    #[test]
    fn a_report_shows_that_the_packets_around_it_have_arrived() {
        let mut derived = derived();
        assert_eq!(on_report(&mut derived, range(3, 4), 100), (4, Some(5)), "0 to 2, and 5");
        assert_eq!(on_report(&mut derived, range(10, 10), 100), (5, Some(11)), "6 to 9, and 11");
        assert_eq!(on_ack(&mut derived, 3), (0, None));
        assert_eq!(on_ack(&mut derived, 10), (2, None), "the repairs of 3 and 4");
        assert_eq!(on_ack(&mut derived, 20), (9, Some(19)), "that of 10, and 12 to 19");
    }

    #[test]
    fn a_repeated_report_is_no_news_and_one_of_what_was_thought_to_have_arrived_takes_it_back() {
        let mut derived = derived();
        on_report(&mut derived, range(3, 4), 100);
        assert_eq!(on_report(&mut derived, range(3, 4), 100), (0, None));
        assert_eq!(on_report(&mut derived, range(1, 1), 100), (-1, None), "its first report was lost");
        assert_eq!(on_ack(&mut derived, 6), (3, None));
    }

    #[test]
    fn a_report_of_the_last_packet_shows_no_arrival_behind_it() {
        let mut derived = derived();
        assert_eq!(on_report(&mut derived, range(7, 9), 10), (7, None));
        assert_eq!(on_ack(&mut derived, 10), (3, None));
    }

    /// Whatever is reported in whatever order, in the end all packets have arrived once.
    #[test]
    fn every_packet_arrives_once() {
        let mut rng = farhaul_units::Rng::new(7);
        for _ in 0..200 {
            let (mut derived, mut sum, mut acked) = (derived(), 0, 0);
            while acked < 200 {
                let first = acked + rng.below(40) as u32;
                let last = (first + rng.below(4) as u32).min(199);
                if first < 200 {
                    sum += derived.on_report(range(first, last), seq(200)).packets;
                }
                acked = (acked + rng.below(20) as u32).min(200);
                sum += derived.on_ack(seq(acked)).packets;
            }
            assert_eq!(sum, 200);
        }
    }

    /// A sender to a peer that counts, with ten packets in flight since time zero.
    fn sender() -> Sender {
        let mut sender =
            Sender::new(seq(0), 100, farhaul_wire::udt4::SocketId::new(1), 1_000, 1 << 20, farhaul_units::Rng::new(1));
        sender.follow_deliveries(true);
        sender.write(&[7; 1_000]);
        let stamp = farhaul_wire::udt4::Timestamp::ZERO;
        let round_trip = Duration::from_millis(10);
        let transmission = sender.plan(Instant::ZERO, stamp, round_trip).unwrap();
        let sent =
            sender.emit(transmission, (Instant::ZERO, stamp), round_trip, (&mut Vec::new(), None)).unwrap().packets;
        assert_eq!((sent, sender.outstanding()), (10, 10));
        sender
    }

    #[test]
    fn acknowledgements_count_what_no_receipt_has() {
        let mut sender = sender();
        let now = Instant::ZERO + Duration::from_millis(30);
        let event = sender.derive_from_ack(seq(10), true, now, Duration::ZERO).unwrap();
        assert_eq!((event.newly_delivered, event.rtt), (10.0, Some(Duration::from_millis(30))));
        assert!(sender.derive_from_ack(seq(10), true, now, Duration::ZERO).is_none());
        let receipt = Receipt { seq: seq(10), received: 10, latest: seq(9), prompt: false, delay: Duration::ZERO };
        assert!(sender.on_receipt(&receipt, now, Duration::ZERO).is_none(), "it is no news");
    }

    #[test]
    fn a_delay_longer_than_the_round_trip_is_a_lie_and_no_sample() {
        let mut sender = sender();
        let receipt =
            Receipt { seq: seq(0), received: 4, latest: seq(6), prompt: false, delay: Duration::from_secs(4_294) };
        let now = Instant::ZERO + Duration::from_millis(30);
        let event = sender.on_receipt(&receipt, now, Duration::ZERO).unwrap();
        assert_eq!((event.newly_delivered, event.rtt, event.sample.is_none()), (4.0, None, true));
        assert_eq!(sender.round_trip(seq(4), farhaul_wire::udt4::Timestamp::new(u32::MAX - 5)), None);
    }

    #[test]
    fn receipts_that_were_overtaken_or_count_more_than_was_sent_are_ignored() {
        let mut sender = sender();
        let now = Instant::ZERO + Duration::from_millis(30);
        let delay = Duration::from_millis(5);
        let mut take = |received, latest| {
            let receipt = Receipt { seq: seq(0), received, latest: seq(latest), prompt: true, delay };
            sender.on_receipt(&receipt, now, Duration::ZERO).map(|event| (event.newly_delivered, event.rtt))
        };
        assert_eq!(take(11, 9), None);
        assert_eq!(take(4, 6), Some((4.0, Some(Duration::from_millis(25)))));
        assert_eq!(take(3, 5), None);
        assert_eq!(take(5, 11), Some((1.0, None)), "no such packet is in flight");
        assert_eq!(sender.outstanding(), 5);
    }
}
