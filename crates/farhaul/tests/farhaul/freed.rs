//! What was dropped holds nothing: no port, no descriptor, no thread.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::fs::read_dir;
use std::io::Write;
use std::time::Duration;

use farhaul::security::{AcceptAll, KeyPair, Security};
use farhaul::{Canceller, Endpoint, Stream, wait_idle};

/// Objects of each kind. One that leaks leaves as many descriptors or threads.
const TIMES: usize = 500;
/// Connections take several milliseconds each.
const CONNECTIONS: usize = 60;
/// What the runtime of the tests may have opened meanwhile.
const FEW: usize = 8;

/// Descriptors and threads of this process.
fn held() -> [usize; 2] {
    wait_idle();
    ["/proc/self/fd", "/proc/self/task"].map(|folder| read_dir(folder).unwrap().count())
}

/// Does `what` again and again. Afterwards as much is held as before, although the results live on.
fn leaves_nothing<T>(times: usize, mut what: impl FnMut() -> T) {
    let before = held();
    let kept: Vec<T> = (0..times).map(|_| what()).collect();
    // A thread that ends may be counted for a moment longer. A leak never ends the loop.
    while held().iter().zip(before).any(|(now, before)| *now > before + FEW) {
        std::thread::yield_now();
    }
    drop(kept);
}

fn secure() -> Endpoint {
    let security = Security::new(KeyPair::generate().unwrap(), AcceptAll);
    Endpoint::builder().secure(security).bind("127.0.0.1:0".parse().unwrap()).unwrap()
}

#[test]
fn endpoints_and_listeners_that_were_dropped_hold_nothing() {
    leaves_nothing(TIMES, || {
        let endpoint = secure();
        let _listener = endpoint.listen().unwrap();
        endpoint.downgrade()
    });
    leaves_nothing(TIMES, || Endpoint::plain("127.0.0.1:0").unwrap().listen_for_messages().unwrap().local_addr());
}

#[test]
fn a_canceller_holds_nothing_of_its_port_and_knows_whether_it_is_open() {
    let mut all: Vec<Canceller> = Vec::new();
    leaves_nothing(TIMES, || {
        let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
        all.push(endpoint.canceller());
        assert!(all.last().unwrap().is_port_open());
    });
    assert!(!all.iter().any(Canceller::is_port_open));
    all.iter().for_each(Canceller::cancel);
}

#[test]
fn connections_that_ended_in_any_way_hold_nothing() {
    let there = secure();
    let listener = there.listen().unwrap();
    let ends: [fn(&Stream); 3] = [|stream| stream.finish().unwrap(), |stream| stream.abort(), |_| ()];
    for end in ends {
        leaves_nothing(CONNECTIONS, || {
            let mut stream = secure().connect(there.local_addr()).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            stream.write_all(b"x").unwrap();
            accepted.recv(&mut [0]).unwrap();
            end(&stream);
            end(&accepted);
        });
    }
}

#[test]
fn what_cannot_be_opened_or_reached_holds_nothing() {
    let taken = secure();
    leaves_nothing(TIMES, || Endpoint::plain(taken.local_addr()).map(drop).unwrap_err());
    let closed = Endpoint::plain("127.0.0.1:0").unwrap().local_addr();
    leaves_nothing(CONNECTIONS, || {
        let hasty = Endpoint::builder().plain().connect_timeout(Duration::from_millis(1));
        hasty.bind("127.0.0.1:0".parse().unwrap()).unwrap().connect(closed).map(drop).unwrap_err()
    });
}

#[test]
fn the_port_of_an_endpoint_that_was_dropped_can_be_bound_at_once_by_a_program_that_adopts_it_later() {
    let mut at = "127.0.0.1:0".parse().unwrap();
    for _ in 0..50 {
        let socket = Endpoint::builder().plain().socket(at).unwrap();
        at = socket.local_addr().unwrap();
        drop(Endpoint::builder().plain().adopt(socket).unwrap().listen().unwrap());
    }
}

/// Its connection has yet to tell the peer, which takes two round trips.
#[test]
fn a_port_whose_last_handle_was_dropped_can_be_opened_again_at_once() {
    let there = secure();
    let listener = there.listen().unwrap();
    let mut here = secure();
    for _ in 0..20 {
        let stream = here.connect(there.local_addr()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let at = here.local_addr();
        drop((stream, here));
        let security = Security::new(KeyPair::generate().unwrap(), AcceptAll);
        here = Endpoint::builder().secure(security).bind(at).unwrap();
        drop(accepted);
    }
}
