//! UDT as Farhaul runs it by default: the native law (`udt_native.rs`, paper:udt-2007) with a start-up that measures, a
//! window that follows the rate, and a different view of loss.
//!
//! ```text
//! start-up         see start.rs
//! per SYN          while no queue stands, the path is not full, whatever C says: the rate grows by 1/500, up to
//!                    1.05·D                                                                                 (1)
//!                  when a queue has stood for a round trip: the rate falls to D if that is less, which then is
//!                    the bottleneck's                                                                       (2)
//!                  while one stands: as the native law, with the spare bandwidth C − 1/P
//!                  where C is the capacity of the trains, or the largest rate delivered since if that is larger
//! per NAK          congestion (see loss_cause.rs): as the native law (4) to (6), but no further than 8/9·D, at which
//!                    the queue drains; otherwise nothing                                                    (3)
//! window           W = 4·max(1/P, D)·(RTT + SYN) + 16, a bound for outages and not for the rate
//! near paths       RTT below a millisecond: the window alone, AIMD with UDT's factor
//! ```
//!
//! | here | unit |
//! | --- | --- |
//! | `P` the period | s |
//! | `C` the capacity, `D` the arrival speed that the receiver reports | packets/s |
//! | `W` the window | packets |
//!
//! Departures: D20 to D23.

use farhaul_units::{Duration, Instant, PacketRate, SendPeriod};

use super::daimd::{DECREASE, Daimd, Verdict, bounded, increase, longer, shorter};
use super::flow_control::{cwnd, measured_rate, set_cwnd};
use super::loss_cause::{LossCause, is_raised};
use super::start::Start;
use super::syn::{SYN_INTERVAL, SynClock};
use crate::{AckEvent, Control, Controller, LossEvent, Path, TimeoutEvent};

/// Growth of the rate per SYN interval while no queue stands, (1): a fifth per second, so that an estimate that was a
/// quarter too low is made up for in two seconds, and a bottleneck is overrun by a few percent before its queue shows.
const UNSEEN_GROWTH: f64 = 0.002;
/// The rate is raised no further than this above what arrives, (1): where it leads by more, it has met the bottleneck.
const UNSEEN_LEAD: f64 = 1.05;
/// The window over what the rate fills. Acknowledgements are cumulative: a lost packet holds them back for the round trip
/// of its repair, and if the repair is lost for two more; all that time the rate goes on (departure D22).
const WINDOW_GAIN: f64 = 4.0;
/// Packets on top of that. Source: UDT4's W = R·(RTT + SYN) + 16.
const WINDOW_HEADROOM: f64 = 16.0;
/// First rate after start-up, as a share of the measured capacity: the queue of start-up drains.
const DRAIN: f64 = 0.98;
/// Below this round trip computers cannot space packets as a link does, and the window governs alone (departure D23).
const NEAR: Duration = Duration::from_millis(1);
/// Time that the window of a near path stands for: what two computers' schedulers may be late.
const NEAR_SLACK: Duration = Duration::from_millis(2);
/// Most bytes in flight on a near path: 100 Gbit/s for two thirds of a millisecond. More would only wait in the receiver's
/// socket buffer, and overflow it when the receiver is not scheduled for a moment.
const NEAR_MAX_BYTES: f64 = 8_388_608.0;
/// Window after a loss on a near path. Source: UDT's decrease, 1/1.125.
const NEAR_DECREASE: f64 = 8.0 / 9.0;
/// Smallest window that a near path is cut to.
const NEAR_MIN_WINDOW: f64 = 64.0;

/// The default controller, `udt`.
#[derive(Clone, Debug)]
pub(crate) struct Udt {
    clock: SynClock,
    start: Option<Start>,
    /// After start-up, its estimator and until when it goes on: the longest trains are still under way.
    refining: Option<(Start, Instant)>,
    daimd: Daimd,
    loss_cause: LossCause,
    /// The capacity of the path as far as it is known.
    capacity: Option<PacketRate>,
    queue: QueueWatch,
    /// Near paths: the largest window that losses allow, and when it was last cut.
    near_limit: f64,
    near_cut: Instant,
}

