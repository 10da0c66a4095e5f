//! Ends of calls and connections. No call hangs, and each waiting caller gets the reason.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use farhaul::security::{AcceptAll, KeyPair, Security};
use farhaul::{ConnectOptions, ConnectionLost, Endpoint, Error, Listener, MessageSocket, SendOptions, Stream};

fn pair() -> (Stream, Stream) {
    let listener = Listener::plain("127.0.0.1:0").unwrap();
    let caller = Stream::connect_plain(listener.local_addr()).unwrap();
    (caller, listener.accept().unwrap().0)
}

/// Writes until a write fails, and returns the error.
fn write_for_ever(stream: &Stream) -> Error {
    let block = vec![0; 1 << 20];
    loop {
        if let Err(error) = stream.send_all(&block) {
            return error;
        }
    }
}

#[test]
fn finishing_returns_when_the_peer_has_everything() {
    let (sender, mut receiver) = pair();
    sender.send_all(b"all of it").unwrap();
    sender.finish().unwrap();
    let mut text = String::new();
    receiver.read_to_string(&mut text).unwrap();
    assert_eq!(text, "all of it");
    assert!(matches!(sender.send(b"more"), Err(Error::Finished | Error::Lost(_))));
}

#[test]
fn a_reader_beside_finish_gets_what_came_and_then_the_end() {
    let (left, right) = pair();
    right.send_all(b"an answer").unwrap();
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut text = String::new();
            (&left).read_to_string(&mut text).map(|_| text)
        });
        // Once the answer is acknowledged, it has arrived, and nothing follows it.
        right.finish().unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), "an answer");
        left.finish().unwrap();
    });
    let (left, right) = pair();
    thread::scope(|scope| {
        let reader = scope.spawn(|| left.recv(&mut [0; 10]));
        left.send_all(b"a question").unwrap();
        left.finish().unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), 0, "the side that finished reads the end of the stream");
        assert_eq!(left.recv(&mut [0; 10]).unwrap(), 0, "and reads it again");
    });
    drop(right);
}

#[test]
fn a_stream_that_was_closed_unfinished_has_no_end() {
    let (left, _right) = pair();
    left.close();
    assert!(matches!(left.recv(&mut [0; 10]), Err(Error::Lost(ConnectionLost::ClosedLocally))));
}

#[test]
fn both_sides_may_finish() {
    let (left, right) = pair();
    thread::scope(|scope| {
        scope.spawn(|| left.finish().unwrap());
        right.finish().unwrap();
    });
}

#[test]
fn dropping_the_last_handle_without_finishing_ends_the_peers_calls() {
    let (sender, receiver) = pair();
    let clone = sender.clone();
    thread::scope(|scope| {
        let reader = scope.spawn(|| receiver.recv(&mut [0; 10]));
        drop(sender);
        clone.send_all(b"still here").unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), 10);
        let reader = scope.spawn(|| receiver.recv(&mut [0; 10]));
        drop(clone);
        assert!(matches!(reader.join().unwrap(), Err(Error::Lost(ConnectionLost::Aborted))));
    });
}

/// Sends ten bytes, waits until they are acknowledged, and calls `end`. Returns the receiver's next read.
fn read_after(end: impl FnOnce(Stream)) -> Result<usize, Error> {
    let (sender, receiver) = pair();
    sender.send_all(b"ten bytes.").unwrap();
    let mut text = [0; 10];
    (&receiver).read_exact(&mut text).unwrap();
    // An answer sent afterwards confirms the bytes before it.
    receiver.send_all(b"x").unwrap();
    sender.recv(&mut [0; 1]).unwrap();
    while sender.stats().unwrap().totals.bytes_acked < 10 {
        thread::yield_now();
    }
    end(sender);
    receiver.recv(&mut text)
}

#[test]
fn an_aborted_stream_has_no_end_although_everything_has_arrived() {
    let aborted = read_after(|sender| sender.abort());
    assert!(matches!(aborted, Err(Error::Lost(ConnectionLost::Aborted))), "{aborted:?}");
    let dropped = read_after(drop);
    assert!(matches!(dropped, Err(Error::Lost(ConnectionLost::Aborted))), "{dropped:?}");
    let unwound = read_after(|sender| {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _its = sender;
            std::panic::resume_unwind(Box::new("the sender has a defect"));
        }));
        assert!(panicked.is_err());
    });
    assert!(matches!(unwound, Err(Error::Lost(ConnectionLost::Aborted))), "{unwound:?}");
    assert!(matches!(read_after(|sender| sender.close()), Ok(0)), "everything was acknowledged");
    assert!(matches!(read_after(|sender| sender.finish().unwrap()), Ok(0)));
}

