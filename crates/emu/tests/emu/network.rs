//! A network of hosts on this machine, seen by programs of the system. Needs root rights, if only in a user namespace,
//! and TUN devices. Without them the tests print a notice and pass.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::thread;

use farhaul_emu::{EmulateError, Emulation, HostId, NetworkSpec};
use farhaul_netem::{LossSpec, PathSpec};
use farhaul_units::{Duration, Rate};

use crate::requirement::skip;

/// The network, if this machine permits one.
fn started(network: &NetworkSpec) -> Option<Emulation> {
    match Emulation::start(network) {
        Ok(emulation) => Some(emulation),
        Err(error @ (EmulateError::NoPermission(_) | EmulateError::NoTun(_))) => skip(error),
        Err(error) => panic!("{error}"),
    }
}

fn path(megabits: u64, delay: u64) -> PathSpec {
    let rate = Some(Rate::from_megabits_per_second(megabits));
    PathSpec { rate, delay: Duration::from_millis(delay), ..PathSpec::default() }
}

/// Sends `bytes` over the kernel's TCP. Returns the received bytes.
fn transfer(emulation: &Emulation, [from, to]: [HostId; 2], bytes: &[u8]) -> Vec<u8> {
    let listener = emulation.enter(to, || TcpListener::bind("0.0.0.0:5000")).expect("a listener");
    let address = (emulation.ipv4(to), 5_000);
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let mut arrived = Vec::new();
            let (mut stream, _) = listener.accept().expect("a caller");
            stream.read_to_end(&mut arrived).expect("a stream");
            arrived
        });
        let mut stream = emulation.enter(from, || TcpStream::connect(address)).expect("a connection");
        stream.write_all(bytes).expect("room");
        drop(stream);
        receiver.join().expect("what arrived")
    })
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| ((at * 31) >> 3) as u8).collect()
}

#[test]
fn kernel_tcp_arrives_whole_through_segmentation_and_coalescing() {
    let (network, hosts) = NetworkSpec::pair(&path(400, 1), &path(400, 1), 1_500);
    let Some(emulation) = started(&network) else { return };
    let bytes = pattern(20_000_000);
    assert!(transfer(&emulation, hosts, &bytes) == bytes);
    let report = emulation.stop().unwrap();
    let [up, down] = &report.links[..] else { panic!("two links") };
    assert!(up.pushed.packets >= 20_000_000 / 1_460, "every packet is by itself on the link");
    assert!(up.pushed.bytes / up.pushed.packets <= 1_500);
    assert!(down.pushed.packets > 100);
}

#[test]
fn damaged_packets_are_dropped_by_the_receiving_kernel_and_lost_ones_never_come() {
    let bad = PathSpec { corrupt: 0.005, loss: Some(LossSpec::Bernoulli(0.005)), seed: 3, ..path(100, 1) };
    let (network, hosts) = NetworkSpec::pair(&bad, &path(100, 1), 1_500);
    let Some(emulation) = started(&network) else { return };
    let bytes = pattern(3_000_000);
    assert!(transfer(&emulation, hosts, &bytes) == bytes);
    let report = emulation.stop().unwrap();
    assert!(report.links[0].corrupted.packets > 0 && report.links[0].dropped_loss.packets > 0);
}

#[test]
fn hosts_of_a_larger_network_reach_each_other_over_their_own_links() {
    let mut network = NetworkSpec::new(1);
    let [near, far] = [network.router(), network.router()];
    network.duplex(near, far, &path(50, 1));
    let hosts: Vec<HostId> = [near, near, far]
        .into_iter()
        .map(|router| {
            let host = network.host();
            network.duplex(network.node(host), router, &path(1_000, 0));
            host
        })
        .collect();
    let Some(emulation) = started(&network) else { return };
    let receiver = emulation.enter(hosts[2], || UdpSocket::bind("0.0.0.0:7000")).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    for &host in &hosts[..2] {
        let sender = emulation.enter(host, || UdpSocket::bind("0.0.0.0:0")).unwrap();
        sender.send_to(&[7; 9_000], (emulation.ipv4(hosts[2]), 7_000)).unwrap();
        let mut datagram = [0; 10_000];
        let (length, from) = receiver.recv_from(&mut datagram).unwrap();
        assert_eq!((length, from.ip()), (9_000, emulation.ipv4(host).into()), "fragments are packets like others");
    }
    let report = emulation.stop().unwrap();
    assert_eq!(report.links[0].delivered.packets, 14, "the link between the routers came first");
}

#[test]
fn programs_of_hosts_end_with_the_network_even_without_a_wait() {
    let (network, [near, _]) = NetworkSpec::pair(&path(100, 1), &path(100, 1), 1_500);
    let Some(emulation) = started(&network) else { return };
    let mut sleeper = emulation.spawn(near, Command::new("sleep").arg("1000")).unwrap();
    // A process whose parent has ended, too.
    emulation.spawn(near, Command::new("sh").args(["-c", "sleep 1000 &"])).unwrap().wait().unwrap();
    assert!(sleeper.try_wait().unwrap().is_none());
    emulation.stop().unwrap();
    assert_eq!(sleeper.wait().unwrap().signal(), Some(9));
}