impl Udt {
    /// The law of a new connection; all its randomness follows from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            clock: SynClock::default(),
            start: Some(Start::default()),
            refining: None,
            daimd: Daimd::new(seed),
            loss_cause: LossCause::default(),
            capacity: None,
            queue: QueueWatch::default(),
            near_limit: f64::INFINITY,
            near_cut: Instant::ZERO,
        }
    }

    /// Start-up is over; the path carries `capacity`.
    fn settle(&mut self, capacity: PacketRate, path: &Path, control: &mut Control) {
        self.refining = self.start.take().map(|start| (start, path.now + path.rtt));
        self.adopt(capacity, path, control);
    }

    fn adopt(&mut self, capacity: PacketRate, path: &Path, control: &mut Control) {
        self.capacity = Some(capacity);
        control.send_period = bounded(1e6 / (capacity.packets_per_second() * DRAIN));
        follow_rate(path, control);
    }

    /// The capacity, if a train that was sent during start-up has just shown it better.
    fn refine(&mut self, path: &Path, ack: &AckEvent) -> Option<PacketRate> {
        self.refining = self.refining.take().filter(|(_, end)| path.now < *end);
        self.refining.as_mut().and_then(|(start, _)| start.refine(ack))
    }

    /// One SYN interval of steady state.
    fn on_syn(&mut self, path: &Path, control: &mut Control) {
        let delivered = measured_rate(path);
        self.capacity = match (self.capacity, delivered) {
            (Some(known), Some(delivered)) if delivered > known => Some(delivered),
            (known, _) => known,
        };
        let rate = 1e6 / control.send_period.as_micros();
        let increase = match self.queue.on_syn(path) {
            Queue::None if delivered.is_some_and(|d| rate > d.packets_per_second() * UNSEEN_LEAD) => 0.0,
            Queue::None => rate * SYN_INTERVAL.as_secs_f64() * UNSEEN_GROWTH,
            Queue::New => 0.0,
            Queue::Proven => {
                if let Some(delivered) = delivered {
                    control.send_period = longer(control.send_period, bounded(1e6 / delivered.packets_per_second()));
                }
                0.0
            }
            Queue::Standing => {
                let capacity = self.capacity.or(path.capacity).map_or(0.0, PacketRate::packets_per_second);
                increase(capacity - rate, path.mss.max(1))
            }
        };
        control.send_period = self.daimd.grow(control.send_period, path, increase);
        follow_rate(path, control);
    }

    /// A near path: the window holds what was delivered during the slack of two schedulers.
    fn on_near_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        control.send_period = SendPeriod::UNPACED;
        self.near_limit += f64::from(ack.newly_acked) / cwnd(control).max(1.0);
        let filled = path.delivery_rate.map_or(0.0, |rate| rate.packets_in(path.rtt + NEAR_SLACK) * 2.0);
        let most = NEAR_MAX_BYTES / f64::from(path.mss.max(1));
        let target = filled.clamp(NEAR_MIN_WINDOW, most.max(NEAR_MIN_WINDOW)).min(self.near_limit);
        let grown = cwnd(control) + f64::from(ack.newly_acked);
        set_cwnd(path, control, grown.min(target));
    }

    fn on_near_loss(&mut self, path: &Path, control: &mut Control) {
        if path.now - self.near_cut > path.rtt.max(NEAR_SLACK) {
            self.near_cut = path.now;
            self.near_limit = (cwnd(control) * NEAR_DECREASE).max(NEAR_MIN_WINDOW);
            set_cwnd(path, control, self.near_limit);
        }
    }
}

