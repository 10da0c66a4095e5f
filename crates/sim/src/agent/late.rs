//! A host whose program is not scheduled at times, as on a busy machine.
//!
//! ```text
//!   link ──▶ receive buffer ──▶ agent      while the program runs: at once
//!            receive buffer ─ ─ ─ ─ ─ ─    while it does not: packets wait, timers wait
//! ```
//!
//! Times in which the program runs and absences take turns. A time of running is exponentially distributed. An absence
//! is short, with a uniformly distributed length, or a long pause. The instants depend on the seed alone and not on the
//! agent's behaviour, so all agents meet the same absences, and [`Lateness::share`] is exact.
//!
//! At the end of an absence the program gets all waiting packets in the order of their arrival and then its timer call,
//! all at the same `now`. Packets keep their time of arrival, as the kernel stamps it.

use std::collections::VecDeque;

use farhaul_cc::ControllerFailure;
use farhaul_netem::WireLen;
use farhaul_proto::{ConnectionId, Stats};
use farhaul_units::{Duration, Instant, Rng};

use super::{Agent, Outbox};
use crate::packet::PooledPacket;

/// When the program of a host does not run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lateness {
    /// Mean time for which the program runs between two absences, above zero.
    pub every: Duration,
    /// Shortest length of a short absence.
    pub least: Duration,
    /// Longest length of a short absence.
    pub most: Duration,
    /// Length of a pause, a long absence.
    pub pause: Duration,
    /// Share of pauses among all absences, 0 to 1.
    pub pauses: f64,
    /// Bytes of packets that wait at most during an absence, headers included; `None` for no limit. Further packets are
    /// lost, as in a full socket buffer.
    pub buffer: Option<u64>,
}

impl Lateness {
    /// The share of time in which the program does not run, 0 to 1: the mean absence divided by the mean of an absence
    /// and the time of running before it.
    #[must_use]
    pub fn share(&self) -> f64 {
        let short = (self.least.as_secs_f64() + self.most.as_secs_f64()) / 2.0;
        let absence = (1.0 - self.pauses) * short + self.pauses * self.pause.as_secs_f64();
        absence / (self.every.as_secs_f64() + absence)
    }
}

/// The absences of a host, one after the other.
#[derive(Clone, Debug)]
struct Absences {
    spec: Lateness,
    rng: Rng,
    /// Begin and end of the present or next absence.
    next: (Instant, Instant),
}

impl Absences {
    fn new(spec: Lateness, seed: u64) -> Self {
        let mut absences = Self { spec, rng: Rng::new(seed), next: (Instant::ZERO, Instant::ZERO) };
        absences.draw();
        absences
    }

    fn draw(&mut self) {
        let Lateness { every, least, most, pause, pauses, .. } = self.spec;
        // 1 - u is never zero, so the logarithm is finite.
        let begin = self.next.1 + every.mul_f64(-libm::log(1.0 - self.rng.unit()));
        let (chance, length) = (self.rng.unit(), self.rng.unit());
        let length = if chance < pauses { pause } else { least + most.saturating_sub(least).mul_f64(length) };
        self.next = (begin, begin + length);
    }

    /// Whether the program does not run at `now`, which never goes back.
    fn is_away(&mut self, now: Instant) -> bool {
        while self.next.1 <= now {
            self.draw();
        }
        self.next.0 <= now
    }

    /// When an event that is due then is served, as far as the next absence is known.
    fn served(&self, due: Instant) -> Instant {
        let (begin, end) = self.next;
        if due >= begin && due < end { end } else { due }
    }
}

/// An agent on a host that is late.
pub struct LateAgent {
    agent: Box<dyn Agent>,
    absences: Absences,
    /// Packets in the receive buffer, and their bytes.
    waiting: VecDeque<PooledPacket>,
    bytes: u64,
    /// Some found no room.
    has_dropped: bool,
}

impl LateAgent {
    /// Puts `agent` on a host with these absences. Agents with the same `seed` are on the same host.
    ///
    /// # Panics
    /// If the time between absences is zero.
    pub fn new(agent: Box<dyn Agent>, spec: Lateness, seed: u64) -> Self {
        assert!(!spec.every.is_zero(), "a program must run at times");
        Self { agent, absences: Absences::new(spec, seed), waiting: VecDeque::new(), bytes: 0, has_dropped: false }
    }

