//! Real sockets on the loopback interface: data sent at one side arrives at the other.

use std::io;
use std::net::{IpAddr, SocketAddr};

use farhaul_udp::{Interest, Options, RecvBatch, SendStatus, Token, UdpSocket, Waiter};
use farhaul_units::Duration;

const IPV4: &str = "127.0.0.1:0";
const IPV6: &str = "[::1]:0";

/// A receiver with a time limit.
struct Inbox {
    socket: UdpSocket,
    waiter: Waiter,
    batch: RecvBatch,
}

/// One or more datagrams, as received.
#[derive(Debug, PartialEq, Eq)]
struct Arrival {
    from: SocketAddr,
    to: Option<IpAddr>,
    stride: usize,
    bytes: Vec<u8>,
}

impl Inbox {
    fn new(local: &str, options: Options) -> Self {
        let socket = UdpSocket::bind(local.parse().expect("an address"), options).expect("a socket");
        let waiter = Waiter::new().expect("a waiter");
        waiter.watch(&socket, Token(0), Interest::Readable).expect("a socket to watch");
        Self { socket, waiter, batch: RecvBatch::new(4) }
    }

    /// Receives trains until their bytes add up to `bytes`.
    fn recv(&mut self, bytes: usize) -> Vec<Arrival> {
        let mut arrivals: Vec<Arrival> = Vec::new();
        while arrivals.iter().map(|arrival| arrival.bytes.len()).sum::<usize>() < bytes {
            let ready = self.waiter.wait(Some(Duration::from_secs(10))).expect("a wait");
            assert!(!ready.is_empty(), "nothing came for 10 s; so far {arrivals:?}");
            match self.socket.recv(&mut self.batch) {
                Ok(_) => arrivals.extend(self.batch.trains().map(|train| Arrival {
                    from: train.from,
                    to: train.to,
                    stride: train.stride,
                    bytes: train.bytes.to_vec(),
                })),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        arrivals
    }

    fn addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }
}

/// The loopback addresses of this machine.
fn families() -> Vec<&'static str> {
    match std::net::UdpSocket::bind(IPV6) {
        Ok(_) => vec![IPV4, IPV6],
        Err(error) => {
            println!("SKIPPED: no IPv6: {error}");
            vec![IPV4]
        }
    }
}

fn sender(local: &str, options: Options) -> UdpSocket {
    UdpSocket::bind(local.parse().expect("an address"), options).expect("a socket")
}

fn numbered(count: u8, size: usize) -> Vec<u8> {
    (0..count).flat_map(|number| vec![number; size]).collect()
}

#[test]
fn trains_arrive_whole_over_both_families() {
    for local in families() {
        let mut inbox = Inbox::new(local, Options::default());
        let socket = sender(local, Options::default());
        let mut bytes = numbered(40, 1_472);
        bytes.truncate(bytes.len() - 1_000);
        let sent = socket.send(inbox.addr(), 1_472, &bytes).unwrap();
        assert_eq!((sent.taken, sent.status), (bytes.len(), SendStatus::Complete));
        let arrivals = inbox.recv(bytes.len());
        assert!(arrivals.iter().all(|arrival| arrival.from == socket.local_addr() && arrival.stride == 1_472));
        assert_eq!(arrivals.into_iter().flat_map(|arrival| arrival.bytes).collect::<Vec<u8>>(), bytes);
    }
}

