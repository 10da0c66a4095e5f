//! Datagrams that programs were too slow to read, as the kernel counts them at their sockets.

use std::collections::BTreeSet;
use std::{fs, io};

use farhaul_emu::{Emulation, HostId};

use super::control::Trouble;
use super::network::Network;
use crate::scenario::flow::Protocol;
use crate::scenario::setup::Setup;

/// The kernel's tables of UDP sockets, with the drops of each.
const TABLES: [&str; 2] = ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"];

/// The drops of all hosts with other flows than TCP, at sockets that are still open.
pub(super) fn count(emulation: &Emulation, network: &Network, setup: &Setup) -> Result<u64, Trouble> {
    let flows = setup.flows.iter().zip(&network.places);
    let datagrams = flows.filter(|(flow, _)| !matches!(flow.protocol, Protocol::Tcp(_)));
    let hosts: BTreeSet<HostId> = datagrams.flat_map(|(_, places)| *places).collect();
    let counted = hosts.into_iter().map(|host| emulation.enter(host, here)).sum::<io::Result<u64>>();
    // Without this count, nobody could say that nothing was dropped.
    counted.map_err(Trouble::of("cannot count dropped datagrams"))
}

/// The drops of the calling thread's host.
fn here() -> io::Result<u64> {
    let mut drops = 0;
    for table in TABLES {
        match fs::read_to_string(table) {
            Ok(text) => drops += of_table(&text),
            // A system without IPv6 has no second table.
            Err(error) if error.kind() == io::ErrorKind::NotFound && table == TABLES[1] => {}
            Err(error) => return Err(error),
        }
    }
    Ok(drops)
}

/// The sum of the last column, `drops`.
fn of_table(text: &str) -> u64 {
    text.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().next_back()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn drops_are_the_last_column_of_every_socket() {
        let text = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n  \
             100: 0100007F:1451 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 37 2 0000000000000000 7\n  \
             101: 0100007F:1452 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 38 2 0000000000000000 35\n";
        assert_eq!((of_table(text), of_table("")), (42, 0));
    }

    #[test]
    fn datagrams_beyond_a_sockets_buffer_are_counted() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..2_000 {
            sender.send_to(&[7; 1_000], receiver.local_addr().unwrap()).unwrap();
        }
        receiver.set_nonblocking(true).unwrap();
        // Nobody reads meanwhile, so every packet that is missing was dropped.
        let drops = here().unwrap();
        let kept = std::iter::from_fn(|| receiver.recv(&mut [0; 1_000]).ok()).count() as u64;
        assert!(kept < 2_000 && drops >= 2_000 - kept, "{drops} {kept}");
    }
}
