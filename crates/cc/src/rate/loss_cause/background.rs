//! What a link loses by itself, as far as losses show that came while no queue stood, and how much of what is lost it explains.
//!
//! ```text
//! window     what is sent in 8 rounds of T = max(RTT, SYN) while no queue stands, at least 1000 packets, or in 2 with 16
//!            losses; the loss that ends 8 rounds without one belongs to none, since nothing was lost in them
//! link       p ← lost / sent of the last four windows, but no more than the best of them has by chance, three
//!            deviations of √lost                                                                   (1)
//! round      e = p·max(D·T, in flight) packets are to be expected in T, where D is what acknowledgements show;
//!            chance explains four deviations more, √e each                               (2)
//! ```
//!
//! Without (2) a faulty link has its losses taken for congestion whenever the flow has filled a little of the queue: at
//! 1 Gbit/s, 100 ms and a loss of 1e-3 that cost a tenth of the first ten seconds' throughput.
//!
//! A link loses all the time, a queue that overflows in bursts: hence the best in (1). A flow that joins others on a full
//! queue takes that queue for part of the path and its overflows for the link's; with the mean in place of the best it
//! never yielded again.
//!
//! A round trip of a millisecond has few packets, and chance much to say: of windows of 8 of them one of four had no loss, and each
//! loss was then the queue's. At 1 Gbit/s, 1 ms and a loss of 1e-2, between real hosts, flows fell to 22 Mbit/s for up to 16 s (D6,
//! emulated).

use farhaul_units::{Duration, Instant};

use crate::Path;
use crate::rate::syn::SYN_INTERVAL;

/// Packets of a window, in rounds, …
const WINDOW_ROUNDS: f64 = 8.0;
/// … but at least so many, of which a link with a loss of 1e-2 takes ten; and how many windows count, (1).
const FEWEST_PACKETS: f64 = 1_000.0;
const WINDOWS: usize = 4;
/// A window is over early with this many losses, after those of two rounds, (1).
const MANY: u64 = 16;
const EARLY_ROUNDS: f64 = 2.0;
/// Windows before anything is said, (1).
const FEWEST_WINDOWS: usize = 2;
/// Deviations of a Poisson count that chance explains: one count in seven hundred has more.
pub(super) const DEVIATIONS: f64 = 3.0;
/// And in a round, (2), of which a short path has a hundred per second: one in a few thousand has more. With three, chance ended the
/// growth of a flow at 1 Gbit/s, 1 ms and a loss of 1e-2 every few seconds (D6, simulated: 884 Mbit/s).
const ROUND_DEVIATIONS: f64 = 4.0;
/// Where fewer are to be expected, (2), a loss beside a queue is the queue's: a flow that is small against its
/// rivals cannot tell, and has to yield.
const FEWEST_EXPECTED: f64 = 0.5;

/// Losses of the link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Background {
    window: Window,
    /// The windows before, the latest first.
    windows: [Option<Window>; WINDOWS],
    /// The shortest round trip when they were seen.
    floor: Option<Duration>,
    /// Packets sent by the report before.
    sent_before: u64,
    /// When the present round began, and what was lost since, (2).
    round: Instant,
    lost_in_round: u64,
}

/// What was sent and lost while no queue stood.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    sent: f64,
    lost: u64,
}

impl Window {
    /// The largest share that the link may lose if chance made this window better, (1).
    fn most(&self) -> f64 {
        let lost = self.lost as f64;
        (lost + DEVIATIONS * lost.sqrt()) / self.sent
    }
}

impl Background {
    /// `newly_lost` packets were reported, with a queue standing or not. Packets of this round that neither the link nor
    /// chance explains, (2).
    pub(super) fn unexplained(&mut self, path: &Path, newly_lost: u32, queue: bool) -> f64 {
        self.learn(path, newly_lost, queue);
        if path.now - self.round > round(path) {
            self.round = path.now;
            self.lost_in_round = 0;
        }
        self.lost_in_round += u64::from(newly_lost);
        let lost = self.lost_in_round as f64;
        let expected = self.share() * packets_per_round(path);
        if expected < FEWEST_EXPECTED { lost } else { lost - expected - ROUND_DEVIATIONS * expected.sqrt() }
    }

    /// Whether the link was watched for long enough to say what it loses.
    pub(super) fn is_known(&self) -> bool {
        self.known().count() >= FEWEST_WINDOWS
    }

    /// What the link loses, (1).
    pub(super) fn share(&self) -> f64 {
        if !self.is_known() {
            return 0.0;
        }
        let (sent, lost) = self.known().fold((0.0, 0), |(sent, lost), window| (sent + window.sent, lost + window.lost));
        (lost as f64 / sent).min(self.known().map(Window::most).fold(1.0, f64::min))
    }

