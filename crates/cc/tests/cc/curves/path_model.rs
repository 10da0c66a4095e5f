//! A path of one flow: fixed delay, a link that serves at most its rate, independent random loss, exact reports.

use std::collections::VecDeque;

use farhaul_cc::{AckEvent, Control, Controller, LossEvent, Path, Spec};
use farhaul_units::{Duration, Instant, PacketRate, Rate, Rng, SendPeriod, SeqNo, SeqRange};

/// The receiver acknowledges, and the law runs, once per interval.
const SYN_INTERVAL: Duration = Duration::from_millis(10);
/// Simulated time before counting: several times the time that a law needs to fill the link.
const WARM_UP: Duration = Duration::from_secs(20);
/// Simulated time of counting.
const MEASURED: Duration = Duration::from_secs(100);

/// Properties of the path.
pub(crate) struct PathModel {
    /// The rate of the link, which the receiver also reports as capacity.
    pub(crate) link: Rate,
    /// The RTT. There is no queue.
    pub(crate) rtt: Duration,
    /// The share of packets lost at random.
    pub(crate) loss: f64,
    /// Bytes per packet.
    pub(crate) mss: u32,
}

/// Mean throughput of `seeds` runs in Mbit/s.
pub(crate) fn mean_throughput(spec: &str, model: &PathModel, seeds: u64) -> f64 {
    let sum: f64 = (0..seeds).map(|seed| Run::new(spec, model, seed).throughput()).sum();
    sum / seeds as f64
}

/// One connection on the path. Repair is ideal: a loss counts once, and a retransmission costs nothing.
struct Run<'a> {
    model: &'a PathModel,
    controller: Box<dyn Controller>,
    control: Control,
    path: Path,
    rng: Rng,
    /// Loss reports in flight to the sender: when their report arrives, and which packet.
    reports: VecDeque<(Instant, SeqNo)>,
    /// Arrivals in every interval whose acknowledgement is in flight.
    intervals: VecDeque<u64>,
    /// Arrivals in the current interval.
    arrived: u64,
}

impl<'a> Run<'a> {
    fn new(spec: &str, model: &'a PathModel, seed: u64) -> Self {
        let mut path = Path::default();
        path.mss = model.mss;
        path.rtt = model.rtt;
        path.max_window = 1 << 20;
        path.capacity = Some(PacketRate::new(link_rate(model)));
        let mut controller = spec.parse::<Spec>().expect("the tests name controllers that exist").build(seed);
        let mut control = Control::initial();
        controller.on_connect(&path, &mut control);
        let rng = Rng::new(seed ^ 0x5EED);
        let (reports, intervals) = (VecDeque::new(), VecDeque::new());
        Self { model, controller, control, path, rng, reports, intervals, arrived: 0 }
    }

    fn throughput(mut self) -> f64 {
        let shortest = SendPeriod::from_micros(1e6 / link_rate(self.model));
        let (warm, end) = (Instant::ZERO + WARM_UP, Instant::ZERO + WARM_UP + MEASURED);
        let mut next_ack = Instant::ZERO + SYN_INTERVAL;
        let mut counted = 0;
        while self.path.now < end {
            let before = self.arrived;
            self.send();
            if self.path.now >= warm {
                counted += self.arrived - before;
            }
            let period = if self.control.send_period < shortest { shortest } else { self.control.send_period };
            self.path.now += period.time_for(1);
            // A freeze moves the next departure. Arrivals in between are processed at its end.
            self.path.now = self.path.now.max(self.control.freeze_until.unwrap_or(Instant::ZERO));
            while self.path.now >= next_ack {
                self.end_interval();
                next_ack += SYN_INTERVAL;
            }
            while self.reports.front().is_some_and(|(due, _)| *due <= self.path.now) {
                let (_, lost) = self.reports.pop_front().expect("just seen");
                let range = [SeqRange::new(lost, lost)];
                let event = LossEvent::new(&range, 1, self.path.next_seq.minus(1));
                self.controller.on_loss(&self.path, &event, &mut self.control);
            }
        }
        counted as f64 * f64::from(self.model.mss) * 8.0 / MEASURED.as_secs_f64() / 1e6
    }

    /// One packet leaves. The link never holds more than it can carry, so only random loss occurs.
    fn send(&mut self) {
        let seq = self.path.next_seq;
        self.path.next_seq = seq.next();
        if self.rng.chance(self.model.loss) {
            self.reports.push_back((self.path.now + self.model.rtt, seq));
        } else {
            self.arrived += 1;
        }
    }

    /// The acknowledgement of one RTT ago arrives: the exact arrivals of one interval.
    fn end_interval(&mut self) {
        self.intervals.push_back(std::mem::take(&mut self.arrived));
        let in_flight = self.model.rtt.div_duration_f64(SYN_INTERVAL) as usize;
        if self.intervals.len() <= in_flight {
            return;
        }
        let arrived = self.intervals.pop_front().expect("more than none are in flight");
        let in_flight: u64 = self.intervals.iter().sum();
        let rate = PacketRate::from_packets_in(arrived, SYN_INTERVAL);
        self.path.arrival_rate = rate;
        self.path.delivery_rate = rate;
        let mut ack = AckEvent::default();
        ack.seq = self.path.next_seq.minus(in_flight as u32);
        ack.newly_acked = arrived as u32;
        self.controller.on_ack(&self.path, &ack, &mut self.control);
    }
}

/// The rate of the link, packets/s.
fn link_rate(model: &PathModel) -> f64 {
    model.link.bits_per_second() as f64 / (f64::from(model.mss) * 8.0)
}
