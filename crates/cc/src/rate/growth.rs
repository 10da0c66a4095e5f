//! How fast the default law (`udt.rs`) grows. The smaller a flow's share of the link, the faster, in proportion to its rate: with
//! cuts that are shares of the rate, that is what makes the rates of many flows even (a binomial law with k = −1/2 and
//! l = 1, Bansal & Balakrishnan 2001).
//!
//! ```text
//! smallness  s = √(B·P), at least 1; B = C of the probe pairs, if less than 500 000/s, within 1 to b times the
//!            C of udt.rs                                                                            (1)
//! growth     k = √(K·P), at least 1; K the class of B, see link_class.rs, or b times that of the C of udt.rs where
//!            B is b·C
//! no queue   R grows by c·k/500 per SYN while R < D·(1 + 5/4·c·k/500·(RTT/SYN + 10)), at least 1.01·D and
//!            at most 1.2·D; care c = |R/F − 1|/0.1, at least 3/10 and 1 − 1/s², at most 1;
//!            faster while the capacity is searched for, see search.rs                              (2)
//! standing   R grows by 1/3·k/500, but no more than the native law adds with the spare bandwidth B − R, up to
//!            the lead, D·(1 + l) with l = 3/100·(√s − 1/s²); a flow that is about alone drains it,
//!            S·(1 + l − q/s⁸) with q = (RTT − least RTT)/(0.5 s), at most 1/20                         (3)
//! belief     b = 16 at first; when a queue is proven or overflows: if D has grown by 1/100 since the last
//!            time, b ← 5/4·b, at most 16, otherwise b ← 0.95·b, at least 1                          (4)
//! crowd      b ← b/2, at least 1, when losses stay heavy (loss_cause.rs) at the beginning of a congestion   (5)
//! others     while they keep the queue, or feed it where pairs say nothing (standing_queue.rs), b is at least 4 in (4),
//!            and where pairs say nothing B is the class of 5/4·C and of 1 Gbit/s at least, within C and b·C   (6)
//! ```
//!
//! While a queue stands, what arrives of each flow is the same share of what it sends, whatever its round trip. So flows that
//! each keep to the lead of (3) come to rest where their leads are equal, and so are their rates; the sum of the leads is
//! what the queue still grows by. A flow that is alone has s = 1 and does not lead.
//!
//! The drain of (3) empties a queue of one's own within a second and leaves that of others. Without it a flow alone kept the 12 ms
//! that it had once made, took that for a queue of others by (6), and filled it up to its overflow. S is the most that arrived since
//! the queue began to stand: what arrives after it has drained is the flow's own rate.
//!
//! The care of (2) makes the rate cross F, what arrived when the path was last full, by a percent or two and not by its
//! growth of a round trip: when the queue overflows, so much is lost until the first cut takes effect, of the rivals' packets too.
//! Who has little has to grow out of it, and crosses F by little anyhow.
//!
//! In a queue that stands growth is slow, so that TCP's sawtooth has the time that it needs: with three times the growth two flows
//! had 62 % of a gigabit beside two of Reno, with this one 47 % (A16).
//!
//! Without (4), pairs that were delivered in bursts (a radio link, a relay, a network card that collects packets) make a flow
//! alone believe that it is small, and it keeps the queue full. Who is small gains by (3), who is alone does not.
//!
//! Without (6), a flow to which packets come in groups, so that pairs say nothing, takes whatever it has for all there is: of two
//! flows beside two of TCP one kept 62 of 975 Mbit/s. What it gains then is measured by (4) as well. What it takes the link for has
//! to be the same for flows of unlike rates: with a multiple of what each had seen, one had three times as much as the other (A16,
//! emulated: 133 and 396 Mbit/s; 163 to 253 with classes).
//!
//! | here | unit |
//! | --- | --- |
//! | `P` the period | s |
//! | `R` = 1/P the rate, `D` what arrives, `F` what arrived when the path was last full | packets/s |
//! | `S` the most that arrived while the queue stood | packets/s |
//! | `B` what the link is taken to carry, `K` its class | packets/s |
//! | `b` how many times what was seen the probe pairs are believed | |
//!
//! Departure D23.

