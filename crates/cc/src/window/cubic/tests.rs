//! RFC 9438, rule by rule.

use farhaul_units::{Duration, SeqNo, SeqRange};

use super::*;

struct Connection {
    cubic: Cubic,
    path: Path,
    control: Control,
    acked: u32,
}

impl Connection {
    fn new(cwnd: f64, round_trip_ms: u64) -> Self {
        let mut control = Control::initial();
        control.cwnd = Some(cwnd);
        let path = Path { rtt: Duration::from_millis(round_trip_ms), ..Path::default() };
        Self { cubic: Cubic::new(), path, control, acked: 0 }
    }

    fn cwnd(&self) -> f64 {
        self.control.cwnd.unwrap()
    }

    fn ack(&mut self) {
        self.acked += 1;
        let ack = AckEvent { seq: SeqNo::new(self.acked), newly_acked: 1, ..AckEvent::default() };
        self.cubic.on_ack(&self.path, &ack, &mut self.control);
    }

    /// A loss with the whole window in flight.
    fn lose(&mut self) -> f64 {
        let in_flight = self.cwnd() as u32;
        self.path.in_flight = in_flight;
        let range = [SeqRange::new(SeqNo::new(self.acked), SeqNo::new(self.acked))];
        let loss = LossEvent::new(&range, 1, SeqNo::new(self.acked + in_flight));
        self.cubic.on_loss(&self.path, &loss, &mut self.control);
        self.acked += in_flight + 1;
        self.cwnd()
    }

    fn time_out(&mut self, count: u32) -> f64 {
        self.path.in_flight = self.cwnd() as u32;
        let timeout = TimeoutEvent { count, largest_sent: SeqNo::new(self.acked + self.path.in_flight) };
        self.cubic.on_timeout(&self.path, &timeout, &mut self.control);
        self.cwnd()
    }

    /// RTTs in each of which the window is acknowledged evenly.
    fn rounds(&mut self, rounds: u32) {
        for _ in 0..rounds {
            let packets = self.cwnd() as u32;
            for _ in 0..packets {
                self.path.now += self.path.rtt / packets;
                self.ack();
            }
        }
    }
}

#[test]
fn slow_start_doubles_until_a_loss_leaves_seven_tenths() {
    let mut tcp = Connection::new(10.0, 100);
    tcp.rounds(4);
    assert_eq!(tcp.cwnd(), 160.0);
    assert!((tcp.lose() - 112.0).abs() < 1e-9);
}

#[test]
fn the_window_follows_the_cubic_back_and_beyond() {
    // From 1000 packets: K = (300/0.4)^(1/3) = 9.086 s.
    let mut tcp = Connection::new(1_000.0, 100);
    tcp.lose();
    let began = tcp.path.now;
    for (round, at) in [(45, 4.5), (45, 9.0), (60, 15.0)] {
        tcp.rounds(round);
        let t = (tcp.path.now - began).as_secs_f64();
        assert!((t - at).abs() < 0.1, "{t}");
        let beyond = t - 9.0856;
        let expected = 0.4 * beyond * beyond * beyond + 1_000.0;
        assert!((tcp.cwnd() / expected - 1.0).abs() < 0.01, "at {t} s {}, expected {expected}", tcp.cwnd());
    }
}

#[test]
fn cubic_grows_like_reno_where_reno_is_faster() {
    // At 20 packets and 10 ms the cubic needs seconds. Reno adds 0.529 packets per RTT.
    let mut tcp = Connection::new(30.0, 10);
    tcp.lose();
    assert!((tcp.cwnd() - 21.0).abs() < 1e-9);
    tcp.rounds(10);
    assert!((tcp.cwnd() - (21.0 + 10.0 * 0.529)).abs() < 0.3, "{}", tcp.cwnd());
    // Back at 30 packets after 17 RTTs, it grows by one per RTT.
    tcp.rounds(10);
    let before = tcp.cwnd();
    assert!(before > 30.0);
    tcp.rounds(10);
    assert!((tcp.cwnd() - before - 10.0).abs() < 0.5, "{}", tcp.cwnd() - before);
}

#[test]
fn a_second_loss_below_the_first_lowers_the_origin() {
    let mut tcp = Connection::new(1_000.0, 100);
    tcp.lose();
    tcp.rounds(1);
    let cwnd = tcp.cwnd();
    assert!(cwnd < 1_000.0);
    tcp.lose();
    assert!((tcp.cubic.origin.unwrap() - cwnd * 0.85).abs() < 1e-9, "fast convergence");
}

#[test]
fn after_a_timeout_slow_start_precedes_the_flat_part_of_the_cubic() {
    let mut tcp = Connection::new(100.0, 100);
    assert_eq!(tcp.time_out(1), 1.0);
    assert_eq!(tcp.time_out(2), 1.0);
    (0..69).for_each(|_| tcp.ack());
    assert!((tcp.cwnd() - 70.0).abs() < 1e-9, "the threshold");
    tcp.rounds(10);
    // K = 0: one second later the cubic is 0.4 packets above, so Reno's five packets count.
    assert!((tcp.cwnd() - 75.3).abs() < 0.4, "{}", tcp.cwnd());
}

#[test]
fn a_round_trip_adds_half_of_the_window_at_most() {
    let mut tcp = Connection::new(100.0, 1_000);
    tcp.lose();
    tcp.ack();
    tcp.path.now += Duration::from_secs(100);
    let before = tcp.cwnd();
    tcp.ack();
    assert!((tcp.cwnd() - before - 0.5).abs() < 1e-9);
}

#[test]
fn application_limited_time_does_not_count() {
    let mut tcp = Connection::new(1_000.0, 100);
    tcp.lose();
    tcp.rounds(1);
    tcp.path.application_limited = true;
    tcp.path.now += Duration::from_secs(60);
    let before = tcp.cwnd();
    tcp.ack();
    assert!((tcp.cwnd() - before).abs() < 1e-9);
    tcp.path.application_limited = false;
    tcp.rounds(1);
    assert!(tcp.cwnd() < 1_000.0, "{}", tcp.cwnd());
}
