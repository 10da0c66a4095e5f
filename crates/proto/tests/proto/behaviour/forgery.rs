//! Datagrams from strangers: the connections of others continue, regardless of the content.

use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_sim::{TapAction, Workload};
use farhaul_units::Rng;

use crate::behaviour::scenario::{LENGTH, LIMIT, clean_path, pair, small_buffers};

#[test]
fn copies_of_real_datagrams_from_another_address_change_nothing() {
    for seed in 0..20 {
        let workload = Workload::exchange(LENGTH);
        let mut run = pair(seed, small_buffers).path(clean_path()).caller(workload).listener(workload).start();
        let mut rng = Rng::new(seed);
        run.set_tap(Some(Box::new(move |datagram| {
            let stranger = "192.0.2.66:9000".parse().expect("an address");
            if rng.chance(0.1) {
                let mut bytes = datagram.bytes.clone();
                // Some are unchanged, some have another header, some are cut short.
                for _ in 0..rng.below(3) {
                    bytes[rng.below(16) as usize] = rng.next_u32() as u8;
                }
                bytes.truncate(rng.below(2 * bytes.len() as u64) as usize);
                datagram.forged.push((stranger, datagram.to, bytes));
            }
            TapAction::Pass
        })));
        assert!(run.run_until_done(LIMIT), "seed {seed}");
        assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0], "seed {seed}");
        assert_eq!((run.flows(CALLER).len(), run.flows(LISTENER).len()), (1, 1), "seed {seed}");
    }
}

#[test]
fn noise_from_the_address_of_the_peer_neither_panics_nor_stops_the_transfer() {
    for seed in 0..20 {
        let workload = Workload::exchange(LENGTH);
        let mut run = pair(seed, small_buffers).path(clean_path()).caller(workload).listener(workload).start();
        let mut rng = Rng::new(seed);
        run.set_tap(Some(Box::new(move |datagram| {
            if rng.chance(0.05) {
                let noise = (0..rng.below(100)).map(|_| rng.next_u32() as u8).collect();
                datagram.forged.push((datagram.from, datagram.to, noise));
            }
            TapAction::Pass
        })));
        assert!(run.run_until_done(LIMIT), "seed {seed}");
        assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0], "seed {seed}");
    }
}
