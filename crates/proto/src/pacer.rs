//! When the next packets may leave. Turns a period per packet into bursts that a computer can keep up with.
//!
//! A wake-up per packet costs more than the packet. So packets leave in bursts: as many as the period allows in 250 µs.
//!
//! A rate that the user sets is kept by an absolute schedule: see [`Pacer::keep_schedule`].
//!
//! A driver that wakes late may catch up within a bound (1). By default the missed packets leave in one burst. Short
//! queues overflow from it, so a controller may bound that burst by (2). Then the packets of 0.5 ms and of twice the
//! usual lateness may leave at once. The others leave `pace` times faster than the period. A controller may also bound
//! the bursts themselves, from above, when two of them replace the packets of 0.5 ms, and from below.
//!
//! ```text
//! due     ← due + packets·P, but at most the catch-up before now                          (1)
//! room    ← min(room + pace·time/P, (0.5 ms + 2·lateness)/P) − packets, in packets        (2)
//! burst   leaves when it is due and there is room for it
//! ```

use farhaul_units::{Duration, Instant, SendPeriod};

/// Default length of a burst. At 1 Gbit/s this is 20 packets, a tenth of a small switch's queue.
pub const BURST_TIME: Duration = Duration::from_micros(250);
/// Most packets in one burst by default: one train of full-size packets, which the kernel takes in one call.
pub const MAX_BURST: u32 = 44;
/// Lower bound of the catch-up, (1).
const MIN_CATCH_UP: Duration = Duration::from_millis(2);
/// Upper bound of the catch-up, (1).
const MAX_CATCH_UP: Duration = Duration::from_millis(10);
/// Packets of this time may leave at once, (2): one burst, and another for a driver that wakes one burst late.
const AT_ONCE: Duration = Duration::from_micros(500);
/// Longest lateness that an absolute schedule makes good. A host that is kept busy by others lets a program wait for
/// some time slices of a few milliseconds. After a longer pause the path has been idle, and a flood would not help it.
pub const LONGEST_DEBT: Duration = Duration::from_millis(100);
/// Catch-up speed of an absolute schedule while it is hardly late, as a multiple of the rate.
const DEBT_PACE: f64 = 1.1;
/// It grows by one per so much debt, so that a program that gets half of the processor still keeps its rate.
const DEBT_PER_PACE: Duration = Duration::from_millis(20);
/// The weight of one burst in the usual lateness is 1/16, (2).
const LATENESS_WEIGHT: u32 = 16;
/// Cap of one burst's lateness there, because a pause of the application is not lateness.
const MAX_LATENESS: Duration = Duration::from_millis(2);

/// Catch-up speed of an absolute schedule that is late by `debt`, as a multiple of the rate.
pub fn debt_pace(debt: Duration) -> f64 {
    DEBT_PACE + debt.min(LONGEST_DEBT).as_secs_f64() / DEBT_PER_PACE.as_secs_f64()
}

/// The departure time of the next packet.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    /// When the next packet is due.
    due: Instant,
    /// When packets last left.
    left: Instant,
    /// Packets that could have left at that time in addition, (2).
    room: f64,
    /// How late bursts usually leave.
    lateness: Duration,
    /// Fraction of a nanosecond to add to `due`.
    fraction: f64,
    period: SendPeriod,
    /// Longest lateness to catch up, (1).
    catch_up: Duration,
    /// The schedule is absolute, and the RTT does not matter.
    keeps_schedule: bool,
    /// Catch-up speed as a multiple of the normal rate, (2); `None` for all at once.
    pace: Option<f64>,
    /// Length of a burst.
    burst_time: Duration,
    /// Most packets of a burst.
    most_packets: u32,
    /// Fewest packets of a burst.
    least_packets: u32,
    /// End of the latest freeze.
    freeze_end: Instant,
    /// Nothing may leave before `freeze_end`.
    frozen: bool,
    /// Something other than pacing limits the sender, such as its window.
    held: bool,
}

impl Default for Pacer {
    /// A pacer that has not sent anything.
    fn default() -> Self {
        Self {
            due: Instant::ZERO,
            left: Instant::ZERO,
            room: f64::INFINITY,
            lateness: Duration::ZERO,
            fraction: 0.0,
            period: SendPeriod::UNPACED,
            catch_up: MIN_CATCH_UP,
            keeps_schedule: false,
            pace: None,
            burst_time: BURST_TIME,
            most_packets: MAX_BURST,
            least_packets: 1,
            freeze_end: Instant::ZERO,
            frozen: false,
            held: false,
        }
    }
}

