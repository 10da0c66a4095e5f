//! What the transport reports: which event starts up, measures, steps the law or ends start-up.

use farhaul_units::{Duration, PacketRate, SeqNo};

use super::constants::{AGREE, CATCH_UP_PACE, HALF, MEMORY, PATIENCE, VISIBLE, loop_time, round, slowest};
use super::senses::arrives;
use super::start;
use super::state::{Union, UnionPhase};
use crate::controller::{AckEvent, Control, Controller, DeliveryEvent, KnownPath, LossEvent, Path, TimeoutEvent};
use crate::rate::flow_control::{cwnd, set_cwnd};
use crate::rate::period::longer;

impl Union {
    /// (8). Whether start-up ends by what an earlier connection has found, now that an RTT is `measured`.
    fn recalls(&mut self, measured: Duration, trains: Option<f64>, path: &Path, control: &mut Control) -> bool {
        let Some(known) = self.known.take() else { return false };
        let (rtt, measured) = (known.rtt.as_secs_f64(), measured.as_secs_f64());
        let link = known.rate.bits_per_second() as f64 / (8.0 * f64::from(path.mss.max(1)));
        let half = link * HALF;
        let is_same = (measured - rtt).abs() < (rtt * AGREE).max(VISIBLE) && trains.is_none_or(|trains| trains > half);
        // Start-up does as much in its next RTT, and learns more.
        let agrees = is_same && half * measured > cwnd(control) * (1.0 + start::GROWTH);
        if agrees {
            self.known = Some(known);
            // Trains of what leaves now tell first whether it holds.
            if let UnionPhase::Start(start) = self.phase {
                self.refining = Some((start, path.now + round(path).saturating_mul(2)));
            }
            (self.phase, self.rate, self.priced) = (UnionPhase::Grow, half, true);
            (self.last, self.growing.since) = (path.now, path.now);
            self.link.recall(link);
            self.losses.restart(path);
            self.apply(path, control);
        }
        agrees
    }

    /// Start-up is over, and the link carries `capacity`.
    fn end_start(&mut self, capacity: f64, path: &Path, control: &mut Control) {
        self.rate = capacity;
        self.settled_until = path.now + Duration::from_secs_f64(PATIENCE);
        let drain = UnionPhase::Drain(self.drain(capacity, path));
        (self.last, self.growing.since) = (path.now, path.now);
        if let UnionPhase::Start(start) = std::mem::replace(&mut self.phase, drain) {
            match start.capacity() {
                Some(_) => self.link.set_trains(capacity),
                None if self.queue.delay() > self.threshold() => _ = self.belief.fail(capacity, 0.0, path.now),
                None => {}
            }
            self.refining = Some((start, path.now + path.rtt));
        }
        self.losses.restart(path);
        self.apply(path, control);
    }
}

impl Controller for Union {
    fn name(&self) -> &str {
        "union"
    }

    fn recall(&mut self, known: KnownPath) {
        self.known = Some(known);
    }

    fn remember(&self, path: &Path, limited_by_path: bool) -> Option<KnownPath> {
        let carried = Some(self.carried.get()).filter(|rate| *rate > slowest(path));
        let carried = carried.map(|rate| PacketRate::new(rate).to_rate(path.mss));
        let has_started = !matches!(self.phase, UnionPhase::Start(_));
        // A connection that had too little data to try what it recalled has not refuted it.
        let holds = |known: &KnownPath| {
            let confirmed = known.rate.bits_per_second() as f64 * (1.0 - AGREE);
            !has_started
                || self.belief.limit().is_none()
                || carried.is_some_and(|rate| rate.bits_per_second() as f64 > confirmed)
        };
        let known = self.known.filter(holds);
        if !limited_by_path || !has_started {
            return known;
        }
        let recalled = known.filter(|_| self.belief.limit().is_none()).map(|known| known.rate);
        Some(KnownPath { rate: carried.max(recalled)?, rtt: Duration::from_secs_f64(self.queue.base()?) })
    }

    fn on_connect(&mut self, _path: &Path, control: &mut Control) {
        control.catch_up_pace = Some(CATCH_UP_PACE);
        control.window_of_outstanding = true;
    }