use farhaul_units::PacketRate;

use super::daimd::increase;
use super::link_class::{class, class_of_unknown, pairs_say_nothing};
use super::syn::SYN_INTERVAL;
use crate::Path;

/// Growth per SYN interval of a flow alone, (2): a fifth per second, so that a bottleneck is overrun by a few percent before
/// its queue shows.
const GROWTH: f64 = 0.002;
/// SYN intervals that what arrives is smoothed over at the receiver, (2).
const SMOOTHED: f64 = 10.0;
/// A rate that leads what arrives by this much more than its own growth explains has met the bottleneck, (2).
const UNEXPLAINED: f64 = 1.25;
/// Most that it may lead, (2): a round trip of seconds is mostly a queue that stands since before it was measured.
const MAX_LEAD: f64 = 1.2;
/// Growth in a standing queue, as a share of that without one, (3).
const STANDING_GROWTH: f64 = 1.0 / 3.0;
/// Width of the band around F in which growth is careful, (2): a cut takes the rate out of it.
const CAREFUL_BAND: f64 = 0.1;
/// Least care, (2): a flow alone crosses F by a percent in a fifth of a second. With less it needs seconds to come back from
/// losses of the link that it took for congestion.
const LEAST_CARE: f64 = 0.3;
/// Least that a rate may lead, (2): arrival speeds are not measured better.
const MIN_LEAD: f64 = 0.01;
/// Lead in a standing queue per √s − 1/s², (3): 2 % for one of two flows, 5 % for one of ten. TCP's CUBIC then has half of a link
/// of 100 Mbit/s and 16 ms: a flow that leads by less loses less when the queue overflows, and leaves TCP less.
const STANDING_LEAD: f64 = 0.03;
/// How long a flow alone takes to drain a queue, s, (3): a quarter of the time after which a queue that stands is others'.
const DRAIN_TIME: f64 = 0.5;
/// Most that it falls below what arrives for that, (3): a queue of 25 ms and more.
const MAX_DRAIN: f64 = 0.05;
/// Probe pairs are believed up to this multiple of what trains showed or arrived at best, (4).
const MAX_BELIEF: f64 = 16.0;
/// What arrives has grown if by this factor, (4): half of what a flow alone leads by.
const GROWN: f64 = 1.01;
/// What that does to belief, (4).
const CONFIRMED: f64 = 1.25;
/// And what it does that nothing was gained, (4): from tenfold to nothing in 45 round trips.
const REFUTED: f64 = 0.95;
/// What heavy losses do to belief, (5).
const CROWDED: f64 = 0.5;
/// Least belief beside others, (6): a flow that has all that it has ever seen then leads by 3.5 %.
const LEAST_BESIDE_OTHERS: f64 = 4.0;

/// How far probe pairs are believed, (4) and (5).
#[derive(Clone, Copy, Debug)]
pub(super) struct Belief {
    multiple: f64,
    arrived: f64,
    /// Others keep the queue, (6).
    beside_others: bool,
}

impl Default for Belief {
    fn default() -> Self {
        Self { multiple: MAX_BELIEF, arrived: f64::INFINITY, beside_others: false }
    }
}

impl Belief {
    /// A queue was proven to stand, or overflowed, while `arrives` packets/s did, (4).
    pub(super) fn on_queue(&mut self, arrives: f64) {
        let factor = if arrives > self.arrived * GROWN { CONFIRMED } else { REFUTED };
        let least = if self.beside_others { LEAST_BESIDE_OTHERS } else { 1.0 };
        self.multiple = (self.multiple * factor).clamp(least, MAX_BELIEF);
        self.arrived = arrives;
    }