impl Pacer {
    /// Sets the length of a burst. With zero, packets leave one by one.
    pub fn set_burst_time(&mut self, time: Duration) {
        self.burst_time = time;
    }

    /// Sets the most packets of a burst, between one and the default; `None` for the default.
    pub fn set_most_packets(&mut self, most: Option<u32>) {
        self.most_packets = most.map_or(MAX_BURST, |most| most.clamp(1, MAX_BURST));
    }

    /// Sets the fewest packets of a burst, at most as many as a burst may have; `None` for one.
    pub fn set_least_packets(&mut self, least: Option<u32>) {
        self.least_packets = least.unwrap_or(1);
    }

    /// Sets the period. The catch-up is an eighth of the RTT, within its bounds.
    pub fn set_period(&mut self, period: SendPeriod, round_trip: Duration) {
        self.period = period;
        if !self.keeps_schedule {
            self.catch_up = (round_trip / 8).clamp(MIN_CATCH_UP, MAX_CATCH_UP);
        }
    }

    /// Has the next packets wait no longer than the present period asks for, counted from `now`.
    pub fn hasten(&mut self, now: Instant) {
        let soonest = now + self.period.time_for(self.burst().into());
        self.due = self.due.min(if self.frozen { soonest.max(self.freeze_end) } else { soonest });
    }

    /// Keeps an absolute schedule: all lateness up to [`LONGEST_DEBT`] is made good, the faster the more there is. So
    /// the rate holds on a host that others keep busy. For rates that do not answer losses: a rate that was found from the
    /// path is as large as the path, and has nothing to make good with.
    pub fn keep_schedule(&mut self) {
        (self.keeps_schedule, self.catch_up) = (true, LONGEST_DEBT);
    }

    /// Sets the catch-up speed as a multiple of the normal rate; `None` for all at once.
    pub fn set_catch_up_pace(&mut self, pace: Option<f64>) {
        self.pace = pace.filter(|pace| *pace > 1.0);
    }

    /// Blocks departures before `end`. The blocked packets are not caught up later.
    pub fn freeze_until(&mut self, end: Instant) {
        if end > self.freeze_end {
            self.freeze_end = end;
            self.frozen = true;
            self.due = self.due.max(end);
        }
    }

    /// Something other than pacing limits the sender, such as its window. Packets held back by it do not leave in one
    /// burst later. Only lateness of the driver is caught up.
    pub fn hold(&mut self) {
        self.held = true;
    }

    /// Packets that may leave now; zero before the next burst is due.
    pub fn allowance(&mut self, now: Instant) -> u32 {
        if self.frozen && now < self.freeze_end {
            return 0;
        }
        self.frozen = false;
        if self.period.is_unpaced() {
            return MAX_BURST;
        }
        // A burst that takes longer than the catch-up would never be due otherwise.
        let burst_span = self.period.time_for(u64::from(self.burst()) - 1);
        let made_up = if self.held { burst_span } else { self.catch_up.max(burst_span) };
        self.held = false;
        let earliest = now.saturating_sub(made_up);
        if self.due < earliest {
            self.due = earliest;
        }
        if self.next_burst() > now {
            return 0;
        }
        let credit = (now - self.due).as_nanos() as f64 / self.nanos();
        (1.0 + credit).min(self.room_at(now)).clamp(1.0, f64::from(MAX_BURST)) as u32
    }

    /// `packets` left.
    pub fn on_sent(&mut self, now: Instant, packets: u32) {
        if self.period.is_unpaced() {
            (self.due, self.left) = (now, now);
            return;
        }
        if now > self.left {
            let late = (now - self.next_burst()).min(MAX_LATENESS);
            self.lateness = (self.lateness * (LATENESS_WEIGHT - 1) + late) / LATENESS_WEIGHT;
        }
        (self.room, self.left) = (self.room_at(now) - f64::from(packets), now);
        let nanos = self.nanos() * f64::from(packets) + self.fraction;
        let whole = libm::floor(nanos);
        self.fraction = nanos - whole;
        self.due += Duration::from_nanos(whole as u64);
    }

    /// When the next burst is due; `None` without pacing.
    pub fn deadline(&self) -> Option<Instant> {
        if self.period.is_unpaced() { self.frozen.then_some(self.freeze_end) } else { Some(self.next_burst()) }
    }

