//! The link between a connection and its controller: the controller's input, and bounds on its output.

use farhaul_cc::{AckEvent, Control, CustomMessage, DeliverySample, LossEvent, Path, Supervised};
use farhaul_units::{Duration, Instant, PacketRate, SendPeriod};

use crate::consts::SYN_INTERVAL;
use crate::estimate::{MERGED_RATE, PAIRS_KEPT, PROBE_INTERVAL, SentRate};

/// Weight of the old value in the filters of reported rates. Source: libudt 4.11, §4 of the algorithms sheet.
const FILTER: f64 = 7.0 / 8.0;
/// A rise by this factor counts as a jump. Start-up causes such rises.
const JUMP: f64 = 2.0;
/// Weight of the old value after a jump.
const RISE_FILTER: f64 = 0.5;
/// A congestion warning lengthens the period by this factor. Source: libudt 4.11.
const WARNING: f64 = 1.125;
/// Packets over which libudt measures the arrival rate. Before that many arrived, it reports its initial value of one
/// or two packets per second. A send rate set from that value would need minutes to recover.
const ARRIVAL_WINDOW: u64 = 16;
/// After a change of the packet size, the peer's reports do not count until so many packets of the new size were acknowledged: its
/// windows still hold packets of the old one. They have 16 packets for the arrival rate, and 64 pairs of 16 packets each for the
/// capacity. Twice as many leave time for the reports.
const ARRIVAL_SETTLES: u64 = 2 * ARRIVAL_WINDOW;
const CAPACITY_SETTLES: u64 = 2 * PAIRS_KEPT as u64 * PROBE_INTERVAL as u64;

/// A controller that takes over goes on with at most this multiple of what the path carried. It is room for a measurement that
/// lags behind.
const TAKEN_OVER: f64 = 2.0;
/// The least window with which it goes on, packets.
const LEAST_TAKEN_OVER: f64 = Control::INITIAL_CWND;
/// Messages of the peer's controller that wait for one that hears them. A question at the beginning is one. The peer may send
/// any number, so most of a flood is dropped.
const KEPT_MESSAGES: usize = 4;

/// A controller with its settings and the peer's reports.
#[derive(Debug)]
pub(crate) struct Congestion {
    /// Events that change nothing here go to it directly. Its settings are read by [`control`](Self::control) and
    /// [`send_period`](Self::send_period).
    pub(crate) controller: Supervised,
    /// The controller was set on the live connection, so none of the configured ones replaces it.
    is_chosen: bool,
    /// The first messages that came before a controller that listens to any.
    unheard: Vec<CustomMessage>,
    /// Shortest period that the rate cap permits.
    min_period: SendPeriod,
    arrival_rate: Option<PacketRate>,
    capacity: Option<PacketRate>,
    sent: SentRate,
    /// Packets acknowledged so far.
    acked: u64,
    /// The peer asked to slow down, and the controller has made no decision since.
    warned: bool,
    scale: Scale,
    /// Packets acknowledged since their size changed; without end if it never did.
    since_change: u64,
}

/// The controller counts packets of the first size. How many of those a packet of another size is.
///
/// So a change of the size changes no rate in bytes, and no state of a controller. It is exactly one if the size is fixed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Of packets that leave now.
    pub(crate) sent: f64,
    /// Of packets that are acknowledged now.
    pub(crate) acked: f64,
}

impl Scale {
    /// A count of acknowledged packets. One is never none.
    pub(crate) fn acked(self, packets: u32) -> u32 {
        libm::ceil(f64::from(packets) * self.acked) as u32
    }

    /// A count of packets that leave now.
    pub(crate) fn sent(self, packets: u32) -> u32 {
        (f64::from(packets) * self.sent) as u32
    }

    /// A sample of acknowledged packets.
    pub(crate) fn delivery(self, sample: DeliverySample) -> DeliverySample {
        let DeliverySample { packets, sent, delivered } = sample;
        DeliverySample { packets: self.acked(packets), sent: self.rate(sent), delivered: self.rate(delivered) }
    }

    /// A rate of acknowledged packets.
    pub(crate) fn rate(self, rate: PacketRate) -> PacketRate {
        PacketRate::new(rate.packets_per_second() * self.acked)
    }

