//! Peers and strangers that mean harm.

use farhaul_units::Rng;

use super::*;
use crate::Transport;
use crate::secure::router::Router;

/// Callers with the handshake of a protocol, and nothing inside: the far end of UDT with the same transport parameters.
fn callers_that_say_nothing(name: &'static str) -> Endpoint {
    let router = Router::new(Box::new(Null::new(1)), [1; 16]).serving_as(name);
    Endpoint::new(Config::default(), 1, router)
}

#[test]
fn carriers_of_callers_that_say_nothing_end_after_their_time() {
    for name in carried() {
        let mut pair = Pair::between([callers_that_say_nothing(name), end(name, 2, Null::new(2))]);
        for _ in 0..20 {
            pair.call();
        }
        run_for(&mut pair, Duration::from_secs(1));
        assert_eq!(held(&pair)[1], 20, "{name}");
        run_for(&mut pair, IDLE + Duration::from_secs(4));
        assert_eq!(held(&pair)[1], 0, "{name}");
        assert!(pair.events[1].is_empty(), "{name}");
    }
}

/// The tag or the number inside is that of another connection of the same peer.
#[test]
fn datagrams_through_a_carrier_reach_no_connection_of_another_carrier() {
    for name in carried() {
        let mut pair = pair(name);
        let [first, there] = pair.connect();
        pair.events = [Vec::new(), Vec::new()];
        let [second, elsewhere] = pair.connect();
        run_for(&mut pair, Duration::from_secs(1));
        let now = pair.now;
        pair.ends[0].write(now, first, &content(500_000)).unwrap();
        // Datagrams of the first connection go through the carrier of the second.
        let (mut diverted, mut arrive) = (0, Vec::new());
        pair.run_until(5, |pair| {
            let (end, now) = (&mut pair.ends[0], pair.now);
            let train = end.on_established(first, |inside: &mut Encapsulated| inside.train(now)).flatten();
            let Some((size, bytes)) = train else { return false };
            diverted += bytes.chunks(size).count();
            let mut out = Vec::new();
            let sent = end.on_established(second, |inside: &mut Encapsulated| {
                inside.send_datagrams(now, (&bytes, size), &mut out)
            });
            let (_, length) = sent.flatten().unwrap();
            arrive.extend(out.chunks(length).map(<[u8]>::to_vec));
            true
        });
        let now = pair.now;
        let before = [there, elsewhere].map(|id| pair.ends[1].stats(now, id).unwrap().totals.packets_received);
        let invalid = pair.ends[1].invalid_datagrams();
        for mut datagram in arrive {
            let len = datagram.len();
            pair.ends[1].handle_datagrams(now, now, address(0), &mut datagram, len);
        }
        let after = [there, elsewhere].map(|id| pair.ends[1].stats(now, id).unwrap().totals.packets_received);
        assert_eq!(after[0], before[0], "{name}");
        if name != "udt-2004" {
            assert_eq!(after, before, "{name}");
            assert_eq!(pair.ends[1].invalid_datagrams() - invalid, diverted as u64, "{name}");
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
        assert_eq!(held(&pair)[1], 1, "{name}");
    }
}

/// A peer may send on its stream although its protocol has no channel, and datagrams of any kind.
#[test]
fn nonsense_through_a_carrier_is_dropped() {
    for name in carried() {
        let mut pair = Pair::between([callers_that_say_nothing(name), end(name, 2, Null::new(2))]);
        let carrier = pair.call();
        run_for(&mut pair, Duration::from_millis(100));
        let mut rng = Rng::new(5);
        for _ in 0..50 {
            let now = pair.now;
            let noise: Vec<u8> = (0..1 + rng.below(1_400)).map(|_| rng.below(256) as u8).collect();
            let _ = pair.ends[0].write(now, carrier, &noise);
            let mut out = Vec::new();
            let datagrams = pair.ends[0].datagrams().unwrap();
            if datagrams.send_datagrams(now, carrier, (&noise, noise.len()), &mut out).is_some() {
                pair.wire.push_back((now + DELAY, 1, out));
            }
            run_for(&mut pair, Duration::from_millis(1));
        }
        run_for(&mut pair, IDLE + Duration::from_secs(5));
        assert!(pair.events[1].is_empty(), "{name}: {:?}", pair.events[1]);
        assert_eq!(held(&pair)[1], 0, "{name}");
    }
}
