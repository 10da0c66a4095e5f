//! When datagrams leave: bursts of W_c, then a sleep of T_s (paper:ornl §3.1).
//!
//! ```text
//! r   = W_c / (T_s + W_c/BW)                                     (1)
//! T_s = W_c/r − W_c/BW          for a given r and W_c            (3)
//! W_c = T_s / (1/r − 1/BW)      for a given r and T_s            (4)
//! W_c = r · burst time          if neither is given: the datagrams of 250 µs, one train at most
//! ```
//!
//! The simulated and the real interface send by themselves, so a burst takes no time here. The time W_c/BW passes
//! before the sleep begins.

use farhaul_units::{Duration, Instant, Rate, SendPeriod};

use super::Options;
use crate::blast::rate::RateChoice;
use farhaul_proto::config::Config;
use farhaul_proto::pacer::{LONGEST_DEBT, MAX_BURST, Pacer, debt_pace};

/// BW of (1) if both W_c and T_s are given and nobody knows the interface: that of the paper's hosts.
const PAPER_INTERFACE: Rate = Rate::from_megabits_per_second(1_000);
/// Most datagrams of a burst. A larger one occupies a link of 1 Gbit/s for more than ten seconds.
const MOST_DATAGRAMS: f64 = 1e6;
/// Shortest and longest time from burst to burst. Shorter ones are no time to a computer. The longest is far beyond any
/// use, and keeps the arithmetic of times from its limits.
const SHORTEST_PERIOD: f64 = 1e-9;
const LONGEST_PERIOD: f64 = 3_600.0;
/// Most time that a late sender catches up if its rate was found, as the pacer of UDT's senders. A rate that is set is
/// kept by an absolute schedule.
const CATCH_UP: Duration = Duration::from_millis(10);

/// The bursts of a sender.
#[derive(Debug)]
pub(super) struct Schedule {
    /// W_c and T_s as set by the user.
    by_hand: (Option<u32>, Option<Duration>),
    /// BW, in full datagrams per second.
    interface: Option<f64>,
    /// Bits of a full datagram, headers of IP and UDP included.
    bits: f64,
    spaced: bool,
    /// The rate was set, so the schedule is absolute.
    absolute: bool,
    burst_time: Duration,
    /// W_c.
    window: u32,
    /// T_s + W_c/BW.
    period: Duration,
    /// Datagrams that may still leave in this burst.
    left: u32,
    /// When this burst began.
    begun: Instant,
    /// When the next one begins.
    due: Instant,
    /// There was nothing to send. So the time since then is not caught up.
    held: bool,
    /// Spaces the datagrams if they do not leave in bursts, and tells the rate otherwise.
    pacer: Pacer,
}

impl Schedule {
    /// The schedule of a sender whose full datagrams occupy `bits` on the link.
    pub(super) fn new(options: &Options, config: &Config, bits: f64, now: Instant) -> Self {
        let mut pacer = Pacer::default();
        pacer.set_burst_time(config.burst_time);
        pacer.on_sent(now, 0);
        let by_hand = (options.window.map(|window| window.max(1)), options.sleep);
        // A found rate finds this bound by itself.
        let is_found = options.rate == RateChoice::Auto && !matches!(by_hand, (Some(_), Some(_)));
        if !is_found {
            pacer.keep_schedule();
        }
        let interface = options.interface.or_else(|| config.interface_rate.filter(|_| !is_found));
        Self {
            by_hand,
            interface: interface.map(|rate| (rate.bits_per_second() as f64 / bits).max(f64::MIN_POSITIVE)),
            bits,
            spaced: options.spaced,
            absolute: !is_found,
            burst_time: config.burst_time,
            window: 1,
            period: Duration::ZERO,
            left: 0,
            begun: now,
            due: now,
            held: true,
            pacer,
        }
    }

    /// Sets the rate, headers of IP and UDP included. The burst under way goes on.
    pub(super) fn set_rate(&mut self, rate: Rate, round_trip: Duration) {
        let slot = self.interface.map_or(0.0, |datagrams| 1.0 / datagrams);
        let time = (self.bits / (rate.bits_per_second() as f64).max(1.0)).max(slot);
        let (window, period) = match self.by_hand {
            (Some(window), Some(sleep)) => {
                let slot = self.interface.map_or(self.bits / PAPER_INTERFACE.bits_per_second() as f64, |_| slot);
                (f64::from(window), sleep.as_secs_f64() + f64::from(window) * slot)
            }
            (Some(window), None) => (f64::from(window), f64::from(window) * time),
            // Without a sleep, (4) has no solution.
            (None, Some(sleep)) if sleep > Duration::ZERO => {
                let gap = (time - slot).max(f64::MIN_POSITIVE);
                let window = libm::round(sleep.as_secs_f64() / gap).clamp(1.0, MOST_DATAGRAMS);
                (window, sleep.as_secs_f64() + window * slot)
            }
            (None, _) => {
                let window = (self.burst_time.as_secs_f64() / time).clamp(1.0, f64::from(MAX_BURST));
                let window = libm::floor(window);
                (window, window * time)
            }
        };
        self.window = window as u32;
        self.period = Duration::from_secs_f64(period.clamp(SHORTEST_PERIOD, LONGEST_PERIOD));
        let each = self.period.as_secs_f64() / window;
        self.pacer.set_period(SendPeriod::from_micros(each * 1e6), round_trip);
    }

