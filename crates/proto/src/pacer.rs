//! When the next packets may leave. Turns a period per packet into bursts that a computer can keep up with.
//!
//! A wake-up per packet costs more than the packet. So packets leave in bursts: as many as the period allows in 250 µs.
//!
//! A rate that the user sets is kept by an absolute schedule: see [`Pacer::keep_schedule`]. So is a cap, as fast as congestion control
//! permits: see [`Pacer::keep_cap`].
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

pub use farhaul_cc::{BURST_TIME, MAX_BURST};
use farhaul_units::{Duration, Instant, SendPeriod};

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

/// A short time in nanoseconds. Numbers of 128 bits become floating-point ones in a call.
const fn in_nanos(time: Duration) -> f64 {
    time.as_nanos() as u64 as f64
}

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
    /// The schedule is absolute, and the RTT does not matter: catch-up speed at most, as a multiple of the rate.
    schedule: Option<f64>,
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
            schedule: None,
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
        if self.schedule.is_none() {
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
        self.keep_cap(Some(f64::INFINITY));
    }

    /// The period is that of a cap. Congestion control found `most` times that rate, so what a late host misses is made good up to
    /// there, without a queue. `None` if the period is congestion control's own. Call before [`set_period`](Self::set_period).
    pub fn keep_cap(&mut self, most: Option<f64>) {
        self.schedule = most;
        if most.is_some() {
            self.catch_up = LONGEST_DEBT;
        }
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
        let credit = in_nanos(now - self.due) / self.nanos();
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
        match self.schedule {
            Some(most) => Some(debt_pace(now - self.due).min(most).max(1.0)),
            None => self.pace,
        }
    }

    /// Packets that may leave at `now` by (2), regardless of (1).
    fn room_at(&self, now: Instant) -> f64 {
        let Some(pace) = self.pace_at(now) else { return f64::INFINITY };
        let at_once = in_nanos(AT_ONCE) / self.nanos();
        let at_once =
            if self.most_packets < MAX_BURST { at_once.min(f64::from(2 * self.most_packets)) } else { at_once };
        let most = at_once + in_nanos(self.lateness * 2) / self.nanos();
        let grown = self.room + in_nanos(now - self.left) * pace / self.nanos();
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
        let packets = in_nanos(self.burst_time) / self.nanos();
        packets.max(f64::from(self.least_packets)).clamp(1.0, f64::from(self.most_packets)) as u32
    }
}

#[cfg(test)]
mod tests;
