//! Peers that speak the bytes of the original programs.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};

use super::*;
use crate::sabul::SabulError;

/// Opens a session as the original client of Tsunami, without a secret, and returns the connection.
fn tsunami_client(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&0x2006_1025_u32.to_be_bytes()).unwrap();
    let mut opening = [0; 4 + 64];
    stream.read_exact(&mut opening).unwrap();
    let proof = farhaul_wire::tsunami::Proof::of(opening[4..].try_into().unwrap(), b"");
    stream.write_all(&proof.0).unwrap();
    assert_eq!(next(&mut stream), 0);
    stream
}

fn next(stream: &mut TcpStream) -> u8 {
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    byte[0]
}

/// The original client waits for a last block without a limit, whatever the size of the file.
#[test]
fn an_original_tsunami_client_gets_an_empty_file_by_its_last_block() {
    let scratch = Scratch::new();
    scratch.file("empty", 0);
    let heard = with_tsunami(&scratch, ServerOptions::default(), |address, _| {
        let mut stream = tsunami_client(address);
        let socket = UdpSocket::bind(LOCAL).unwrap();
        socket.set_read_timeout(Some(TIME)).unwrap();
        stream.write_all(b"empty\n").unwrap();
        assert_eq!(next(&mut stream), 0);
        // Blocks of 1000 bytes, 8 Mbit/s, 7.5 %, 25/24, 5/6.
        let parameters = b"\0\0\x03\xe8\0\x7a\x12\0\0\0\x1d\x4c\0\x19\0\x18\0\x05\0\x06";
        stream.write_all(parameters).unwrap();
        let mut sizes = [0; 20];
        stream.read_exact(&mut sizes).unwrap();
        assert_eq!((&sizes[..8], &sizes[12..16]), (&[0; 8][..], &[0; 4][..]), "no bytes, no blocks");
        stream.write_all(&socket.local_addr().unwrap().port().to_be_bytes()).unwrap();
        let mut datagram = [1; 2_000];
        for _ in 0..2 {
            assert_eq!(socket.recv(&mut datagram).unwrap(), 1_006);
            assert_eq!(&datagram[..6], b"\0\0\0\0\0X");
        }
        stream.write_all(b"\0\x02\0\0\0\0\0\0\0\0\0\0").unwrap();
    });
    assert_eq!(heard, ["1 begun", "1 given empty 0", "1 over"]);
}

#[test]
fn an_original_tsunami_client_of_an_empty_folder_is_back_at_its_prompt() {
    let scratch = Scratch::new();
    let heard = with_tsunami(&scratch, ServerOptions::default(), |address, handle| {
        let mut stream = tsunami_client(address);
        stream.write_all(b"*\n").unwrap();
        let mut totals = [1; 20];
        stream.read_exact(&mut totals).unwrap();
        assert_eq!(totals, *b"0\0\0\0\0\0\0\0\0\x000\0\0\0\0\0\0\0\0\0");
        stream.write_all(b"got size").unwrap();
        assert_eq!(next(&mut stream), 8);
        stream.write_all(b"nothing\n").unwrap();
        assert_eq!(next(&mut stream), 8);
        drop(stream);
        let mut ours = connect(address, b"", handle).unwrap();
        assert_eq!(ours.names().unwrap(), [b""; 0]);
        assert!(matches!(ours.get(b"nothing", &name("n"), &scratch.place()), Err(Failure::NoFile(_))));
        ours.finish();
    });
    assert_eq!(heard.iter().filter(|words| words.ends_with("over")).count(), 2, "{heard:?}");
}

/// The original receiver cannot map an empty file. It leaves with the end of the blast unread, which is a reset.
#[test]
fn an_empty_file_of_an_rbudp_server_counts_although_the_original_receiver_does_not_answer() {
    let scratch = Scratch::new();
    scratch.file("empty", 0);
    let served = rbudp_served(&scratch, u64::MAX);
    served.with(2, || {
        let mut stream = TcpStream::connect(served.address).unwrap();
        let mut block = [0xA5; 256];
        block[..6].copy_from_slice(b"empty\0");
        stream.write_all(&block).unwrap();
        let mut size = [1; 8];
        stream.read_exact(&mut size).unwrap();
        assert_eq!(size, [0; 8]);
        drop(stream);
        let has_ended = |words: &String| words.starts_with("1 over") || words.contains("failed");
        while !served.heard.0.lock().unwrap().iter().any(has_ended) {
            thread::yield_now();
        }
    });
    assert_eq!(served.heard.0.into_inner().unwrap(), ["1 begun", "1 given empty 0", "1 over"]);
}

