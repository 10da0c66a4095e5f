//! Peers and strangers that mean harm.

use farhaul_units::Rng;

use super::*;
use crate::Batch;

#[test]
fn tunnels_of_callers_that_say_nothing_end_after_their_time() {
    for name in carried() {
        let mut pair = pair(name);
        for _ in 0..20 {
            let now = pair.now;
            pair.ends[0].tunnels.connect(now, address(1)).unwrap();
        }
        run_for(&mut pair, Duration::from_secs(1));
        assert_eq!(pair.ends[1].links.count(), 20, "{name}");
        run_for(&mut pair, IDLE + Duration::from_secs(4));
        assert_eq!(held(&pair)[1], 0, "{name}");
        assert!(pair.events[1].is_empty(), "{name}");
    }
}

#[test]
fn datagrams_through_a_tunnel_reach_no_connection_of_another_tunnel() {
    for name in carried() {
        let mut pair = pair(name);
        let [first, there] = pair.connect();
        pair.events = [Vec::new(), Vec::new()];
        let [second, _] = pair.connect();
        run_for(&mut pair, Duration::from_secs(1));
        let now = pair.now;
        pair.ends[0].write(now, first, &content(500_000)).unwrap();
        // Datagrams of the first connection go through the tunnel of the second.
        let tunnel = pair.ends[0].links.of(second).unwrap().tunnel;
        let (mut batch, mut diverted) = (Batch::new(), 0);
        pair.run_until(5, |pair| {
            let (end, now) = (&mut pair.ends[0], pair.now);
            end.inner.handle_timeout(now);
            while let Some(train) = end.inner.poll_transmit(now, &mut batch) {
                diverted += train.datagrams().count();
                end.waiting.push_back(Waiting { tunnel, size: train.segment_size, bytes: train.bytes.to_vec() });
            }
            diverted > 0
        });
        let now = pair.now;
        let before = pair.ends[1].stats(now, there).unwrap().totals;
        let invalid = pair.ends[1].inner.invalid_datagrams();
        let mut arrive = Vec::new();
        while !pair.ends[0].waiting.is_empty() {
            let (to, size) = pair.ends[0].carry(now, batch.cleared()).unwrap();
            assert_eq!(to, address(1));
            arrive.extend(batch.bytes().chunks(size).map(<[u8]>::to_vec));
        }
        for mut datagram in arrive {
            let len = datagram.len();
            pair.ends[1].handle_datagrams(now, now, address(0), &mut datagram, len);
        }
        let after = pair.ends[1].stats(now, there).unwrap().totals;
        assert_eq!(after.packets_received, before.packets_received, "{name}");
        if name != "udt-2004" {
            assert_eq!(pair.ends[1].inner.invalid_datagrams() - invalid, diverted as u64, "{name}");
        }
    }
}

#[test]
fn damaged_copied_and_invented_datagrams_change_nothing() {
    for name in carried() {
        let mut pair = pair(name);
        let ids = pair.connect();
        let mut rng = Rng::new(3);
        // Each third datagram comes twice, and each seventh is damaged.
        pair.fate = Box::new(move |_, datagram| {
            if rng.below(7) == 0 {
                let at = rng.below(datagram.len() as u64) as usize;
                datagram[at] ^= 1 << rng.below(8);
            }
            1 + u32::from(rng.below(3) == 0)
        });
        let mut noise = Rng::new(4);
        let data = content(500_000);
        let (mut written, mut got, mut buffer) = (0, Vec::new(), vec![0; 100_000]);
        pair.run_until(120, |pair| {
            written += pair.ends[0].write(pair.now, ids[0], &data[written..]).unwrap();
            while let Ok(Read::Data(n)) = pair.ends[1].read(pair.now, ids[1], &mut buffer) {
                got.extend_from_slice(&buffer[..n]);
            }
            // Bytes of the inner protocols, and envelopes of nobody.
            let mut datagram: Vec<u8> = (0..200).map(|_| noise.below(256) as u8).collect();
            if noise.below(2) == 0 {
                datagram[..2].copy_from_slice(&[0xC5, 3]);
            }
            let from = address(noise.below(3) as usize);
            let side = noise.below(2) as usize;
            pair.ends[side].handle_datagrams(pair.now, pair.now, from, &mut datagram, 200);
            got.len() == data.len()
        });
        assert!(got == data, "{name}");
        let events = [0, 1].map(|side| {
            pair.events[side].iter().filter(|event| matches!(event, Event::Accepted(_) | Event::Closed(..))).count()
        });
        assert_eq!(events, [0, 1], "{name}: one connection, which lives");
        assert_eq!(pair.ends[1].links.count(), 1, "{name}");
    }
}

/// A peer may send on its stream although its protocol has no channel, and datagrams of any kind.
#[test]
fn nonsense_through_a_tunnel_is_dropped() {
    for name in carried() {
        let mut pair = pair(name);
        let now = pair.now;
        let tunnel = pair.ends[0].tunnels.connect(now, address(1)).unwrap();
        run_for(&mut pair, Duration::from_millis(100));
        let mut rng = Rng::new(5);
        for _ in 0..50 {
            let now = pair.now;
            let noise: Vec<u8> = (0..1 + rng.below(1_400)).map(|_| rng.below(256) as u8).collect();
            let _ = pair.ends[0].tunnels.write(now, tunnel, &noise);
            pair.ends[0].waiting.push_back(Waiting { tunnel, size: noise.len(), bytes: noise });
            run_for(&mut pair, Duration::from_millis(1));
        }
        run_for(&mut pair, IDLE + Duration::from_secs(5));
        assert!(pair.events[1].is_empty(), "{name}: {:?}", pair.events[1]);
        assert_eq!(held(&pair)[1], 0, "{name}");
    }
}
