//! The next packets to send (paper:udt-2004 §3.3 algorithm 1): losses first, then new data, one packet or pair per
//! interval.

use farhaul_cc::Control;
use farhaul_units::{Duration, Instant, SendPeriod, SeqNo, SeqRange};

use super::packet_pair::PAIR_INTERVAL;
use super::send_buffer::{SendBuffer, write_header};
use crate::repair_list::RepairList;
use farhaul_proto::buffer::Run;
use farhaul_proto::endpoint::limit::{Limit, LimitClock};
use farhaul_proto::intake::{Intake, Load};
use farhaul_proto::pacer::Pacer;

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct Sender {
    buffer: SendBuffer,
    losses: RepairList,
    pacer: Pacer,
    /// The next new packet.
    next: SeqNo,
    /// Limits of unacknowledged packets: the controller's, and the peer's.
    cwnd: u32,
    max_window: u32,
    /// Until this packet is acknowledged, samples measure the application and not the path.
    application_limited_until: Option<SeqNo>,
    limits: LimitClock,
    /// The pace is that of the user's cap.
    is_capped: bool,
    intake: Intake,
    pub(super) retransmitted: u64,
    pub(super) sent: u64,
}

/// Packets that may leave now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    pub(super) seq: SeqNo,
    packets: u32,
    pub(super) again: bool,
}

impl Sender {
    /// For a connection whose first packet is `first` and whose peer takes `max_window` packets. `cap` is the largest
    /// size of the send buffer in bytes.
    pub(super) fn new(first: SeqNo, payload_size: usize, max_window: u32, cap: u64, burst_time: Duration) -> Self {
        let mut pacer = Pacer::default();
        pacer.set_burst_time(burst_time);
        Self {
            buffer: SendBuffer::new(first, payload_size),
            losses: RepairList::new(first),
            pacer,
            next: first,
            cwnd: 0,
            max_window,
            application_limited_until: None,
            limits: LimitClock::default(),
            is_capped: false,
            intake: Intake::new(cap),
            retransmitted: 0,
            sent: 0,
        }
    }

    // ---- what the application does ----

    /// Bytes that [`write`](Self::write) takes now.
    pub(super) fn room(&self) -> u64 {
        self.intake.room(self.load(), &self.pacer)
    }

    /// Whether to wake a writer that found no room.
    pub(super) fn has_room_again(&self) -> bool {
        self.intake.has_room_again(self.load(), &self.pacer)
    }

    fn load(&self) -> Load {
        Load {
            payload_size: self.buffer.payload_size(),
            held: self.buffer.packets(),
            in_flight: self.in_flight(),
            filling: None,
        }
    }

    pub(super) fn write(&mut self, data: &[u8]) -> usize {
        let taken = data.len().min(usize::try_from(self.room()).unwrap_or(usize::MAX));
        self.buffer.write(&data[..taken], self.next, write_header);
        taken
    }

    // ---- what leaves ----

    /// Packets that may leave now. If none may, notes the limit that applies.
    pub(super) fn plan(&mut self, now: Instant) -> Option<Transmission> {
        if self.losses.is_empty() && self.next == self.buffer.end() {
            self.note_nothing_to_send(now);
            return None;
        }
        let allowance = self.pacer.allowance(now);
        if self.losses.is_empty() && self.sendable() == 0 {
            self.pacer.hold();
        }
        if allowance == 0 {
            self.limits.set(if self.is_capped { Limit::RateCap } else { Limit::Congestion }, now);
            return None;
        }
        if let Some(seq) = self.losses.first() {
            return Some(Transmission { seq, packets: self.losses.run_length(seq, allowance), again: true });
        }
        self.plan_new(now, allowance)
    }

    fn plan_new(&mut self, now: Instant, allowance: u32) -> Option<Transmission> {
        let room = self.sendable();
        if room == 0 {
            let limit = if self.max_window <= self.cwnd { Limit::FlowWindow } else { Limit::Congestion };
            self.limits.set(limit, now);
            return None;
        }
        let mut packets = room.min(allowance);
        //= paper:udt-2004 §3.3 algorithm 1, step 4: the second of a pair does not wait
        let last = self.next.plus(packets - 1);
        let waiting = SeqRange::new(self.next, self.buffer.end().minus(1)).len();
        if last.value().is_multiple_of(PAIR_INTERVAL) && waiting > packets {
            // The window does not split a pair either (departure D135).
            packets += 1;
        }
        Some(Transmission { seq: self.next, packets, again: false })
    }

    /// New packets that wait and that the window permits.
    fn sendable(&self) -> u32 {
        let waiting = SeqRange::new(self.next, self.buffer.end().minus(1)).len();
        waiting.min(self.window().saturating_sub(self.in_flight()))
    }

