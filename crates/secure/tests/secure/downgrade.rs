//! An attacker on the path who rewrites messages of TLS (A9). The keys of Initial packets are public, so he can seal what he
//! has changed. The transcript of TLS betrays him.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::sync::Arc;

use farhaul_proto::secure::{Keys, Provider, Side};
use farhaul_proto::{Config, ConnectionLost, Endpoint, Entropy, Event, Mode, SecurityFault, secure};
use farhaul_secure::{AcceptAll, Cipher, KeyPair, Tls};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, address};
use farhaul_sim::{Simulation, TapAction, Workload};
use farhaul_units::{Duration, Instant};
use farhaul_wire::secure::{Epoch, Frame, Header, InitialHeader, TAG_LEN};

type Run = Simulation<Endpoint>;

fn tls() -> Tls {
    Tls::new(KeyPair::generate().unwrap(), Arc::new(AcceptAll), Cipher::Auto).unwrap()
}

fn endpoint(seed: u8) -> Endpoint {
    let entropy = Entropy { cookie_key: [seed; 16], seed: seed.into() };
    secure::endpoint(Config::default(), entropy, Box::new(tls()))
}

/// Opens an Initial packet, lets `change` have its frames, and seals it again.
fn rewrite(provider: &Tls, from_client: bool, datagram: &mut [u8], change: impl FnOnce(&mut [u8])) {
    let Ok(header) = Header::decode(datagram) else { return };
    if header.epoch != Epoch::INITIAL {
        return;
    }
    let (initial, head_len) = InitialHeader::decode(datagram).unwrap();
    let (sender, receiver) = if from_client { (Side::Client, Side::Server) } else { (Side::Server, Side::Client) };
    let keys = |side| -> Keys { provider.initial(initial.client_id, side) };
    let (seals, opens) = (keys(sender), keys(receiver));
    let (head, body) = datagram.split_at_mut(head_len);
    if !opens.remote.open(header.number, head, body) {
        return;
    }
    let (frames, tag) = body.split_at_mut(body.len() - TAG_LEN);
    change(frames);
    tag.copy_from_slice(&seals.local.seal(header.number, head, frames));
}

/// The place of the first piece of TLS in frames; `None` without one.
fn first_message(frames: &[u8]) -> Option<usize> {
    let mut rest = frames;
    while let Ok(Some((frame, behind))) = Frame::decode(rest) {
        if let Frame::Crypto { offset: 0, bytes } = frame {
            return Some(frames.len() - behind.len() - bytes.len());
        }
        rest = behind;
    }
    None
}

/// The end of a call in which the frames of one side's Initial packets are changed.
fn outcome(of_client: bool, change: impl Fn(&mut [u8]) + 'static) -> ConnectionLost {
    let mut server = endpoint(2);
    server.listen(Mode::Stream).expect("UDT has the mode");
    let mut run: Run = Pair::new(endpoint(1), server).caller(Workload::send(1_000)).seed(7).start();
    let attacker = tls();
    run.set_tap(Some(Box::new(move |datagram| {
        let from_client = datagram.from == address(CALLER);
        if from_client == of_client {
            rewrite(&attacker, from_client, datagram.bytes, &change);
        }
        TapAction::Pass
    })));
    let closed = |run: &Run| {
        let log = run.application(CALLER).log();
        log.iter().find_map(|(_, event)| if let Event::Closed(_, reason) = event { Some(*reason) } else { None })
    };
    assert!(run.run_until_true(Instant::ZERO + Duration::from_secs(20), |run| closed(run).is_some()));
    let log = run.application(CALLER).log();
    assert!(!log.iter().any(|(_, event)| matches!(event, Event::Connected(_))), "{log:?}");
    assert!(run.flows(LISTENER).is_empty());
    closed(&run).unwrap()
}

/// A named error or a time-out, of this side or of the other one.
fn assert_no_connection(end: ConnectionLost, what: &str) {
    let named = ConnectionLost::Insecure(SecurityFault::Handshake);
    assert!(end == named || matches!(end, ConnectionLost::ConnectTimeout(_)), "{what}: {end:?}");
}

#[test]
fn a9_no_changed_byte_of_a_hello_leads_to_a_connection() {
    // Lengths, version, random, session id, suites, extensions, key shares: every 23rd byte is tried.
    for of_client in [true, false] {
        for at in (0..900).step_by(23) {
            let end = outcome(of_client, move |frames| {
                if let Some(begin) = first_message(frames)
                    && let Some(byte) = frames.get_mut(begin + at)
                {
                    *byte ^= 0x01;
                }
            });
            assert_no_connection(end, &format!("byte {at}, of the client: {of_client}"));
        }
    }
}

#[test]
fn a9_suites_that_an_attacker_takes_away_lead_to_no_connection() {
    let found = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = Arc::clone(&found);
    let end = outcome(true, move |frames| {
        // AES-256-GCM, AES-128-GCM and ChaCha20-Poly1305 become the last one.
        let suites = [[0x13, 0x01], [0x13, 0x02]];
        let Some(begin) = first_message(frames) else { return };
        for at in begin..begin + 80 {
            if suites.iter().any(|suite| frames[at..].starts_with(suite)) && frames[at - 1] != 0 {
                frames[at + 1] = 0x03;
                seen.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
    });
    assert!(found.load(std::sync::atomic::Ordering::Relaxed));
    assert_no_connection(end, "suites");
}

#[test]
fn a9_another_protocol_name_leads_to_no_connection() {
    let end = outcome(true, |frames| {
        if let Some(at) = frames.windows(9).position(|bytes| bytes == b"farhaul/1") {
            frames[at + 8] = b'0';
        }
    });
    assert_no_connection(end, "protocol name");
}
