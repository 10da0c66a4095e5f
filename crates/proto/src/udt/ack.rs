//! When and what this side acknowledges: full and medium ACKs by timer, light ones in between.

use farhaul_units::{AckNo, Duration, Instant, SeqNo};
use farhaul_wire::udt4::Ack;

use crate::consts::SYN_INTERVAL;
use crate::estimate::{AckWindow, Sent};
use crate::timer::Timer;
use crate::transport::earliest;

/// Data packets that trigger a light acknowledgement between two by timer. Source: libudt 4.11.
const LIGHT_ACK_INTERVAL: u32 = 64;
/// An update of the window does not wait for the timer if the window's end moved by one part in this many of the
/// buffer.
const WINDOW_UPDATE_SHARE: u32 = 4;
/// How long libudt 4.11 waits for a packet before it looks at its timers.
const LIBUDT_IDLE: Duration = Duration::from_millis(100);

/// The acknowledging half of a receiver.
#[derive(Debug, Default)]
pub(crate) struct Acks {
    /// Runs while received packets are unacknowledged, or an acknowledgement is unconfirmed.
    timer: Timer,
    /// A full or medium acknowledgement need not wait for the timer.
    due: bool,
    demand: Demand,
    number: AckNo,
    /// Content of the last full or medium acknowledgement: first missing packet, and send time.
    last_seq: SeqNo,
    last_sent: Option<Instant>,
    /// First missing packet in the last acknowledgement of any kind.
    last_said: SeqNo,
    /// First packet beyond the advertised window.
    advertised_end: SeqNo,
    /// The first missing packet and the window's end that the sender has confirmed by an ACK2.
    confirmed: SeqNo,
    confirmed_end: SeqNo,
    /// Packets since the last acknowledgement of any kind.
    packets: u32,
    interval: u32,
    /// Packets after which an acknowledgement does not wait for the timer: by the controller, and for a small window.
    full_interval: Option<u32>,
    window_interval: Option<u32>,
    period: Duration,
    /// If this side acknowledges as libudt does: from when on a packet causes an acknowledgement.
    libudt_next: Option<Instant>,
    window: AckWindow,
    pub(crate) sent: u64,
    pub(crate) light_sent: u64,
}

/// Why an acknowledgement without news is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Demand {
    #[default]
    None,
    /// The sender shows by useless packets that it does not know this side's state.
    Answer,
    /// The sender must show that it is alive, by its confirmation.
    Proof,
}

/// Content of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// First missing packet.
    pub(crate) ack_point: SeqNo,
    /// Packets beyond it that the buffer has room for.
    pub(crate) free: u32,
    /// Packets that the buffer holds at most.
    pub(crate) capacity: u32,
    pub(crate) rtt: Duration,
    pub(crate) rtt_var: Duration,
    /// RTT with a margin: the longest time until an answer.
    pub(crate) round_trip: Duration,
}

/// The kind of acknowledgement to send, before measurements are filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Light,
    /// Without arrival rate and capacity, because the last full one is younger than a SYN interval.
    Medium,
    Full,
}

impl Acks {
    /// For a connection whose peer starts with packet `first`.
    pub(crate) fn new(first: SeqNo, window: u32) -> Self {
        Self {
            last_seq: first,
            last_said: first,
            advertised_end: first.plus(window),
            confirmed: first,
            confirmed_end: first.plus(window),
            interval: LIGHT_ACK_INTERVAL,
            period: SYN_INTERVAL,
            ..Self::default()
        }
    }

    /// Sets the number of the next acknowledgement. For use before the first one only.
    pub(crate) fn number_from(&mut self, number: AckNo) {
        self.number = number;
    }

    /// Acknowledges as libudt does, from now on.
    pub(crate) const fn imitate_libudt(&mut self, now: Instant) {
        self.libudt_next = Some(now);
    }

    /// Data packets arrived. A short packet ends the sender's present data, so its acknowledgement does not wait for
    /// the timer.
    pub(crate) fn on_arrival(&mut self, now: Instant, packets: u32, short: bool) {
        self.packets += packets;
        let full_interval = self.full_interval.into_iter().chain(self.window_interval).min();
        self.due |= short || full_interval.is_some_and(|interval| self.packets >= interval);
        if let Some(next) = self.libudt_next {
            self.due |= now >= next;
            self.timer.set(now + LIBUDT_IDLE);
        }
        self.timer.start(now, self.period);
    }

    /// The window has few packets, so a full acknowledgement is due for each quarter of it, and at the latest where a light one would
    /// be, which does not move the window's end. `None` if the window has many.
    pub(crate) fn set_window(&mut self, window: Option<u32>) {
        self.window_interval = window.map(|window| (window / WINDOW_UPDATE_SHARE).clamp(1, LIGHT_ACK_INTERVAL));
    }