#[test]
fn a_dual_stack_socket_reports_ipv4_addresses_as_ipv4() {
    if families() == [IPV4] {
        return;
    }
    for local in [IPV4, IPV6] {
        let mut inbox = Inbox::new("[::]:0", Options::default());
        let mut peer = Inbox::new(local, Options::default());
        let to = SocketAddr::new(peer.addr().ip(), inbox.addr().port());
        let bytes = numbered(20, 1_000);
        assert_eq!(peer.socket.send(to, 1_000, &bytes).unwrap().taken, bytes.len());
        assert!(inbox.recv(bytes.len()).iter().all(|arrival| arrival.from == peer.addr()), "{local}");
        assert_eq!(inbox.socket.send(peer.addr(), 1_000, &bytes).unwrap().taken, bytes.len());
        assert!(peer.recv(bytes.len()).iter().all(|arrival| arrival.from == to), "{local}");
    }
    let inbox = Inbox::new(IPV6, Options::default());
    let to = SocketAddr::new([127, 0, 0, 1].into(), inbox.addr().port());
    assert!(inbox.socket.send_one(None, to, b"x").is_err(), "an address of one family is of that family");
}

#[test]
fn an_answer_leaves_from_the_address_that_was_asked() {
    let asked = SocketAddr::from(([127, 0, 0, 2], 0));
    for wildcard in ["0.0.0.0:0", "[::]:0"] {
        let mut inbox = Inbox::new(wildcard, Options::default());
        let mut peer = Inbox::new(IPV4, Options::default());
        let to = SocketAddr::new(asked.ip(), inbox.addr().port());
        let bytes = numbered(20, 1_000);
        assert_eq!(peer.socket.send(to, 1_000, &bytes).unwrap().taken, bytes.len());
        let arrivals = inbox.recv(bytes.len());
        assert!(arrivals.iter().all(|arrival| arrival.to == Some(asked.ip())), "{wildcard}: {arrivals:?}");
        let source = arrivals[0].to;
        assert_eq!(inbox.socket.send_from(source, peer.addr(), 1_000, &bytes).unwrap().taken, bytes.len());
        inbox.socket.send_whole(source, peer.addr(), &[7; 500]).unwrap();
        let answers = peer.recv(bytes.len() + 500);
        assert!(answers.iter().all(|answer| answer.from == to && answer.to.is_none()), "{wildcard}: {answers:?}");
        for (on, told) in [(false, None), (true, Some(asked.ip()))] {
            inbox.socket.tell_destinations(on).unwrap();
            assert_eq!(peer.socket.send(to, 1_000, &bytes).unwrap().taken, bytes.len());
            assert!(inbox.recv(bytes.len()).iter().all(|arrival| arrival.to == told), "{wildcard}: {on}");
        }
        // A socket with one address tells none.
        peer.socket.tell_destinations(true).unwrap();
        inbox.socket.send_one(source, peer.addr(), b"x").unwrap();
        assert_eq!(peer.recv(1)[0].to, None);
    }
}

#[test]
fn an_answer_from_an_address_that_this_machine_lacks_leaves_from_another_and_keeps_the_offload() {
    let mut peer = Inbox::new(IPV4, Options::default());
    let bytes = numbered(20, 1_000);
    for (wildcard, lost) in [("0.0.0.0:0", [192, 0, 2, 77]), ("[::]:0", [192, 0, 2, 77]), ("0.0.0.0:0", [255; 4])] {
        let socket = sender(wildcard, Options::default());
        let offload = socket.send_counters().segmentation;
        let sent = socket.send_from(Some(lost.into()), peer.addr(), 1_000, &bytes).unwrap();
        assert_eq!((sent.taken, sent.status), (bytes.len(), SendStatus::Complete));
        let port = socket.local_addr().port();
        assert!(peer.recv(bytes.len()).iter().all(|arrival| arrival.from == SocketAddr::from(([127, 0, 0, 1], port))));
        let counters = socket.send_counters();
        assert_eq!((counters.lost, counters.segmentation), (0, offload));
    }
}

