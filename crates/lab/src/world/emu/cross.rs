//! Cross traffic: a thread that sends datagrams at a given rate, and one that counts them.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use farhaul_proto::Stats;
use farhaul_udp::RECV_BUFFER;
use farhaul_units::{Duration, Rate, Rng};
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

/// The times at which packets are due.
struct Schedule {
    rate: Rate,
    pattern: Pattern,
    packet: u32,
    rng: Rng,
    /// The start of the present burst, and the number of packets that it has sent.
    burst: (Duration, u64),
    next: Duration,
}

impl Schedule {
    fn new(rate: Rate, pattern: Pattern, packet: u32, begin: Duration, seed: u64) -> Self {
        Self { rate, pattern, packet, rng: Rng::new(seed), burst: (begin, 0), next: begin }
    }

    /// Returns the due time of the next packet, and computes that of the one after it.
    fn take(&mut self) -> Duration {
        let due = self.next;
        let each = u64::from(self.packet);
        let (begin, count) = self.burst;
        self.burst.1 = count + 1;
        let even = begin + self.rate.time_for((count + 1) * each);
        self.next = match self.pattern {
            // 1 - u is never zero, so the logarithm is finite.
            Pattern::Poisson => due + self.rate.time_for(each).mul_f64(-libm::log(1.0 - self.rng.unit())),
            Pattern::Constant => even,
            Pattern::OnOff(on, _) if even < begin + on => even,
            Pattern::OnOff(on, off) => {
                self.burst = (begin + on + off, 0);
                begin + on + off
            }
        };
        due
    }
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
    let mut threads = Vec::new();
    threads.push({
        let (control, counts) = (start.control(), Arc::clone(&counts));
        thread::spawn(move || receive(&receiver, &control, &counts))
    });
    let (begin, end) = (flow.start, start.end());
    if rate > Rate::ZERO && begin < end {
        let (control, counts) = (start.control(), Arc::clone(&counts));
        let schedule = Schedule::new(rate, pattern, flow.packet, begin, seed);
        threads.push(thread::spawn(move || send(&sender, peer, schedule, end, &control, &counts)));
    }
    let ends = Box::new(CrossFlow { packet: flow.packet.into(), counts });
    Ok(RunningFlow { ends, meters: None, threads, ending: Arc::default() })
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
    peer: SocketAddr,
    mut schedule: Schedule,
    end: Duration,
    control: &RunControl,
    counts: &CrossCounts,
) {
    let datagram = vec![0; (schedule.packet - HEADER) as usize];
    loop {
        let due = schedule.take();
        if due >= end || !control.await_time(due) {
            return;
        }
        // A packet that the system refuses counts as sent and lost.
        let _ = socket.send_to(&datagram, peer);
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

    fn due(pattern: Pattern, count: usize) -> Vec<u128> {
        let mut schedule =
            Schedule::new(Rate::from_megabits_per_second(12), pattern, 1_500, Duration::from_millis(5), 1);
        (0..count).map(|_| schedule.take().as_micros()).collect()
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