    fn keep(&mut self, now: Instant, packet: &mut PooledPacket) {
        let length = u64::from(packet.wire_len());
        if self.absences.spec.buffer.is_some_and(|limit| self.bytes + length > limit) {
            self.has_dropped = true;
            return;
        }
        let arrived = packet.arrived(now);
        let mut packet = packet.take();
        packet.stamp(arrived);
        self.bytes += length;
        self.waiting.push_back(packet);
    }

    /// Hands over all packets that waited. The agent learns of lost ones before, as the system counts them.
    fn drain(&mut self, now: Instant, out: &mut Outbox<'_>) {
        self.bytes = 0;
        if let Some(buffer) = self.absences.spec.buffer.filter(|_| std::mem::take(&mut self.has_dropped)) {
            self.agent.note_drops(now, buffer);
        }
        while let Some(mut packet) = self.waiting.pop_front() {
            self.agent.handle_packet(now, &mut packet, out);
        }
    }
}

impl Agent for LateAgent {
    fn handle_packet(&mut self, now: Instant, packet: &mut PooledPacket, out: &mut Outbox<'_>) {
        if self.absences.is_away(now) {
            return self.keep(now, packet);
        }
        self.drain(now, out);
        self.agent.handle_packet(now, packet, out);
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox<'_>) {
        if self.absences.is_away(now) {
            return;
        }
        self.drain(now, out);
        self.agent.handle_timeout(now, out);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.waiting.is_empty() {
            return self.agent.poll_timeout().map(|due| self.absences.served(due));
        }
        Some(self.absences.next.1)
    }

    fn sample(&self, now: Instant, out: &mut Vec<(ConnectionId, Stats)>) {
        self.agent.sample(now, out);
    }

    fn control(&self, now: Instant) -> Option<Stats> {
        self.agent.control(now)
    }

    fn finished_at(&self) -> Option<Instant> {
        self.agent.finished_at()
    }

    fn failure(&self) -> Option<ControllerFailure> {
        self.agent.failure()
    }

    fn transfer_times(&self) -> &[Duration] {
        self.agent.transfer_times()
    }

