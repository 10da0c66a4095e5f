use core::net::{IpAddr, Ipv4Addr};

use farhaul_proto::Config;

use super::*;
use crate::rbudp::{ReceivingSession, Terms};
use crate::sabul::Receiver;
use crate::tsunami::{Client, ClientOptions};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
const NOW: Instant = Instant::from_nanos(1_000_000_000);

/// Whether datagrams are the peer's: from the sender's port, in another form of the address, from another port, and from
/// another host.
fn judged(session: &impl OriginalSession) -> [bool; 4] {
    ["192.0.2.7:38000", "[::ffff:192.0.2.7]:38000", "192.0.2.7:9", "192.0.2.8:38000"]
        .map(|from| session.is_from_peer(PEER, from.parse().expect("an address")))
}

/// Attack C2: another host, and another program on the sender's host.
#[test]
fn datagrams_of_strangers_are_not_the_peers() {
    let rbudp = ReceivingSession::file(NOW, Terms::default(), b"name").expect("terms in range");
    assert_eq!(judged(&rbudp), [true, true, false, false], "RBUDP fixes the port");
    let tsunami = Client::new(ClientOptions::default(), NOW);
    assert_eq!(judged(&tsunami), [true, true, true, false], "Tsunami's server sends from any port");
    let mut sabul = Receiver::new(&Config::default(), 7_000, NOW);
    assert_eq!(judged(&sabul), [true, true, true, false], "no datagram of SABUL has come");
    sabul.poll_channel(NOW, &mut Vec::new());
    assert_eq!(sabul.handle_datagram(NOW, 38_000, b"\0\0\0\0good"), DatagramOutcome::Taken);
    assert_eq!(judged(&sabul), [true, true, false, false], "the first one fixes the port");
}
