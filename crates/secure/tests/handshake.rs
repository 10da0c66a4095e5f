//! Two endpoints with TLS 1.3, on a network that loses nothing.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use farhaul_proto::secure::Endpoint;
use farhaul_proto::{
    AnyEndpoint, Batch, Config, ConnectionId, ConnectionLost, Entropy, Event, Mode, Read, SecurityFault, Streams,
    Transport,
};
use farhaul_secure::{AcceptAll, Cipher, KeyPair, Pinned, PublicKey, Tls, Trust};
use farhaul_units::Instant;
use farhaul_wire::secure::Header;

const DELAY: Duration = Duration::from_millis(10);

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 5000 + end as u16))
}

struct Pair {
    ends: [Endpoint; 2],
    now: Instant,
    wire: VecDeque<(Instant, usize, Vec<u8>)>,
    events: [Vec<Event>; 2],
    /// Everything that was on the wire.
    seen: Vec<u8>,
    /// The epoch and the length of each datagram.
    datagrams: [Vec<(u16, usize)>; 2],
}

fn end(identity: &KeyPair, trust: Arc<dyn Trust>, cipher: Cipher, seed: u8) -> Endpoint {
    let tls = Tls::new(identity.clone(), trust, cipher).unwrap();
    Endpoint::new(Config::default(), Entropy { cookie_key: [seed; 16], seed: seed.into() }, Box::new(tls))
}

impl Pair {
    fn new(client: Endpoint, server: Endpoint) -> Self {
        let mut pair = Self {
            ends: [client, server],
            now: Instant::from_nanos(1),
            wire: VecDeque::new(),
            events: [Vec::new(), Vec::new()],
            seen: Vec::new(),
            datagrams: [Vec::new(), Vec::new()],
        };
        pair.ends[1].listen(Mode::Stream).unwrap();
        pair
    }

    fn step(&mut self) -> bool {
        let mut batch = Batch::new();
        for end in 0..2 {
            self.ends[end].handle_timeout(self.now);
            while let Some(transmit) = self.ends[end].poll_transmit(self.now, &mut batch) {
                for datagram in transmit.datagrams() {
                    let epoch = Header::decode(datagram).unwrap().epoch.0;
                    self.datagrams[end].push((epoch, datagram.len()));
                    self.seen.extend_from_slice(datagram);
                    self.wire.push_back((self.now + DELAY, 1 - end, datagram.to_vec()));
                }
            }
            while let Some(event) = self.ends[end].poll_event() {
                self.events[end].push(event);
            }
        }
        let next = [self.wire.front().map(|(at, ..)| *at), self.ends[0].poll_timeout(), self.ends[1].poll_timeout()];
        let Some(next) = next.into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        while self.wire.front().is_some_and(|(at, ..)| *at <= self.now) {
            let (_, to, mut datagram) = self.wire.pop_front().unwrap();
            let len = datagram.len();
            self.ends[to].handle_datagrams(self.now, self.now, address(1 - to), &mut datagram, len);
        }
        true
    }

    fn run_until(&mut self, seconds: u64, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.now + Duration::from_secs(seconds);
        while !done(self) {
            let goes_on = self.step() && self.now < end;
            assert!(goes_on || done(self), "not done at {}: {:?}", self.now, self.events);
        }
    }

    fn connect(&mut self) -> [ConnectionId; 2] {
        let caller = self.ends[0].connect(self.now, address(1)).unwrap();
        self.run_until(5, |pair| pair.events[0].contains(&Event::Connected(caller)) && !pair.events[1].is_empty());
        [caller, self.events[1][0].connection()]
    }

    fn failure(&mut self) -> ConnectionLost {
        self.ends[0].connect(self.now, address(1)).unwrap();
        let closed = |pair: &Self| {
            pair.events[0].iter().find_map(|event| if let Event::Closed(_, why) = event { Some(*why) } else { None })
        };
        self.run_until(10, |pair| closed(pair).is_some());
        closed(self).unwrap()
    }

    fn transfer(&mut self, [from, to]: [ConnectionId; 2], data: &[u8]) -> Vec<u8> {
        let (mut written, mut got, mut buffer) = (0, Vec::new(), vec![0; 100_000]);
        self.run_until(60, |pair| {
            written += pair.ends[0].write(pair.now, from, &data[written..]).unwrap();
            while let Ok(Read::Data(n)) = pair.ends[1].read(pair.now, to, &mut buffer) {
                got.extend_from_slice(&buffer[..n]);
            }
            got.len() == data.len()
        });
        got
    }
}

