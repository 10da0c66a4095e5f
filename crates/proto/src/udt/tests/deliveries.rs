//! What controllers learn of arrivals while packets are missing.

use std::sync::Mutex;

use farhaul_cc::DeliveryEvent;
use farhaul_wire::udt4::{Control as Packet, Handshake, Largest, SocketId, Timestamp, is_control, is_handshake};

use super::*;

/// Sends 1000 packets per second, and notes deliveries.
struct Recorder(Arc<Mutex<Vec<DeliveryEvent>>>);

impl Controller for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    fn on_connect(&mut self, _path: &Path, control: &mut Control) {
        control.cwnd = None;
        control.send_period = SendPeriod::from_micros(1_000.0);
    }

    fn on_ack(&mut self, _path: &Path, _ack: &AckEvent, _control: &mut Control) {}

    fn on_loss(&mut self, _path: &Path, _loss: &LossEvent<'_>, _control: &mut Control) {}

    fn wants_deliveries(&self) -> bool {
        true
    }

    fn on_delivery(&mut self, _path: &Path, delivery: &DeliveryEvent, _control: &mut Control) {
        self.0.lock().unwrap().push(*delivery);
    }
}

/// The deliveries of 5000 packets of which every twentieth is lost once. `receipts` is whether the peer sends them.
fn deliveries(receipts: bool) -> Vec<DeliveryEvent> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut pair = Pair::new();
    let recorder = Arc::clone(&seen);
    let config = Config {
        controller: ControllerFactory::new(move |_| Box::new(Recorder(Arc::clone(&recorder)))),
        ..Config::default()
    };
    pair.ends[0] = endpoint(config, Entropy { cookie_key: [1; 16], seed: 1 });
    let (mut count, mut kinds) = (0, [0, 0]);
    let counted = Arc::new(Mutex::new(kinds));
    let counter = Arc::clone(&counted);
    pair.keep = Box::new(move |_, datagram| {
        if is_control(datagram) {
            if let Ok((_, _, Packet::Receipt(_))) = Packet::decode(datagram) {
                kinds[0] += 1;
            }
            *counter.lock().unwrap() = kinds;
            return true;
        }
        count += 1;
        count % 20 != 0
    });
    if !receipts {
        pair.rewrite = Some(Box::new(|datagram| {
            // As libudt writes its handshakes.
            if is_handshake(datagram)
                && let Ok((stamp, to, Packet::Handshake(handshake))) = Packet::decode(datagram)
            {
                let plain = Handshake { largest: Largest::Unsaid, wants_receipts: false, ..handshake };
                let (stamp, to): (Timestamp, SocketId) = (stamp, to);
                let mut out = Vec::new();
                Packet::Handshake(plain).encode(stamp, to, &mut out);
                datagram.copy_from_slice(&out);
            }
        }));
    }
    let [caller, listener] = pair.connect(Mode::Stream);
    let data = content(5_000 * 1_456);
    assert!(pair.transfer(caller, listener, &data) == data);
    assert_eq!(counted.lock().unwrap()[0] > 0, receipts);
    let seen = seen.lock().unwrap().clone();
    assert!(seen.len() > 100, "{}", seen.len());
    seen
}

#[test]
fn samples_of_the_delivery_rate_are_right_while_packets_are_missing() {
    for receipts in [true, false] {
        let deliveries = deliveries(receipts);
        let rates: Vec<f64> = deliveries
            .iter()
            .filter_map(|delivery| delivery.sample)
            .filter(|sample| !sample.application_limited)
            .filter_map(|sample| sample.rate.map(PacketRate::packets_per_second))
            .collect();
        let right = rates.iter().filter(|rate| (850.0..1_150.0).contains(*rate)).count();
        assert!(right * 5 >= rates.len() * 4, "receipts {receipts}: {right} of {}", rates.len());
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        // Of 1000 packets per second, repairs included, 950 arrive. Some repairs are known later than they arrive.
        assert!((900.0..980.0).contains(&mean), "receipts {receipts}: {mean}");
        let delivered = deliveries.last().unwrap().delivered;
        assert!((4_990.0..=5_001.0).contains(&delivered), "receipts {receipts}: {delivered}");
    }
}

#[test]
fn receipts_show_the_round_trip_without_the_delay_of_acknowledgements() {
    let deliveries = deliveries(true);
    let rtts: Vec<_> = deliveries.iter().filter_map(|delivery| delivery.rtt).collect();
    let exact = rtts.iter().filter(|rtt| (DELAY * 2..DELAY * 2 + Duration::from_millis(1)).contains(*rtt)).count();
    assert!(exact * 10 >= rtts.len() * 9, "{exact} of {}", rtts.len());
}

#[test]
fn the_return_delay_of_receipts_is_known_up_to_the_offset_of_the_clocks() {
    let delays: Vec<_> = deliveries(true).iter().map(|delivery| delivery.return_delay).collect();
    let least = delays.iter().min().unwrap().expect("receipts have stamps");
    let exact = delays.iter().flatten().filter(|delay| **delay - least < 1_000).count();
    assert!(exact == delays.len(), "{exact} of {}", delays.len());
    assert!(
        deliveries(false).iter().all(|delivery| delivery.return_delay.is_none()),
        "acknowledgements tell nothing of it"
    );
}