    /// Datagrams that may leave now.
    pub(super) fn allowance(&mut self, now: Instant) -> u32 {
        if self.spaced {
            return self.pacer.allowance(now);
        }
        if self.left == 0 && self.next_burst() <= now {
            let caught_up = match (self.held, self.absolute) {
                (true, _) => Duration::ZERO,
                (false, true) => LONGEST_DEBT,
                (false, false) => CATCH_UP,
            };
            self.due = self.due.max(now.saturating_sub(caught_up)) + self.period;
            (self.begun, self.left) = (now, self.window);
        }
        self.held = false;
        self.left
    }

    /// Datagrams have left.
    pub(super) fn on_sent(&mut self, now: Instant, datagrams: u32) {
        if self.spaced {
            self.pacer.on_sent(now, datagrams);
        } else {
            self.left = self.left.saturating_sub(datagrams);
        }
    }

    /// There is nothing to send. The burst is over, and the next begins at its time.
    pub(super) fn hold(&mut self, now: Instant) {
        self.pacer.hold();
        if self.due <= now {
            (self.left, self.held) = (0, true);
        }
    }

    /// When datagrams may leave next.
    pub(super) fn deadline(&self) -> Instant {
        if self.spaced {
            self.pacer.deadline().unwrap_or(self.begun)
        } else if self.left > 0 {
            self.begun
        } else {
            self.next_burst()
        }
    }

    /// When the next burst begins. A late absolute schedule does not let all missed bursts leave at once.
    fn next_burst(&self) -> Instant {
        if !self.absolute || self.held {
            return self.due;
        }
        let spacing = self.period.as_secs_f64() / debt_pace(self.begun - self.due);
        self.due.max(self.begun + Duration::from_secs_f64(spacing))
    }

    /// W_c.
    pub(super) const fn window(&self) -> u32 {
        self.window
    }

    /// The mean time from datagram to datagram.
    pub(super) fn send_period(&self) -> SendPeriod {
        SendPeriod::from_micros(self.period.as_secs_f64() * 1e6 / f64::from(self.window))
    }