    /// Whether others keep the queue that stands, (6).
    pub(super) fn set_beside_others(&mut self, beside_others: bool) {
        self.beside_others = beside_others;
    }

    /// More is lost than a link loses: there are more flows than the link has packets for, (5).
    pub(super) fn on_crowd(&mut self) {
        self.multiple = (self.multiple * CROWDED).max(1.0);
    }
}

/// What a SYN interval adds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    rate: f64,
    link: f64,
    smallness: f64,
    /// How many times as fast as a flow alone on a link of its class it grows, `k`.
    pace: f64,
    care: f64,
    /// What a flow alone grows by per SYN interval, as a share of its rate.
    alone: f64,
}

impl Growth {
    /// For a flow that sends at `rate` packets/s and has seen `capacity`.
    pub(super) fn of(rate: f64, capacity: Option<PacketRate>, belief: Belief, path: &Path) -> Self {
        let seen = capacity.unwrap_or_default().packets_per_second();
        let pairs = path.capacity.unwrap_or_default().packets_per_second();
        let unknown = if belief.beside_others { class_of_unknown(seen, path.mss) } else { 0.0 };
        let pairs = if pairs_say_nothing(path) { unknown } else { pairs };
        let most = seen * belief.multiple;
        let link = pairs.clamp(seen, most);
        // Belief is no measurement, and has no class.
        let class = if pairs > most { class(seen, path.mss) * belief.multiple } else { class(link, path.mss) };
        let root = |link: f64| libm::sqrt(link / rate).max(1.0);
        Self { rate, link, smallness: root(link), pace: root(class), care: 1.0, alone: GROWTH }
    }

    /// With at least this share of the rate per SYN interval, for a flow that searches for the capacity.
    pub(super) fn at_least(self, share: f64) -> Self {
        Self { alone: self.alone.max(share / self.pace), ..self }
    }

    /// With care around `full` packets/s, which is what arrived when the path was last full; infinite if it never was.
    pub(super) fn around(self, full: f64) -> Self {
        let care = libm::fabs(self.rate / full - 1.0) / CAREFUL_BAND;
        Self { care: care.clamp(LEAST_CARE.max(1.0 - self.share()), 1.0), ..self }
    }

    /// Packets per SYN to add per SYN while no queue stands and `arrives` packets/s do, (2).
    pub(super) fn unseen(self, path: &Path, arrives: Option<f64>) -> f64 {
        let lag = path.rtt.as_secs_f64() / SYN_INTERVAL.as_secs_f64() + SMOOTHED;
        let lead = 1.0 + (UNEXPLAINED * self.alone * self.pace * self.care * lag).max(MIN_LEAD);
        self.within(arrives, lead.min(MAX_LEAD), self.per_syn() * self.care)
    }

    /// The same while a queue stands, (3).
    pub(super) fn standing(self, path: &Path, arrives: Option<f64>, stood: f64) -> f64 {
        let added = (self.per_syn() * STANDING_GROWTH).min(increase(self.link - self.rate, path.mss.max(1)));
        let most = arrives.map(|arrives| self.standing_most(path, arrives, stood));
        self.within(most, 1.0, added)
    }

    /// The most that the rate may be, packets/s, while a queue stands and `arrives` packets/s do, of late `stood` at best, (3).
    pub(super) fn standing_most(self, path: &Path, arrives: f64, stood: f64) -> f64 {
        let share = self.share();
        let lead = 1.0 + STANDING_LEAD * (libm::sqrt(self.smallness) - share);
        let drain = (queueing(path) / DRAIN_TIME).min(MAX_DRAIN) * share * share * share * share;
        (arrives * lead).min(arrives.max(stood) * (lead - drain))
    }

    /// This flow's share of the link, 1/s².
    fn share(self) -> f64 {
        1.0 / (self.smallness * self.smallness)
    }

    fn per_syn(self) -> f64 {
        self.rate * SYN_INTERVAL.as_secs_f64() * self.alone * self.pace
    }

