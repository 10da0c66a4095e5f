use farhaul_units::{PacketRate, Rate, SeqRange};

use super::*;

const OPTIONS: Options = Options { warnings: true, capacity_factor: 1.0, missed_warnings: 0.0, false_warnings: 0.0 };

/// A connection that has ended its slow start, on a path of 100 Mbit/s and 50 ms whose every packet arrives.
struct Bench {
    law: Udt2004,
    path: Path,
    control: Control,
}

impl Bench {
    fn new(options: Options) -> Self {
        let path = Path {
            mss: 1_500,
            rtt: Duration::from_millis(50),
            max_window: 25_600,
            now: Instant::ZERO + Duration::from_secs(1),
            next_seq: SeqNo::new(100),
            ..Path::default()
        };
        let mut bench = Self { law: Udt2004::new(options, "udt-2004".into(), 1), path, control: Control::initial() };
        bench.law.on_connect(&bench.path, &mut bench.control);
        bench
    }

    fn started(options: Options) -> Self {
        let mut bench = Self::new(options);
        bench.path.arrival_rate = Some(PacketRate::new(4_000.0));
        bench.path.capacity = Some(PacketRate::new(8_333.0));
        bench.path.next_seq = SeqNo::new(1_000);
        bench.nak(500);
        bench
    }

    fn after(&mut self, millis: u64) {
        self.path.now += Duration::from_millis(millis);
    }

    fn ack(&mut self, seq: u32) {
        let ack = AckEvent { seq: SeqNo::new(seq), newly_acked: 1, ..AckEvent::default() };
        self.law.on_ack(&self.path, &ack, &mut self.control);
    }

    /// A report whose first packet is `first`, of one packet.
    fn nak(&mut self, first: u32) {
        let range = [SeqRange::new(SeqNo::new(first), SeqNo::new(first))];
        let loss = LossEvent::new(&range, 1, self.path.next_seq.minus(1));
        self.law.on_loss(&self.path, &loss, &mut self.control);
    }

    fn time_out(&mut self) {
        self.law.on_timeout(&self.path, &TimeoutEvent::default(), &mut self.control);
    }

    fn warn(&mut self) {
        assert!(self.law.on_warning(&self.path, &mut self.control));
    }

    /// A SYN interval in which `packets` left.
    fn syn(&mut self, packets: u64) {
        self.path.packets_sent += packets;
        self.after(10);
        self.law.on_syn(&self.path, &mut self.control);
    }

    fn per_syn(&self) -> f64 {
        1e4 / self.control.send_period.as_micros()
    }

