//! Packets that die in the receive buffer of this host's socket.

use std::io::{Read, Write};
use std::thread;

use farhaul::Endpoint;

const LENGTH: u64 = 5_000_000;

#[test]
fn packets_that_die_in_a_small_socket_are_told_from_those_that_the_path_loses() {
    let there = Endpoint::builder().plain().udp_recv_buffer(4_096).bind(([127, 0, 0, 1], 0).into()).unwrap();
    let listener = there.listen().unwrap();
    let here = Endpoint::builder().plain().bind(([127, 0, 0, 1], 0).into()).unwrap();
    let mut stream = here.connect(there.local_addr()).unwrap();
    let sender = thread::spawn(move || {
        let block = [7; 64 << 10];
        for _ in 0..LENGTH / block.len() as u64 {
            stream.write_all(&block).unwrap();
        }
        stream.finish().unwrap();
    });
    let (mut accepted, _) = listener.accept().unwrap();
    let mut rest = Vec::new();
    accepted.read_to_end(&mut rest).unwrap();
    sender.join().unwrap();
    let totals = accepted.stats().unwrap().totals;
    let drops = there.recv_drops().unwrap();
    if drops < 100 {
        println!("skipped: a larger buffer, which users keep, lost {drops} datagrams alone");
        return;
    }
    let (died, lost) = (totals.packets_dropped, totals.packets_lost_receiving);
    assert!(died > 0 && died * 2 > lost, "{died} of {lost} died in the socket, which dropped {drops}");
}