    /// Packets that leave in `time` at the present period; `None` without pacing.
    pub fn packets_in(&self, time: Duration) -> Option<u64> {
        self.period.packet_rate().map(|rate| rate.packets_in(time) as u64)
    }

    /// When enough packets for a burst are due.
    fn next_burst(&self) -> Instant {
        let burst = self.burst();
        let due = self.due + self.period.time_for(u64::from(burst) - 1);
        let missing = f64::from(burst) - self.room;
        match self.pace_at(self.left) {
            // Rounded up, so that there is room at that time.
            Some(pace) if missing > 0.0 => {
                due.max(self.left + Duration::from_nanos((missing * self.nanos() / pace) as u64 + 1))
            }
            _ => due,
        }
    }

    /// The catch-up speed at `now`.
    fn pace_at(&self, now: Instant) -> Option<f64> {
        if self.keeps_schedule { Some(debt_pace(now - self.due)) } else { self.pace }
    }

    /// Packets that may leave at `now` by (2), regardless of (1).
    fn room_at(&self, now: Instant) -> f64 {
        let Some(pace) = self.pace_at(now) else { return f64::INFINITY };
        let at_once = AT_ONCE.as_nanos() as f64 / self.nanos();
        let at_once =
            if self.most_packets < MAX_BURST { at_once.min(f64::from(2 * self.most_packets)) } else { at_once };
        let most = at_once + (self.lateness * 2).as_nanos() as f64 / self.nanos();
        let grown = self.room + (now - self.left).as_nanos() as f64 * pace / self.nanos();
        grown.min(most.max(f64::from(self.burst())))
    }

    /// The period in nanoseconds.
    fn nanos(&self) -> f64 {
        self.period.as_micros() * 1e3
    }

