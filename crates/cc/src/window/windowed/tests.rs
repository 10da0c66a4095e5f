//! RFC 5681, rule by rule, with the law of Reno; and what the frame adds to all laws.

use farhaul_units::{Duration, SeqRange};

use super::super::{NewReno, Reno};
use super::*;

/// A connection under a law, for the tests of all laws.
pub(in crate::window) struct Connection<L> {
    controller: Windowed<L>,
    pub(in crate::window) path: Path,
    control: Control,
    acked: u32,
}

impl<L: WindowLaw> Connection<L> {
    pub(in crate::window) fn with_window(law: L, cwnd: f64) -> Self {
        let mut control = Control::initial();
        control.cwnd = Some(cwnd);
        Self { controller: Windowed::new("law".into(), law), path: Path::default(), control, acked: 0 }
    }

    /// The same with this RTT.
    pub(in crate::window) fn over_ms(mut self, round_trip: u64) -> Self {
        self.path.rtt = Duration::from_millis(round_trip);
        self
    }

    pub(in crate::window) fn law(&mut self) -> &mut L {
        &mut self.controller.law
    }

    pub(in crate::window) fn cwnd(&self) -> f64 {
        self.control.cwnd.unwrap()
    }

    pub(in crate::window) fn ack(&mut self, packets: u32) -> f64 {
        self.acked += packets;
        let rtt_sample = Some(self.path.rtt).filter(|rtt| !rtt.is_zero());
        let ack = AckEvent { seq: SeqNo::new(self.acked), newly_acked: packets, rtt_sample, ..AckEvent::default() };
        self.path.in_flight = self.cwnd() as u32;
        self.path.next_seq = SeqNo::new(self.acked + self.path.in_flight);
        self.controller.on_ack(&self.path, &ack, &mut self.control);
        self.cwnd()
    }

    /// An RTT in which the window is acknowledged evenly.
    pub(in crate::window) fn round(&mut self) -> f64 {
        let packets = self.cwnd() as u32;
        for _ in 0..packets {
            self.path.now += self.path.rtt / packets;
            self.ack(1);
        }
        self.cwnd()
    }

    fn lose(&mut self, lost: u32, in_flight: u32) -> f64 {
        self.path.in_flight = in_flight;
        let range = [SeqRange::new(SeqNo::new(lost), SeqNo::new(lost))];
        let loss = LossEvent::new(&range, 1, SeqNo::new(self.acked + in_flight - 1));
        self.controller.on_loss(&self.path, &loss, &mut self.control);
        self.cwnd()
    }

    /// A loss with the whole window in flight, and its repair.
    pub(in crate::window) fn lose_one(&mut self) -> f64 {
        let in_flight = self.cwnd() as u32;
        self.lose(self.acked, in_flight);
        self.acked += in_flight;
        self.cwnd()
    }

    /// All losses are repaired, and everything but the window is acknowledged.
    pub(in crate::window) fn recover(&mut self) -> f64 {
        self.path.in_flight = self.cwnd() as u32;
        self.path.next_seq = SeqNo::new(self.acked + self.path.in_flight);
        self.controller.on_recovered(&self.path, false, &mut self.control);
        self.cwnd()
    }

    pub(in crate::window) fn time_out(&mut self, count: u32, in_flight: u32) -> f64 {
        self.path.in_flight = in_flight;
        let timeout = TimeoutEvent { count, largest_sent: SeqNo::new(self.acked + in_flight - 1) };
        self.controller.on_timeout(&self.path, &timeout, &mut self.control);
        self.cwnd()
    }
}

#[test]
fn slow_start_doubles_the_window_in_a_round_trip() {
    let mut tcp = Connection::with_window(Reno, 2.0);
    for round in 1..10 {
        (0..1 << round).for_each(|_| _ = tcp.ack(1));
        assert_eq!(tcp.cwnd(), f64::from(2 << round));
    }
}

#[test]
fn congestion_avoidance_adds_about_a_packet_in_a_round_trip() {
    let mut tcp = Connection::with_window(Reno, 100.0);
    tcp.lose(0, 100);
    assert_eq!(tcp.cwnd(), 50.0);
    (0..50).for_each(|_| _ = tcp.ack(1));
    assert!((50.98..51.0).contains(&tcp.cwnd()), "{}", tcp.cwnd());
}

