//! When this side acknowledges (paper:udt-2004 §3.4.1): by timer only, and until the sender confirms it.

use farhaul_units::{AckNo, Duration, Instant, SeqNo};

use farhaul_proto::consts::SYN_INTERVAL;
use farhaul_proto::estimate::{AckWindow, Sent};
use farhaul_proto::timer::Timer;

/// RTTs until an acknowledgement without news is repeated. Source: paper §3.4.1.
const REPEAT: u32 = 2;

/// The acknowledging half of a receiver.
#[derive(Debug)]
pub(super) struct Acks {
    /// The ACK timer. It stops while there is nothing to acknowledge.
    timer: Timer,
    /// Data arrived since the timer fired.
    fresh: bool,
    next_id: u16,
    /// First missing packet in the last acknowledgement, and its send time.
    last: SeqNo,
    last_at: Option<Instant>,
    /// First missing packet that the sender has confirmed by an ACK2.
    confirmed: SeqNo,
    window: AckWindow,
    pub(super) sent: u64,
}

/// Content of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// Everything before this packet is acknowledged.
    pub(super) seq: SeqNo,
    /// More packets arrived but wait for a reader. The sender must stop, but must not conclude that this side is gone.
    pub(super) held_back: bool,
    pub(super) rtt: Duration,
}

impl Acks {
    /// For a connection whose peer starts with packet `first`.
    pub(super) fn new(first: SeqNo) -> Self {
        Self {
            timer: Timer::stopped(),
            fresh: false,
            next_id: 0,
            last: first,
            last_at: None,
            confirmed: first,
            window: AckWindow::default(),
            sent: 0,
        }
    }

    /// Data arrived, or a reader made room.
    pub(super) fn on_arrival(&mut self, now: Instant) {
        self.fresh = true;
        self.timer.start(now, SYN_INTERVAL);
    }

    /// The id of an acknowledgement to send now. It counts as sent.
    pub(super) fn poll(&mut self, now: Instant, facts: &Facts) -> Option<u16> {
        if !self.timer.fires(now) {
            return None;
        }
        let news = facts.seq.is_after(self.confirmed);
        if std::mem::take(&mut self.fresh) || news || facts.held_back {
            self.timer.set(now + SYN_INTERVAL);
        }
        let rested = |time: Duration| self.last_at.is_none_or(|at| now - at >= time);
        //= paper:udt-2004 §3.4.1: above what ACK2 confirmed, and the same number only after 2·RTT
        let due = if news {
            facts.seq != self.last || rested(facts.rtt * REPEAT)
        } else {
            // D133: shorter than the sender's EXP interval, so that it waits instead of sending everything again.
            facts.held_back && rested(facts.rtt + SYN_INTERVAL)
        };
        due.then(|| self.make(now, facts.seq))
    }

    fn make(&mut self, now: Instant, seq: SeqNo) -> u16 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        self.last = seq;
        self.last_at = Some(now);
        self.sent += 1;
        self.window.sent(Sent { number: number(id), seq, end: seq, at: now });
        id
    }

    /// The sender confirmed an acknowledgement. Returns the RTT.
    pub(super) fn on_ack2(&mut self, id: u16, now: Instant) -> Option<Duration> {
        let Sent { seq, at, .. } = self.window.confirm(number(id))?;
        self.confirmed = self.confirmed.later(seq);
        Some(now - at)
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.timer.deadline()
    }

    pub(super) fn memory(&self) -> usize {
        self.window.memory()
    }
}

/// The number under which the history stores an id. It uses UDT4's longer numbers.
fn number(id: u16) -> AckNo {
    AckNo::new(u32::from(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn facts(seq: u32) -> Facts {
        Facts { seq: SeqNo::new(seq), held_back: false, rtt: Duration::from_millis(50) }
    }

    #[test]
    fn one_acknowledgement_leaves_in_a_syn_however_many_packets_come() {
        let mut acks = Acks::new(SeqNo::new(0));
        let mut sent = Vec::new();
        for millis in 0..100 {
            acks.on_arrival(at(millis));
            sent.extend(acks.poll(at(millis), &facts(10 * millis as u32 + 10)).map(|_| millis));
        }
        assert_eq!(sent, (10..100).step_by(10).collect::<Vec<_>>());
    }

    #[test]
    fn the_same_number_is_repeated_after_two_round_trips_until_it_is_confirmed() {
        let mut acks = Acks::new(SeqNo::new(0));
        acks.on_arrival(at(0));
        let sent: Vec<_> =
            (0..=330).filter_map(|millis| acks.poll(at(millis), &facts(5)).map(|id| (millis, id))).collect();
        assert_eq!(sent, [(10, 0), (110, 1), (210, 2), (310, 3)]);
        assert_eq!(acks.on_ack2(3, at(355)), Some(Duration::from_millis(45)));
        assert_eq!((360..2_000).find_map(|millis| acks.poll(at(millis), &facts(5))), None);
        assert_eq!(acks.deadline(), None, "an idle connection has no timer");
    }

    #[test]
    fn a_confirmation_of_an_older_one_leaves_the_newer_one_due() {
        let mut acks = Acks::new(SeqNo::new(0));
        acks.on_arrival(at(0));
        acks.poll(at(10), &facts(5));
        acks.poll(at(20), &facts(9));
        acks.on_ack2(0, at(30));
        assert!((30..=120).any(|millis| acks.poll(at(millis), &facts(9)).is_some()));
        assert_eq!(acks.on_ack2(0, at(130)), None, "once");
        assert_eq!(acks.on_ack2(77, at(130)), None, "never sent");
    }

    #[test]
    fn an_unread_stream_is_acknowledged_before_the_senders_timer_expires() {
        let mut acks = Acks::new(SeqNo::new(0));
        acks.on_arrival(at(0));
        let held = Facts { held_back: true, ..facts(5) };
        let id = acks.poll(at(10), &held).unwrap();
        acks.on_ack2(id, at(60));
        let sent: Vec<u64> = (60..400).filter(|&millis| acks.poll(at(millis), &held).is_some()).collect();
        assert_eq!(sent, [70, 130, 190, 250, 310, 370], "every RTT + SYN; EXP is 2·RTT + SYN");
    }

    #[test]
    fn ids_wrap_at_sixteen_bits() {
        let mut acks = Acks::new(SeqNo::new(0));
        for round in 0..70_000u64 {
            acks.on_arrival(at(20 * round));
            let id = acks.poll(at(20 * round + 10), &facts(round as u32 + 1)).unwrap();
            assert_eq!(u64::from(id), round % 65_536);
            assert!(acks.on_ack2(id, at(20 * round + 15)).is_some());
        }
    }
}
