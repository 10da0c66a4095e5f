//! TCP flows: connections of the kernel.

mod connection;

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex};

use farhaul_emu::Emulation;
use farhaul_proto::Stats;
use farhaul_sim::agent::tcp::Recovery;
use rustix::process::geteuid;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::control::Trouble;
use super::network::Network;
use super::processor::Meter;
use super::{Choices, Ends, RunningFlow, Scene, Start};
use crate::scenario::flow::{self, FlowSpec, Tcp};
use crate::scenario::setup::Setup;
use crate::world::Ending;
use connection::{End, KernelReceiver, KernelSender, thread};

/// IP and TCP headers of a data packet of Linux, with time stamps, in bytes.
pub(super) const HEADER: u32 = 52;
/// The headers without options. The kernel's maximum segment size (`TCP_MAXSEG`) is a packet without these. Time stamps
/// take their 12 bytes from it.
const BARE_HEADER: u32 = 40;
/// The largest packet to which a socket can be limited. It follows from the kernel's largest limit (`MAX_TCP_WINDOW`).
pub(super) const LARGEST_PACKET: u32 = 32_767 + BARE_HEADER;
/// The kernel's congestion control in place of senders without selective acknowledgements, which the kernel has not.
const RENO: &str = "reno";
/// The kernel's list of congestion controls that need no loading.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// Buffers of every socket without a window limit, in bytes: 10 Gbit/s at 100 ms. They take memory only as data need
/// it.
const BUFFER: u64 = 128 << 20;
/// The size of a receive buffer as a multiple of the window. The kernel counts at most half of the buffer before it
/// knows the size of packets.
const BUFFER_OF_WINDOW: u64 = 4;
/// The longest queue of callers. They come one at a time.
const BACKLOG: i32 = 16;

/// The kernel's congestion control of a flow: the one that is chosen, or that of the law's name. `None` for other protocols.
fn congestion_control(flow: &FlowSpec, choices: &Choices) -> Option<String> {
    let flow::Protocol::Tcp(tcp) = &flow.protocol else { return None };
    let law = tcp.law.to_string();
    let name = match law.split(':').next() {
        Some(name) if tcp.recovery == Recovery::Sack => name,
        _ => RENO,
    };
    Some(choices.tcp.as_deref().unwrap_or(name).to_owned())
}

/// The kernel's congestion controls of all flows, by name; `None` if there is no TCP.
pub(super) fn congestion_controls(setup: &Setup, choices: &Choices) -> Option<String> {
    let names: BTreeSet<String> = setup.flows.iter().filter_map(|flow| congestion_control(flow, choices)).collect();
    (!names.is_empty()).then(|| names.into_iter().collect::<Vec<_>>().join(", "))
}

/// Prepares the sockets of all hosts. Large buffers leave the limits to the path and the scenario's windows. No
/// connection learns from earlier ones.
pub(super) fn prepare_hosts(
    emulation: &Emulation,
    network: &Network,
    setup: &Setup,
    choices: &Choices,
) -> Result<(), Trouble> {
    let names: BTreeSet<String> = setup.flows.iter().filter_map(|flow| congestion_control(flow, choices)).collect();
    if names.is_empty() {
        return Ok(());
    }
    // The settings belong to the network of the sockets.
    let Some(&host) = network.hosts.first() else { return Ok(()) };
    for name in names {
        if let Err(error) = emulation.enter(host, || check(&name)) {
            let known = std::fs::read_to_string(AVAILABLE).unwrap_or_default();
            return Err(Trouble::Broken(unavailable(&name, &error, &known, geteuid().is_root())));
        }
    }
    let widest = (0..setup.flows.len()).filter_map(|index| window(setup, index)).max().unwrap_or(0);
    let buffer = BUFFER.max(BUFFER_OF_WINDOW * u64::from(widest));
    // Equal to the maximum from the start, because the kernel's own enlarging would undo window limits.
    let settings = [
        ("tcp_rmem", format!("4096 {buffer} {buffer}")),
        ("tcp_wmem", format!("4096 65536 {buffer}")),
        ("tcp_no_metrics_save", "1".to_owned()),
    ];
    for &host in &network.hosts {
        let written = emulation.enter(host, || {
            settings.iter().try_for_each(|(name, value)| std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value))
        });
        written.map_err(Trouble::of("cannot set the buffers of TCP"))?;
    }
    Ok(())
}

/// Whether sockets of the calling thread's host can have a congestion control. For root, this request makes the kernel
/// load a module.
fn check(name: &str) -> io::Result<()> {
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?.set_tcp_congestion(name.as_bytes())
}

/// The message about a congestion control that is not available. `known` are those that need no loading.
fn unavailable(name: &str, error: &io::Error, known: &str, is_root: bool) -> String {
    if error.kind() != ErrorKind::NotFound {
        return format!("congestion control '{name}': {error}");
    }
    // Root's request would have loaded it.
    let remedy =
        if is_root { String::new() } else { format!("; as root, `modprobe tcp_{name}` loads it if it is a module") };
    format!("this kernel has no congestion control '{name}', only {}{remedy}", known.trim())
}