    /// The datagrams of a transmission. They count as sent.
    pub(super) fn emit(&mut self, transmission: Transmission, now: Instant, rtt: Duration) -> Option<Run<'_>> {
        let run = self.buffer.run(transmission.seq, transmission.packets)?;
        let range = SeqRange::new(transmission.seq, transmission.seq.plus(run.packets - 1));
        let mut charged = run.packets;
        if transmission.again {
            self.losses.served(range, now, rtt);
            self.retransmitted += u64::from(run.packets);
        } else {
            self.next = range.last.next();
            charged -= second_of_pairs(range);
        }
        self.sent += u64::from(run.packets);
        self.pacer.on_sent(now, charged);
        Some(run)
    }

    fn note_nothing_to_send(&mut self, now: Instant) {
        // A pause of the application is not made good: the cap holds for what comes after it.
        if self.is_capped {
            self.pacer.hold();
        }
        if self.in_flight() == 0 {
            self.limits.set(Limit::Idle, now);
            return;
        }
        if self.in_flight() >= self.window() {
            return;
        }
        self.limits.set(Limit::Application, now);
        self.application_limited_until = Some(self.next);
    }

    // ---- what the peer says ----

    /// Whether an acknowledgement of everything before `seq` can be true (attacks B2, B3).
    pub(super) fn is_plausible(&self, seq: SeqNo) -> bool {
        !seq.is_before(self.buffer.first()) && !seq.is_after(self.next)
    }

    /// Everything before `seq` has arrived, which is plausible. Returns the packets and payload bytes newly
    /// acknowledged.
    pub(super) fn on_ack(&mut self, seq: SeqNo) -> (u32, u64) {
        let packets = seq.distance_from(self.buffer.first()).unsigned_abs();
        let bytes = self.buffer.release(seq);
        self.losses.acknowledge(seq);
        if self.application_limited_until.is_some_and(|until| !seq.is_before(until)) {
            self.application_limited_until = None;
        }
        (packets, bytes)
    }

    /// The peer lost these packets, all within [`flight`](Self::flight). Returns how many are news.
    pub(super) fn on_loss(&mut self, range: SeqRange, now: Instant, rtt: Duration) -> u32 {
        self.losses.report(range, now, rtt)
    }

    /// The EXP timer expired, so all packets in flight must be retransmitted.
    //= paper:udt-2004 §3.3 algorithm 2, step 1 d
    pub(super) fn on_expiration(&mut self) {
        let flight = self.flight();
        if !flight.is_empty() {
            self.losses.expire(flight);
        }
    }

    /// Applies the controller's settings. If `period` is that of a cap, congestion control permits `capped` times that rate.
    pub(super) fn apply(&mut self, control: &Control, period: SendPeriod, capped: Option<f64>, rtt: Duration) {
        //= paper:udt-2004 §3.3 algorithm 1, step 2 b: a new packet leaves while those before it do not *exceed* the window
        self.cwnd = control.cwnd.map_or(u32::MAX, |cwnd| (cwnd as u32).saturating_add(1));
        self.is_capped = capped.is_some();
        self.pacer.keep_cap(capped);
        self.pacer.set_period(period, rtt);
        self.pacer.set_catch_up_pace(control.catch_up_pace);
        self.pacer.set_most_packets(control.burst);
        self.pacer.set_least_packets(control.least_burst);
        if let Some(end) = control.freeze_until {
            self.pacer.freeze_until(end);
        }
    }

    /// Frees memory that is kept for reuse only.
    pub(super) fn shrink(&mut self) {
        self.buffer.shrink();
    }

    // ---- facts ----

    pub(super) fn deadline(&self) -> Option<Instant> {
        let waits = !self.losses.is_empty() || self.sendable() > 0;
        self.pacer.deadline().filter(|_| waits)
    }

    /// The packets in flight; empty if there are none.
    pub(super) fn flight(&self) -> SeqRange {
        SeqRange::new(self.buffer.first(), self.next.minus(1))
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.next.distance_from(self.buffer.first()).unsigned_abs()
    }

    pub(super) fn window(&self) -> u32 {
        self.cwnd.min(self.max_window)
    }

    pub(super) const fn max_window(&self) -> u32 {
        self.max_window
    }

    pub(super) const fn next(&self) -> SeqNo {
        self.next
    }

    /// Whether any data is unacknowledged or unsent.
    pub(super) fn has_data(&self) -> bool {
        self.buffer.first() != self.buffer.end()
    }

    pub(super) const fn is_application_limited(&self) -> bool {
        self.application_limited_until.is_some()
    }

    pub(super) const fn buffer(&self) -> &SendBuffer {
        &self.buffer
    }

    pub(super) const fn limits(&self) -> &LimitClock {
        &self.limits
    }

    pub(super) fn memory(&self) -> usize {
        self.buffer.memory() + self.losses.memory()
    }
}