    /// Packets of one burst at the present period.
    pub fn burst(&self) -> u32 {
        if self.period.is_unpaced() {
            return MAX_BURST;
        }
        let packets = self.burst_time.as_nanos() as f64 / self.nanos();
        packets.max(f64::from(self.least_packets)).clamp(1.0, f64::from(self.most_packets)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer(micros: f64) -> Pacer {
        let mut pacer = Pacer::default();
        pacer.set_period(SendPeriod::from_micros(micros), Duration::from_millis(100));
        pacer
    }

    /// A pacer with a catch-up speed of 1.1.
    fn gentle(micros: f64) -> Pacer {
        let mut pacer = pacer(micros);
        pacer.set_catch_up_pace(Some(1.1));
        pacer
    }

    /// Packets in one second if the driver wakes `late` after each deadline.
    fn packets_in_a_second(mut pacer: Pacer, late: Duration) -> u32 {
        let start = Instant::from_nanos(1_000_000_000);
        let (mut now, mut sent) = (start, 0);
        pacer.on_sent(now, 0);
        while now < start + Duration::from_secs(1) {
            match pacer.allowance(now) {
                0 => now = pacer.deadline().unwrap() + late,
                n => {
                    pacer.on_sent(now, n);
                    sent += n;
                }
            }
        }
        sent
    }

    #[test]
    fn the_period_is_kept_on_average_however_late_the_driver_wakes() {
        for late in [0, 70, 1_500] {
            for pacer in [pacer(12.0), gentle(12.0)] {
                let sent = packets_in_a_second(pacer, Duration::from_micros(late));
                // The catch-up at the start is worth up to 10 ms.
                assert!((83_300..=84_200).contains(&sent), "{sent} packets when {late} µs late");
            }
        }
    }

    /// Packets in a second of a driver that runs for 4 ms and then waits `late` for others.
    fn packets_beside_others(mut pacer: Pacer, late: Duration) -> u32 {
        let start = Instant::from_nanos(1_000_000_000);
        let (mut now, mut slice, mut sent) = (start, start, 0);
        pacer.on_sent(now, 0);
        pacer.hold();
        while now < start + Duration::from_secs(1) {
            match pacer.allowance(now) {
                0 => now = pacer.deadline().unwrap().max(now),
                n => {
                    pacer.on_sent(now, n);
                    sent += n;
                    // Even a packet of a burst takes time.
                    now += Duration::from_micros(1) * n;
                }
            }
            if now >= slice + Duration::from_millis(4) {
                now = now.max(slice + Duration::from_millis(4) + late);
                slice = now;
            }
        }
        sent
    }

    #[test]
    fn an_absolute_schedule_keeps_its_rate_on_a_host_that_others_keep_busy() {
        for late in [0, 1, 4, 12] {
            let mut pacer = pacer(68.0);
            pacer.keep_schedule();
            let sent = packets_beside_others(pacer, Duration::from_millis(late));
            // A quarter of the processor suffices with a debt of 60 ms, which is all that is missing.
            assert!((13_800..=14_710).contains(&sent), "{sent} of 14 706 packets with waits of {late} ms");
        }
    }

    #[test]
    fn the_debt_of_an_absolute_schedule_is_bounded_and_paid_without_a_flood() {
        let mut pacer = pacer(12.0);
        pacer.keep_schedule();
        let mut now = Instant::from_nanos(60_000_000_000);
        let (start, mut sent) = (now, Vec::new());
        while now < start + Duration::from_millis(500) {
            match pacer.allowance(now) {
                0 => now = pacer.deadline().unwrap(),
                n => {
                    pacer.on_sent(now, n);
                    sent.push((now, n));
                }
            }
        }
        let until = |millis| {
            let end = start + Duration::from_millis(millis);
            sent.iter().take_while(|(at, _)| *at < end).map(|(_, n)| n).sum::<u32>()
        };
        assert!(until(1) <= 700, "{} packets in the first millisecond", until(1));
        let all = (500 + 100) * 1_000 / 12;
        assert!((all - 500..=all + 10).contains(&until(500)), "{} of {all}", until(500));
    }

    #[test]
    fn a_burst_waits_until_as_many_packets_are_due_as_it_shall_have_at_least() {
        let mut pacer = pacer(50.0);
        assert_eq!(pacer.burst(), 5);
        pacer.set_least_packets(Some(20));
        assert_eq!(pacer.burst(), 20);
        let sent = packets_in_a_second(pacer, Duration::ZERO);
        assert!((19_980..=20_220).contains(&sent), "{sent}");
        pacer.set_most_packets(Some(8));
        assert_eq!(pacer.burst(), 8);
        pacer.set_least_packets(None);
        assert_eq!(pacer.burst(), 5);
    }

    #[test]
    fn a_burst_is_a_quarter_of_a_millisecond_and_one_train_at_most() {
        assert_eq!(pacer(12.0).burst(), 20);
        assert_eq!(pacer(0.6).burst(), MAX_BURST);
        assert_eq!(pacer(10_000.0).burst(), 1);
    }

    #[test]
    fn a_controller_bounds_a_burst_and_keeps_the_rate() {
        for late in [0, 70] {
            let mut pacer = gentle(12.0);
            pacer.set_most_packets(Some(5));
            assert_eq!(pacer.burst(), 5);
            let sent = packets_in_a_second(pacer, Duration::from_micros(late));
            assert!((83_300..=84_200).contains(&sent), "{sent} packets when {late} µs late");
        }
        let mut pacer = pacer(12.0);
        for (most, burst) in [(Some(0), 1), (Some(1_000), 20), (None, 20)] {
            pacer.set_most_packets(most);
            assert_eq!(pacer.burst(), burst);
        }
    }

    #[test]
    fn a_driver_with_bounded_bursts_that_wakes_late_once_sends_two_of_them() {
        let mut pacer = gentle(12.0);
        pacer.set_most_packets(Some(5));
        let start = Instant::from_nanos(1_000_000_000);
        pacer.on_sent(start, 0);
        let now = pacer.deadline().unwrap() + Duration::from_millis(2);
        let mut at_once = 0;
        loop {
            match pacer.allowance(now) {
                0 => break,
                n => {
                    pacer.on_sent(now, n);
                    at_once += n;
                }
            }
        }
        // The lateness itself is now worth an eighth of 2 ms.
        assert!((10..=2 * 5 + 21).contains(&at_once), "{at_once} packets");
    }

    #[test]
    fn bursts_longer_than_the_catch_up_keep_the_rate() {
        let mut pacer = pacer(1_000.0);
        pacer.set_period(SendPeriod::from_micros(1_000.0), Duration::from_millis(10));
        pacer.set_burst_time(Duration::from_millis(4));
        let sent = packets_in_a_second(pacer, Duration::ZERO);
        assert!((996..=1_004).contains(&sent), "{sent} packets");
    }

    #[test]
    fn a_long_pause_earns_no_more_than_the_bounded_catch_up() {
        for (mut pacer, most) in [(pacer(12.0), 1 + 10_000 / 12 + 20), (gentle(12.0), 1 + 750 / 12)] {
            let now = Instant::from_nanos(60_000_000_000);
            let mut burst = 0;
            loop {
                let n = pacer.allowance(now);
                if n == 0 {
                    break;
                }
                pacer.on_sent(now, n);
                burst += n;
            }
            assert!(burst <= most, "{burst}");
        }
    }

    #[test]
    fn a_single_pause_of_the_driver_is_caught_up_a_tenth_faster() {
        let mut pacer = gentle(12.0);
        let (mut now, mut sent) = (Instant::from_nanos(1_000_000_000), Vec::new());
        let pause = now + Duration::from_millis(100);
        let end = now + Duration::from_millis(300);
        pacer.on_sent(now, 0);
        while now < end {
            match pacer.allowance(now) {
                0 => {
                    let next = pacer.deadline().unwrap();
                    now = if now < pause && next >= pause { next + Duration::from_millis(5) } else { next };
                }
                n => {
                    pacer.on_sent(now, n);
                    sent.push((now, n));
                }
            }
        }
        let all: u32 = sent.iter().map(|(_, n)| n).sum();
        // The first 10 ms count as a pause as well.
        assert!((25_800..=25_850).contains(&all), "{all} packets in 310 ms");
        let after = |millis| pause + Duration::from_millis(millis);
        let in_time =
            |from, until| sent.iter().filter(|(at, _)| (from..until).contains(at)).map(|(_, n)| n).sum::<u32>();
        let at_once = in_time(after(0), after(6));
        assert!(at_once <= 42 + 92 + 44, "{at_once} packets at once and in a millisecond");
        let catching_up = in_time(after(10), after(20));
        assert!((880..=940).contains(&catching_up), "{catching_up} packets in 10 ms");
    }

    #[test]
    fn a_freeze_blocks_everything_and_is_not_caught_up() {
        let start = Instant::from_nanos(1_000_000_000);
        let freeze = Duration::from_millis(10);
        for micros in [12.0, 500.0] {
            let mut pacer = pacer(micros);
            pacer.on_sent(start, 0);
            pacer.allowance(start);
            pacer.freeze_until(start + freeze);
            assert_eq!(pacer.allowance((start + freeze).saturating_sub(Duration::from_nanos(1))), 0);
            assert!(pacer.deadline().unwrap() >= start + freeze);
            let (mut now, mut sent) = (start, 0);
            while now < start + Duration::from_millis(110) {
                match pacer.allowance(now) {
                    0 => now = pacer.deadline().unwrap(),
                    n => {
                        pacer.on_sent(now, n);
                        sent += n;
                    }
                }
            }
            let expected = (100_000.0 / micros) as u32;
            assert!(
                (expected - pacer.burst()..=expected + 1).contains(&sent),
                "{sent} packets of {micros} µs in 100 ms"
            );
        }
    }

    #[test]
    fn a_shorter_period_does_not_wait_for_the_one_before() {
        let (mut pacer, now) = (pacer(1_000_000.0), Instant::from_nanos(1_000_000_000));
        pacer.on_sent(now, 1);
        pacer.allowance(now);
        pacer.on_sent(now, 10);
        pacer.set_period(SendPeriod::from_micros(1_000.0), Duration::from_millis(100));
        pacer.hasten(now);
        assert!(pacer.deadline().unwrap() <= now + Duration::from_millis(2), "{:?}", pacer.deadline());
    }

    #[test]
    fn a_frozen_sender_that_is_hastened_asks_for_no_time_before_the_end() {
        let mut pacer = pacer(500.0);
        let (now, end) = (Instant::from_nanos(1_000), Instant::from_nanos(10_001_000));
        pacer.freeze_until(end);
        pacer.hasten(now);
        assert_eq!(pacer.allowance(now), 0);
        assert!(pacer.deadline().unwrap() >= end);
    }

    #[test]
    fn an_unpaced_sender_freezes_once_and_asks_for_no_time_afterwards() {
        let mut pacer = Pacer::default();
        let (now, end) = (Instant::from_nanos(1_000), Instant::from_nanos(10_001_000));
        pacer.freeze_until(end);
        assert_eq!((pacer.allowance(now), pacer.deadline()), (0, Some(end)));
        assert_eq!((pacer.allowance(end), pacer.deadline()), (MAX_BURST, None));
        pacer.freeze_until(end);
        assert_eq!((pacer.allowance(end), pacer.deadline()), (MAX_BURST, None), "the same end again");
    }
}