    fn takes_damaged(&self) -> bool {
        self.agent.takes_damaged()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use farhaul_netem::PathSpec;
    use farhaul_units::Rate;

    use super::*;
    use crate::agent::source::{Source, Timing};
    use crate::topology::graph::Graph;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn spec() -> Lateness {
        Lateness { every: millis(40), least: millis(1), most: millis(9), pause: millis(50), pauses: 0.2, buffer: None }
    }

    /// A call of an agent: the time, and the arrival of the packet; `None` for a timer.
    type Call = (Instant, Option<Instant>);

    /// Notes all calls. Its timer is due every millisecond until `end`.
    struct Log {
        calls: Rc<RefCell<Vec<Call>>>,
        due: Instant,
        end: Instant,
    }

    impl Agent for Log {
        fn handle_packet(&mut self, now: Instant, packet: &mut PooledPacket, _: &mut Outbox<'_>) {
            self.calls.borrow_mut().push((now, Some(packet.arrived(now))));
        }

        fn handle_timeout(&mut self, now: Instant, _: &mut Outbox<'_>) {
            if self.due <= now {
                self.calls.borrow_mut().push((now, None));
                self.due = now + millis(1);
            }
        }

        fn poll_timeout(&self) -> Option<Instant> {
            (self.due < self.end).then_some(self.due)
        }

        fn sample(&self, _: Instant, _: &mut Vec<(ConnectionId, Stats)>) {}
    }

    /// The calls of a late agent in one second with a packet every 0.1 ms.
    fn calls(spec: Lateness, seed: u64) -> Vec<Call> {
        let mut graph = Graph::new(2);
        graph.duplex(0, 1, &PathSpec::default());
        let end = Instant::ZERO + Duration::from_secs(1);
        let rate = Rate::from_megabits_per_second(120);
        let timing = Timing::Even { begin: Instant::ZERO, end };
        let flow = graph.next_flow();
        let source = Source::new(graph.address(1, 9), rate, timing, 1);
        let calls = Rc::default();
        let log = Log { calls: Rc::clone(&calls), due: Instant::ZERO, end };
        graph.add(0, 9, flow, Box::new(source));
        graph.add(1, 9, flow, Box::new(LateAgent::new(Box::new(log), spec, seed)));
        let mut world = graph.start(1);
        world.run_until(end + Duration::from_secs(1));
        assert_eq!(world.pool().in_use(), 0);
        drop(world);
        calls.take()
    }

    #[test]
    fn packets_of_an_absence_come_at_its_end_in_order_with_their_arrival() {
        let calls = calls(spec(), 3);
        let arrivals: Vec<Instant> = calls.iter().filter_map(|(_, arrived)| *arrived).collect();
        let due: Vec<Instant> = (0..10_000).map(|packet| Instant::ZERO + Duration::from_micros(100 * packet)).collect();
        assert_eq!(arrivals, due, "nothing is lost, and the stamps are those of the link");
        assert!(calls.is_sorted_by_key(|(now, _)| *now));
        let late: Vec<Duration> =
            calls.iter().filter_map(|(now, arrived)| Some(*now - (*arrived)?)).filter(|late| !late.is_zero()).collect();
        let longest = late.iter().max().unwrap();
        assert!((millis(49)..=millis(50)).contains(longest), "{longest:?}");
        // Every absence ends with a batch at one instant, and with the timer after it.
        let ends: Vec<usize> = (0..calls.len() - 1)
            .filter(|&at| calls[at].1.is_some_and(|arrived| arrived < calls[at].0) && calls[at + 1].0 > calls[at].0)
            .collect();
        assert_eq!(ends, [0; 0], "a timer call follows every batch at the same instant");
    }

    #[test]
    fn timers_are_late_by_at_most_an_absence() {
        let calls = calls(spec(), 3);
        let timers: Vec<Instant> = calls.iter().filter(|(_, arrived)| arrived.is_none()).map(|(now, _)| *now).collect();
        let gaps: Vec<Duration> = timers.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (millis(1)..=millis(51)).contains(gap)), "{gaps:?}");
        assert!(gaps.iter().any(|gap| *gap > millis(45)) && gaps.iter().any(|gap| *gap == millis(1)));
    }

    #[test]
    fn the_share_of_absences_is_the_stated_one() {
        // Means: 0.8 × 5 ms + 0.2 × 50 ms = 14 ms of 54 ms.
        assert!((spec().share() - 14.0 / 54.0).abs() < 1e-12);
        let mut absences = Absences::new(spec(), 7);
        let (mut away, steps) = (0, 4_000_000);
        for step in 0..steps {
            away += u32::from(absences.is_away(Instant::ZERO + Duration::from_micros(250 * step)));
        }
        // 20 000 absences: the standard deviation of the share is 0.002.
        let share = f64::from(away) / steps as f64;
        assert!((share - spec().share()).abs() < 0.008, "{share}");
    }

    #[test]
    fn a_full_buffer_loses_the_rest_of_an_absence() {
        // Room for ten packets of 1500 bytes: 1 ms of arrivals.
        let all = calls(spec(), 3);
        let some = calls(Lateness { buffer: Some(15_000), ..spec() }, 3);
        let batches = |calls: &[Call]| -> Vec<usize> {
            let mut batches: Vec<(Instant, usize)> = Vec::new();
            for (now, _) in calls.iter().filter(|(now, arrived)| arrived.is_some_and(|at| at < *now)) {
                match batches.last_mut().filter(|(end, _)| end == now) {
                    Some((_, packets)) => *packets += 1,
                    None => batches.push((*now, 1)),
                }
            }
            batches.into_iter().map(|(_, packets)| packets).collect()
        };
        let punctual = |calls: &[Call]| calls.iter().filter(|(now, arrived)| *arrived == Some(*now)).count();
        assert_eq!(punctual(&all), punctual(&some), "the absences are the same");
        // No absence is shorter than 1 ms.
        let expected: Vec<usize> = batches(&all).into_iter().map(|packets| packets.min(10)).collect();
        assert_eq!(batches(&some), expected);
    }

    #[test]
    fn the_seed_alone_decides_the_absences() {
        assert_eq!(calls(spec(), 3), calls(spec(), 3));
        assert_ne!(calls(spec(), 3), calls(spec(), 4));
    }
}
