//! Accepting: admission and the backlog.

use std::net::UdpSocket;

use farhaul::{ConnectionLost, Endpoint, Error, Stream};

#[test]
fn only_connections_not_yet_accepted_fill_the_backlog() {
    let hub = Endpoint::builder().plain().backlog(1).bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = hub.listen().unwrap();
    // None of them is read or written, because accepting one frees its place.
    let held: Vec<(Stream, Stream)> = (0..3)
        .map(|_| {
            let caller = Stream::connect_plain(hub.local_addr()).unwrap();
            (caller, listener.accept().unwrap().0)
        })
        .collect();
    let waiting = Stream::connect_plain(hub.local_addr()).unwrap();
    let error = Stream::connect_plain(hub.local_addr()).unwrap_err();
    assert!(matches!(error, Error::Lost(ConnectionLost::Refused)), "{error}");
    drop((held, waiting));
}

#[test]
fn datagrams_of_strangers_are_only_counted() {
    let hub = Endpoint::plain("127.0.0.1:0").unwrap();
    let listener = hub.listen().unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for datagram in [&b"short"[..], &[0xFF; 1_000]] {
        stranger.send_to(datagram, hub.local_addr()).unwrap();
    }
    // Later connections arrive after them.
    let _caller = Stream::connect_plain(hub.local_addr()).unwrap();
    listener.accept().unwrap();
    assert_eq!(hub.invalid_datagrams().unwrap(), 2);
}
