//! Channels on the loopback interface, between drivers and with bare TCP peers.

mod hostile;
mod phone;
mod steps;

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc;
use std::thread;

use farhaul_proto::{ConnectionId, ConnectionLost, Read, Streams};
use farhaul_udp::Options;

use self::phone::{Manner, Phone};
use crate::canceller::CancelFlag;
use crate::driver::{Driver, WaitPlace, wait_idle};
use crate::error::Error;

const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
static NEVER: CancelFlag = CancelFlag::new();

fn driver(phone: Phone) -> Driver<Phone> {
    Driver::start(phone, ANY, Options::default()).unwrap()
}

/// A driver that accepts channels.
fn listening(phone: Phone) -> Driver<Phone> {
    let driver = driver(phone);
    driver.lock().unwrap().open_acceptor().unwrap();
    driver
}

fn connect(driver: &Driver<Phone>, to: SocketAddr) -> ConnectionId {
    let mut guard = driver.lock().unwrap();
    let now = guard.now();
    let id = guard.transport.connect(now, to).unwrap();
    guard.open(id);
    id
}

fn accept(driver: &Driver<Phone>) -> ConnectionId {
    driver.wait_for(WaitPlace::Accept, [&NEVER, &NEVER], None, |core, _| Ok(core.next_accepted())).unwrap()
}

/// Waits until a channel is open, or its end is known.
fn changed(driver: &Driver<Phone>, id: ConnectionId) -> Result<(), ConnectionLost> {
    let result = driver.wait_for(WaitPlace::Change(id), [&NEVER, &NEVER], None, |core, _| {
        let status = core.status(id).unwrap();
        Ok(status.lost.map(Err).or(status.connected.then_some(Ok(()))))
    });
    result.unwrap()
}

/// Connects to a bare peer, and returns its end.
fn call_peer(driver: &Driver<Phone>) -> (ConnectionId, TcpStream) {
    let listener = TcpListener::bind(ANY).unwrap();
    let id = connect(driver, listener.local_addr().unwrap());
    let peer = listener.accept().unwrap().0;
    changed(driver, id).unwrap();
    (id, peer)
}

fn write_all(driver: &Driver<Phone>, id: ConnectionId, mut data: &[u8]) -> Result<(), Error> {
    while !data.is_empty() {
        let taken = driver.wait_for(WaitPlace::Write(id), [&NEVER, &NEVER], None, |core, now| {
            Ok(Some(core.transport.write(now, id, data)?).filter(|taken| *taken > 0))
        })?;
        data = &data[taken..];
    }
    Ok(())
}

/// Some bytes, or the end.
fn read(driver: &Driver<Phone>, id: ConnectionId) -> Result<Vec<u8>, Error> {
    driver.wait_for(WaitPlace::Read(id), [&NEVER, &NEVER], None, |core, now| {
        let mut out = vec![0; 64 << 10];
        Ok(match core.transport.read(now, id, &mut out)? {
            Read::Data(len) => Some(out[..len].to_vec()),
            _ => None,
        })
    })
}

/// Everything that the channel brings, and how it ended.
fn read_to_end(driver: &Driver<Phone>, id: ConnectionId) -> (Vec<u8>, Error) {
    let mut all = Vec::new();
    loop {
        match read(driver, id) {
            Ok(bytes) => all.extend(bytes),
            Err(error) => return (all, error),
        }
    }
}

fn finish(driver: &Driver<Phone>, id: ConnectionId) {
    let mut guard = driver.lock().unwrap();
    let now = guard.now();
    guard.transport.finish(now, id);
}

fn release(driver: &Driver<Phone>, id: ConnectionId) {
    let mut guard = driver.lock().unwrap();
    let now = guard.now();
    guard.release(now, id);
}

/// Bytes in which every position is recognised.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 251 + at) as u8).collect()
}