#[test]
fn an_acknowledgement_that_crosses_the_threshold_is_split_there() {
    let mut tcp = Connection::with_window(Reno, 20.0);
    tcp.time_out(1, 20);
    (0..9).for_each(|_| _ = tcp.ack(1));
    assert_eq!(tcp.cwnd(), 10.0, "ssthresh");
    assert_eq!(tcp.ack(5), 10.5);
}

#[test]
fn a_loss_halves_the_packets_in_flight_not_the_window() {
    assert_eq!(Connection::with_window(Reno, 100.0).lose(0, 60), 30.0);
    assert_eq!(Connection::with_window(Reno, 100.0).lose(0, 160), 50.0, "nor what recovery has sent beyond the window");
}

#[test]
fn losses_of_one_window_halve_it_once() {
    let mut tcp = Connection::with_window(Reno, 64.0);
    assert_eq!(tcp.lose(3, 64), 32.0);
    assert_eq!(tcp.lose(40, 64), 32.0);
    assert_eq!(tcp.lose(64, 40), 16.0, "sent after the cut");
}

#[test]
fn a_timeout_leaves_one_packet_and_slow_start_to_half_the_flight() {
    let mut tcp = Connection::with_window(Reno, 64.0);
    assert_eq!(tcp.time_out(1, 64), 1.0);
    assert_eq!(tcp.time_out(2, 1), 1.0);
    (0..31).for_each(|_| _ = tcp.ack(1));
    assert_eq!(tcp.cwnd(), 32.0, "the second time-out of a packet leaves ssthresh alone");
    assert!(tcp.ack(1) < 32.1);
}

#[test]
fn the_threshold_is_never_below_two_packets() {
    let mut tcp = Connection::with_window(Reno, 2.0);
    tcp.time_out(1, 1);
    assert_eq!(tcp.ack(1), 2.0);
    assert_eq!(tcp.ack(1), 2.5);
}

#[test]
fn one_acknowledgement_counts_for_a_window_at_most() {
    let mut tcp = Connection::with_window(Reno, 64.0);
    tcp.time_out(1, 64);
    assert_eq!(tcp.ack(64), 2.0);
}

#[test]
fn the_window_stays_within_the_receivers_largest() {
    let mut tcp = Connection::with_window(Reno, 10.0);
    tcp.path.max_window = 16;
    (0..100).for_each(|_| _ = tcp.ack(1));
    assert_eq!(tcp.cwnd(), 16.0);
}

#[test]
fn the_window_is_paced_a_little_faster_than_it_is_acknowledged() {
    let mut tcp = Connection::with_window(Reno, 100.0).over_ms(100);
    tcp.ack(1);
    assert!((tcp.control.send_period.as_micros() - 1e5 / (2.0 * 101.0)).abs() < 1e-6, "slow start doubles it");
    tcp.lose_one();
    assert!((tcp.control.send_period.as_micros() - 1e5 / (1.2 * 50.5)).abs() < 1e-6);
}

#[test]
fn receipts_replace_the_rtts_of_acknowledgements() {
    let mut tcp = Connection::with_window(Reno, 4.0).over_ms(100);
    tcp.ack(1);
    assert_eq!(tcp.controller.round.samples, 1);
    let receipt = DeliveryEvent { rtt: Some(Duration::from_millis(80)), ..DeliveryEvent::default() };
    tcp.controller.on_delivery(&tcp.path, &receipt, &mut tcp.control);
    tcp.ack(1);
    assert_eq!((tcp.controller.round.samples, tcp.controller.round.least), (2, 0.080));
}

#[test]
fn newreno_ends_a_recovery_without_a_burst() {
    let mut tcp = Connection::with_window(NewReno, 64.0);
    assert_eq!(tcp.lose(0, 64), 32.0);
    tcp.path.in_flight = 10;
    tcp.controller.on_recovered(&tcp.path, false, &mut tcp.control);
    assert_eq!(tcp.cwnd(), 11.0, "FlightSize and one");
}