/// Options of an original receiver of SABUL, of which the first is its UDP port and the ninth its window.
fn sabul_options(port: u16) -> [u8; 40] {
    let mut words = [7_u32; 10];
    (words[0], words[8]) = (port.into(), 25_600);
    let mut block = [0; 40];
    block.chunks_mut(4).zip(words).for_each(|(out, word)| out.copy_from_slice(&word.to_be_bytes()));
    block
}

/// Sends a short stream to a scripted receiver, which acknowledges all of it and then does as `after` says.
fn sabul_stream(after: impl FnOnce(TcpStream, &dyn Fn() -> bool)) -> Result<(), Failure> {
    let terms = StreamTerms { connect_timeout: TIME, peer_timeout: TIME, rate: None, buffer: None };
    let (handle, sender) = (SessionHandle::default(), SabulSender::bind(LOCAL).unwrap());
    let address = sender.local_addr();
    thread::scope(|scope| {
        let sending = scope.spawn(|| sender.send(Pieces(vec![7; 5]), terms, &handle, |_| {}));
        let mut stream = TcpStream::connect(address).unwrap();
        let socket = UdpSocket::bind(LOCAL).unwrap();
        let block = sabul_options(socket.local_addr().unwrap().port());
        stream.write_all(&block).unwrap();
        let mut echo = [0; 40];
        stream.read_exact(&mut echo).unwrap();
        assert_eq!(echo, block);
        assert_eq!(socket.recv(&mut [0; 2_000]).unwrap(), 9);
        stream.write_all(b"\0\0\0\x01\0\0\0\x01").unwrap();
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0, "the sender ends its direction");
        after(stream, &|| sending.is_finished());
        sending.join().unwrap()
    })
}

/// A SYN record after a close is answered by a reset, of which the original receiver dies in the middle of its file.
#[test]
fn a_sabul_receiver_that_still_writes_can_say_so_until_it_ends() {
    let sent = sabul_stream(|mut stream, is_finished| {
        for _ in 0..200 {
            stream.write_all(b"\0\0\0\x04\0\0\0\0").unwrap();
            thread::yield_now();
        }
        assert!(!is_finished(), "the receiver has not ended");
    });
    assert!(matches!(sent, Ok(())), "{sent:?}");
}

#[test]
fn a_sabul_receiver_that_breaks_off_after_its_last_acknowledgement_may_have_a_short_file() {
    let sent = sabul_stream(|stream, _| {
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    });
    assert!(matches!(sent, Err(Failure::Sabul(SabulError::ReceiverBroke))), "{sent:?}");
}

/// Attack C2: another program on the sender's host sends to the receiver's port.
#[test]
fn datagrams_of_a_stranger_neither_arrive_nor_count() {
    let (listener, kept, handle) = (TcpListener::bind(LOCAL).unwrap(), Kept::default(), SessionHandle::default());
    let address = listener.local_addr().unwrap();
    let terms = StreamTerms { connect_timeout: TIME, peer_timeout: TIME, rate: None, buffer: None };
    thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let receiver = SabulReceiver::connect(address, TIME, &handle).unwrap();
            receiver.receive(kept.clone(), terms)
        });
        let (mut stream, _) = listener.accept().unwrap();
        let mut block = [0; 40];
        stream.read_exact(&mut block).unwrap();
        stream.write_all(&block).unwrap();
        let to = SocketAddr::new(LOCAL.ip(), u16::from_be_bytes([block[2], block[3]]));
        let (sender, stranger) = (UdpSocket::bind(LOCAL).unwrap(), UdpSocket::bind(LOCAL).unwrap());
        sender.send_to(b"\0\0\0\0good", to).unwrap();
        stranger.send_to(b"\0\0\0\x01evil", to).unwrap();
        sender.send_to(b"\0\0\0\x01 too", to).unwrap();
        let mut record = [0; 8];
        while record != *b"\0\0\0\x01\0\0\0\x02" {
            stream.read_exact(&mut record).unwrap();
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
        assert_eq!(receiving.join().unwrap().unwrap(), StreamEnd::Closed);
    });
    assert_eq!(*kept.0.lock().unwrap(), b"good too");
    assert_eq!(handle.progress.figures().packets_received, 2);
}
