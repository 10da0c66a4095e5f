//! Connections that finish in the background, without a waiting caller.

use std::io::Read;

use farhaul::{Endpoint, Stream};

#[test]
fn the_last_data_arrives_after_its_handle_is_gone() {
    let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
    let listener = endpoint.listen().unwrap();
    let mut caller = Stream::connect_plain(endpoint.local_addr()).unwrap();
    // The peer may have sent data that this side never reads.
    caller.send_all(&[7; 100_000]).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    accepted.send_all(b"come back later").unwrap();
    accepted.finish_in_background();
    drop(accepted);
    let mut text = String::new();
    caller.read_to_string(&mut text).unwrap();
    assert_eq!(text, "come back later");
}

#[test]
fn a_connection_that_finishes_in_the_background_refuses_further_writes() {
    let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
    let listener = endpoint.listen().unwrap();
    let caller = Stream::connect_plain(endpoint.local_addr()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    accepted.finish_in_background();
    assert!(accepted.send(b"more").is_err());
    assert_eq!(caller.recv(&mut [0; 10]).unwrap(), 0);
}