    /// A pacer of the same rate, for whoever wants to know how many datagrams leave in a time.
    pub(super) const fn pacer(&self) -> &Pacer {
        &self.pacer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_nanos(1_000_000_000);
    const ROUND_TRIP: Duration = Duration::from_millis(11);
    /// A packet of 1500 bytes.
    const BITS: f64 = 12_000.0;

    fn schedule(options: &Options, megabits: u64) -> Schedule {
        let mut schedule = Schedule::new(options, &Config::default(), BITS, START);
        schedule.set_rate(Rate::from_megabits_per_second(megabits), ROUND_TRIP);
        schedule
    }

    /// Times and sizes of the bursts of a second, if the driver wakes `late`.
    fn bursts(schedule: &mut Schedule, late: Duration) -> Vec<(Duration, u32)> {
        let (mut now, mut bursts) = (START, Vec::new());
        while now < START + Duration::from_secs(1) {
            match schedule.allowance(now) {
                0 => now = schedule.deadline() + late,
                datagrams => {
                    schedule.on_sent(now, datagrams);
                    bursts.push((now - START, datagrams));
                }
            }
        }
        bursts
    }

    #[test]
    fn a_window_and_a_sleep_make_the_rate_of_equation_1() {
        // 10 datagrams take 120 µs at the paper's 1 Gbit/s, then the sender sleeps 880 µs.
        let options = Options { window: Some(10), sleep: Some(Duration::from_micros(880)), ..Options::default() };
        let bursts = bursts(&mut schedule(&options, 1), Duration::ZERO);
        assert_eq!(bursts.len(), 1_000);
        assert_eq!(bursts[1], (Duration::from_millis(1), 10));
    }

    #[test]
    fn a_rate_finds_sleep_or_window_or_both() {
        let gigabit = Some(Rate::from_megabits_per_second(1_000));
        for (options, megabits) in [
            (Options::default(), 950),
            (Options { window: Some(100), ..Options::default() }, 950),
            (Options { window: Some(100), interface: gigabit, ..Options::default() }, 950),
            (Options { sleep: Some(Duration::from_millis(5)), ..Options::default() }, 500),
            (Options { sleep: Some(Duration::from_millis(5)), interface: gigabit, ..Options::default() }, 500),
            (Options { spaced: true, ..Options::default() }, 950),
        ] {
            let bursts = bursts(&mut schedule(&options, megabits), Duration::ZERO);
            let sent: u32 = bursts.iter().map(|(_, datagrams)| datagrams).sum();
            let expected = megabits as f64 * 1e6 / BITS;
            assert!((f64::from(sent) / expected - 1.0).abs() < 0.01, "{options:?}: {sent} instead of {expected}");
        }
    }

    #[test]
    fn no_combination_of_options_makes_a_rate_beyond_any_use() {
        let interfaces = [None, Some(Rate::ZERO), Some(Rate::from_megabits_per_second(950))];
        for interface in interfaces {
            for window in [None, Some(0), Some(u32::MAX)] {
                for sleep in [None, Some(Duration::ZERO), Some(Duration::MAX)] {
                    for megabits in [0, 950, 1_000_000] {
                        let schedule = schedule(&Options { window, sleep, interface, ..Options::default() }, megabits);
                        let period = schedule.period;
                        assert!(schedule.window() >= 1 && period >= Duration::from_nanos(1), "{schedule:?}");
                        assert!(period <= Duration::from_secs(3_600), "{schedule:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_burst_without_options_lasts_a_quarter_of_a_millisecond_and_is_one_train_at_most() {
        assert_eq!(schedule(&Options::default(), 960).window(), 20);
        assert_eq!(schedule(&Options::default(), 100_000).window(), MAX_BURST);
        assert_eq!(schedule(&Options::default(), 1).window(), 1);
    }

    #[test]
    fn no_rate_exceeds_the_interface() {
        let interface = Some(Rate::from_megabits_per_second(100));
        let sent: u32 = bursts(&mut schedule(&Options { interface, ..Options::default() }, 950), Duration::ZERO)
            .iter()
            .map(|(_, datagrams)| datagrams)
            .sum();
        assert!((8_300..=8_340).contains(&sent), "{sent}");
    }

    #[test]
    fn the_interface_that_the_host_knows_bounds_a_rate_set_by_hand_and_not_a_found_one() {
        let known = Rate::from_megabits_per_second(500);
        let config = Config { interface_rate: Some(known), ..Config::default() };
        let period = |options: &Options| {
            let mut schedule = Schedule::new(options, &config, BITS, START);
            schedule.set_rate(Rate::from_megabits_per_second(950), ROUND_TRIP);
            schedule.send_period().as_micros()
        };
        let by_hand = Options { rate: RateChoice::Fixed(Rate::from_megabits_per_second(950)), ..Options::default() };
        let told = Options { interface: Some(Rate::from_megabits_per_second(600)), ..by_hand.clone() };
        let pair = Options { window: Some(10), sleep: Some(Duration::from_micros(760)), ..Options::default() };
        let expected = [(&by_hand, 24.0), (&told, 20.0), (&pair, 100.0), (&Options::default(), 12_000.0 / 950.0)];
        for (options, micros) in expected {
            assert!((period(options) - micros).abs() < 0.01, "{options:?}: {} µs", period(options));
        }
    }

    #[test]
    fn spaced_datagrams_leave_one_by_one_at_a_low_rate() {
        let mut spaced = schedule(&Options { spaced: true, window: Some(50), ..Options::default() }, 10);
        let bursts = bursts(&mut spaced, Duration::ZERO);
        // The pacer begins with what it may catch up.
        let after = bursts.iter().filter(|(at, _)| *at > Duration::from_millis(5));
        assert!(after.clone().count() > 800 && after.clone().all(|(_, datagrams)| *datagrams == 1));
    }

    #[test]
    fn a_late_driver_keeps_the_rate() {
        let bursts = bursts(&mut schedule(&Options::default(), 960), Duration::from_micros(700));
        let sent: u32 = bursts.iter().map(|(_, datagrams)| datagrams).sum();
        assert!((79_000..=80_020).contains(&sent), "{sent}");
    }

    #[test]
    fn a_rate_that_is_set_survives_long_waits_of_the_host_and_a_found_one_makes_good_ten_milliseconds() {
        let rate = Rate::from_megabits_per_second(960);
        let fixed = Options { rate: RateChoice::Fixed(rate), ..Options::default() };
        let sent = |options: &Options| -> u32 {
            let mut schedule = schedule(options, 960);
            let (mut now, mut slice, mut sent) = (START, START, 0);
            while now < START + Duration::from_secs(1) {
                match schedule.allowance(now) {
                    0 => now = schedule.deadline(),
                    datagrams => {
                        schedule.on_sent(now, datagrams);
                        sent += datagrams;
                    }
                }
                if now >= slice + Duration::from_millis(25) {
                    now = slice + Duration::from_millis(50);
                    slice = now;
                }
            }
            sent
        };
        let [set, found] = [&fixed, &Options::default()].map(sent);
        assert!((77_000..=80_020).contains(&set), "{set}");
        assert!(found < 58_000, "{found}");
    }

    #[test]
    fn a_pause_of_the_application_is_not_caught_up() {
        let mut schedule = schedule(&Options::default(), 960);
        assert_eq!(schedule.allowance(START), 20);
        schedule.on_sent(START, 20);
        let later = START + Duration::from_secs(1);
        schedule.hold(later);
        assert_eq!(schedule.allowance(later), 20);
        schedule.on_sent(later, 20);
        assert_eq!(schedule.allowance(later), 0);
    }
}