#[test]
fn ten_megabytes_go_both_ways_in_order_through_small_buffers() {
    let (a, b) = (driver(Phone::default()), driver(Phone::default()));
    {
        let mut guard = b.lock().unwrap();
        let socket = guard.channel_requests.as_ref().unwrap().port().socket().unwrap();
        socket.set_send_buffer_size(8 << 10).unwrap();
        socket.set_recv_buffer_size(8 << 10).unwrap();
        guard.open_acceptor().unwrap();
    }
    let id = connect(&a, b.local_addr());
    let data = pattern(10 << 20);
    thread::scope(|scope| {
        scope.spawn(|| {
            let id = accept(&b);
            while let Ok(bytes) = read(&b, id) {
                write_all(&b, id, &bytes).unwrap();
            }
            finish(&b, id);
        });
        scope.spawn(|| {
            changed(&a, id).unwrap();
            write_all(&a, id, &data).unwrap();
        });
        let mut echo = Vec::new();
        while echo.len() < data.len() {
            echo.extend(read(&a, id).unwrap());
        }
        assert!(echo == data);
        release(&a, id);
    });
}

#[test]
fn a_finished_channel_delivers_everything_and_then_its_end() {
    let (a, b) = (driver(Phone::default()), listening(Phone::default()));
    let id = connect(&a, b.local_addr());
    let data = pattern(1 << 20);
    let there = accept(&b);
    write_all(&a, id, &data).unwrap();
    finish(&a, id);
    let (all, end) = read_to_end(&b, there);
    assert!(all == data);
    assert!(matches!(end, Error::Lost(ConnectionLost::ClosedByPeer)), "{end}");
}

#[test]
fn a_reset_channel_is_no_end_in_order() {
    let (a, b) = (driver(Phone::default()), listening(Phone::default()));
    let id = connect(&a, b.local_addr());
    let there = accept(&b);
    write_all(&a, id, b"half a rec").unwrap();
    assert_eq!(read(&b, there).unwrap(), b"half a rec");
    release(&a, id);
    let end = read(&b, there);
    assert!(matches!(end, Err(Error::Lost(ConnectionLost::Aborted))), "{end:?}");
}

#[test]
fn a_port_where_nobody_listens_refuses() {
    let (a, b) = (driver(Phone::default()), driver(Phone::default()));
    let id = connect(&a, b.local_addr());
    assert_eq!(changed(&a, id), Err(ConnectionLost::Refused));
    b.lock().unwrap().open_acceptor().unwrap();
    let id = connect(&a, b.local_addr());
    assert_eq!(changed(&a, id), Ok(()));
    let mut guard = b.lock().unwrap();
    let now = guard.now();
    guard.close_acceptor(now);
    drop(guard);
    let id = connect(&a, b.local_addr());
    assert_eq!(changed(&a, id), Err(ConnectionLost::Refused), "it has stopped listening");
}

#[test]
fn a_transport_that_accepts_no_channel_has_its_callers_reset() {
    let b = listening(Phone::new(Manner::Refuses));
    let mut caller = TcpStream::connect(b.local_addr()).unwrap();
    assert_eq!(caller.read(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn a_peer_that_is_killed_in_mid_transfer_fails_its_channel() {
    let a = driver(Phone::default());
    let (id, mut peer) = call_peer(&a);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write_all(&a, id, &pattern(64 << 20)));
        peer.read_exact(&mut [0; 100_000]).unwrap();
        // With unread bytes, a close by the kernel is a reset.
        drop(peer);
        let result = writer.join().unwrap();
        assert!(matches!(result, Err(Error::Lost(ConnectionLost::Aborted))), "{result:?}");
    });
}

#[test]
fn a_side_whose_peer_ended_answers_and_then_ends() {
    let a = driver(Phone::default());
    let (id, mut peer) = call_peer(&a);
    peer.write_all(b"question").unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    let (question, _) = read_to_end(&a, id);
    assert_eq!(question, b"question");
    write_all(&a, id, b"answer").unwrap();
    finish(&a, id);
    let mut answer = Vec::new();
    peer.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"answer");
}

#[test]
fn a_hundred_channels_keep_their_bytes_apart() {
    let (a, b) = (driver(Phone::default()), listening(Phone::new(Manner::Echoes)));
    let ids: Vec<_> = (0..100).map(|_| connect(&a, b.local_addr())).collect();
    let words: Vec<_> = (0..ids.len()).map(|number| pattern(1_000 + number)).collect();
    for (&id, words) in ids.iter().zip(&words) {
        changed(&a, id).unwrap();
        write_all(&a, id, words).unwrap();
    }
    for (&id, words) in ids.iter().zip(&words) {
        let mut echo = Vec::new();
        while echo.len() < words.len() {
            echo.extend(read(&a, id).unwrap());
        }
        assert_eq!(&echo, words);
    }
}

