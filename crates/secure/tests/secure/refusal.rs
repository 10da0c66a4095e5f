//! A client whose key the server does not admit, with the keys of TLS, in virtual time.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use farhaul_netem::PathSpec;
use farhaul_proto::{Config, ConnectionLost, Endpoint, Entropy, Event, Mode, SecurityFault, secure};
use farhaul_secure::{AcceptAll, Cipher, KeyPair, Pinned, Tls, Trust};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, address};
use farhaul_sim::{Simulation, TapAction, Workload};
use farhaul_units::{Duration, Instant};
use farhaul_wire::secure::{Epoch, Header};

type Run = Simulation<Endpoint>;

fn endpoint(seed: u8, trust: impl Trust + 'static) -> Endpoint {
    let tls = Tls::new(KeyPair::generate().unwrap(), Arc::new(trust), Cipher::Auto).unwrap();
    let entropy = Entropy { cookie_key: [seed; 16], seed: seed.into() };
    secure::endpoint(Config::default(), entropy, Box::new(tls))
}

/// The end of the call, and its time.
fn closed(run: &Run) -> Option<(Duration, ConnectionLost)> {
    run.application(CALLER).log().iter().find_map(|(at, event)| match event {
        Event::Closed(_, reason) => Some((*at - Instant::ZERO, *reason)),
        _ => None,
    })
}

#[test]
fn a_client_hears_that_it_is_not_admitted_even_if_the_first_words_are_lost() {
    for lost in 0..=3 {
        let mut server = endpoint(2, Pinned::default());
        server.listen(Mode::Stream).expect("UDT has the mode");
        let path = PathSpec { delay: Duration::from_millis(10), ..PathSpec::default() };
        let mut run: Run =
            Pair::new(endpoint(1, AcceptAll), server).path(path).caller(Workload::send(1_000)).seed(7).start();
        let left = Rc::new(Cell::new(lost));
        let words = Rc::clone(&left);
        run.set_tap(Some(Box::new(move |datagram| {
            let handshake = Header::decode(datagram.bytes).is_ok_and(|header| header.epoch == Epoch::HANDSHAKE);
            // All other Handshake packets of a server have messages of TLS.
            if datagram.from == address(LISTENER) && handshake && datagram.bytes.len() < 100 && words.get() > 0 {
                words.set(words.get() - 1);
                return TapAction::Drop;
            }
            TapAction::Pass
        })));
        assert!(run.run_until_true(Instant::ZERO + Duration::from_secs(5), |run| closed(run).is_some()), "{lost} lost");
        let (time, reason) = closed(&run).unwrap();
        assert_eq!(reason, ConnectionLost::Insecure(SecurityFault::NotAdmitted), "{lost} lost");
        assert!(time < Duration::from_secs(2) && left.get() == 0, "{time:?}");
        assert_eq!(run.transport(LISTENER).connections(), 0);
    }
}
