//! Was a packet lost to a full queue or to a faulty link? UDT takes every loss for congestion (2004 paper §4.7), which costs
//! it most of a long path with few errors.
//!
//! A queue that overflows has first grown, and the round trip with it. So losses while the round trip stands near its
//! minimum are the link's, unless so many come at once, or over time, that the queue may simply be too short to be seen, or
//! as old as the flow; and what a link is known to lose is not the queue's while one stands, see background.rs. What was taken for
//! congestion before that was known is looked at again, see doubt.rs (departure D21).

mod background;
mod doubt;

use farhaul_units::{Duration, Instant};

use self::background::{Background, DEVIATIONS};
use self::doubt::Doubt;
pub(super) use self::doubt::Fits;
use crate::Path;

/// The round trip counts as raised when it exceeds its minimum by this share …
const RAISED_SHARE: u32 = 8;
/// … but at least by this much: below, it is the scheduling of two computers. Queues of less than a millisecond at 1 Gbit/s are
/// common; whoever does not see them overflows them all the time …
const MIN_RAISE: Duration = Duration::from_micros(500);
/// … and at most by this much. A share alone makes a queue of 12 ms, the thousand packets of a port of 1 Gbit/s, invisible to
/// flows of 110 ms: they took its overflows for losses of the link, and had five times as much as their rivals of 16 ms. Even
/// with 6 ms TCP beside two of them had a seventh of what it has alone, with 3 ms a third (A17, simulated). The round trip that is
/// compared is no more than the smoothed one, so that a host which is late once by some milliseconds does not show in it.
const MAX_RAISE: Duration = Duration::from_millis(3);
/// Share of lost packets above which losses count as congestion whatever the round trip says, if chance does not explain it: a
/// queue of a few packets never shows. BBR v2 tolerates the same 2 %. Two round trips of a short path are some hundred packets,
/// of which a link that loses one in a hundred takes three in a hundred every other second: without chance that left 138 of 1000
/// Mbit/s at 1 ms (D6, simulated), with it 937.
const TOLERATED: f64 = 0.02;
/// Share of the packets of a round trip that are lost at once only where a queue overflows, …
const OVERFLOW: f64 = 0.002;
/// … and fewest packets.
const FEW: f64 = 5.0;
/// Fewest while the queue is one that start-up has made. Of the 8000 packets that fill 1 Gbit/s over 100 ms a link with a loss of
/// 1e-3 takes 8, and by chance up to 16.
const FEW_OF_START: f64 = 16.0;
/// Losses are counted over this many round trips.
const ROUNDS: u32 = 2;

/// Tells losses of the link from losses of the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossCause {
    /// Start of the present count, and packets sent by then.
    since: Instant,
    sent_before: u64,
    lost: u64,
    /// Whether the count before had more than is tolerated.
    previous: bool,
    /// What the link itself loses.
    background: Background,
    doubt: Doubt,
}

/// Whose queue it is that may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueOf {
    /// The trains of start-up, which show how long it is: it drains, and a single loss beside it means nothing.
    Start,
    /// Whoever uses the path.
    Anybody,
}

impl LossCause {
    /// `newly_lost` packets were reported; whether that is congestion. What is known `now` of the path may be forgotten then, and is
    /// kept until it is certain.
    pub(super) fn is_congestion(&mut self, path: &Path, newly_lost: u32, queue_of: QueueOf, now: Option<Fits>) -> bool {
        if path.now - self.since > path.rtt.saturating_mul(ROUNDS).max(Duration::from_millis(20)) {
            self.previous = self.exceeds(path);
            self.since = path.now;
            self.sent_before = path.packets_sent;
            self.lost = 0;
        }
        self.lost += u64::from(newly_lost);
        let visible = is_raised(path) || was_raised(path);
        let unexplained = self.background.unexplained(path, newly_lost, visible);
        let queue = match queue_of {
            QueueOf::Start => {
                unexplained > (f64::from(path.in_flight) * OVERFLOW).max(overflow(path)).max(FEW_OF_START)
            }
            QueueOf::Anybody => {
                let overflown = self.background.is_known() && unexplained > overflow(path);
                (visible && unexplained > 0.0) || overflown
            }
        };
        let congestion = queue || self.is_heavy(path);
        self.doubt.on_loss(path, newly_lost, congestion, &self.background, now);
        congestion
    }

    /// What was known before losses that were taken for congestion, if these turn out to be the link's; said once.
    pub(super) fn taken_back(&mut self, path: &Path) -> Option<Fits> {
        self.doubt.resolve(path, &self.background)
    }

    /// The share of packets that the link itself loses, as far as that is known; half of them at most, whatever is reported.
    pub(super) fn link_loss(&self) -> f64 {
        self.background.share().min(0.5)
    }

    /// More than the tolerated share, over enough packets for a share to mean anything.
    fn is_heavy(&self, path: &Path) -> bool {
        self.lost as f64 > FEW && (self.exceeds(path) || self.previous)
    }

    /// The same now and in the count before: this is no overflow but a crowd.
    pub(super) fn is_crowded(&self, path: &Path) -> bool {
        self.lost as f64 > FEW && self.exceeds(path) && self.previous
    }

    /// Whether more than the tolerated share and chance was lost.
    fn exceeds(&self, path: &Path) -> bool {
        let sent = path.packets_sent.saturating_sub(self.sent_before);
        // What is reported now was sent a round trip ago; a count that has just begun looks worse than it is.
        let tolerated = TOLERATED * (sent + u64::from(path.in_flight)) as f64;
        self.lost as f64 > tolerated + DEVIATIONS * tolerated.sqrt()
    }
}

