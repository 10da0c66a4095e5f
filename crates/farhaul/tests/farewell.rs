//! The end of a program: alone in its process, because it waits for every port of the process.

use farhaul::{ConnectionLost, Endpoint, Error, wait_for_farewells};

#[test]
fn after_the_farewells_the_peer_knows_and_the_port_is_free() {
    let there = Endpoint::bind("127.0.0.1:0").unwrap();
    let listener = there.listen().unwrap();
    let here = Endpoint::bind("127.0.0.1:0").unwrap();
    let port = here.local_addr();
    let stream = here.connect(there.local_addr()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    drop((stream, here));
    wait_for_farewells();
    Endpoint::bind(port).unwrap();
    // Data would have kept the connection alive for the peer's time-out.
    assert!(matches!(accepted.recv(&mut [0; 10]), Err(Error::Lost(ConnectionLost::Aborted))));
}