#[test]
fn an_abort_ends_the_calls_of_both_sides() {
    let (sender, receiver) = pair();
    thread::scope(|scope| {
        let writer = scope.spawn(|| write_for_ever(&sender));
        receiver.recv(&mut [0; 10]).unwrap();
        receiver.abort();
        assert!(matches!(writer.join().unwrap(), Error::Lost(ConnectionLost::Aborted)));
        // Data that has arrived can still be read.
        let mut block = vec![0; 1 << 20];
        let error = loop {
            if let Err(error) = receiver.recv(&mut block) {
                break error;
            }
        };
        assert!(matches!(error, Error::Lost(ConnectionLost::ClosedLocally)), "{error}");
    });
}

#[test]
fn a_writer_that_waits_for_room_fails_when_the_peer_is_gone() {
    let (sender, receiver) = pair();
    thread::scope(|scope| {
        let writer = scope.spawn(|| write_for_ever(&sender));
        receiver.recv(&mut [0; 10]).unwrap();
        drop(receiver);
        assert!(matches!(writer.join().unwrap(), Error::Lost(_)));
    });
}

#[test]
fn a_writer_that_waits_for_room_can_be_cancelled() {
    let (sender, receiver) = pair();
    thread::scope(|scope| {
        let writer = scope.spawn(|| write_for_ever(&sender));
        receiver.recv(&mut [0; 10]).unwrap();
        sender.canceller().cancel();
        assert!(matches!(writer.join().unwrap(), Error::Cancelled));
    });
}

#[test]
fn a_cancelled_stream_waits_for_nothing_until_it_is_reset() {
    let (sender, receiver) = pair();
    let canceller = receiver.canceller();
    canceller.cancel();
    assert!(receiver.is_cancelled() && !sender.is_cancelled());
    assert!(matches!(receiver.recv(&mut [0; 10]), Err(Error::Cancelled)), "also a call that begins afterwards");
    assert!(matches!(receiver.recv(&mut [0; 10]), Err(Error::Cancelled)), "and every further one");
    assert_eq!(receiver.send(b"there is room").unwrap(), 13, "calls that need not wait work");
    assert_eq!(sender.recv(&mut [0; 20]).unwrap(), 13, "the connection lives");
    canceller.reset();
    assert!(!canceller.is_cancelled());
    thread::scope(|scope| {
        let reader = scope.spawn(|| receiver.recv(&mut [0; 10]));
        sender.send_all(b"again").unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), 5, "and waiting works again");
    });
}

#[test]
fn an_endpoints_canceller_ends_every_call_that_waits_on_it() {
    let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let listener = endpoint.listen().unwrap();
    thread::scope(|scope| {
        let accepting = scope.spawn(|| listener.accept().map(|_| ()));
        let connecting = scope.spawn(|| endpoint.connect(nobody.local_addr().unwrap()).map(|_| ()));
        // The first handshake packet shows that the call is in progress.
        nobody.recv_from(&mut [0; 100]).unwrap();
        endpoint.canceller().cancel();
        assert!(matches!(accepting.join().unwrap(), Err(Error::Cancelled)));
        assert!(matches!(connecting.join().unwrap(), Err(Error::Cancelled)));
    });
}

