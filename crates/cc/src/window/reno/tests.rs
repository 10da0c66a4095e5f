//! RFC 5681, rule by rule.

use farhaul_units::{SeqNo, SeqRange};

use super::*;

struct Connection {
    reno: Reno,
    path: Path,
    control: Control,
    acked: u32,
}

impl Connection {
    fn with_window(cwnd: f64) -> Self {
        let mut control = Control::initial();
        control.cwnd = Some(cwnd);
        Self { reno: Reno::new(), path: Path::default(), control, acked: 0 }
    }

    fn cwnd(&self) -> f64 {
        self.control.cwnd.unwrap()
    }

    fn ack(&mut self, packets: u32) -> f64 {
        self.acked += packets;
        let ack = AckEvent { seq: SeqNo::new(self.acked), newly_acked: packets, ..AckEvent::default() };
        self.reno.on_ack(&self.path, &ack, &mut self.control);
        self.cwnd()
    }

    fn lose(&mut self, lost: u32, in_flight: u32) -> f64 {
        self.path.in_flight = in_flight;
        let range = [SeqRange::new(SeqNo::new(lost), SeqNo::new(lost))];
        let loss = LossEvent::new(&range, 1, SeqNo::new(self.acked + in_flight - 1));
        self.reno.on_loss(&self.path, &loss, &mut self.control);
        self.cwnd()
    }

    fn time_out(&mut self, count: u32, in_flight: u32) -> f64 {
        self.path.in_flight = in_flight;
        let timeout = TimeoutEvent { count, largest_sent: SeqNo::new(self.acked + in_flight - 1) };
        self.reno.on_timeout(&self.path, &timeout, &mut self.control);
        self.cwnd()
    }
}

#[test]
fn slow_start_doubles_the_window_in_a_round_trip() {
    let mut tcp = Connection::with_window(2.0);
    for round in 1..10 {
        (0..1 << round).for_each(|_| _ = tcp.ack(1));
        assert_eq!(tcp.cwnd(), f64::from(2 << round));
    }
}

#[test]
fn congestion_avoidance_adds_about_a_packet_in_a_round_trip() {
    let mut tcp = Connection::with_window(100.0);
    tcp.lose(0, 100);
    assert_eq!(tcp.cwnd(), 50.0);
    (0..50).for_each(|_| _ = tcp.ack(1));
    assert!((50.98..51.0).contains(&tcp.cwnd()), "{}", tcp.cwnd());
}

#[test]
fn an_acknowledgement_that_crosses_the_threshold_is_split_there() {
    let mut tcp = Connection::with_window(20.0);
    tcp.time_out(1, 20);
    (0..9).for_each(|_| _ = tcp.ack(1));
    assert_eq!(tcp.cwnd(), 10.0, "ssthresh");
    assert_eq!(tcp.ack(5), 10.5);
}

#[test]
fn a_loss_halves_the_packets_in_flight_not_the_window() {
    assert_eq!(Connection::with_window(100.0).lose(0, 60), 30.0);
    assert_eq!(Connection::with_window(100.0).lose(0, 160), 50.0, "nor what recovery has sent beyond the window");
}

#[test]
fn losses_of_one_window_halve_it_once() {
    let mut tcp = Connection::with_window(64.0);
    assert_eq!(tcp.lose(3, 64), 32.0);
    assert_eq!(tcp.lose(40, 64), 32.0);
    assert_eq!(tcp.lose(64, 40), 16.0, "sent after the cut");
}

#[test]
fn a_timeout_leaves_one_packet_and_slow_start_to_half_the_flight() {
    let mut tcp = Connection::with_window(64.0);
    assert_eq!(tcp.time_out(1, 64), 1.0);
    assert_eq!(tcp.time_out(2, 1), 1.0);
    (0..31).for_each(|_| _ = tcp.ack(1));
    assert_eq!(tcp.cwnd(), 32.0, "the second time-out of a packet leaves ssthresh alone");
    assert!(tcp.ack(1) < 32.1);
}

#[test]
fn the_threshold_is_never_below_two_packets() {
    let mut tcp = Connection::with_window(2.0);
    tcp.time_out(1, 1);
    assert_eq!(tcp.ack(1), 2.0);
    assert_eq!(tcp.ack(1), 2.5);
}

#[test]
fn one_acknowledgement_counts_for_a_window_at_most() {
    let mut tcp = Connection::with_window(64.0);
    tcp.time_out(1, 64);
    assert_eq!(tcp.ack(64), 2.0);
}

#[test]
fn the_window_stays_within_the_receivers_largest() {
    let mut tcp = Connection::with_window(10.0);
    tcp.path.max_window = 16;
    (0..100).for_each(|_| _ = tcp.ack(1));
    assert_eq!(tcp.cwnd(), 16.0);
}