#[test]
fn every_mixture_of_offloads_gives_the_same_datagrams() {
    let plain = Options { offload: false, ..Options::default() };
    for (from, to) in [(plain, plain), (plain, Options::default()), (Options::default(), plain)] {
        let mut inbox = Inbox::new(IPV4, to);
        let socket = sender(IPV4, from);
        assert!(from.offload || !socket.send_counters().segmentation);
        let bytes = numbered(100, 700);
        assert_eq!(socket.send(inbox.addr(), 700, &bytes).unwrap().taken, bytes.len());
        let arrivals = inbox.recv(bytes.len());
        let datagrams: Vec<Vec<u8>> =
            arrivals.iter().flat_map(|arrival| arrival.bytes.chunks(arrival.stride).map(<[u8]>::to_vec)).collect();
        assert_eq!(datagrams.len(), 100);
        assert_eq!(datagrams.concat(), bytes);
        if !to.offload {
            assert!(arrivals.iter().all(|arrival| arrival.bytes.len() == 700), "nothing was put together");
        }
    }
}

#[test]
fn a_receive_without_data_is_would_block() {
    let socket = sender(IPV4, Options::default());
    assert_eq!(socket.recv(&mut RecvBatch::new(1)).unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn a_datagram_above_the_ip_limit_is_too_large() {
    let inbox = Inbox::new(IPV4, Options::default());
    let socket = sender(IPV4, Options::default());
    let sent = socket.send(inbox.addr(), 65_520, &vec![0; 65_520]).unwrap();
    assert_eq!((sent.taken, sent.status), (0, SendStatus::TooLarge));
    assert!(socket.send_counters().segmentation);
}

#[test]
fn a_closed_port_is_a_loss_and_not_an_error() {
    let closed = sender(IPV4, Options::default()).local_addr();
    let socket = sender(IPV4, Options::default());
    for _ in 0..3 {
        assert_eq!(socket.send(closed, 10, &[0; 100]).unwrap().status, SendStatus::Complete);
        assert_eq!(socket.recv(&mut RecvBatch::new(1)).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}

#[test]
fn an_answer_to_port_zero_keeps_the_offload() {
    let mut inbox = Inbox::new(IPV4, Options::default());
    let socket = sender(IPV4, Options::default());
    let sent = socket.send("127.0.0.1:0".parse().unwrap(), 10, &[0; 100]).unwrap();
    assert_eq!((sent.taken, sent.status), (100, SendStatus::Complete));
    assert_eq!(socket.send_counters().lost, 10);
    assert!(socket.send_counters().segmentation);
    assert_eq!(socket.send(inbox.addr(), 10, &[1; 100]).unwrap().taken, 100);
    assert_eq!(inbox.recv(100).iter().map(|arrival| arrival.bytes.len()).sum::<usize>(), 100);
}

#[test]
fn the_other_family_is_an_error() {
    let socket = sender(IPV4, Options::default());
    assert!(socket.send("[::1]:9".parse().unwrap(), 10, &[0; 10]).is_err());
}

#[test]
fn kernel_timestamps_come_when_requested() {
    for timestamps in [true, false] {
        let mut inbox = Inbox::new(IPV4, Options { timestamps, ..Options::default() });
        inbox.socket.send_one(None, inbox.addr(), b"x").unwrap();
        let _ = inbox.recv(1);
        assert_eq!(inbox.batch.trains().next().unwrap().arrived.is_some(), timestamps);
    }
}

#[test]
fn receive_buffer_overflows_are_counted() {
    let inbox = Inbox::new(IPV4, Options { recv_buffer: 4_096, offload: false, ..Options::default() });
    let socket = sender(IPV4, Options::default());
    // A user keeps the larger buffer that the system gives. Half of what is sent does not fit into it.
    let trains = 100 + 2 * inbox.socket.buffers()[0].got / 10_000;
    for _ in 0..trains {
        let _ = socket.send(inbox.addr(), 1_000, &[0; 10_000]).unwrap();
    }
    assert!(inbox.socket.recv_drops().unwrap() as usize > 5 * trains);
}

#[test]
fn buffers_are_reported_for_both_directions() {
    let [recv, send] = *sender(IPV4, Options::default()).buffers();
    assert!(recv.got > 0 && send.got > 0);
    assert_eq!(recv.warning().is_some(), recv.got < recv.asked);
}