    fn known(&self) -> impl Iterator<Item = &Window> {
        self.windows.iter().flatten()
    }

    fn learn(&mut self, path: &Path, newly_lost: u32, queue: bool) {
        let fell = |floor: Duration, min: Duration| min.saturating_add(floor / 8) < floor;
        if let (Some(floor), Some(min)) = (self.floor, path.min_rtt)
            && fell(floor, min)
        {
            // What was taken for the path's round trip had a queue in it.
            let Self { sent_before, round, lost_in_round, .. } = *self;
            *self = Self { sent_before, round, lost_in_round, ..Self::default() };
        }
        self.floor = path.min_rtt;
        let sent = path.packets_sent.saturating_sub(std::mem::replace(&mut self.sent_before, path.packets_sent)) as f64;
        if queue || sent == path.packets_sent as f64 {
            return;
        }
        let rounds = |count: f64| (count * packets_per_round(path)).max(1.0);
        let enough = rounds(WINDOW_ROUNDS).max(FEWEST_PACKETS);
        let quiet = sent > enough;
        self.window.sent += sent;
        self.window.lost += u64::from(newly_lost);
        let early = self.window.lost >= MANY && self.window.sent > rounds(EARLY_ROUNDS);
        if quiet || early || self.window.sent > enough {
            let Window { sent, lost } = std::mem::take(&mut self.window);
            self.windows.rotate_right(1);
            self.windows[0] = Some(Window { sent, lost: if quiet { 0 } else { lost } });
        }
    }
}

/// A round trip, or longer if that is too short for losses to be counted, `T`.
fn round(path: &Path) -> Duration {
    path.rtt.max(SYN_INTERVAL)
}

/// Packets of a round: during start-up more are under way than were delivered in the one before. While
/// a repair holds acknowledgements back it is more than one, so that more is excused then.
fn packets_per_round(path: &Path) -> f64 {
    path.delivery_rate.map_or(0.0, |rate| rate.packets_in(round(path))).max(f64::from(path.in_flight))
}

#[cfg(test)]
mod tests {
    use farhaul_units::{Duration, PacketRate};

    use super::*;

    /// 80 000 packets/s at 100 ms: 8000 per round trip.
    fn path(sent: u64) -> Path {
        Path {
            now: Instant::ZERO + Duration::from_micros(sent * 25 / 2),
            rtt: Duration::from_millis(100),
            delivery_rate: Some(PacketRate::new(80_000.0)),
            packets_sent: sent,
            ..Path::default()
        }
    }

    /// A link that loses every `nth` packet, seen for ten seconds.
    fn link_losing(nth: u64) -> (Background, u64) {
        let mut background = Background::default();
        let reports = 800_000 / nth;
        for report in 1..=reports {
            background.learn(&path(report * nth), 1, false);
        }
        (background, reports * nth)
    }

    #[test]
    fn a_queue_beside_a_link_without_losses_is_to_blame_for_each() {
        assert!(Background::default().unexplained(&path(1_000), 1, true) > 0.0);
    }

    #[test]
    fn the_usual_losses_of_a_link_are_its_own_and_an_overflow_is_not() {
        let (mut background, sent) = link_losing(1_000);
        let usual = (1..=8).any(|report| background.unexplained(&path(sent + 1_000 * report), 1, true) > 0.0);
        assert!(!usual, "eight in a round trip are what it loses");
        assert!(background.unexplained(&path(sent + 8_100), 30, true) > 0.0);
    }

    #[test]
    fn a_rare_loss_explains_nothing() {
        let (mut background, sent) = link_losing(50_000);
        assert!(background.unexplained(&path(sent + 100), 1, true) > 0.0);
    }

    #[test]
    fn a_slow_flow_on_a_short_path_knows_its_link_too() {
        // 2000 packets/s at 1 ms, of which every hundredth is lost: 2 per round trip, and 20 per SYN interval.
        let path = |sent: u64| Path {
            now: Instant::ZERO + Duration::from_micros(sent * 500),
            rtt: Duration::from_millis(1),
            delivery_rate: Some(PacketRate::new(2_000.0)),
            packets_sent: sent,
            ..Path::default()
        };
        let mut background = Background::default();
        (1..=50).for_each(|report| background.learn(&path(report * 100), 1, false));
        assert!((0.008..0.012).contains(&background.share()), "{}", background.share());
    }

    #[test]
    fn bursts_beside_quiet_windows_are_not_the_links() {
        let mut background = Background::default();
        // 640 packets in a row, each time after 99 000 without a loss: more than a window.
        for burst in 1..=20 {
            (0..64).for_each(|report| background.learn(&path(burst * 100_000 + report * 10), 10, false));
        }
        assert!(background.share() < 1e-3, "{}", background.share());
    }
}
