//! Peers that speak the bytes of original programs, as far as a test needs.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

/// A revision of both sides of Tsunami (tsunami-udp 1.1).
const REVISION: [u8; 4] = 0x2006_1025_u32.to_be_bytes();
/// Bytes of a name in RBUDP (QUANTA).
const NAME: usize = 256;
/// Longest wait for a peer that has to answer.
const PATIENCE: Duration = Duration::from_secs(20);

fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// A Tsunami server that grants a file of `size` bytes to whoever comes first. `after` has the channel, the size of a
/// block, and a socket that sends to the client.
pub(super) fn give_tsunami(size: u64, after: impl FnOnce(TcpStream, usize, UdpSocket) + Send + 'static) -> String {
    let (listener, address) = listener();
    thread::spawn(move || {
        let (mut channel, from) = listener.accept().unwrap();
        let mut take = |bytes: &mut [u8], answer: &[u8]| {
            channel.read_exact(bytes).unwrap();
            channel.write_all(answer).unwrap();
        };
        take(&mut [0; 4], &[&REVISION[..], &[7; 64]].concat());
        take(&mut [0; 16], &[0]);
        // The name is one letter, with its line feed.
        take(&mut [0; 2], &[0]);
        let mut parameters = [0; 20];
        channel.read_exact(&mut parameters).unwrap();
        let block = u32::from_be_bytes(parameters[..4].try_into().unwrap());
        let count = u32::try_from(size.div_ceil(block.into())).unwrap();
        let sizes = [&size.to_be_bytes()[..], &block.to_be_bytes(), &count.to_be_bytes(), &[0; 4]].concat();
        channel.write_all(&sizes).unwrap();
        let mut port = [0; 2];
        channel.read_exact(&mut port).unwrap();
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        datagrams.connect((from.ip(), u16::from_be_bytes(port))).unwrap();
        after(channel, block as usize, datagrams);
    });
    address
}

/// A datagram of Tsunami: number, type and block.
pub(super) fn tsunami_block(number: u32, block: usize) -> Vec<u8> {
    [&number.to_be_bytes()[..], b"\0O", &vec![7; block]].concat()
}

/// A sender of RBUDP that announces a file of `size` bytes to whoever comes first. `after` has the channel, and a socket
/// that sends to the receiver.
pub(super) fn give_rbudp(size: i64, after: impl FnOnce(TcpStream, UdpSocket) + Send + 'static) -> String {
    let (listener, address) = listener();
    let port = listener.local_addr().unwrap().port();
    let datagrams = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    thread::spawn(move || {
        let (mut channel, from) = listener.accept().unwrap();
        channel.read_exact(&mut [0; NAME]).unwrap();
        channel.write_all(&size.to_be_bytes()).unwrap();
        datagrams.connect((from.ip(), port + 1)).unwrap();
        after(channel, datagrams);
    });
    address
}

/// A receiver of RBUDP that has asked for `name`, and was told the size. It has no socket for datagrams.
pub(super) fn ask_rbudp(server: &str, name: &str) -> TcpStream {
    let mut channel = TcpStream::connect(server).unwrap();
    channel.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut block = [0; NAME];
    block[..name.len()].copy_from_slice(name.as_bytes());
    channel.write_all(&block).unwrap();
    channel.read_exact(&mut [0; 8]).unwrap();
    channel
}

/// The packets that a receiver of SABUL 2.1 takes at a time.
const SABUL_WINDOW: u32 = 25_600;

/// A receiver of SABUL 2.1 whose options were returned, and its socket.
pub(super) fn receive_sabul(sender: &str) -> (TcpStream, UdpSocket) {
    let mut channel = TcpStream::connect(sender).unwrap();
    channel.set_read_timeout(Some(PATIENCE)).unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut options = [0_u32; 10];
    (options[0], options[8]) = (datagrams.local_addr().unwrap().port().into(), SABUL_WINDOW);
    let options: Vec<u8> = options.iter().flat_map(|word| word.to_be_bytes()).collect();
    channel.write_all(&options).unwrap();
    let mut echo = [0; 40];
    channel.read_exact(&mut echo).unwrap();
    assert!(echo[..] == options[..], "every byte is returned");
    (channel, datagrams)
}

/// A sender of SABUL 2.1 that has returned the options of whoever comes first. `after` has the channel.
pub(super) fn send_sabul(after: impl FnOnce(TcpStream) + Send + 'static) -> String {
    let (listener, address) = listener();
    thread::spawn(move || {
        let (mut channel, _) = listener.accept().unwrap();
        let mut options = [0; 40];
        channel.read_exact(&mut options).unwrap();
        channel.write_all(&options).unwrap();
        after(channel);
    });
    address
}
