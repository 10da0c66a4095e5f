//! The channels' sockets step by step, in virtual time.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use farhaul_proto::{ConnectionId, ConnectionLost, Streams};
use farhaul_udp::Waiter;
use farhaul_udp::tcp::BLOCK;
use farhaul_units::Instant;
use socket2::SockRef;

use super::phone::Phone;
use super::{ANY, pattern};
use crate::driver::channels::{ChannelPort, ChannelSockets, RequestQueue, TURNS_PER_ROUND};

/// Sockets and their transport without threads.
struct Steps {
    sockets: ChannelSockets,
    phone: Phone,
    queue: RequestQueue,
    waiter: Waiter,
    now: Instant,
}

impl Steps {
    /// A transport that accepts channels, at most so many.
    fn new(most_accepted: usize) -> Self {
        let mut port = ChannelPort::at(ANY);
        port.open().unwrap();
        let mut sockets = ChannelSockets::new(ANY);
        sockets.most_accepted = most_accepted;
        let mut queue = RequestQueue::new(port);
        queue.port_changed = true;
        let phone = Phone::default();
        let mut steps = Self { sockets, phone, queue, waiter: Waiter::new().unwrap(), now: Instant::ZERO };
        steps.round();
        steps
    }

    fn address(&self) -> SocketAddr {
        self.queue.port.socket().unwrap().local_addr().unwrap().as_socket().unwrap()
    }

    /// One round of the driver thread.
    fn round(&mut self) {
        self.sockets.gather(&self.waiter);
        self.sockets.hand_in(self.now, &mut self.phone, &mut self.queue);
        self.queue.collect(self.now, &mut self.phone);
        self.sockets.take(&mut self.queue);
        self.sockets.perform(self.now, &self.waiter);
    }

    /// Waits for an event, then takes rounds until nothing is left to do.
    fn run(&mut self) {
        let time = if self.sockets.has_work() { Some(Duration::ZERO) } else { None };
        loop {
            self.sockets.note(self.waiter.wait(time).unwrap());
            self.round();
            if !self.sockets.has_work() {
                return;
            }
        }
    }

    /// Runs until the transport has accepted so many channels.
    fn run_until_lines(&mut self, lines: usize) {
        while self.phone.lines() < lines {
            self.run();
        }
    }

    /// Takes rounds with what the kernel reports now.
    fn run_rounds(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.sockets.note(self.waiter.wait(Some(Duration::ZERO)).unwrap());
            self.round();
        }
    }

    /// Lets time pass without events.
    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.round();
        self.round();
    }
}

fn line(number: u32) -> ConnectionId {
    ConnectionId::from_parts(number, 0)
}

fn is_reset(peer: &mut TcpStream) -> bool {
    peer.read(&mut [0; 8]).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset)
}

#[test]
fn a_peer_that_opens_a_channel_and_says_nothing_loses_it() {
    let mut steps = Steps::new(10);
    let (mut silent, mut talking) =
        (TcpStream::connect(steps.address()).unwrap(), TcpStream::connect(steps.address()).unwrap());
    steps.run_until_lines(2);
    talking.write_all(b"x").unwrap();
    while steps.phone.readable(line(1)) == 0 {
        steps.run();
    }
    assert_eq!(steps.sockets.deadline(), Some(Instant::ZERO + Duration::from_secs(10)));
    steps.pass(Duration::from_secs(9));
    assert_eq!(steps.phone.lost(line(0)), None);
    steps.pass(Duration::from_secs(1));
    assert_eq!(steps.phone.lost(line(0)), Some(ConnectionLost::Aborted));
    assert!(is_reset(&mut silent));
    assert_eq!((steps.phone.lost(line(1)), steps.sockets.deadline(), steps.sockets.table.len()), (None, None, 1));
}

#[test]
fn a_flood_of_silent_peers_holds_a_bounded_number_of_descriptors() {
    let mut steps = Steps::new(3);
    let mut talking = TcpStream::connect(steps.address()).unwrap();
    talking.write_all(b"x").unwrap();
    steps.run_until_lines(1);
    while steps.phone.readable(line(0)) == 0 {
        steps.run();
    }
    let mut flood = Vec::new();
    for number in 0..20 {
        steps.now += Duration::from_millis(1);
        flood.push(TcpStream::connect(steps.address()).unwrap());
        steps.run_until_lines(number + 2);
        steps.run_rounds(2);
        assert!(steps.sockets.table.len() <= 3);
    }
    assert_eq!(steps.phone.lost(line(0)), None, "the peer that speaks keeps its channel");
    let lost = (1..21).filter(|number| steps.phone.lost(line(*number)).is_some()).collect::<Vec<_>>();
    assert_eq!(lost, (1..19).collect::<Vec<_>>(), "the eldest went first");
    assert!(flood[..18].iter_mut().all(is_reset));
}