    /// A packet without use for this side arrived. The sender does not know this side's state, so an acknowledgement
    /// tells it.
    pub(crate) fn on_useless(&mut self, now: Instant) {
        if self.demand == Demand::None {
            self.demand = Demand::Answer;
        }
        self.timer.start(now, self.period);
    }

    /// Requests a confirmation that shows that the peer is alive, even without news.
    pub(crate) fn demand_confirmation(&mut self) {
        self.demand = Demand::Proof;
        self.due = true;
    }

    /// The application read data. If much of a small window became free, the sender is told without waiting for the
    /// timer.
    pub(crate) fn on_read(&mut self, facts: &Facts) {
        let end = facts.ack_point.plus(facts.free);
        let moved = end.distance_from(self.advertised_end).max(0).unsigned_abs();
        let was_tight = self.advertised_end.distance_from(facts.ack_point) < (facts.capacity / 2) as i32;
        if was_tight && moved >= (facts.capacity / WINDOW_UPDATE_SHARE).max(1) {
            self.due = true;
        }
    }

    /// The acknowledgement to send now, if any.
    pub(crate) fn decide(&mut self, now: Instant, facts: &Facts) -> Option<Decision> {
        let timer_fired = self.timer.fires(now);
        if timer_fired || self.due {
            self.due = false;
            self.libudt_next = self.libudt_next.map(|_| now + self.period);
            if let Some(decision) = self.decide_full(now, facts) {
                return Some(decision);
            }
            if facts.ack_point == self.last_seq {
                // All packets since then were of no use.
                self.packets = 0;
            }
            if self.packets > 0 || self.is_unconfirmed() {
                self.timer.start(now, self.wait());
            }
        }
        let light = self.packets >= self.interval && facts.ack_point.is_after(self.last_said);
        light.then_some(Decision::Light)
    }

    /// Until when this side looks whether something is to be acknowledged, if no packet comes.
    const fn wait(&self) -> Duration {
        if self.libudt_next.is_some() { LIBUDT_IDLE } else { self.period }
    }

    fn decide_full(&self, now: Instant, facts: &Facts) -> Option<Decision> {
        let since_last = self.last_sent.map(|at| now - at);
        let news = facts.ack_point.is_after(self.last_seq);
        let window_moved = facts.ack_point.plus(facts.free).is_after(self.advertised_end);
        let unconfirmed = self.is_unconfirmed() || window_moved;
        let repeat = unconfirmed && since_last.is_none_or(|since| since >= facts.round_trip);
        let reopened = window_moved && since_last.is_none_or(|since| since >= SYN_INTERVAL / 10);
        if !news && !repeat && !reopened && self.demand == Demand::None {
            return None;
        }
        let fresh = since_last.is_some_and(|since| since < SYN_INTERVAL);
        Some(if fresh { Decision::Medium } else { Decision::Full })
    }

    /// Whether the sender may not know the content of the last acknowledgement.
    fn is_unconfirmed(&self) -> bool {
        self.confirmed != self.last_seq || self.confirmed_end != self.advertised_end
    }

    /// Builds the packet for a decision and counts it as sent. `rates` are arrival rate and capacity, packets per
    /// second.
    pub(crate) fn make(&mut self, decision: Decision, now: Instant, facts: &Facts, rates: (u32, u32)) -> Ack {
        let seq = facts.ack_point;
        self.packets = 0;
        if decision == Decision::Light {
            self.last_said = seq;
            self.light_sent += 1;
            return Ack::Light { seq };
        }
        let demand = std::mem::take(&mut self.demand);
        let number = self.number;
        self.number = number.next();
        self.last_seq = seq;
        // Otherwise it would count as ahead after half the number space.
        self.last_said = self.last_said.later(seq);
        // It may move back: the window may have become smaller.
        self.advertised_end = seq.plus(facts.free);
        // An answer without news needs no confirmation, so a peer cannot make it cost memory (attack B10).
        if demand == Demand::Proof || self.is_unconfirmed() {
            self.window.sent(Sent { number, seq, end: self.advertised_end, at: now });
        }
        self.sent += 1;
        // The timer repeats it until the peer confirms it.
        self.timer.start(now, self.wait());
        let (rtt, rtt_var, free_buffer) = (facts.rtt, facts.rtt_var, facts.free);
        if decision == Decision::Medium {
            return Ack::Medium { number, seq, rtt, rtt_var, free_buffer };
        }
        self.last_sent = Some(now);
        let (arrival_rate, capacity) = rates;
        Ack::Full { number, seq, rtt, rtt_var, free_buffer, arrival_rate, capacity }
    }

    /// The sender confirmed an acknowledgement. Returns the RTT.
    pub(crate) fn on_ack2(&mut self, number: AckNo, now: Instant) -> Option<Duration> {
        let Sent { seq, end, at, .. } = self.window.confirm(number)?;
        self.confirmed = self.confirmed.later(seq);
        self.confirmed_end = self.confirmed_end.later(end);
        Some(now - at)
    }