fn keys() -> [KeyPair; 2] {
    [KeyPair::generate().unwrap(), KeyPair::generate().unwrap()]
}

fn pinned(servers: &[PublicKey], clients: &[PublicKey]) -> Arc<dyn Trust> {
    Arc::new(Pinned { servers: servers.to_vec(), clients: clients.to_vec() })
}

#[test]
fn two_sides_that_know_each_other_exchange_data_that_nobody_reads() {
    for cipher in [Cipher::Auto, Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        let [client, server] = keys();
        let mut pair = Pair::new(
            end(&client, pinned(&[server.public()], &[]), cipher, 1),
            end(&server, pinned(&[], &[client.public()]), Cipher::Auto, 2),
        );
        let ids = pair.connect();
        let data: Vec<u8> = b"the secret of the pyramids ".iter().copied().cycle().take(400_000).collect();
        assert!(pair.transfer(ids, &data) == data);
        assert!(!pair.seen.windows(10).any(|bytes| bytes == b"the secret"), "{cipher:?}");
        let protection = pair.ends[0].protection(ids[0]).unwrap();
        assert!(protection.suite.starts_with("TLS1.3 X25519MLKEM768 "), "{}", protection.suite);
        assert_eq!(PublicKey::from_spki(&protection.peer_key), Some(server.public()));
        let protection = pair.ends[1].protection(ids[1]).unwrap();
        assert_eq!(PublicKey::from_spki(&protection.peer_key), Some(client.public()));
    }
}

#[test]
fn the_handshake_takes_two_datagrams_there_and_three_back() {
    let [client, server] = keys();
    let mut pair = Pair::new(
        end(&client, Arc::new(AcceptAll), Cipher::Auto, 1),
        end(&server, Arc::new(AcceptAll), Cipher::Auto, 2),
    );
    let caller = pair.ends[0].connect(pair.now, address(1)).unwrap();
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Connected(caller)));
    let epochs = |end: usize| pair.datagrams[end].iter().map(|(epoch, _)| *epoch).collect::<Vec<_>>();
    assert_eq!(epochs(1), [0, 0, 2], "{:?}", pair.datagrams);
    assert_eq!(epochs(0), [0, 0, 2, 3], "the first packet inside follows at once: {:?}", pair.datagrams);
}

#[test]
fn a_wrong_key_of_the_server_is_named_at_both_sides() {
    let [client, server] = keys();
    let [other, _] = keys();
    let mut pair = Pair::new(
        end(&client, pinned(&[other.public()], &[]), Cipher::Auto, 1),
        end(&server, Arc::new(AcceptAll), Cipher::Auto, 2),
    );
    assert_eq!(pair.failure(), ConnectionLost::Insecure(SecurityFault::UnknownKey));
    let end = pair.now + Duration::from_secs(12);
    while pair.now < end && pair.step() {}
    assert_eq!((pair.ends[1].connections(), pair.events[1].len()), (0, 0), "the server's application knows nothing");
}

#[test]
fn a_client_without_permission_is_told() {
    let [client, server] = keys();
    let mut pair = Pair::new(
        end(&client, pinned(&[server.public()], &[]), Cipher::Auto, 1),
        end(&server, pinned(&[], &[server.public()]), Cipher::Auto, 2),
    );
    let caller = pair.ends[0].connect(pair.now, address(1)).unwrap();
    let told = Event::Closed(caller, ConnectionLost::Insecure(SecurityFault::NotAdmitted));
    pair.run_until(5, |pair| pair.events[0].contains(&told));
    assert!(pair.events[1].is_empty());
}

#[test]
fn sides_without_a_common_cipher_fail_by_name() {
    let [client, server] = keys();
    let mut pair = Pair::new(
        end(&client, Arc::new(AcceptAll), Cipher::Aes256Gcm, 1),
        end(&server, Arc::new(AcceptAll), Cipher::ChaCha20Poly1305, 2),
    );
    assert_eq!(pair.failure(), ConnectionLost::Insecure(SecurityFault::Handshake));
}