#[test]
fn closing_a_listener_ends_accept_and_lets_accepted_streams_live() {
    let listener = Listener::plain("127.0.0.1:0").unwrap();
    let caller = Stream::connect_plain(listener.local_addr()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    thread::scope(|scope| {
        let accepting = scope.spawn(|| listener.accept().map(|_| ()));
        listener.close();
        assert!(matches!(accepting.join().unwrap(), Err(Error::ListenerClosed)));
    });
    drop(listener);
    caller.send_all(b"alive").unwrap();
    assert_eq!(accepted.recv(&mut [0; 10]).unwrap(), 5);
}

#[test]
fn a_port_has_one_listener_at_a_time() {
    let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
    let first = endpoint.listen().unwrap();
    assert!(matches!(endpoint.listen(), Err(Error::AlreadyListening)));
    drop(first);
    endpoint.listen_for_messages().unwrap();
}

#[test]
fn calling_a_silent_address_ends_in_a_connect_time_out() {
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let time = Duration::from_millis(100);
    let endpoint = Endpoint::builder().plain().connect_timeout(time).bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let error = endpoint.connect(nobody.local_addr().unwrap()).unwrap_err();
    assert!(matches!(error, Error::Lost(ConnectionLost::ConnectTimeout(its)) if its == time), "{error}");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn calling_a_closed_port_fails_as_unreachable_with_its_address() {
    // A loopback address that no other test uses, so that no process takes the port meanwhile.
    let closed = UdpSocket::bind("127.0.0.79:0").unwrap().local_addr().unwrap();
    let time = Duration::from_millis(200);
    let endpoint = Endpoint::builder().plain().connect_timeout(time).bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let error = endpoint.connect(closed).unwrap_err();
    assert!(matches!(error, Error::Unreachable { peer, time: its, .. } if peer == closed && its == time), "{error}");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    assert!(error.to_string().contains("start the listening side"), "{error}");
}

#[test]
fn a_closed_port_is_given_up_before_the_default_time_out_and_not_at_once() {
    let closed = UdpSocket::bind("127.0.0.80:0").unwrap().local_addr().unwrap();
    let error = Endpoint::plain("127.0.0.1:0").unwrap().connect(closed).unwrap_err();
    let Error::Unreachable { time, .. } = error else { panic!("{error}") };
    assert!((Duration::from_secs(2)..Duration::from_secs(4)).contains(&time), "{time:?}");
}

/// Forwards datagrams between a caller and `server` through `socket` until `stop` is raised. Returns the caller's
/// address.
fn forward(socket: UdpSocket, server: SocketAddr, mut caller: SocketAddr, stop: &AtomicBool) -> SocketAddr {
    let mut datagram = [0; 2_000];
    while !stop.load(Ordering::Relaxed) {
        let Ok((len, from)) = socket.recv_from(&mut datagram) else { continue };
        caller = if from == server { caller } else { from };
        let _ = socket.send_to(&datagram[..len], if from == server { caller } else { server });
    }
    caller
}

/// A connection outlives a port that is closed for a while: any host can send ICMP messages, and a restarting router does.
fn outlives_a_closed_port(listener: &Listener, caller: &Endpoint, relay: &str) {
    let server = listener.local_addr();
    let open = |address: SocketAddr| {
        let socket = UdpSocket::bind(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        socket
    };
    let first = open(relay.parse().unwrap());
    let middle = first.local_addr().unwrap();
    let stops = [AtomicBool::new(false), AtomicBool::new(false)];
    thread::scope(|scope| {
        let forwarding = scope.spawn(|| forward(first, server, server, &stops[0]));
        let stream = caller.connect(middle).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        stops[0].store(true, Ordering::Relaxed);
        let caller = forwarding.join().unwrap();
        // Now the host answers every datagram with "port unreachable", as a connected socket shows.
        stream.send_all(b"into the void").unwrap();
        let witness = UdpSocket::bind("127.0.0.1:0").unwrap();
        witness.connect(middle).unwrap();
        witness.send(&[]).unwrap();
        assert_eq!(witness.recv(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let again = open(middle);
        let stop = &stops[1];
        scope.spawn(move || forward(again, server, caller, stop));
        let mut text = [0; 20];
        assert_eq!(accepted.recv(&mut text).unwrap(), 13, "it arrives once the port is open again");
        stream.finish().unwrap();
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn b17_a_closed_port_does_not_end_a_plain_connection() {
    let any = "127.0.0.1:0".parse().unwrap();
    let endpoint = || Endpoint::builder().plain().bind(any).unwrap();
    outlives_a_closed_port(&endpoint().listen().unwrap(), &endpoint(), "127.0.0.80:0");
}

#[test]
fn b17_a_closed_port_does_not_end_an_encrypted_connection() {
    let any = "127.0.0.1:0".parse().unwrap();
    let endpoint = || {
        let security = Security::new(KeyPair::generate().unwrap(), AcceptAll);
        Endpoint::builder().secure(security).bind(any).unwrap()
    };
    outlives_a_closed_port(&endpoint().listen().unwrap(), &endpoint(), "127.0.0.82:0");
}

/// A relay to `server` that works until the flag is raised.
fn fragile_path(server: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let cut = Arc::new(AtomicBool::new(false));
    let (socket, is_cut) = (UdpSocket::bind("127.0.0.1:0").unwrap(), Arc::clone(&cut));
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let (mut caller, mut datagram) = (server, [0; 2_000]);
        while let Ok((len, from)) = socket.recv_from(&mut datagram) {
            if is_cut.load(Ordering::Relaxed) {
                return;
            }
            let to = if from == server { caller } else { server };
            caller = if from == server { caller } else { from };
            socket.send_to(&datagram[..len], to).unwrap();
        }
    });
    (address, cut)
}

#[test]
fn a_silent_peer_ends_every_call_with_a_time_out() {
    let any = "127.0.0.1:0".parse().unwrap();
    let time = Duration::from_millis(300);
    let endpoint = |time| Endpoint::builder().plain().peer_timeout(time).linger(time).bind(any).unwrap();
    let listener = endpoint(Duration::from_secs(60)).listen().unwrap();
    let (address, cut) = fragile_path(listener.local_addr());
    let caller = endpoint(time).connect(address).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    accepted.send_all(b"x").unwrap();
    caller.recv(&mut [0]).unwrap();
    cut.store(true, Ordering::Relaxed);
    thread::scope(|scope| {
        let reader = scope.spawn(|| caller.recv(&mut [0]));
        let finisher = scope.spawn(|| caller.send_all(b"y").and_then(|()| caller.finish()));
        for error in [reader.join().unwrap().unwrap_err(), finisher.join().unwrap().unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        }
    });
}

#[test]
fn a_live_peer_that_reads_nothing_ends_a_connection_with_a_stall_timeout() {
    let time = Duration::from_millis(300);
    let impatient = Endpoint::builder().plain().stall_timeout(time).bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let small = Endpoint::builder().plain().recv_buffer(100_000).bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = small.listen().unwrap();
    let sender = impatient.connect(small.local_addr()).unwrap();
    let _idle = listener.accept().unwrap();
    let error = write_for_ever(&sender);
    assert!(matches!(error, Error::Lost(ConnectionLost::NoProgress(its)) if its == time), "{error}");
}

#[test]
fn a_call_with_a_time_out_leaves_the_connection_alive() {
    let (sender, receiver) = pair();
    receiver.set_read_timeout(Some(Duration::from_millis(5)));
    assert!(matches!(receiver.recv(&mut [0; 10]), Err(Error::TimedOut(_))));
    sender.send_all(b"late").unwrap();
    receiver.set_read_timeout(None);
    assert_eq!(receiver.recv(&mut [0; 10]).unwrap(), 4);
}

#[test]
fn streams_and_messages_do_not_mix() {
    let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
    let _listener = endpoint.listen_for_messages().unwrap();
    let time = Duration::from_millis(500);
    let caller = Endpoint::builder().plain().connect_timeout(time).bind("127.0.0.1:0".parse().unwrap()).unwrap();
    assert!(matches!(caller.connect(endpoint.local_addr()), Err(Error::Lost(_))));
}

fn message_pair() -> (MessageSocket, MessageSocket) {
    let (here, there) = (Endpoint::plain("127.0.0.1:0").unwrap(), Endpoint::plain("127.0.0.1:0").unwrap());
    let listener = there.listen_for_messages().unwrap();
    (here.connect_with(there.local_addr(), ConnectOptions::messages()).unwrap(), listener.accept().unwrap().0)
}

#[test]
fn messages_keep_their_boundaries_and_their_end() {
    let (sender, receiver) = message_pair();
    let mut room = vec![0; 100_000];
    for len in [1, 1_456, 1_457, 100_000] {
        sender.send(&vec![7; len]).unwrap();
        let received = receiver.recv(&mut room).unwrap().unwrap();
        assert_eq!((received.len, received.truncated), (len, false));
    }
    sender.send(&[7; 100]).unwrap();
    let received = receiver.recv(&mut room[..10]).unwrap().unwrap();
    assert_eq!((received.len, received.truncated), (10, true));
    sender.finish().unwrap();
    assert_eq!(receiver.recv(&mut room).unwrap(), None);
}

#[test]
fn a_message_of_many_megabytes_arrives_whole() {
    let (sender, receiver) = message_pair();
    let message: Vec<u8> = (0..20_000_000_u32).map(|number| (number % 253) as u8).collect();
    thread::scope(|scope| {
        scope.spawn(|| sender.send_with(&message, SendOptions::default().in_order()).unwrap());
        let mut room = vec![0; message.len() + 1];
        let received = receiver.recv(&mut room).unwrap().unwrap();
        assert!(room[..received.len] == message);
    });
}

#[test]
fn a_message_that_can_never_fit_is_refused_at_once() {
    let endpoint = Endpoint::builder().plain().send_buffer(1 << 20).bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let there = Endpoint::plain("127.0.0.1:0").unwrap();
    let _listener = there.listen_for_messages().unwrap();
    let sender = endpoint.connect_with(there.local_addr(), ConnectOptions::messages()).unwrap();
    assert!(matches!(
        sender.send(&vec![0; 2 << 20]),
        Err(Error::MessageTooLong { len: 2_097_152, longest: 1_048_576 })
    ));
}

#[test]
fn a_message_that_the_receiver_can_never_hold_is_refused_at_once() {
    let there = Endpoint::builder().plain().recv_buffer(1_456 * 100).bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let _listener = there.listen_for_messages().unwrap();
    let sender =
        Endpoint::plain("127.0.0.1:0").unwrap().connect_with(there.local_addr(), ConnectOptions::messages()).unwrap();
    let refused = sender.send(&vec![0; 145_601]);
    assert!(matches!(refused, Err(Error::MessageTooLong { len: 145_601, longest: 145_600 })), "{refused:?}");
    sender.send(&vec![0; 145_600]).unwrap();
}