    /// A rate that a controller sees, for packets that leave now.
    pub(crate) fn shown(self, rate: PacketRate) -> PacketRate {
        PacketRate::new(rate.packets_per_second() / self.sent)
    }
}

impl Congestion {
    pub(crate) fn new(controller: Supervised, min_period: SendPeriod, now: Instant) -> Self {
        Self {
            controller,
            is_chosen: false,
            unheard: Vec::new(),
            min_period,
            arrival_rate: None,
            capacity: None,
            sent: SentRate::new(now),
            warned: false,
            acked: 0,
            scale: Scale { sent: 1.0, acked: 1.0 },
            since_change: u64::MAX,
        }
    }

    /// Sets the shortest period that the rate cap permits.
    pub(crate) fn set_min_period(&mut self, period: SendPeriod) {
        self.min_period = period;
    }

    /// Begins again on another path, with a controller that knows nothing. The rate cap stays.
    ///
    /// A controller that was set on the live connection stays, and begins with the settings of a new connection.
    pub(crate) fn restart(&mut self, make: impl FnOnce() -> Supervised, now: Instant) {
        let (controller, is_chosen) = if self.is_chosen {
            self.controller.begin_with(Control::initial());
            let none = Supervised::none();
            (std::mem::replace(&mut self.controller, none), true)
        } else {
            self.controller.on_close();
            (make(), false)
        };
        *self = Self { is_chosen, ..Self::new(controller, self.min_period, now) };
    }

    /// Another controller goes on in mid-transfer. What is known of the path stays.
    pub(crate) fn replace(&mut self, mut controller: Supervised, path: &Path) {
        let before = *self.controller.control();
        self.controller.on_close();
        self.warned = false;
        self.is_chosen = true;
        let is_new = self.acked < ARRIVAL_WINDOW;
        if !is_new {
            controller.begin_with(taken_over(&before, path));
        }
        self.controller = controller;
        if is_new {
            self.controller.on_connect(path);
        } else {
            self.controller.on_take_over(path);
        }
        for CustomMessage { kind, body } in std::mem::take(&mut self.unheard) {
            self.on_custom_message(path, kind, &body);
        }
    }

    /// Sets the scale of packets. Everything else here is in packets of the first size, but for counts of sent packets.
    pub(crate) fn set_scale(&mut self, scale: Scale) {
        if scale.acked != self.scale.acked {
            self.since_change = 0;
        }
        self.scale = scale;
    }

    pub(crate) const fn scale(&self) -> Scale {
        self.scale
    }

    /// Counts sent packets.
    pub(crate) fn note_sent(&mut self, now: Instant, packets: u32) {
        self.sent.note(now, self.scale.sent(packets));
    }

    /// The controller's settings, for packets that leave now.
    pub(crate) fn control(&self) -> Control {
        let scale = |packets: f64| packets / self.scale.sent;
        let control = *self.controller.control();
        let burst = control.burst.map(|burst| scale(burst.into()) as u32);
        // The controller's bursts are of its own rate. At that of a low cap, one would wait for a second.
        let least_burst = control.least_burst.filter(|_| control.send_period >= self.min_period);
        Control { cwnd: control.cwnd.map(scale), burst, least_burst, ..control }
    }

    /// The period of packets that leave now: the controller's, or that of the rate cap if that is longer.
    pub(crate) fn send_period(&self) -> SendPeriod {
        let period = self.first_size_period();
        if self.scale.sent == 1.0 { period } else { period.scaled(self.scale.sent) }
    }

    fn first_size_period(&self) -> SendPeriod {
        if self.is_capped() { self.min_period } else { self.wanted_period() }
    }

    /// Whether the rate cap permits less than the controller.
    pub(crate) fn is_capped(&self) -> bool {
        self.wanted_period() < self.min_period
    }

    /// How many times more than the cap the controller permits, if the cap holds.
    pub(crate) fn beyond_cap(&self) -> Option<f64> {
        self.is_capped().then(|| self.min_period.as_micros() / self.wanted_period().as_micros())
    }