#[test]
fn a_caller_is_reset_if_every_place_is_taken_by_a_peer_that_speaks() {
    let mut steps = Steps::new(2);
    let mut callers: Vec<_> = (0..2).map(|_| TcpStream::connect(steps.address()).unwrap()).collect();
    for caller in &mut callers {
        caller.write_all(b"x").unwrap();
    }
    while steps.phone.lines() < 2 || (0..2).any(|number| steps.phone.readable(line(number)) == 0) {
        steps.run();
    }
    let mut late = TcpStream::connect(steps.address()).unwrap();
    steps.run();
    assert!(is_reset(&mut late));
    assert_eq!(steps.phone.lines(), 2);
    drop(callers.remove(0));
    while steps.phone.lost(line(0)).is_none() {
        steps.run();
    }
    steps.phone.finish(steps.now, line(0));
    steps.run_rounds(2);
    let _next = TcpStream::connect(steps.address()).unwrap();
    steps.run_until_lines(3);
}

#[test]
fn a_turn_moves_a_bounded_number_of_bytes_and_serves_all_channels_in_turn() {
    let mut steps = Steps::new(10);
    let mut peers: Vec<_> = (0..2).map(|_| TcpStream::connect(steps.address()).unwrap()).collect();
    steps.run_until_lines(2);
    for peer in &mut peers {
        SockRef::from(&*peer).set_nonblocking(true).unwrap();
        while peer.write(&pattern(1 << 20)).is_ok() {}
    }
    let arrived = |steps: &Steps| [0, 1].map(|number| steps.phone.readable(line(number)));
    let before = arrived(&steps);
    steps.sockets.note(steps.waiter.wait(None).unwrap());
    steps.round();
    let moved = [0, 1].map(|number| arrived(&steps)[number] - before[number]);
    assert_eq!(moved, [TURNS_PER_ROUND / 2 * BLOCK; 2], "half a round for each");
}

#[test]
fn a_finished_channel_whose_peer_reads_nothing_ends_after_a_time() {
    let mut steps = Steps::new(10);
    let listener = TcpListener::bind(ANY).unwrap();
    let id = steps.phone.connect(steps.now, listener.local_addr().unwrap()).unwrap();
    steps.round();
    let (_peer, _) = listener.accept().unwrap();
    steps.run();
    steps.phone.finish_with(id, pattern(32 << 20));
    steps.round();
    while steps.sockets.has_work() {
        steps.round();
    }
    assert!(steps.queue.is_undelivered());
    steps.pass(Duration::from_secs(29));
    assert_eq!(steps.sockets.table.len(), 1);
    steps.pass(Duration::from_secs(1));
    assert_eq!((steps.sockets.table.len(), steps.queue.is_undelivered()), (0, false));
}

#[test]
fn a_transport_hears_nothing_of_a_channel_that_it_forgot() {
    let mut steps = Steps::new(10);
    let listener = TcpListener::bind(ANY).unwrap();
    let id = steps.phone.connect(steps.now, listener.local_addr().unwrap()).unwrap();
    steps.round();
    let (mut peer, _) = listener.accept().unwrap();
    steps.run();
    peer.write_all(b"late").unwrap();
    steps.sockets.note(steps.waiter.wait(None).unwrap());
    // The phone refuses all news of a line that is over: what arrives now, and that the host took the bytes.
    steps.phone.finish_with(id, b"good-bye".to_vec());
    steps.queue.collect(steps.now, &mut steps.phone);
    steps.run_rounds(3);
    let mut all = [0; 8];
    peer.read_exact(&mut all).unwrap();
    assert_eq!(&all, b"good-bye");
    assert_eq!(peer.read(&mut all).unwrap(), 0, "the end, in order");
    drop(peer);
    steps.run();
    assert_eq!(steps.sockets.table.len(), 0);
}

#[test]
fn a_connection_that_opens_a_second_channel_loses_the_first() {
    let mut steps = Steps::new(10);
    let listener = TcpListener::bind(ANY).unwrap();
    let id = steps.phone.connect(steps.now, listener.local_addr().unwrap()).unwrap();
    steps.round();
    let (mut first, _) = listener.accept().unwrap();
    steps.run();
    steps.phone.reopen(id);
    steps.round();
    let (_second, _) = listener.accept().unwrap();
    steps.run();
    assert!(is_reset(&mut first));
    assert_eq!(steps.sockets.table.len(), 1);
}

#[test]
fn a_channel_that_ends_at_once_is_told_to_the_desk_in_a_turn_of_its_own() {
    let mut steps = Steps::new(10);
    let listener = TcpListener::bind(ANY).unwrap();
    let id = steps.phone.connect(steps.now, listener.local_addr().unwrap()).unwrap();
    steps.round();
    drop(listener.accept().unwrap());
    while steps.phone.lost(id).is_none() {
        steps.run();
    }
    steps.phone.finish(steps.now, id);
    steps.round();
    assert!(steps.queue.is_undelivered() && steps.sockets.table.len() == 0);
    assert!(steps.sockets.has_work(), "a thread that waited here would outlive its endpoint");
    steps.round();
    assert!(!steps.queue.is_undelivered() && !steps.sockets.has_work());
}
