//! Connecting to names with several addresses, and to unreachable ones.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use farhaul::{Builder, ConnectOptions, Endpoint, Error, Stream};

/// A time-out so long that a test that waits for it never ends.
const FOR_EVER: Duration = Duration::from_secs(3_600);

fn patient() -> Builder {
    Endpoint::builder().plain().connect_timeout(FOR_EVER)
}

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// An address of the loopback network that no other test uses, so that its ports stay free.
fn closed() -> SocketAddr {
    UdpSocket::bind("127.0.0.81:0").unwrap().local_addr().unwrap()
}

#[test]
fn an_address_of_the_other_family_is_refused_at_once_by_name() {
    let endpoint = patient().bind(any()).unwrap();
    let peer: SocketAddr = "[::1]:9000".parse().unwrap();
    let error = endpoint.connect(peer).unwrap_err();
    assert!(matches!(error, Error::WrongFamily { peer: its, .. } if its == peer), "{error}");
    for address in [peer, endpoint.local_addr()] {
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }
    assert!(matches!(endpoint.connect_with(peer, ConnectOptions::messages()), Err(Error::WrongFamily { .. })));
    assert!(matches!(
        endpoint.connect_with(peer, ConnectOptions::stream().rendezvous()),
        Err(Error::WrongFamily { .. })
    ));
}

#[test]
fn a_name_with_addresses_of_both_families_is_called_at_its_own() {
    let there = Endpoint::plain(any()).unwrap();
    let _listener = there.listen().unwrap();
    let names: [SocketAddr; 2] = ["[::1]:9000".parse().unwrap(), there.local_addr()];
    let stream = patient().bind(any()).unwrap().connect(&names[..]).unwrap();
    assert_eq!(stream.peer_addr(), there.local_addr());
}

#[test]
fn an_ipv4_address_in_the_form_of_ipv6_is_one() {
    let there = Endpoint::plain(any()).unwrap();
    let _listener = there.listen().unwrap();
    let mapped = format!("[::ffff:127.0.0.1]:{}", there.local_addr().port());
    patient().bind(any()).unwrap().connect(&mapped).unwrap();
    Stream::connect_plain(mapped).unwrap();
}

#[test]
fn a_port_of_both_families_reaches_peers_of_either() {
    // A system may have the family and no address of it.
    if let Err(error) = UdpSocket::bind("[::1]:0") {
        println!("SKIPPED: no ::1: {error}");
        return;
    }
    let [here, there] = [(), ()].map(|()| Endpoint::plain("[::]:0").unwrap());
    let at = |host: &str, endpoint: &Endpoint| format!("{host}:{}", endpoint.local_addr().port());
    let listener = there.listen().unwrap();
    for host in ["127.0.0.1", "[::1]"] {
        here.connect(at(host, &there)).unwrap();
        assert_eq!(listener.accept().unwrap().1.is_ipv4(), host == "127.0.0.1");
    }
    let (one, other) = (at("127.0.0.1", &here), at("127.0.0.1", &there));
    std::thread::scope(|scope| {
        let meeting = scope.spawn(|| there.connect_with(one, ConnectOptions::stream().rendezvous()));
        here.connect_with(other, ConnectOptions::stream().rendezvous()).unwrap();
        meeting.join().unwrap().unwrap();
    });
}

#[test]
fn after_a_port_reported_closed_the_next_address_is_tried() {
    let there = Endpoint::plain(any()).unwrap();
    let _listener = there.listen().unwrap();
    let addresses = [closed(), closed(), there.local_addr()];
    let stream = patient().bind(any()).unwrap().connect(&addresses[..]).unwrap();
    assert_eq!(stream.peer_addr(), there.local_addr());
}

#[test]
fn the_last_address_gets_the_whole_time_and_its_error_names_the_reason() {
    let time = Duration::from_millis(200);
    let endpoint = Endpoint::builder().plain().connect_timeout(time).bind(any()).unwrap();
    let addresses = [closed(), closed()];
    let error = endpoint.connect(&addresses[..]).unwrap_err();
    assert!(
        matches!(error, Error::Unreachable { peer, time: its, .. } if peer == addresses[1] && its == time),
        "{error}"
    );
}