    /// Start-up is over with the rate that arrived under the law before.
    fn on_take_over(&mut self, path: &Path, control: &mut Control) {
        self.on_connect(path, control);
        let measured = path.delivery_rate.or(path.arrival_rate).map(PacketRate::packets_per_second);
        let Some(rate) = measured.filter(|rate| *rate > slowest(path)) else { return };
        (self.phase, self.rate, self.priced) = (UnionPhase::Grow, rate, true);
        (self.last, self.growing.since) = (path.now, path.now);
        self.link.recall(rate);
        self.losses.restart(path);
        self.apply(path, control);
    }

    fn wants_deliveries(&self) -> bool {
        true
    }

    fn on_delivery(&mut self, path: &Path, delivery: &DeliveryEvent, control: &mut Control) {
        if let Some(rtt) = delivery.rtt {
            self.queue.take(rtt, delivery.return_delay.map(|micros| f64::from(micros) * 1e-6), path);
        }
        self.delivered.take(delivery);
        // What is recalled grows only as it arrives, so it must be seen to arrive.
        let counted = self.count.take(path, delivery).filter(|_| self.belief.limit().is_none());
        if let Some(rate) = arrives(delivery).or(counted) {
            self.arrives = rate;
            self.arrived.take(path.now, round(path), rate);
            self.carried.take(path.now, MEMORY, rate.min(self.rate));
        }
        if let UnionPhase::Start(start) = &mut self.phase {
            let ended = start.on_delivery(path, delivery, &self.queue, control);
            let trains = start.capacity();
            if delivery.rtt.is_some_and(|rtt| self.recalls(rtt, trains, path, control)) {
                return;
            }
            if let Some(capacity) = ended {
                self.end_start(capacity, path, control);
            }
            return;
        }
        self.refining = self.refining.take().filter(|(_, end)| path.now < *end);
        let refined = self.refining.as_mut().and_then(|(start, _)| start.refine(delivery.train.as_ref()?));
        if let Some(capacity) = refined {
            self.rate = capacity;
            let jumped = self.link.is_recalled();
            self.link.set_trains(capacity);
            if jumped {
                self.apply(path, control);
            }
        }
        if self.clock.tick(path.now) {
            self.step(path, control);
        }
    }

    fn on_ack(&mut self, _path: &Path, _ack: &AckEvent, _control: &mut Control) {}

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        let before = *control;
        let starts = matches!(self.phase, UnionPhase::Start(_));
        if starts {
            self.first_flight = Some(loss.largest_sent);
        }
        // The tail of what overran the path at the start is found missing only after all that was before it is repaired.
        let of_start = |end: &SeqNo| loss.ranges.iter().all(|range| !range.last.is_after(*end));
        self.first_flight = self.first_flight.filter(of_start);
        if starts || self.first_flight.is_none() {
            self.losses.add(loss.newly_lost);
        }
        if let UnionPhase::Start(start) = self.phase
            && self.losses.is_too_much_of_all(path)
        {
            // Before anything is measured, the window of the first flight is all that can be lost.
            let known = start.capacity().or(Some(self.arrives).filter(|rate| *rate > 0.0));
            if let Some(capacity) = known {
                self.end_start(capacity, path, control);
            }
        }
        // A report may lower rate and window, never raise them (attack B6).
        control.send_period = longer(control.send_period, before.send_period);
        set_cwnd(path, control, cwnd(control).min(cwnd(&before)));
    }

    fn on_recovered(&mut self, _path: &Path, spurious: bool, _control: &mut Control) {
        self.losses.on_recovered(spurious);
    }

    fn on_timeout(&mut self, path: &Path, _timeout: &TimeoutEvent, control: &mut Control) {
        if let UnionPhase::Start(start) = self.phase
            && !path.application_limited
        {
            let rate = start.capacity().unwrap_or_else(|| cwnd(control) / loop_time(path));
            self.end_start(rate, path, control);
        } else if self.belief.limit().is_none() {
            self.rate = self.rate.min(self.arrived.get()).max(slowest(path));
            self.belief.fail(self.rate, 0.0, path.now);
            self.apply(path, control);
        }
    }
}
