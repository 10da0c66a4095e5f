//! Each controller on a path that can be checked by hand: scripted events as a table, and the throughput of a law under
//! random loss.

mod path_model;

use std::fmt::Write;

use farhaul_cc::registry::{Entry, LawFamily, controllers};
use farhaul_cc::{AckEvent, Control, Controller, LossEvent, Path, Spec, TimeoutEvent};
use farhaul_units::{Duration, Instant, PacketRate, Rate, SeqNo, SeqRange};
use path_model::{PathModel, mean_throughput};

fn build(spec: &str) -> Box<dyn Controller> {
    spec.parse::<Spec>().expect("the tests name controllers that exist").build(1)
}

/// The event in one SYN interval of a script.
enum Step {
    /// The peer acknowledges everything before this packet.
    Ack(u32),
    /// The same, without measurements.
    LightAck(u32),
    /// The peer reports these packets lost, when everything before the last number had been sent.
    Nak(u32, u32, u32),
    /// Nothing was heard for too long.
    Expiration,
}

/// Runs `script`, one step per SYN interval, on a path of 100 Mbit/s and 50 ms. The receiver reports 6000 packets/s
/// from the fifth interval on. One line per step: the event, then the settings after it.
fn curve(spec: &str, script: &[Step]) -> String {
    curve_of_sender(spec, script, 0)
}

/// The same with a sender that sends `packets` in each interval.
fn curve_of_sender(spec: &str, script: &[Step], packets: u64) -> String {
    let mut controller = build(spec);
    let mut control = Control::initial();
    let mut path = Path::default();
    path.mss = 1_500;
    path.rtt = Duration::from_millis(50);
    path.max_window = 10_000;
    controller.on_connect(&path, &mut control);
    let mut table = format!("{:>4}  {:<22}{:>12}{:>12}\n", "syn", "event", "period us", "cwnd");
    for (index, step) in script.iter().enumerate() {
        path.now = Instant::ZERO + Duration::from_millis(10 * index as u64);
        path.packets_sent = packets * index as u64;
        if index >= 5 {
            path.arrival_rate = Some(PacketRate::new(6_000.0));
            path.delivery_rate = path.arrival_rate;
            path.capacity = Some(PacketRate::new(8_333.0));
        }
        let event = play(controller.as_mut(), &path, step, &mut control);
        let cwnd = control.cwnd.map_or("none".into(), |cwnd| format!("{cwnd:.2}"));
        writeln!(table, "{index:>4}  {event:<22}{:>12.3}{cwnd:>12}", control.send_period.as_micros())
            .expect("a String takes any text");
    }
    table
}

fn play(controller: &mut dyn Controller, path: &Path, step: &Step, control: &mut Control) -> String {
    match *step {
        Step::Ack(seq) | Step::LightAck(seq) => {
            let mut ack = AckEvent::default();
            ack.seq = SeqNo::new(seq);
            ack.newly_acked = 1;
            ack.light = matches!(step, Step::LightAck(_));
            controller.on_ack(path, &ack, control);
            format!("{} {seq}", if ack.light { "light ack" } else { "ack" })
        }
        Step::Nak(first, last, sent) => {
            let range = SeqRange::new(SeqNo::new(first), SeqNo::new(last));
            controller.on_loss(path, &LossEvent::new(&[range], range.len(), SeqNo::new(sent)), control);
            format!("nak {first}..={last} of {sent}")
        }
        Step::Expiration => {
            controller.on_timeout(path, &TimeoutEvent::default(), control);
            "expiration".into()
        }
    }
}

/// Start, light ACK, the loss that ends slow start, growth, an event of six reports, recovery, a second event.
fn script() -> Vec<Step> {
    let mut script = vec![Step::Ack(16), Step::Ack(48), Step::LightAck(80), Step::Ack(112), Step::Ack(240)];
    script.extend([Step::Ack(300), Step::Nak(310, 312, 500), Step::Ack(310)]);
    script.extend((0..4).map(|step| Step::Ack(350 + 50 * step)));
    script.extend([Step::Nak(510, 510, 600), Step::Ack(510)]);
    script.extend((0..5).map(|report| Step::Nak(520 + 10 * report, 520 + 10 * report, 610 + 10 * report)));
    script.extend((0..6).map(|step| Step::Ack(600 + 50 * step)));
    script.extend([Step::Nak(900, 903, 950), Step::Nak(910, 910, 960), Step::Expiration, Step::Ack(970)]);
    script
}

#[test]
fn curve_of_udt() {
    insta::assert_snapshot!(curve("udt", &script()));
}

#[test]
fn curve_of_udt_2007() {
    insta::assert_snapshot!(curve("udt-2007", &script()));
}

#[test]
fn curve_of_udt_2011() {
    insta::assert_snapshot!(curve("udt-2011", &script()));
}

#[test]
fn curve_of_udt_2004() {
    insta::assert_snapshot!(curve_of_sender("udt-2004", &script(), 50));
}

#[test]
fn curve_of_fixed() {
    insta::assert_snapshot!(curve("fixed:rate=500mbit", &script()[..8]));
}

#[test]
fn curves_of_the_laws_of_windows() {
    let of_window = |entry: &&Entry| matches!(entry.family, LawFamily::Loss | LawFamily::Delay);
    for law in controllers().into_iter().filter(of_window).map(|entry| entry.name) {
        insta::assert_snapshot!(format!("curve_of_{law}"), curve(law, &script()));
    }
}

#[test]
fn curve_of_c4() {
    insta::assert_snapshot!(curve("c4", &script()));
}

#[test]
fn udt_throughput_under_random_loss() {
    let gigabit = Rate::from_megabits_per_second(1_000);
    for (rtt, loss, megabits) in [(100, 1e-4, 362.0), (100, 1e-3, 128.0), (11, 4e-5, 524.0)] {
        let model = PathModel { link: gigabit, rtt: Duration::from_millis(rtt), loss, mss: 1_500 };
        let mean = mean_throughput("udt", &model, 8);
        let off = mean / megabits - 1.0;
        assert!(
            off.abs() < 0.1,
            "{rtt} ms, loss {loss}: {mean:.0} Mbit/s, expected {megabits} ({:+.0} %)",
            off * 100.0
        );
    }
}

/// The integral of UDT4's law with a free first report gives 697 and 195 Mbit/s. Two deviations of a few percent
/// remain: decreases are not rounded up to whole microseconds, and freezes cost time.
#[test]
fn throughput_of_2007_under_random_loss() {
    let gigabit = Rate::from_megabits_per_second(1_000);
    for (loss, megabits) in [(1e-4, 697.0), (1e-3, 195.0)] {
        let model = PathModel { link: gigabit, rtt: Duration::from_millis(100), loss, mss: 1_500 };
        let mean = mean_throughput("udt-2007", &model, 8);
        let off = mean / megabits - 1.0;
        assert!(off.abs() < 0.1, "loss {loss}: {mean:.0} Mbit/s, expected {megabits} ({:+.0} %)", off * 100.0);
    }
}