/// The largest window of a flow in bytes of data; `None` if the scenario has none.
fn window(setup: &Setup, index: usize) -> Option<u32> {
    let flow = &setup.flows[index];
    let flow::Protocol::Tcp(Tcp { window, .. }) = &flow.protocol else { return None };
    let topology = &setup.topology;
    let rate = setup.bottleneck().nominal_rate();
    let round_trip = topology.round_trip(&topology.graph(), topology.places[index]).unwrap_or_default();
    let bytes = u64::from(window.packets(rate, round_trip)) * u64::from(flow.packet - HEADER);
    u32::try_from(bytes).ok().filter(|bytes| u64::from(*bytes) < BUFFER / BUFFER_OF_WINDOW)
}

/// A flow of one connection, or of several in turn.
struct TcpFlow {
    listener: Arc<Socket>,
    ends: [Arc<End>; 2],
}

pub(super) fn begin(start: Start<'_>) -> Result<RunningFlow, Trouble> {
    let (scene, [from, to], peer, failed) = (start.scene, start.hosts, start.addresses[1], start.failed());
    let flow = &start.flow;
    let (window, packet) = (window(scene.setup, start.index), smaller_packet(scene, flow));
    let listener = scene.emulation.enter(to, || listen(peer, window, packet)).map_err(&failed)?;
    let listener = Arc::new(listener);
    let ends: [Arc<End>; 2] = Default::default();
    let ending = Arc::new(Mutex::new(Ending::default()));
    let receiver = KernelReceiver {
        name: flow.name.clone(),
        listener: Arc::clone(&listener),
        window,
        control: start.control(),
        end: Arc::clone(&ends[1]),
    };
    let sender = KernelSender {
        congestion_control: congestion_control(flow, scene.choices).unwrap_or_default(),
        peer: SockAddr::from(peer),
        packet,
        list: scene.lists.get(flow.group.as_str()).filter(|_| flow.transfers.is_some()).cloned(),
        control: start.control(),
        end: Arc::clone(&ends[0]),
        ending: Arc::clone(&ending),
        flow: flow.clone(),
    };
    // A thread that starts on a host stays there, and so do its sockets.
    let meters: [Arc<Meter>; 2] = Default::default();
    let (send, receive) = (meters[0].counting(move || sender.run()), meters[1].counting(move || receiver.run()));
    let sender = scene.emulation.enter(from, || thread("tcp-sender", send)).map_err(&failed)?;
    let receiver = thread("tcp-receiver", receive).map_err(&failed)?;
    let threads = vec![sender, receiver];
    Ok(RunningFlow { ends: Box::new(TcpFlow { listener, ends }), meters: Some(meters), threads, ending })
}

/// A listening socket at `address`.
fn listen(address: SocketAddr, window: Option<u32>, packet: Option<u32>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    limit_packets(&socket, packet)?;
    if let Some(bytes) = window {
        farhaul_emu::limit_tcp_window(&socket, bytes)?;
    }
    socket.bind(&SockAddr::from(address))?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// The packet size to which a flow must be limited; none if its hosts have no larger packets.
///
/// A redundant `TCP_MAXSEG` changes the kernel's result. It had 59 % of a link with it, and 53 % without it (A16, five
/// and two runs).
fn smaller_packet(scene: &Scene<'_>, flow: &FlowSpec) -> Option<u32> {
    let largest = scene.setup.largest_packet();
    Some(flow.packet).filter(|packet| largest.is_some_and(|largest| *packet < largest))
}

/// Limits the packets of a socket, before it listens or connects.
fn limit_packets(socket: &Socket, packet: Option<u32>) -> io::Result<()> {
    packet.map_or(Ok(()), |packet| socket.set_tcp_mss(packet - BARE_HEADER))
}

impl Ends for TcpFlow {
    fn look(&self, _: [Stats; 2]) -> [Stats; 2] {
        [self.ends[0].sender(), self.ends[1].receiver()]
    }

    fn stop(&mut self) {
        // Wakes a thread that waits in `accept`, so that it sees the end of the run.
        let _ = self.listener.shutdown(Shutdown::Both);
        self.ends.iter().for_each(|end| end.wake());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_about_a_missing_congestion_control_lists_the_others() {
        let missing = io::Error::from(rustix::io::Errno::NOENT);
        let said = |is_root| unavailable("vegas", &missing, "reno cubic\n", is_root);
        assert_eq!(said(true), "this kernel has no congestion control 'vegas', only reno cubic");
        assert!(said(false).ends_with("only reno cubic; as root, `modprobe tcp_vegas` loads it if it is a module"));
        let forbidden = unavailable("vegas", &rustix::io::Errno::PERM.into(), "reno vegas", false);
        assert!(
            forbidden.starts_with("congestion control 'vegas': ") && !forbidden.contains("modprobe"),
            "{forbidden}"
        );
    }

    #[test]
    fn only_known_congestion_controls_pass_the_check() {
        check(RENO).unwrap();
        assert_eq!(check("warp").unwrap_err().kind(), ErrorKind::NotFound);
    }
}