    fn wanted_period(&self) -> SendPeriod {
        let period = self.controller.control().send_period;
        if self.warned { period.scaled(WARNING) } else { period }
    }

    pub(crate) const fn arrival_rate(&self) -> Option<PacketRate> {
        self.arrival_rate
    }

    pub(crate) const fn capacity(&self) -> Option<PacketRate> {
        self.capacity
    }

    /// Takes the peer's measurements from a full acknowledgement.
    pub(crate) fn on_report(&mut self, now: Instant, arrival_rate: u32, capacity: u32, round_trip: Duration) {
        let bound = self.sent.at_most(now, round_trip);
        let measured = self.acked >= ARRIVAL_WINDOW && self.since_change >= ARRIVAL_SETTLES;
        if let Some(rate) = PacketRate::from_wire(arrival_rate).filter(|_| measured) {
            let rate = self.scale.rate(rate);
            self.arrival_rate = Some(filter(self.arrival_rate, if rate > bound { bound } else { rate }));
        }
        if let Some(rate) = PacketRate::from_wire(capacity).filter(|_| self.since_change >= CAPACITY_SETTLES) {
            let rate = self.scale.rate(rate);
            // What lies between merged pairs and a capacity is neither. UDT's own law takes it as libudt does.
            let merged = |rate: PacketRate| rate.packets_per_second() >= MERGED_RATE;
            let counts = |before: &PacketRate| !self.controller.wants_deliveries() || merged(*before) == merged(rate);
            let before = self.capacity.filter(counts);
            self.capacity = Some(filter(before, rate));
        }
    }

    /// Counts acknowledged packets.
    pub(crate) fn on_progress(&mut self, packets: u32) {
        self.acked += u64::from(packets);
        self.since_change = self.since_change.saturating_add(packets.into());
    }

    pub(crate) fn on_ack(&mut self, path: &Path, ack: &AckEvent) {
        self.warned = false;
        self.controller.on_ack(path, ack);
    }

    /// A delivery rate, but no more than twice the send rate: the peer claims what has arrived (attack B9).
    pub(crate) fn credible(&mut self, now: Instant, rate: PacketRate, round_trip: Duration) -> PacketRate {
        let bound = self.sent.at_most(now, round_trip);
        if rate > bound { bound } else { rate }
    }

    pub(crate) fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>) {
        self.warned = false;
        self.controller.on_loss(path, loss);
    }

    pub(crate) fn on_custom_message(&mut self, path: &Path, kind: u16, body: &[u8]) {
        if self.controller.wants_custom_messages() {
            self.controller.on_custom_message(path, kind, body);
        } else if self.unheard.len() < KEPT_MESSAGES {
            self.unheard.push(CustomMessage { kind, body: body.to_vec() });
        }
    }

    /// The peer asks to slow down (type 4). The rate falls by one ninth until the controller decides anew. Source:
    /// libudt 4.11.
    ///
    /// Repeated warnings change nothing. Otherwise a few hundred forged packets would stop the flow for good. A
    /// controller may react in its own way instead.
    pub(crate) fn on_warning(&mut self, path: &Path) {
        self.warned = !self.controller.on_warning(path);
    }
}

/// The settings with which a controller takes over from one with the settings `before`: those of a new connection, but for the
/// window and the period.
fn taken_over(before: &Control, path: &Path) -> Control {
    let time = path.rtt.saturating_add(SYN_INTERVAL);
    let carried = path.delivery_rate.or(path.arrival_rate).filter(|rate| *rate > PacketRate::default());
    let fills = |rate: PacketRate| rate.packets_in(time) + Control::INITIAL_CWND;
    let cwnd = before.cwnd.or_else(|| before.send_period.packet_rate().map(fills)).unwrap_or(path.outstanding);
    let most = carried.map_or(f64::INFINITY, |rate| fills(rate) * TAKEN_OVER);
    let fastest = carried.map(|rate| PacketRate::new(rate.packets_per_second() * TAKEN_OVER).send_period());
    let period = before.send_period;
    Control {
        cwnd: Some(cwnd.min(most).max(LEAST_TAKEN_OVER)),
        send_period: if period.is_unpaced() { period } else { fastest.filter(|most| period < *most).unwrap_or(period) },
        ..Control::initial()
    }
}

