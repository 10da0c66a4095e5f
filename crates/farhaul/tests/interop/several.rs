//! Several connections on one port, on either side.

use std::collections::BTreeSet;
use std::thread;

use crate::content::{recv, send};
use crate::here::Here;
use crate::libudt::{Libudt, Report};

const SOCKETS: usize = 4;

fn digests(reports: &[Report], name: &str) -> BTreeSet<u64> {
    reports.iter().map(|report| report.digest(name)).collect()
}

#[test]
fn our_port_connects_to_one_port_of_libudt_several_times() {
    let Some(libudt) = Libudt::find() else { return };
    let (peer, address) = libudt.listen(&format!("recv --sockets {SOCKETS}"));
    let here = Here::new();
    let sent = thread::scope(|scope| {
        let senders = (0..SOCKETS as u64).map(|seed| (seed, here.connect(address).unwrap()));
        let senders = senders.map(|(seed, stream)| {
            scope.spawn(move || {
                let digest = send(&stream, seed, 2_000_000).unwrap();
                stream.finish().unwrap();
                digest
            })
        });
        let senders: Vec<_> = senders.collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect::<BTreeSet<_>>()
    });
    assert_eq!(sent.len(), SOCKETS);
    assert_eq!(digests(&peer.reports(), "received_digest"), sent);
}

#[test]
fn one_port_of_libudt_connects_to_ours_several_times() {
    let Some(libudt) = Libudt::find() else { return };
    let here = Here::new();
    let listener = here.listen().unwrap();
    let peer = libudt.connect(here.local_addr(), &format!("send --sockets {SOCKETS} --bytes 2000000 --seed 10"));
    let (peers, received): (BTreeSet<_>, BTreeSet<_>) = thread::scope(|scope| {
        let receivers = (0..SOCKETS).map(|_| Here::accept(&listener));
        let receivers: Vec<_> =
            receivers.map(|from| scope.spawn(move || (from.peer_addr(), recv(&from, None)))).collect();
        receivers.into_iter().map(|receiver| receiver.join().unwrap()).map(|(from, got)| (from, got.unwrap().1)).unzip()
    });
    assert_eq!((peers.len(), received.len()), (1, SOCKETS));
    assert_eq!(digests(&peer.reports(), "sent_digest"), received);
}