/// Lost packets of one round trip that nothing explains but a queue that overflowed, though none was seen.
fn overflow(path: &Path) -> f64 {
    path.delivery_rate.map_or(0.0, |rate| rate.packets_in(path.rtt) * OVERFLOW).max(FEW)
}

/// Whether a queue stands on the path.
pub(super) fn is_raised(path: &Path) -> bool {
    let Some(min) = path.min_rtt else { return false };
    let ours = path.round_trip_now();
    // Where packets overtake each other, acknowledgements of data always wait for late ones; the peer's measurement does not.
    ours.min(path.reported_rtt.unwrap_or(ours)) > min.saturating_add(raise(min))
}

/// Whether a queue stood a moment ago, if only for a burst of somebody else: a single sample is less certain than the
/// smoothed ones, and has to stand out twice as far.
fn was_raised(path: &Path) -> bool {
    path.min_rtt.is_some_and(|min| path.recent_max_rtt > min.saturating_add(raise(min) * 2))
}

/// By how much a round trip must exceed its minimum.
pub(super) fn raise(min: Duration) -> Duration {
    (min / RAISED_SHARE).clamp(MIN_RAISE, MAX_RAISE)
}

#[cfg(test)]
mod tests {
    use farhaul_units::PacketRate;

    use super::*;

    const FITS: Fits = Fits { carried: 80_000.0, full: 82_000.0 };

    fn path(rtt_ms: u64, sent: u64) -> Path {
        Path {
            now: Instant::ZERO + Duration::from_millis(sent / 83),
            rtt: Duration::from_millis(rtt_ms),
            min_rtt: Some(Duration::from_millis(100)),
            packets_sent: sent,
            in_flight: 8_000,
            delivery_rate: Some(PacketRate::new(83_000.0)),
            ..Path::default()
        }
    }

    #[test]
    fn a_loss_without_a_queue_is_the_links_and_with_one_the_queues() {
        let mut cause = LossCause::default();
        assert!(!cause.is_congestion(&path(101, 100_000), 1, QueueOf::Anybody, Some(FITS)));
        assert!(cause.is_congestion(&path(130, 100_000), 1, QueueOf::Anybody, Some(FITS)));
    }

    #[test]
    fn waiting_for_overtaken_packets_is_no_queue() {
        let reported = |millis| Path { reported_rtt: Some(Duration::from_millis(millis)), ..path(130, 100_000) };
        assert!(!is_raised(&reported(102)));
        assert!(is_raised(&reported(128)));
    }

    #[test]
    fn bursts_beside_a_queue_as_old_as_the_flow_are_an_overflow() {
        let mut cause = LossCause::default();
        // Forty losses within a hundredth of a second, every two seconds.
        let bursts = |burst: u64| (0..40).map(move |packet| burst * 166_000 + packet * 20);
        let congested = |cause: &mut LossCause, burst| {
            bursts(burst).filter(|sent| cause.is_congestion(&path(101, *sent), 1, QueueOf::Anybody, Some(FITS))).count()
        };
        for burst in 1..3 {
            congested(&mut cause, burst);
        }
        assert!(congested(&mut cause, 3) > 10);
    }

    #[test]
    fn one_loss_in_a_hundred_is_tolerated_and_one_in_twenty_is_not() {
        let congested = |share: u64| {
            let mut cause = LossCause::default();
            (1..1_000).filter(|i| cause.is_congestion(&path(100, i * share), 1, QueueOf::Anybody, Some(FITS))).count()
        };
        assert_eq!(congested(100), 0);
        assert!(congested(20) > 500);
    }

    #[test]
    fn many_losses_of_few_packets_may_be_chance() {
        // Two hundred and forty packets in 20 ms, of which `lost` are lost.
        let congested = |lost: u64| {
            let path = |sent| Path {
                now: Instant::ZERO + Duration::from_micros(1_000_000 + sent * 83),
                rtt: Duration::from_millis(1),
                min_rtt: Some(Duration::from_millis(1)),
                packets_sent: 12_000 + sent,
                delivery_rate: Some(PacketRate::new(12_000.0)),
                ..Path::default()
            };
            let mut cause = LossCause::default();
            cause.is_congestion(&path(0), 0, QueueOf::Anybody, Some(FITS));
            (1..=lost).any(|i| cause.is_congestion(&path(100 + i * 140 / lost), 1, QueueOf::Anybody, Some(FITS)))
        };
        assert!(!congested(8), "one in a hundred has as many once in three hundred counts");
        assert!(congested(20));
    }

    #[test]
    fn a_few_losses_beside_the_queue_of_start_up_are_the_links() {
        let congested =
            |count| LossCause::default().is_congestion(&path(130, 100_000), count, QueueOf::Start, Some(FITS));
        assert!(!congested(16));
        assert!(congested(1_000));
    }

    #[test]
    fn what_was_known_before_losses_taken_for_congestion_comes_back_if_the_link_goes_on_losing_as_many() {
        // Of 20 000 packets while a queue stood some were lost, then one in a thousand without one.
        let taken_back = |first: u64| {
            let mut cause = LossCause::default();
            let cut = Fits { carried: 40_000.0, full: 40_000.0 };
            let mut now = FITS;
            for i in 0..first {
                if cause.is_congestion(&path(130, 100_000 + i * 20_000 / first), 1, QueueOf::Anybody, Some(now)) {
                    now = cut;
                }
            }
            assert!(now == cut && cause.taken_back(&path(130, 120_000)).is_none());
            (1..100).find_map(|i| {
                let path = path(101, 120_000 + i * 1_000);
                cause.is_congestion(&path, 1, QueueOf::Anybody, Some(cut));
                cause.taken_back(&path)
            })
        };
        assert_eq!(taken_back(20), Some(FITS));
        assert_eq!(taken_back(400), None);
    }
}