/// UDT's filter, except that it follows a jump at half weight (departure D24).
///
/// During start-up the rate grows fourfold per RTT. UDT's filter needs dozens of reports and would lag far behind the
/// path's capacity.
fn filter(old: Option<PacketRate>, new: PacketRate) -> PacketRate {
    let Some(old) = old else { return new };
    let jump = new.packets_per_second() > old.packets_per_second() * JUMP;
    let weight = if jump { RISE_FILTER } else { FILTER };
    PacketRate::new(old.packets_per_second() * weight + new.packets_per_second() * (1.0 - weight))
}

#[cfg(test)]
mod tests {
    use farhaul_cc::Spec;
    use farhaul_units::Duration;

    use super::*;

    fn controller() -> Supervised {
        Supervised::new(|| Spec::default().build(1))
    }

    #[test]
    fn reported_rates_do_not_count_before_sixteen_packets_arrived() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut congestion = Congestion::new(controller(), SendPeriod::UNPACED, Instant::ZERO);
        congestion.on_report(at(20), 2, 1_000, Duration::from_millis(20));
        congestion.on_progress(15);
        congestion.on_report(at(40), 2, 1_000, Duration::from_millis(20));
        assert_eq!(congestion.arrival_rate(), None);
        congestion.on_progress(15);
        congestion.note_sent(at(45), 20);
        congestion.on_report(at(60), 500, 1_000, Duration::from_millis(20));
        assert_eq!(congestion.arrival_rate(), Some(PacketRate::new(500.0)));
    }

    #[test]
    fn a_claimed_arrival_rate_counts_as_twice_the_send_rate_at_most() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut congestion = Congestion::new(controller(), SendPeriod::UNPACED, Instant::ZERO);
        congestion.on_progress(100);
        congestion.note_sent(at(5), 20);
        congestion.note_sent(at(15), 0);
        let rates = [(20, 1_000), (40, 1_000_000), (50, 0)].map(|(ms, rate)| {
            congestion.on_report(at(ms), rate, 1_000, Duration::from_millis(20));
            congestion.arrival_rate()
        });
        // 20 packets in 10 ms are 2000 per second. A jump to 4000 counts half.
        let expected = [1_000.0, 2_500.0, 2_500.0].map(|rate| Some(PacketRate::new(rate)));
        assert_eq!(rates, expected);
    }

    #[test]
    fn a_capacity_counts_once_the_peer_holds_no_pair_of_the_size_before() {
        let mut congestion = Congestion::new(controller(), SendPeriod::UNPACED, Instant::ZERO);
        congestion.set_scale(Scale { sent: 6.0, acked: 6.0 });
        // The peer keeps 64 pairs, one per 16 packets.
        let known_after = [64 * 16, 64 * 16 - 1, 1].map(|packets| {
            congestion.on_progress(packets);
            congestion.on_report(Instant::ZERO, 1_000, 1_000, Duration::from_millis(20));
            congestion.capacity
        });
        assert_eq!(known_after, [None, None, Some(PacketRate::new(6_000.0))]);
    }

    #[test]
    fn bursts_of_a_controller_do_not_wait_for_the_rate_of_a_cap() {
        let mut congestion = Congestion::new(controller(), SendPeriod::UNPACED, Instant::ZERO);
        let send_period = SendPeriod::from_micros(100.0);
        congestion.controller.begin_with(Control { send_period, least_burst: Some(40), ..Control::initial() });
        assert_eq!(congestion.control().least_burst, Some(40));
        congestion.set_min_period(SendPeriod::from_micros(30_000.0));
        assert_eq!(congestion.control().least_burst, None);
    }

    #[test]
    fn a_burst_is_counted_in_packets_that_leave_now() {
        let mut congestion = Congestion::new(controller(), SendPeriod::UNPACED, Instant::ZERO);
        congestion.controller.begin_with(Control { burst: Some(10), ..Control::initial() });
        congestion.set_scale(Scale { sent: 0.5, acked: 1.0 });
        assert_eq!(congestion.control().burst, Some(20));
    }
}
