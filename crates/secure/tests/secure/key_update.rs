//! Changes of keys with the ciphers of TLS, in virtual time: after as many packets as a key may seal, here few.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use core::net::SocketAddr;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::secure::{Failure, Generations, Handshake, KeyChange, Keys, PacketKey, Protection, Provider, Side};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, secure};
use farhaul_secure::{AcceptAll, Cipher, KeyPair, Tls};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_sim::{Simulation, TapAction, Workload};
use farhaul_units::{Duration, Rate};
use farhaul_wire::secure::{Epoch, Header, PacketNumber, TAG_LEN};

type Run = Simulation<Endpoint>;

/// Packets that a key may seal. Those of TLS may seal 2^23 and more (RFC 9001, section 6.6).
const SEALED: u64 = 512;
const BYTES: u64 = 4_000_000;
const LIMIT: Duration = Duration::from_secs(60);

/// TLS, whose keys wear out early.
struct Short(Tls);

struct ShortHandshake(Box<dyn Handshake>);

struct ShortKey(Box<dyn PacketKey>);

struct ShortKeys(Box<dyn Generations>);

fn short(keys: Keys) -> Keys {
    Keys { local: Box::new(ShortKey(keys.local)), remote: Box::new(ShortKey(keys.remote)) }
}

impl PacketKey for ShortKey {
    fn seal(&self, number: PacketNumber, header: &[u8], body: &mut [u8]) -> [u8; TAG_LEN] {
        self.0.seal(number, header, body)
    }

    fn open(&self, number: PacketNumber, header: &[u8], body: &mut [u8]) -> bool {
        self.0.open(number, header, body)
    }

    fn confidentiality_limit(&self) -> u64 {
        SEALED
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

impl Generations for ShortKeys {
    fn next(&mut self) -> Keys {
        short(self.0.next())
    }
}

impl Handshake for ShortHandshake {
    fn read(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.0.read(bytes)
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        Some(match self.0.write(out)? {
            KeyChange::Handshake(keys) => KeyChange::Handshake(keys),
            KeyChange::Application(keys, next) => KeyChange::Application(short(keys), Box::new(ShortKeys(next))),
        })
    }

    fn peer_parameters(&self) -> Option<&[u8]> {
        self.0.peer_parameters()
    }

    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    fn protection(&self) -> Protection {
        self.0.protection()
    }
}

impl Provider for Short {
    fn initial(&self, client_id: &[u8], side: Side) -> Keys {
        self.0.initial(client_id, side)
    }

    fn call(&mut self, peer: SocketAddr, parameters: Vec<u8>) -> Result<Box<dyn Handshake>, Failure> {
        Ok(Box::new(ShortHandshake(self.0.call(peer, parameters)?)))
    }

    fn answer(&mut self, from: SocketAddr, parameters: Vec<u8>) -> Result<Box<dyn Handshake>, Failure> {
        Ok(Box::new(ShortHandshake(self.0.answer(from, parameters)?)))
    }

    fn meet(&mut self, peer: SocketAddr, parameters: Vec<u8>) -> Result<Box<dyn Handshake>, Failure> {
        Ok(Box::new(ShortHandshake(self.0.meet(peer, parameters)?)))
    }

    fn seal_token(&self, content: &[u8]) -> Vec<u8> {
        self.0.seal_token(content)
    }

    fn open_token(&self, token: &[u8]) -> Option<Vec<u8>> {
        self.0.open_token(token)
    }
}

fn endpoint(seed: u8, cipher: Cipher) -> Endpoint {
    let tls = Tls::new(KeyPair::generate().unwrap(), Arc::new(AcceptAll), cipher).unwrap();
    let entropy = Entropy { cookie_key: [seed; 16], seed: seed.into() };
    secure::endpoint(Config::default(), entropy, Box::new(Short(tls)))
}

#[test]
fn no_key_seals_more_than_its_limit_and_transfers_go_on_with_every_cipher() {
    for cipher in [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        let delay = Duration::from_millis(5);
        let path = PathSpec {
            rate: Some(Rate::from_megabits_per_second(100)),
            delay,
            queue: QueueSize::Bdp(4 * delay),
            loss: Some(LossSpec::Bernoulli(0.005)),
            ..PathSpec::default()
        };
        let mut server = endpoint(2, cipher);
        server.listen(Mode::Stream).expect("UDT has the mode");
        let workload = Workload::exchange(BYTES);
        let pair = Pair::new(endpoint(1, cipher), server).path(path);
        let mut run: Run = pair.caller(workload).listener(workload).seed(7).start();
        // Packets of each side in each epoch, in the order of their first packets.
        let sealed = Rc::new(RefCell::new(Vec::<(SocketAddr, Epoch, u64)>::new()));
        let seen = Rc::clone(&sealed);
        run.set_tap(Some(Box::new(move |datagram| {
            if let Some(header) = Header::decode(datagram.bytes).ok().filter(|header| header.epoch.is_application()) {
                let mut seen = seen.borrow_mut();
                let from = datagram.from;
                match seen.iter_mut().find(|(its, epoch, _)| (*its, *epoch) == (from, header.epoch)) {
                    Some((.., count)) => *count += 1,
                    None => seen.push((from, header.epoch, 1)),
                }
            }
            TapAction::Pass
        })));
        assert!(run.run_until_done(LIMIT), "{cipher:?}");
        assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0], "{cipher:?}");
        let sealed = sealed.borrow();
        assert!(sealed.iter().all(|(.., count)| *count <= SEALED), "{cipher:?}: {sealed:?}");
        assert!(sealed.len() > 2 * 5, "{cipher:?}: the keys changed: {sealed:?}");
    }
}