/// Packets of `range` that are the second of a pair, which takes no time of its own.
fn second_of_pairs(range: SeqRange) -> u32 {
    let to_first = range.first.value().wrapping_neg().wrapping_add(1) % PAIR_INTERVAL;
    let len = range.len();
    if len > to_first { (len - 1 - to_first) / PAIR_INTERVAL + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(1) + Duration::from_micros(micros)
    }

    /// A sender with much data, a window of `cwnd` packets, one packet in 100 µs, no bursts.
    fn sender(cwnd: f64) -> Sender {
        let mut sender = Sender::new(SeqNo::new(0), 100, 10_000, 1 << 20, Duration::ZERO);
        let mut control = Control::initial();
        control.cwnd = Some(cwnd);
        sender.apply(&control, SendPeriod::from_micros(100.0), None, Duration::from_millis(10));
        sender.write(&vec![7; 100_000]);
        // The pacer's catch-up before the first packet is used up.
        sender.pacer.allowance(at(0));
        while sender.pacer.allowance(at(0)) > 0 {
            sender.pacer.on_sent(at(0), 1);
        }
        sender
    }

    /// The packets sent until `end`, with their times in microseconds.
    fn leave(sender: &mut Sender, end: u64) -> Vec<(u64, u32)> {
        let mut left = Vec::new();
        for micros in 0..end {
            while let Some(transmission) = sender.plan(at(micros)) {
                let run = sender.emit(transmission, at(micros), Duration::from_millis(10)).unwrap();
                left.extend((0..run.packets).map(|index| (micros, transmission.seq.plus(index).value())));
            }
        }
        left
    }

    #[test]
    fn one_packet_leaves_in_an_interval_and_every_sixteenth_takes_the_next_with_it() {
        let mut sender = sender(1_000.0);
        let left = leave(&mut sender, 10_000);
        let times: Vec<u64> = left.iter().map(|&(micros, _)| micros).collect();
        for (index, pair) in times.windows(2).enumerate() {
            let expected = if index % 16 == 0 { 0 } else { 100 };
            assert!(pair[1] - pair[0] <= expected + 1 && pair[1] - pair[0] + 1 >= expected, "{index}: {pair:?}");
        }
    }

    #[test]
    fn packets_held_back_by_a_full_window_do_not_leave_in_one_burst() {
        let mut sender = sender(8.0);
        assert!(!leave(&mut sender, 5_000).is_empty());
        assert!(sender.plan(at(5_000)).is_none(), "the window is full");
        sender.on_ack(sender.next);
        let first = sender.plan(at(5_000)).expect("the window is open again");
        assert_eq!(sender.emit(first, at(5_000), Duration::from_millis(10)).unwrap().packets, 1);
        assert!(sender.plan(at(5_050)).is_none(), "the next one is due 100 µs later");
        assert!(sender.plan(at(5_101)).is_some());
    }

    #[test]
    fn the_second_packets_of_pairs_are_counted_in_any_range() {
        for first in 0..40 {
            for last in first..80 {
                let counted = (first..=last).filter(|number| number % 16 == 1).count() as u32;
                assert_eq!(second_of_pairs(SeqRange::new(SeqNo::new(first), SeqNo::new(last))), counted);
            }
        }
    }

    #[test]
    fn losses_go_first_and_the_window_does_not_hold_them() {
        let mut sender = sender(19.0);
        assert_eq!(leave(&mut sender, 10_000).len(), 20, "nineteen do not exceed the window");
        sender.on_loss(SeqRange::new(SeqNo::new(3), SeqNo::new(4)), at(10_000), Duration::from_millis(10));
        sender.on_ack(SeqNo::new(1));
        let mut left = Vec::new();
        for micros in 10_000..20_000 {
            while let Some(transmission) = sender.plan(at(micros)) {
                sender.emit(transmission, at(micros), Duration::from_millis(10));
                left.push((transmission.seq.value(), transmission.packets));
            }
        }
        let numbers: Vec<u32> = left.iter().flat_map(|&(seq, packets)| seq..seq + packets).collect();
        assert_eq!(numbers, [3, 4, 20]);
    }

    #[test]
    fn an_expiration_lists_all_that_is_unacknowledged() {
        let mut sender = sender(19.0);
        leave(&mut sender, 10_000);
        sender.on_ack(SeqNo::new(5));
        sender.on_expiration();
        assert_eq!(sender.losses.run_length(SeqNo::new(5), 100), 15);
    }
}