    fn period(&self) -> f64 {
        self.control.send_period.as_micros()
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * b.abs().max(1.0)
}

#[test]
fn the_increase_follows_the_power_of_ten_above_the_capacity() {
    let at = |megabits| {
        let bits = Rate::from_megabits_per_second(megabits).bits_per_second() as f64;
        increase(bits / (1_500.0 * 8.0), 1_500)
    };
    for (megabits, packets) in [(10, 0.01), (100, 0.1), (622, 1.0), (1_000, 1.0)] {
        assert!(close(at(megabits), packets), "{megabits} Mbit/s: {}", at(megabits));
    }
    for (capacity, packets) in [(1e3, 0.01), (1_000.1, 0.1), (1e5, 1.0), (101.0, 0.01), (100.0, 0.001)] {
        assert!(close(increase(capacity, 1_500), packets), "{capacity} packets/s");
    }
}

#[test]
fn the_least_increase_is_one_byte_of_a_packet_and_governs_up_to_ten_packets_a_second() {
    for capacity in [0.0, 0.5, 1.0, 10.0] {
        assert!(close(increase(capacity, 1_500), 1.0 / 1_500.0), "{capacity}");
    }
    assert!(close(increase(11.0, 1_500), 0.001));
}

#[test]
fn an_interval_adds_the_increase_to_the_packets_of_a_syn() {
    let mut bench = Bench::started(OPTIONS);
    // The report that ended slow start is out of the average.
    bench.law.loss = LossRate::default();
    let before = bench.per_syn();
    bench.syn(40);
    assert!(close(bench.per_syn(), before + 0.1));
    bench.syn(0);
    assert!(close(bench.per_syn(), before + 0.1), "an interval in which nothing left adds nothing");
}

#[test]
fn nothing_is_added_while_one_packet_in_a_hundred_is_lost() {
    let mut bench = Bench::started(OPTIONS);
    let before = bench.per_syn();
    // One loss among fifty packets: 0.875 · 2 %; after another fifty without, an eighth of that.
    bench.syn(50);
    assert!(close(bench.law.loss.average, 0.0175));
    assert!(close(bench.per_syn(), before));
    bench.syn(50);
    assert!(bench.law.loss.average < LOSS_THRESHOLD);
    assert!(close(bench.per_syn(), before + 0.1));
}

#[test]
fn slow_start_takes_the_window_from_two_to_what_was_acknowledged_and_sends_at_once() {
    let mut bench = Bench::new(OPTIONS);
    assert_eq!((bench.control.cwnd, bench.control.send_period), (Some(2.0), SendPeriod::UNPACED));
    for (acked, window) in [(101, 2.0), (102, 2.0), (104, 4.0), (130, 30.0), (120, 30.0)] {
        bench.ack(acked);
        assert_eq!((bench.control.cwnd, bench.control.send_period), (Some(window), SendPeriod::UNPACED), "{acked}");
        bench.syn(10);
    }
}

#[test]
fn slow_start_ends_with_the_arrival_speed_and_one_decrease() {
    for by_warning in [false, true] {
        let mut bench = Bench::new(OPTIONS);
        bench.path.arrival_rate = Some(PacketRate::new(4_000.0));
        bench.path.next_seq = SeqNo::new(1_000);
        bench.ack(300);
        if by_warning {
            bench.warn()
        } else {
            bench.nak(500)
        }
        assert!(close(bench.period(), 250.0 * 1.125));
        assert_eq!(bench.control.freeze_until, Some(bench.path.now + SYN_INTERVAL));
        // From here on the window follows eq. (1): 60 ms of 4000 packets/s are 240 packets.
        bench.ack(310);
        assert!(close(bench.control.cwnd.unwrap(), 200.0 * 0.875 + 240.0 * 0.125));
    }
}

#[test]
fn a_time_out_ends_slow_start_at_the_arrival_speed_as_soon_as_there_can_be_one() {
    for (speed, acked, period) in
        [(Some(4_000.0), 115, 0.0), (Some(4_000.0), 116, 250.0), (None, 115, 0.0), (None, 220, 500.0)]
    {
        let mut bench = Bench::new(OPTIONS);
        bench.path.arrival_rate = speed.map(PacketRate::new);
        bench.ack(acked);
        for _ in 0..3 {
            bench.time_out();
            assert!(close(bench.period(), period), "{acked} at {speed:?}: {}", bench.period());
            assert_eq!(bench.control.freeze_until, None);
        }
    }
    let mut bench = Bench::started(OPTIONS);
    let before = bench.period();
    bench.time_out();
    assert!(close(bench.period(), before), "afterwards it changes nothing");
}

#[test]
fn losses_beyond_the_last_decrease_cut_and_freeze_and_those_before_it_do_not() {
    let mut bench = Bench::started(OPTIONS);
    let before = bench.period();
    bench.control.freeze_until = None;
    bench.nak(999);
    assert!(close(bench.period(), before));
    assert_eq!(bench.control.freeze_until, None, "999 was the largest number sent at the last decrease");
    bench.path.next_seq = SeqNo::new(1_200);
    bench.nak(1_000);
    assert!(close(bench.period(), before * 1.125));
    assert_eq!(bench.control.freeze_until, Some(bench.path.now + SYN_INTERVAL));
}

#[test]
fn within_an_event_the_sixteenth_thirty_second_and_sixty_fourth_report_cut_without_a_freeze() {
    let mut bench = Bench::started(OPTIONS);
    bench.control.freeze_until = None;
    let mut cuts = Vec::new();
    // The report that began the event was the first.
    for report in 2..=70 {
        let before = bench.period();
        bench.nak(600);
        if bench.period() > before {
            assert!(close(bench.period(), before * 1.125));
            cuts.push(report);
        }
    }
    assert_eq!(cuts, [16, 32, 64]);
    assert_eq!(bench.control.freeze_until, None);
}

#[test]
fn a_warning_is_a_decrease_that_later_reports_of_the_same_packets_belong_to() {
    let mut bench = Bench::started(OPTIONS);
    bench.after(200);
    bench.path.next_seq = SeqNo::new(2_000);
    let before = bench.period();
    bench.warn();
    assert!(close(bench.period(), before * 1.125));
    assert_eq!(bench.control.freeze_until, Some(bench.path.now + SYN_INTERVAL));
    bench.nak(1_999);
    assert!(close(bench.period(), before * 1.125));
}

#[test]
fn a_flood_of_warnings_cuts_once_in_a_round_trip() {
    let mut bench = Bench::started(OPTIONS);
    let before = bench.period();
    for _ in 0..100 {
        bench.after(1);
        bench.warn();
    }
    assert!(close(bench.period(), before * 1.125 * 1.125), "100 ms are two round trips");
}

#[test]
fn warnings_that_are_off_or_missed_change_nothing() {
    for options in [Options { warnings: false, ..OPTIONS }, Options { missed_warnings: 1.0, ..OPTIONS }] {
        let mut bench = Bench::started(options);
        let before = bench.period();
        bench.warn();
        assert!(close(bench.period(), before));
    }
    let mut bench = Bench::started(Options { missed_warnings: 0.5, ..OPTIONS });
    let mut heard = 0;
    for _ in 0..1_000 {
        bench.after(60);
        bench.control.freeze_until = None;
        bench.warn();
        heard += u32::from(bench.control.freeze_until.is_some());
    }
    assert!((450..550).contains(&heard), "{heard}");
}

#[test]
fn false_warnings_come_with_their_probability_and_at_most_once_in_two_round_trips() {
    let cuts = |probability, spacing| {
        let mut bench = Bench::started(Options { false_warnings: probability, ..OPTIONS });
        let mut cuts = 0;
        for ack in 0..1_000 {
            bench.after(spacing);
            bench.control.freeze_until = None;
            bench.ack(600 + ack);
            cuts += u32::from(bench.control.freeze_until.is_some());
        }
        cuts
    };
    assert!((70..130).contains(&cuts(0.1, 100)), "{}", cuts(0.1, 100));
    assert_eq!(cuts(1.0, 10), 100);
    assert_eq!(cuts(0.0, 10), 0);
}

#[test]
fn an_estimate_that_is_wrong_within_its_decade_changes_nothing() {
    let step = |factor| {
        let mut bench = Bench::started(Options { capacity_factor: factor, ..OPTIONS });
        bench.law.loss = LossRate::default();
        let before = bench.per_syn();
        bench.syn(40);
        bench.per_syn() - before
    };
    for (factor, packets) in [(0.9, 0.1), (1.1, 0.1), (0.2, 0.1), (0.1, 0.01), (5.0, 1.0)] {
        assert!((step(factor) - packets).abs() < 1e-9, "{factor}: {}", step(factor));
    }
}

/// Attack B9: a receiver that claims any capacity.
#[test]
fn the_rate_rises_to_four_times_what_arrives_and_is_not_lowered_to_it() {
    let mut bench = Bench::started(OPTIONS);
    bench.path.capacity = Some(PacketRate::new(1e9));
    for _ in 0..1_000 {
        bench.syn(1_000);
    }
    assert!((bench.per_syn() - 160.0).abs() < 1e-6, "{}", bench.per_syn());
    bench.path.arrival_rate = Some(PacketRate::new(100.0));
    bench.syn(1_000);
    assert!((bench.per_syn() - 160.0).abs() < 1e-6);
}

#[test]
fn without_a_syn_timer_acknowledgements_drive_the_increase() {
    let mut bench = Bench::started(OPTIONS);
    bench.law.loss = LossRate::default();
    bench.ack(590);
    let before = bench.per_syn();
    for ack in 0..10 {
        bench.after(10);
        bench.path.packets_sent += 40;
        bench.ack(600 + ack);
    }
    assert!(close(bench.per_syn(), before + 1.0), "{}", bench.per_syn() - before);
}

#[test]
fn what_the_application_limits_adds_nothing_and_never_shrinks_the_window() {
    let mut bench = Bench::started(OPTIONS);
    bench.law.loss = LossRate::default();
    bench.control.cwnd = Some(1_000.0);
    bench.path.application_limited = true;
    let before = bench.per_syn();
    bench.syn(40);
    bench.ack(600);
    assert!(close(bench.per_syn(), before));
    assert_eq!(bench.control.cwnd, Some(1_000.0));
}
