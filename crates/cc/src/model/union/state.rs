//! The state of the law.

use farhaul_units::{Instant, SeqNo};

use super::belief::Belief;
use super::losses::Losses;
use super::senses::{Count, Delivered, Extreme, Grown, Link, Queue};
use super::start::StartUp;
use crate::controller::KnownPath;
use crate::model::competition::CubicWindow;
use crate::rate::syn::SynClock;

/// Weight of older drains in ρ: each counts as much as all before it.
const AGEING: f64 = 0.5;

/// What the law does now.
#[derive(Clone, Copy, Debug)]
pub(super) enum UnionPhase {
    Start(StartUp),
    Grow,
    Drain(Drain),
    Compete(CubicWindow),
}

/// The controller.
#[derive(Clone, Debug)]
pub(crate) struct Union {
    pub(super) clock: SynClock,
    pub(super) last: Instant,
    pub(super) phase: UnionPhase,
    /// x, packets/s.
    pub(super) rate: f64,
    /// What an earlier connection has found, until the first RTT tells whether it holds.
    pub(super) known: Option<KnownPath>,
    /// Start-up's trains in flight after its end.
    pub(super) refining: Option<(StartUp, Instant)>,
    pub(super) queue: Queue,
    pub(super) losses: Losses,
    /// D, D̂ and the most that arrived for long, packets/s.
    pub(super) arrives: f64,
    pub(super) count: Count,
    pub(super) delivered: Delivered,
    pub(super) arrived: Extreme,
    /// x̂, the highest rate tried in as long, packets/s.
    pub(super) tried: Extreme,
    pub(super) carried: Extreme,
    pub(super) link: Link,
    pub(super) belief: Belief,
    pub(super) growing: Growing,
    /// The last packet that start-up sent, if it met losses.
    pub(super) first_flight: Option<SeqNo>,
    /// Start-up's own queue has gone.
    pub(super) priced: bool,
    pub(super) others: Others,
    /// Until when others may still start up.
    pub(super) settled_until: Instant,
    pub(super) answer: Answer,
}

impl Union {
    pub(crate) fn new() -> Self {
        Self {
            clock: SynClock::default(),
            last: Instant::ZERO,
            phase: UnionPhase::Start(StartUp::default()),
            rate: 0.0,
            known: None,
            refining: None,
            queue: Queue::new(),
            losses: Losses::default(),
            arrives: 0.0,
            count: Count::default(),
            delivered: Delivered::default(),
            arrived: Extreme::most(),
            tried: Extreme::most(),
            carried: Extreme::most(),
            link: Link::default(),
            belief: Belief::default(),
            growing: Growing::default(),
            first_flight: None,
            priced: false,
            others: Others::default(),
            settled_until: Instant::ZERO,
            answer: Answer::default(),
        }
    }
}

/// The present growth, or the last one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growing {
    /// When it began, and x then, packets/s.
    pub(super) since: Instant,
    pub(super) from: f64,
    /// Until when the lossy round before it held the rate.
    pub(super) held_until: Instant,
}

/// The present drain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    /// When its present loop began, and how many went before.
    pub(super) since: Instant,
    pub(super) loops: u32,
    /// d of the present loop and of the one before, whose effect shows now.
    pub(super) depth: f64,
    pub(super) depth_before: f64,
    /// b: min(x, D) at its beginning, min(x, D̂) after a loop, packets/s.
    pub(super) base: f64,
    /// q when the loop began, s.
    pub(super) delay: f64,
    /// D̂ at its beginning and what was delivered in the loop before, packets/s, and the packets until then.
    pub(super) arrived: f64,
    pub(super) delivered: f64,
    pub(super) grown: Option<Grown>,
    /// (5) was for what D̂ showed, which may be less than the path delivers.
    pub(super) cut_by_losses: bool,
    /// Packets delivered and sent until the loop, and the rates of the loop before, packets/s.
    pub(super) delivered_before: f64,
    pub(super) sent_before: u64,
    pub(super) came: f64,
    pub(super) sent: f64,
    /// A queue may have given up packets, or has overflowed.
    pub(super) may_queue: bool,
    /// Whether the rate that it ends has been tried: the losses after a cut are of the rate before.
    pub(super) fails: bool,
    /// A queue ends growth.
    pub(super) ends_growth: bool,
}

/// How queues answer to drains, of late: by how much they should have fallen if all flows drained, and by how much they fell, s.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answer {
    pub(super) expected: f64,
    fallen: f64,
}

impl Answer {
    /// A queue of `delay` seconds should have fallen by `expected`, as far as it can, and has fallen by `fallen`.
    pub(super) fn add(&mut self, delay: f64, expected: f64, fallen: f64) {
        let expected = expected.min(delay);
        self.expected += expected;
        self.fallen += fallen.clamp(0.0, expected);
    }

    /// Older drains count less.
    pub(super) fn age(&mut self) {
        (self.expected, self.fallen) = (self.expected * AGEING, self.fallen * AGEING);
    }

    /// ρ
    pub(super) fn share(&self) -> f64 {
        self.fallen / self.expected
    }
}

/// Others that fill queues.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Others {
    /// Until when they are taken to compete.
    pub(super) until: Instant,
    /// When a competing flow may look for flows of this law again.
    pub(super) next_search: Instant,
    /// The last cut.
    pub(super) cut: Option<CubicWindow>,
}

impl Others {
    /// W after the last cut, as long as others are taken to compete.
    pub(super) fn window(&self, now: Instant) -> Option<CubicWindow> {
        self.cut.filter(|_| now < self.until)
    }
}