impl Controller for Udt {
    fn name(&self) -> &str {
        "udt"
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        self.daimd.on_progress(ack.seq);
        if is_near(path) {
            self.on_near_ack(path, ack, control);
            return;
        }
        if let Some(start) = &mut self.start {
            if let Some(capacity) = start.on_ack(path, ack, control) {
                self.settle(capacity, path, control);
            }
        } else if let Some(capacity) = self.refine(path, ack) {
            self.adopt(capacity, path, control);
        } else if control.send_period.is_unpaced() {
            // A near path that has become a far one.
            self.start = Some(Start::default());
        } else if !ack.light && self.clock.tick(path.now) {
            self.on_syn(path, control);
        }
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        let Some(first) = loss.ranges.first().filter(|_| loss.newly_lost > 0) else { return };
        if is_near(path) {
            self.on_near_loss(path, control);
            return;
        }
        if !self.loss_cause.is_congestion(path, loss.newly_lost) {
            return;
        }
        // A report may lower the window, never raise it (attack B6).
        self.refining = None;
        let before = cwnd(control);
        if let Some(start) = &self.start {
            let capacity = start.on_loss(path).unwrap_or_else(|| window_rate(path, before));
            self.settle(capacity, path, control);
        } else {
            match self.daimd.on_nak(first.first, loss.largest_sent, control.send_period) {
                Verdict::NewEvent | Verdict::FurtherCut => control.send_period = cut(control.send_period, path),
                Verdict::Spared => {}
            }
            follow_rate(path, control);
        }
        set_cwnd(path, control, cwnd(control).min(before));
    }

    fn on_timeout(&mut self, path: &Path, _timeout: &TimeoutEvent, control: &mut Control) {
        if let Some(capacity) = self.start.as_ref().and_then(|start| start.on_loss(path)) {
            self.settle(capacity, path, control);
        }
    }
}

/// How long a queue has stood.
#[derive(Clone, Copy, Debug, Default)]
struct QueueWatch {
    since: Option<Instant>,
    proven: bool,
}

/// What stands on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    None,
    /// A queue, for less than a round trip: what is delivered may still be less than the bottleneck can do.
    New,
    /// A queue, for a round trip now: what is delivered is what the bottleneck can do.
    Proven,
    /// A queue, for longer.
    Standing,
}

impl QueueWatch {
    fn on_syn(&mut self, path: &Path) -> Queue {
        if !is_raised(path) {
            *self = Self::default();
            return Queue::None;
        }
        let since = *self.since.get_or_insert(path.now);
        if self.proven {
            return Queue::Standing;
        }
        // The receiver's speed is smoothed over some ten acknowledgements.
        self.proven = path.now - since >= path.rtt + SYN_INTERVAL * 10;
        if self.proven { Queue::Proven } else { Queue::New }
    }
}

/// Whether the window governs alone.
fn is_near(path: &Path) -> bool {
    path.min_rtt.is_some_and(|rtt| rtt < NEAR)
}

/// The rate at which a window of `cwnd` packets leaves once per round trip; nothing better has been measured.
fn window_rate(path: &Path, cwnd: f64) -> PacketRate {
    PacketRate::new(cwnd / (path.rtt + SYN_INTERVAL).as_secs_f64())
}

/// The period after a cut, (3).
fn cut(period: SendPeriod, path: &Path) -> SendPeriod {
    let cut = bounded(period.as_micros() * DECREASE);
    match measured_rate(path) {
        Some(delivered) => shorter(cut, longer(period, bounded(1e6 / delivered.packets_per_second() * DECREASE))),
        None => cut,
    }
}

/// Sets the window to what the rate fills, with room to spare.
fn follow_rate(path: &Path, control: &mut Control) {
    let sent = 1e6 / control.send_period.as_micros();
    let delivered = measured_rate(path).map_or(0.0, PacketRate::packets_per_second);
    let filled = PacketRate::new(sent.max(delivered)).packets_in(path.rtt + SYN_INTERVAL);
    set_cwnd(path, control, filled * WINDOW_GAIN + WINDOW_HEADROOM);
}
