//! Peers and strangers that mean harm.

use core::net::SocketAddr;

use farhaul_proto::Transport;
use farhaul_proto::endpoint::protocol::{Carried, Established, Opening, Setup, Step};
use farhaul_proto::error::ConnectionLost;
use farhaul_proto::secure::endpoint_around;
use farhaul_units::{Instant, Rng};

use super::*;

/// A protocol that says nothing.
struct Silence;

impl Carried for Silence {
    fn needs_channel(&self) -> bool {
        false
    }

    fn call(&mut self, _peer: SocketAddr, _mss: u32, _config: &Config, _now: Instant) -> Box<dyn Opening> {
        Box::new(Self)
    }

    fn answer(&mut self, _peer: SocketAddr, _mss: u32, _config: &Config, _now: Instant) -> Box<dyn Opening> {
        Box::new(Self)
    }
}

impl Opening for Silence {
    fn on_datagram(&mut self, _datagram: &mut [u8], _setup: Setup<'_>) -> Step<Box<dyn Established>> {
        Step::Wait
    }

    fn check(&self, _now: Instant) -> Option<ConnectionLost> {
        None
    }

    fn on_suspended(&mut self, _gap: Duration) {}

    fn poll(&mut self, _now: Instant, _out: &mut Vec<u8>) -> bool {
        false
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Callers with the handshake of a protocol, and nothing inside.
fn callers_that_say_nothing(name: &'static str) -> Endpoint {
    let silence = |_| -> Box<dyn Carried> { Box::new(Silence) };
    let entropy = Entropy { cookie_key: [1; 16], seed: 1 };
    endpoint_around((name, silence), Config::default(), entropy, Box::new(Null::new(1)))
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
            // Bytes of the inner protocols, and protected packets of nobody.
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
