//! The end of a program: the wait for the close of every port of the process.

use farhaul::{ConnectionLost, Endpoint, Error, wait_idle};

#[test]
fn after_the_close_the_peer_knows_and_the_port_is_free() {
    let there = Endpoint::plain("127.0.0.1:0").unwrap();
    let listener = there.listen().unwrap();
    let here = Endpoint::plain("127.0.0.1:0").unwrap();
    let port = here.local_addr();
    let stream = here.connect(there.local_addr()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    drop((stream, here));
    wait_idle();
    Endpoint::plain(port).unwrap();
    // The abort arrived. Without it, the connection would live until the peer's time-out.
    assert!(matches!(accepted.recv(&mut [0; 10]), Err(Error::Lost(ConnectionLost::Aborted))));
}