#[test]
fn everything_written_arrives_though_the_last_handle_is_dropped_at_once() {
    let a = driver(Phone::default());
    let (id, mut peer) = call_peer(&a);
    let data = pattern(8 << 20);
    {
        let mut guard = a.lock().unwrap();
        let now = guard.now();
        guard.transport.write_any(now, id, &data);
        guard.transport.finish(now, id);
        guard.release(now, id);
    }
    drop(a);
    let mut all = Vec::new();
    peer.read_to_end(&mut all).unwrap();
    assert!(all == data);
}

#[test]
fn the_drop_of_an_endpoint_ends_its_channels_and_frees_its_ports() {
    let (alive, is_alive) = mpsc::channel();
    let mut phone = Phone::default();
    phone.alive = Some(alive);
    let a = listening(phone);
    let address = a.local_addr();
    let (_, mut called) = call_peer(&a);
    let mut caller = TcpStream::connect(address).unwrap();
    caller.write_all(b"hello").unwrap();
    accept(&a);
    drop(a);
    for peer in [&mut called, &mut caller] {
        assert_eq!(peer.read(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }
    assert!(is_alive.recv().is_err(), "the transport and its thread are gone");
    wait_idle();
    UdpSocket::bind(address).unwrap();
    TcpListener::bind(address).unwrap();
}

#[test]
fn a_taken_tcp_port_is_an_error_that_names_it_only_once_the_endpoint_listens() {
    let (taken, address) = loop {
        let taken = TcpListener::bind(ANY).unwrap();
        let address = taken.local_addr().unwrap();
        if UdpSocket::bind(address).is_ok() {
            break (taken, address);
        }
    };
    let a = Driver::start(Phone::default(), address, Options::default()).unwrap();
    let error = a.lock().unwrap().open_acceptor().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&format!("TCP port {address}")), "{error}");
    call_peer(&a);
    drop(taken);
    a.lock().unwrap().open_acceptor().unwrap();
    TcpStream::connect(address).unwrap();
}

#[test]
fn datagrams_pass_beside_a_channel_on_the_same_port_number() {
    let a = listening(Phone::new(Manner::Echoes));
    let (mut channel, datagrams) = (TcpStream::connect(a.local_addr()).unwrap(), UdpSocket::bind(ANY).unwrap());
    channel.write_all(b"by TCP").unwrap();
    datagrams.send_to(b"by UDP", a.local_addr()).unwrap();
    let mut out = [0; 6];
    channel.read_exact(&mut out).unwrap();
    assert_eq!(&out, b"by TCP");
    datagrams.recv(&mut out).unwrap();
    assert_eq!(&out, b"by UDP");
}

#[test]
fn callers_of_another_program_are_given_away_with_all_that_they_said() {
    let b = driver(Phone::new(Manner::Echoes));
    let other_clients = {
        // Under one lock, so no caller is accepted between the two.
        let mut guard = b.lock().unwrap();
        guard.open_acceptor().unwrap();
        guard.other_clients().unwrap()
    };
    let mut silent = TcpStream::connect(b.local_addr()).unwrap();
    let mut other_client = TcpStream::connect(b.local_addr()).unwrap();
    other_client.write_all(b"\x20\x06\x10\x25").unwrap();
    let (mut given, from) = other_clients.recv().unwrap();
    assert_eq!(from, other_client.local_addr().unwrap());
    given.set_nonblocking(false).unwrap();
    let mut words = [0; 4];
    given.read_exact(&mut words).unwrap();
    assert_eq!(&words, b"\x20\x06\x10\x25");
    given.write_all(b"hello").unwrap();
    let mut answer = [0; 5];
    other_client.read_exact(&mut answer).unwrap();
    // One of the transport's own protocol, which was silent before, is its own as ever.
    silent.write_all(b"FARHAUL\x01 and more").unwrap();
    let mut echo = [0; 17];
    silent.read_exact(&mut echo).unwrap();
    assert_eq!(&echo, b"FARHAUL\x01 and more");
    assert!(other_clients.try_recv().is_err());
}

#[test]
fn a_closed_port_hangs_up_on_those_who_wait_for_other_clients() {
    let b = listening(Phone::default());
    let other_clients = b.lock().unwrap().other_clients().unwrap();
    {
        let mut guard = b.lock().unwrap();
        let now = guard.now();
        guard.close_acceptor(now);
    }
    assert!(other_clients.recv().is_err());
}