    fn within(self, arrives: Option<f64>, lead: f64, added: f64) -> f64 {
        if arrives.is_some_and(|arrives| self.rate > arrives * lead) { 0.0 } else { added }
    }
}

/// How long packets wait in queues now, s.
fn queueing(path: &Path) -> f64 {
    path.min_rtt.map_or(0.0, |least| path.round_trip_now().saturating_sub(least).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use farhaul_units::Duration;

    use super::*;

    fn path(pairs: f64) -> Path {
        Path { capacity: Some(PacketRate::new(pairs)), rtt: Duration::from_millis(100), mss: 1_500, ..Path::default() }
    }

    fn growth(rate: f64, seen: f64, pairs: f64) -> Growth {
        Growth::of(rate, Some(PacketRate::new(seen)), Belief::default(), &path(pairs))
    }

    /// 100 Mbit/s in packets of 1500 bytes, per second.
    const LINK: f64 = 1e8 / 12_000.0;

    #[test]
    fn a_flow_alone_grows_by_a_fifth_per_second_and_a_small_one_faster_but_by_less() {
        let alone = growth(LINK, LINK, LINK).unseen(&path(LINK), Some(LINK));
        let small = growth(LINK / 4.0, LINK / 4.0, LINK).unseen(&path(LINK), Some(LINK / 4.0));
        assert!((alone - LINK / 100.0 * 0.002).abs() < 1e-9);
        assert!((small - LINK / 400.0 * 0.004).abs() < 1e-9);
    }

    #[test]
    fn flows_of_one_rate_grow_alike_on_links_of_one_class() {
        let on = |link: f64| growth(LINK / 4.0, LINK / 4.0, link).unseen(&path(link), Some(LINK / 4.0));
        assert!((on(LINK * 0.6) - on(LINK)).abs() < 1e-9);
        let beside_others = |seen: f64| {
            let belief = Belief { multiple: 4.0, beside_others: true, ..Belief::default() };
            Growth::of(LINK / 4.0, Some(PacketRate::new(seen)), belief, &path(1e6)).per_syn()
        };
        assert!((beside_others(LINK * 0.6) - beside_others(LINK)).abs() < 1e-9);
        assert!((beside_others(LINK) / on(LINK) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn who_leads_by_more_than_his_growth_has_met_the_bottleneck() {
        let growth = growth(8_000.0, 8_000.0, 8_000.0);
        assert!(growth.unseen(&path(8_000.0), Some(8_000.0 / 1.04)) > 0.0);
        assert_eq!(growth.unseen(&path(8_000.0), Some(8_000.0 / 1.06)), 0.0);
        assert_eq!(growth.standing(&path(8_000.0), Some(8_000.0 / 1.03), 0.0), 0.0);
        assert!(growth.unseen(&path(8_000.0), None) > 0.0, "nothing was measured");
    }

    #[test]
    fn growth_is_careful_around_the_rate_at_which_the_path_was_full() {
        let around = |full: f64| growth(8_000.0, 8_000.0, 8_000.0).around(full).unseen(&path(8_000.0), Some(8_000.0));
        let growth = around(f64::INFINITY);
        assert!((around(8_000.0) / growth - 0.3).abs() < 1e-9 && (around(8_000.0 / 1.05) / growth - 0.5).abs() < 1e-9);
        assert!((around(6_000.0) / growth - 1.0).abs() < 1e-9 && (around(12_000.0) / growth - 1.0).abs() < 1e-9);
    }

    #[test]
    fn who_is_small_is_not_careful() {
        let around = |full: f64| growth(4_000.0, 8_000.0, 8_000.0).around(full).unseen(&path(8_000.0), Some(8_000.0));
        assert!((around(4_000.0) / around(f64::INFINITY) - 0.5).abs() < 1e-9, "half of the path is others'");
    }

    #[test]
    fn in_a_standing_queue_the_small_lead_and_who_is_alone_does_not() {
        let most = |rate: f64| growth(rate, 8_000.0, 8_000.0).standing_most(&path(8_000.0), rate, 0.0);
        let lead = |rate: f64| most(rate) / rate;
        assert!((lead(8_000.0) - 1.0).abs() < 1e-9);
        assert!((lead(4_000.0) - 1.0207).abs() < 1e-4 && (lead(800.0) - 1.0503).abs() < 1e-4);
    }

    #[test]
    fn who_is_alone_drains_a_queue_and_who_has_rivals_does_not() {
        let queue = |millis: u64| Path { min_rtt: Some(Duration::from_millis(100 - millis)), ..path(8_000.0) };
        let most =
            |rate: f64, millis, stood| growth(rate, 8_000.0, 8_000.0).standing_most(&queue(millis), rate, stood) / rate;
        assert!((most(8_000.0, 5, 0.0) - 0.99).abs() < 1e-9 && (most(8_000.0, 50, 0.0) - 0.95).abs() < 1e-9);
        assert!((most(8_000.0, 5, 8_200.0) - 1.0).abs() < 1e-9, "it drains already");
        assert!(most(4_000.0, 5, 0.0) > 1.02);
    }

    #[test]
    fn pairs_are_believed_sixteen_times_over_at_most_and_not_at_all_if_they_came_in_one_batch() {
        assert!((growth(1_000.0, 1_000.0, 1e5).smallness - 4.0).abs() < 1e-9);
        assert!((growth(1_000.0, 1_000.0, 1e6).smallness - 1.0).abs() < 1e-9);
        assert!((growth(1_000.0, 1_000.0, 10.0).smallness - 1.0).abs() < 1e-9);
    }

    #[test]
    fn pairs_are_believed_as_long_as_leading_brings_something() {
        let smallness = |arrives: fn(i32) -> f64| {
            let mut belief = Belief::default();
            (0..100).for_each(|round| belief.on_queue(arrives(round)));
            Growth::of(1_000.0, Some(PacketRate::new(1_000.0)), belief, &path(1e5)).smallness
        };
        assert!((smallness(|_| 1_000.0) - 1.0).abs() < 1e-9);
        assert!((smallness(|round| 1_000.0 * libm::pow(1.02, f64::from(round))) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn flows_beside_others_take_a_link_of_which_pairs_say_nothing_for_the_same_whatever_they_have_seen() {
        let belief = Belief { beside_others: true, ..Belief::default() };
        let link = |seen: f64| Growth::of(seen, Some(PacketRate::new(seen)), belief, &path(1e6)).link;
        assert!((link(32_000.0) / link(14_000.0) - 1.0).abs() < 1e-9);
        assert!((link(100.0) / 1_600.0 - 1.0).abs() < 1e-9, "but for no more than belief allows");
    }

    #[test]
    fn beside_others_a_flow_believes_in_more_than_it_has_even_where_pairs_say_nothing() {
        let mut belief = Belief::default();
        let mut smallness = |beside_others| {
            belief.set_beside_others(beside_others);
            (0..100).for_each(|_| belief.on_queue(1_000.0));
            Growth::of(1_000.0, Some(PacketRate::new(1_000.0)), belief, &path(1e6)).smallness
        };
        assert!((smallness(true) - 2.0).abs() < 1e-9 && (smallness(false) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn heavy_losses_end_belief_within_four_congestions() {
        let mut belief = Belief::default();
        (0..4).for_each(|_| belief.on_crowd());
        assert!((Growth::of(1_000.0, Some(PacketRate::new(1_000.0)), belief, &path(1e5)).smallness - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_flow_that_fills_the_link_hardly_feeds_a_standing_queue() {
        let alone = growth(8_000.0, 8_000.0, 8_000.0).standing(&path(8_000.0), Some(8_000.0), 0.0);
        assert!(alone <= 0.01);
        assert!(growth(2_000.0, 2_000.0, 8_000.0).standing(&path(8_000.0), Some(2_000.0), 0.0) > 0.02);
    }
}
