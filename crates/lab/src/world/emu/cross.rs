//! Cross traffic: a thread that sends datagrams at a given rate, and one that counts them.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use farhaul_proto::Stats;
use farhaul_sim::agent::source::Schedule;
use farhaul_udp::RECV_BUFFER;
use farhaul_units::{Instant, Rate};
use rustix::net::sockopt;

use super::control::{RunControl, Trouble};
use super::{Ends, RunningFlow, SLICE, Start};
use crate::scenario::flow::Pattern;

/// IP and UDP headers, in bytes.
const HEADER: u32 = 28;

/// The packets so far.
#[derive(Debug, Default)]
struct CrossCounts {
    sent: AtomicU64,
    received: AtomicU64,
}

struct CrossFlow {
    /// Bytes of a packet with its headers, as the simulator counts them.
    packet: u64,
    counts: Arc<CrossCounts>,
}

pub(super) fn begin(start: &Start<'_>, (rate, pattern): (Rate, Pattern), seed: u64) -> Result<RunningFlow, Trouble> {
    let Start { scene, flow, hosts, addresses, .. } = start;
    let socket =
        |side: usize| scene.emulation.enter(hosts[side], || UdpSocket::bind(addresses[side])).map_err(start.failed());
    let [sender, receiver] = [socket(0)?, socket(1)?];
    let peer = addresses[1];
    enlarge(&receiver).map_err(start.failed())?;
    receiver.set_read_timeout(Some(SLICE)).map_err(start.failed())?;
    let counts = Arc::new(CrossCounts::default());
    let receiving = {
        let (control, counts) = (start.control(), Arc::clone(&counts));
        thread::spawn(move || receive(&receiver, &control, &counts))
    };
    let schedule = Schedule::new(rate, pattern.timing(flow.start, start.end()), flow.packet, seed);
    let datagram = vec![0; (flow.packet - HEADER) as usize];
    let sending = {
        let (control, counts) = (start.control(), Arc::clone(&counts));
        thread::spawn(move || send(&sender, (&datagram, peer), schedule, &control, &counts))
    };
    let ends = Box::new(CrossFlow { packet: flow.packet.into(), counts });
    Ok(RunningFlow { ends, meters: None, threads: vec![receiving, sending], ending: Arc::default() })
}

/// Gives a receiver the library's buffer, as far as this program may.
///
/// The system's default holds a hundred packets, a millisecond of 1 Gbit/s. The reader may have to wait longer for a
/// processor.
fn enlarge(receiver: &UdpSocket) -> io::Result<()> {
    if sockopt::set_socket_recv_buffer_size_force(receiver, RECV_BUFFER).is_err() {
        sockopt::set_socket_recv_buffer_size(receiver, RECV_BUFFER)?;
    }
    Ok(())
}

fn send(
    socket: &UdpSocket,
    (datagram, peer): (&[u8], SocketAddr),
    schedule: Schedule,
    control: &RunControl,
    counts: &CrossCounts,
) {
    for due in schedule {
        if !control.await_time(due - Instant::ZERO) {
            return;
        }
        // A packet that the system refuses counts as sent and lost.
        let _ = socket.send_to(datagram, peer);
        counts.sent.fetch_add(1, Ordering::Relaxed);
    }
}

fn receive(socket: &UdpSocket, control: &RunControl, counts: &CrossCounts) {
    let mut datagram = [0; 1];
    while !control.is_over() {
        match socket.recv(&mut datagram) {
            Ok(_) => drop(counts.received.fetch_add(1, Ordering::Relaxed)),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            Err(_) => return,
        }
    }
}

impl Ends for CrossFlow {
    fn look(&self, _: [Stats; 2]) -> [Stats; 2] {
        let [mut sender, mut receiver] = [Stats::default(); 2];
        sender.totals.packets_sent = self.counts.sent.load(Ordering::Relaxed);
        receiver.totals.packets_received = self.counts.received.load(Ordering::Relaxed);
        receiver.totals.bytes_received = receiver.totals.packets_received * self.packet;
        receiver.totals.bytes_read = receiver.totals.bytes_received;
        [sender, receiver]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhaul_units::Duration;

    fn due(pattern: Pattern, count: usize) -> Vec<u128> {
        let timing = pattern.timing(Duration::from_millis(5), Duration::from_secs(3_600));
        let schedule = Schedule::new(Rate::from_megabits_per_second(12), timing, 1_500, 1);
        schedule.take(count).map(|due| (due - Instant::ZERO).as_micros()).collect()
    }

    #[test]
    fn packets_are_due_at_the_rate_and_in_the_pattern_that_are_asked_for() {
        assert_eq!(due(Pattern::Constant, 4), [5_000, 6_000, 7_000, 8_000]);
        let bursts = Pattern::OnOff(Duration::from_millis(2), Duration::from_millis(10));
        assert_eq!(due(bursts, 5), [5_000, 6_000, 17_000, 18_000, 29_000]);
        let random = due(Pattern::Poisson, 10_001);
        let mean = (random[10_000] - random[0]) as f64 / 10_000.0;
        assert!((mean - 1_000.0).abs() < 30.0, "{mean}");
    }
}
