//! What a controller that asks for single data packets hears.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use farhaul_cc::{AckEvent, Control, Controller, LossEvent, Path, ReceivedEvent, SentEvent};
use farhaul_netem::{LossSpec, PathSpec};
use farhaul_proto::{Config, ControllerFactory};
use farhaul_protocols::udt2004::default_config;
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};

use crate::udt2004::scenario::{LENGTH, clean_path, endpoint, exchange, listener, stats};

/// Payload of a full packet: 1500 bytes without 28 of IP and UDP and 4 of the header.
const FULL: u32 = 1_468;

/// Counts packets sent for the first time, sent again, and received, and payload bytes of the first and the last.
#[derive(Clone, Default)]
struct Counting(Arc<[AtomicU64; 5]>);

impl Counting {
    fn add(&self, what: usize, number: u64) {
        self.0[what].fetch_add(number, Ordering::Relaxed);
    }

    fn counted(&self) -> [u64; 5] {
        [0, 1, 2, 3, 4].map(|what| self.0[what].load(Ordering::Relaxed))
    }
}

impl Controller for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn on_ack(&mut self, _: &Path, _: &AckEvent, control: &mut Control) {
        control.cwnd = Some(100.0);
    }

    fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {}

    fn on_sent(&mut self, path: &Path, sent: &SentEvent<'_>, _: &mut Control) {
        for (packet, next) in sent.packets.iter().zip(&sent.packets[1..]) {
            assert_eq!(packet.seq.next(), next.seq, "a burst is one run");
        }
        assert!(sent.packets.iter().all(|packet| packet.seq.is_before(path.next_seq)), "they have been sent");
        assert!(sent.at <= path.now && sent.packets.iter().all(|packet| packet.payload <= FULL));
        self.add(usize::from(sent.retransmission), sent.packets.len() as u64);
        if !sent.retransmission {
            self.add(3, sent.packets.iter().map(|packet| u64::from(packet.payload)).sum());
        }
    }

    fn on_received(&mut self, path: &Path, received: &ReceivedEvent<'_>, _: &mut Control) {
        assert!(received.at <= path.now && received.packets.iter().all(|packet| packet.message.is_none()));
        self.add(2, received.packets.len() as u64);
        self.add(4, received.packets.iter().map(|packet| u64::from(packet.payload)).sum());
    }

    fn wants_packets(&self) -> bool {
        true
    }
}

#[test]
fn a_controller_that_asks_for_packets_hears_of_every_one() {
    let counted = [Counting::default(), Counting::default()];
    let config = |end: usize| {
        let counted = counted[end].clone();
        Config { controller: ControllerFactory::new(move |_| Box::new(counted.clone())), ..default_config() }
    };
    let lossy = PathSpec { loss: Some(LossSpec::Bernoulli(0.01)), ..clean_path() };
    let run = exchange(Pair::new(endpoint(1, config(0)), listener(2, config(1))).path(lossy));
    for (end, host) in [CALLER, LISTENER].into_iter().enumerate() {
        let totals = stats(&run, host).totals;
        let [sent, again, received, first_bytes, received_bytes] = counted[end].counted();
        assert!(again > 0);
        assert_eq!(
            [sent + again, again, received],
            [totals.packets_sent, totals.packets_retransmitted, totals.packets_received]
        );
        assert_eq!(first_bytes, LENGTH);
        assert!((LENGTH..=LENGTH + totals.packets_duplicate * u64::from(FULL)).contains(&received_bytes));
    }
}