    /// The sender knows that everything before this packet has arrived.
    pub(crate) const fn confirmed(&self) -> SeqNo {
        self.confirmed
    }

    /// Applies the controller's settings: the period, cut to a SYN interval as in UDT, and the packets after which a light
    /// and a full acknowledgement is due.
    pub(crate) fn set_policy(&mut self, period: Option<Duration>, interval: Option<u32>, full_interval: Option<u32>) {
        self.full_interval = full_interval;
        self.period = period.map_or(SYN_INTERVAL, |period| period.min(SYN_INTERVAL));
        self.interval = interval.unwrap_or(LIGHT_ACK_INTERVAL).max(1);
    }

    /// Whether an acknowledgement by timer is due.
    pub(crate) fn is_timer_due(&self, now: Instant) -> bool {
        self.timer.deadline().is_some_and(|deadline| deadline <= now)
    }

    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        earliest(self.timer.deadline(), self.due.then_some(now))
    }

    pub(crate) fn memory(&self) -> usize {
        self.window.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(ack_point: u32) -> Facts {
        Facts {
            ack_point: SeqNo::new(ack_point),
            free: 1000,
            capacity: 1000,
            rtt: Duration::from_millis(50),
            rtt_var: Duration::from_millis(5),
            round_trip: Duration::from_millis(70),
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Decides, and sends an acknowledgement if one is due.
    fn step(acks: &mut Acks, millis: u64, ack_point: u32) -> Option<Ack> {
        let facts = facts(ack_point);
        acks.decide(at(millis), &facts).map(|decision| acks.make(decision, at(millis), &facts, (1, 1)))
    }

    #[test]
    fn a_full_acknowledgement_follows_a_syn_after_the_first_arrival() {
        let mut acks = Acks::new(SeqNo::new(0), 1000);
        acks.on_arrival(at(3), 5, false);
        assert_eq!(step(&mut acks, 12, 5), None);
        assert!(matches!(step(&mut acks, 13, 5), Some(Ack::Full { .. })));
    }

    #[test]
    fn the_first_packet_after_a_pause_is_acknowledged_alone_as_by_libudt() {
        let mut acks = Acks::new(SeqNo::new(0), 1000);
        acks.imitate_libudt(at(0));
        acks.on_arrival(at(1), 1, false);
        assert!(matches!(step(&mut acks, 1, 1), Some(Ack::Full { .. })));
        acks.on_arrival(at(2), 9, false);
        assert_eq!(step(&mut acks, 2, 10), None);
        assert_eq!(acks.deadline(at(2)), Some(at(102)), "without a packet it does not look");
        acks.on_arrival(at(50), 1, false);
        assert!(matches!(step(&mut acks, 50, 11), Some(Ack::Full { .. })));
    }

    #[test]
    fn sixty_four_packets_make_a_light_acknowledgement() {
        let mut acks = Acks::new(SeqNo::new(0), 1000);
        acks.on_arrival(at(0), 63, false);
        assert_eq!(step(&mut acks, 1, 63), None);
        acks.on_arrival(at(1), 1, false);
        assert_eq!(step(&mut acks, 1, 64), Some(Ack::Light { seq: SeqNo::new(64) }));
        acks.on_arrival(at(2), 64, false);
        assert_eq!(step(&mut acks, 2, 64), None, "nothing new in order");
    }

    #[test]
    fn light_acknowledgements_go_on_after_more_packets_without_one_than_half_the_number_space() {
        let mut acks = Acks::new(SeqNo::new(0), 1000);
        for round in 1..=5 {
            acks.on_arrival(at(20 * round), 1, false);
            assert!(step(&mut acks, 20 * round + 10, (round as u32) << 28).is_some());
        }
        acks.on_arrival(at(111), 64, false);
        assert_eq!(step(&mut acks, 111, (5 << 28) + 64), Some(Ack::Light { seq: SeqNo::new((5 << 28) + 64) }));
    }

    #[test]
    fn a_short_packet_is_acknowledged_at_once() {
        let mut acks = Acks::new(SeqNo::new(0), 1000);
        acks.on_arrival(at(0), 1, true);
        assert!(matches!(step(&mut acks, 0, 1), Some(Ack::Full { .. })));
        acks.on_arrival(at(1), 1, true);
        assert!(matches!(step(&mut acks, 1, 2), Some(Ack::Medium { .. })), "the full one is younger than a SYN");
    }

    #[test]
    fn an_interval_of_packets_makes_acknowledgements_that_count_as_delivery() {
        let mut acks = Acks::new(SeqNo::new(0), 1000);
        acks.set_policy(None, None, Some(2));
        acks.on_arrival(at(0), 1, false);
        assert_eq!(step(&mut acks, 0, 1), None);
        acks.on_arrival(at(0), 1, false);
        assert!(matches!(step(&mut acks, 0, 2), Some(Ack::Full { .. })));
        acks.on_arrival(at(1), 2, false);
        assert!(matches!(step(&mut acks, 1, 4), Some(Ack::Medium { .. })), "the full one is younger than a SYN");
    }

    #[test]
    fn an_acknowledgement_is_repeated_until_confirmed_and_then_rests() {
        let mut acks = Acks::new(SeqNo::new(0), 1000);
        acks.on_arrival(at(0), 5, true);
        let Some(Ack::Full { number, .. }) = step(&mut acks, 0, 5) else { panic!("no acknowledgement") };
        assert_eq!(step(&mut acks, 60, 5), None);
        assert!(acks.deadline(at(60)).is_some());
        let Some(Ack::Full { number: second, .. }) = step(&mut acks, 75, 5) else { panic!("not repeated") };
        assert_eq!(second, number.next());
        assert_eq!(acks.on_ack2(second, at(125)), Some(Duration::from_millis(50)));
        step(&mut acks, 150, 5);
        assert_eq!(acks.deadline(at(150)), None, "an idle connection has no timer");
    }

    #[test]
    fn a_duplicate_is_answered_once_and_then_the_timer_rests() {
        let mut acks = Acks::new(SeqNo::new(0), 1000);
        acks.on_arrival(at(0), 5, true);
        let Some(Ack::Full { number, .. }) = step(&mut acks, 0, 5) else { panic!("no acknowledgement") };
        acks.on_ack2(number, at(50));
        step(&mut acks, 60, 5);
        acks.on_arrival(at(1_000), 1, false);
        acks.on_useless(at(1_000));
        let Some(Ack::Full { number, .. }) = step(&mut acks, 1_010, 5) else { panic!("not answered") };
        acks.on_ack2(number, at(1_060));
        step(&mut acks, 1_070, 5);
        step(&mut acks, 1_080, 5);
        assert_eq!(acks.deadline(at(1_080)), None);
    }

    /// A window that was filled, acknowledged and confirmed. The application has then read `free` packets.
    fn reopened(free: u32) -> (Acks, Facts) {
        let mut acks = Acks::new(SeqNo::new(0), 1000);
        let full = Facts { free: 0, ..facts(1000) };
        acks.on_arrival(at(0), 1000, true);
        let decision = acks.decide(at(0), &full).unwrap();
        let number = acks.make(decision, at(0), &full, (1, 1)).number().unwrap();
        acks.on_ack2(number, at(1));
        let reopened = Facts { free, ..full };
        acks.on_read(&reopened);
        (acks, reopened)
    }

    #[test]
    fn a_window_that_has_become_smaller_is_reopened_as_well() {
        let mut acks = Acks::new(SeqNo::new(0), 1000);
        let full = Facts { free: 0, capacity: 100, ..facts(300) };
        acks.on_arrival(at(0), 300, true);
        let decision = acks.decide(at(0), &full).unwrap();
        let number = acks.make(decision, at(0), &full, (1, 1)).number().unwrap();
        acks.on_ack2(number, at(1));
        let reopened = Facts { free: 100, ..full };
        acks.on_read(&reopened);
        assert!(acks.decide(at(5), &reopened).is_some(), "the end that was told before the bound is beyond this one");
    }

    #[test]
    fn a_reader_that_frees_room_reopens_a_closed_window() {
        let (mut acks, facts) = reopened(600);
        assert!(acks.decide(at(5), &facts).is_some());
        let (mut acks, facts) = reopened(249);
        assert_eq!(acks.decide(at(5), &facts), None, "too little to speak of");
    }

    #[test]
    fn the_news_of_a_reopened_window_is_repeated_until_confirmed() {
        let (mut acks, facts) = reopened(600);
        let mut said = Vec::new();
        for millis in 5..400 {
            if let Some(decision) = acks.decide(at(millis), &facts) {
                said.push((millis, acks.make(decision, at(millis), &facts, (1, 1)).number().unwrap()));
            }
        }
        let gaps: Vec<u64> = said.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(said.len() >= 4 && gaps.iter().all(|gap| (60..=90).contains(gap)), "{gaps:?}");
        acks.on_ack2(said[said.len() - 1].1, at(400));
        acks.decide(at(500), &facts);
        assert_eq!((acks.decide(at(600), &facts), acks.deadline(at(600))), (None, None));
    }

    #[test]
    fn an_answer_without_news_is_not_remembered() {
        let mut acks = Acks::new(SeqNo::new(0), 1000);
        for round in 0..5_000 {
            acks.on_useless(at(20 * round));
            assert!(step(&mut acks, 20 * round + 10, 0).is_some());
        }
        assert_eq!(acks.memory(), 0);
    }
}
