//! What leaves next: packets that were lost, then new ones, within windows and pacing.

use farhaul_cc::DataPacket;
use farhaul_units::{Duration, Instant, SeqRange};
use farhaul_wire::udt4::Timestamp;

use super::withheld::Situation;
use super::{Sender, Transmission};
use crate::buffer::{Run, Scratch};
use crate::endpoint::limit::Limit;
use crate::estimate::PROBE_INTERVAL;

impl Sender {
    /// Packets that may leave now. If none may, notes the limit that applies.
    pub(crate) fn plan(&mut self, now: Instant, stamp: Timestamp, round_trip: Duration) -> Option<Transmission> {
        if self.repairs.is_empty() && self.next == self.buffer.end() {
            self.note_nothing_to_send(now);
            return None;
        }
        let allowance = self.pacer.allowance(now);
        if allowance == 0 {
            self.limits.set(if self.is_capped { Limit::RateCap } else { Limit::Congestion }, now);
            return None;
        }
        if let Some(transmission) = self.plan_again(now, stamp, allowance, round_trip) {
            return Some(transmission);
        }
        self.plan_new(now, allowance, round_trip)
    }

    /// The packets of a transmission, for a controller. No more of them leave.
    pub(crate) fn packets_of(&self, transmission: &Transmission) -> impl Iterator<Item = DataPacket> {
        let Transmission { seq, packets, .. } = *transmission;
        (0..packets).map_while(move |index| self.buffer.describe(seq.plus(index)))
    }

    /// The datagrams of a transmission. They count as sent. A packet that the path no longer carries leaves in fragments, in `scratch`.
    pub(crate) fn emit<'a>(
        &'a mut self,
        transmission: Transmission,
        (now, stamp): (Instant, Timestamp),
        round_trip: Duration,
        scratch: Scratch<'a, '_>,
    ) -> Option<Run<'a>> {
        let Transmission { seq, again, .. } = transmission;
        let time = self.time_to_next_look(round_trip);
        self.repairs.watch(now, time);
        let (outstanding, weight) = (self.outstanding_of_first_size(), self.scale_of_next());
        let run = self.sizes.run(&mut self.buffer, &transmission, stamp, scratch)?;
        if again {
            self.repairs.served(seq, run.packets);
            let first = self.withholding.as_mut().map_or(0, |withheld| withheld.on_sent_again(seq, run.packets));
            self.retransmitted += u64::from(run.packets - first);
            if let Some(deliveries) = &mut self.deliveries {
                deliveries.on_sent_late(first);
            }
        } else {
            self.next = seq.plus(run.packets);
            if let Some(deliveries) = &mut self.deliveries {
                deliveries.on_sent(SeqRange::new(seq, self.next.minus(1)), weight, outstanding, now);
            }
        }
        self.sent += u64::from(run.packets);
        self.pacer.on_sent(now, run.packets);
        Some(run)
    }

    fn plan_again(
        &mut self,
        now: Instant,
        stamp: Timestamp,
        allowance: u32,
        round_trip: Duration,
    ) -> Option<Transmission> {
        let mut search = self.repairs.search()?;
        let room = self.repair_room();
        while let Some(seq) = self.repairs.next(&mut search, self.next) {
            if self.drop_if_expired(seq, now) {
                continue;
            }
            // What was retransmitted before waits for an RTT, and counts as in flight already.
            let allowance = if self.repairs.was_resent(seq) { allowance } else { allowance.min(room) };
            if allowance == 0 {
                continue;
            }
            if let Some(packets) = self.repairs.ready(seq, allowance, &self.buffer, (now, stamp), round_trip) {
                return Some(Transmission { seq, packets, again: true });
            }
        }
        None
    }

    fn plan_new(&mut self, now: Instant, allowance: u32, round_trip: Duration) -> Option<Transmission> {
        let mut drops = !self.sends_expired;
        while drops && self.next.is_before(self.buffer.end()) {
            drops = self.drop_if_expired(self.next, now);
        }
        if !self.drops.is_empty() {
            // The receiver is to hear of the gap before it sees one.
            return None;
        }
        self.withhold(now, round_trip);
        let waiting = self.waiting();
        if waiting == 0 {
            self.note_nothing_to_send(now);
            return None;
        }
        let by_flow = SeqRange::new(self.next, self.window_end.minus(1)).len();
        let by_cwnd = self.window_room();
        if by_flow == 0 && !self.persist.wants_probe() {
            if self.in_flight() == 0 {
                self.persist.start(now, round_trip);
            }
            self.pacer.hold();
            self.limits.set(Limit::FlowWindow, now);
            return None;
        }
        if by_cwnd == 0 {
            self.pacer.hold();
            self.note_window_limit();
            self.limits.set(Limit::Congestion, now);
            return None;
        }
        if self.persist.take_probe() && by_flow == 0 {
            return Some(Transmission { seq: self.next, packets: 1, again: false });
        }
        let room = waiting.min(by_flow).min(by_cwnd);
        let mut packets = room.min(allowance);
        if let Some(withholding) = &self.withholding {
            packets = withholding.cut(self.next, packets);
        }
        // Pacing never splits a probe pair.
        let last = self.next.plus(packets - 1);
        if last.value().is_multiple_of(PROBE_INTERVAL) && room > packets {
            packets += 1;
        }
        Some(Transmission { seq: self.next, packets, again: false })
    }

    /// Goes past the next packet if it is one to withhold. It counts as in flight.
    fn withhold(&mut self, now: Instant, round_trip: Duration) {
        let situation = Situation {
            next: self.next,
            waiting: self.waiting(),
            in_flight: self.in_flight(),
            window: self.flow_window().min(self.congestion_window()),
        };
        let Some(withholding) = &mut self.withholding else { return };
        if self.proven && withholding.takes(&situation, now, round_trip) {
            self.next = self.next.next();
        }
    }

    /// New packets that have not left.
    fn waiting(&self) -> u32 {
        SeqRange::new(self.next, self.buffer.end().minus(1)).len()
    }

    fn note_nothing_to_send(&mut self, now: Instant) {
        // A pause of the application is not made good: the cap holds for what comes after it.
        if self.is_capped {
            self.pacer.hold();
        }
        if self.in_flight() == 0 {
            self.limits.set(Limit::Idle, now);
            self.note_application_limit();
            return;
        }
        if self.window_room() == 0 || !self.next.is_before(self.window_end) {
            return;
        }
        self.limits.set(Limit::Application, now);
        self.application_limited_until = Some(self.next);
        self.note_application_limit();
    }
}
