//! One TCP connection that never blocks, for control channels: bytes in blocks, and the order of its end.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::wait::Interest;

/// Most bytes of one read or write. The kernel copies them in a few microseconds, so a channel does not delay datagrams.
pub const BLOCK: usize = 16 << 10;

/// Memory that a channel keeps when the kernel has taken everything.
const KEPT: usize = 64 << 10;

/// A TCP connection. Its drop resets the connection unless this side finished it.
#[derive(Debug)]
pub struct TcpChannel {
    stream: TcpStream,
    sending: Sending,
    receiving: Receiving,
    rest: Rest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    Connecting,
    Open,
    /// Everything in `rest`, and then the end.
    Finishing,
    Finished,
    /// The kernel takes no more. It may still hold bytes that arrived before.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receiving {
    Open,
    Ended,
}

/// Bytes that the kernel has not taken yet.
#[derive(Debug, Default)]
struct Rest {
    bytes: Vec<u8>,
    taken: usize,
}

/// The state of the bytes to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The kernel has all of them.
    All,
    /// The kernel may take more at once.
    Part,
    /// The kernel takes no more now.
    Blocked,
    /// The connection broke. What arrived before can still be received.
    Broken,
}

/// The result of [`TcpChannel::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// So many bytes.
    Bytes(usize),
    /// Nothing has arrived.
    Nothing,
    /// The peer ended the connection in order.
    Finished,
    /// The connection broke.
    Failed,
}

impl TcpChannel {
    /// Starts to connect from an address of this machine, whatever its port, to a peer.
    ///
    /// # Errors
    /// The system refuses, or already knows that the peer does.
    pub fn connect(from: SocketAddr, to: SocketAddr) -> io::Result<Self> {
        let dial = || {
            let socket = Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
            if !from.ip().is_unspecified() && from.is_ipv4() == to.is_ipv4() {
                let mut from = from;
                from.set_port(0);
                socket.bind(&from.into())?;
            }
            match socket.connect(&to.into()) {
                Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => Err(error),
                _ => Ok(socket.into()),
            }
        };
        dial().and_then(|stream| Self::new(stream, Sending::Connecting))
    }

    /// Takes an accepted connection.
    ///
    /// # Errors
    /// The system refuses its settings.
    pub fn accepted(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Self::new(stream, Sending::Open)
    }

    fn new(stream: TcpStream, sending: Sending) -> io::Result<Self> {
        // Control records are small, and each is awaited.
        stream.set_nodelay(true)?;
        Ok(Self { stream, sending, receiving: Receiving::Open, rest: Rest::default() })
    }

    /// The address of this side.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    /// Whether the connection is still to be established.
    pub fn is_connecting(&self) -> bool {
        self.sending == Sending::Connecting
    }

    /// Notes whether the connection is established. Call it when the kernel reports that it is writable.
    ///
    /// # Errors
    /// The attempt failed.
    pub fn establish(&mut self) -> io::Result<bool> {
        match self.stream.take_error() {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return Err(error),
        }
        match (self.stream.peer_addr(), self.stream.local_addr()) {
            // A connecting socket whose port the kernel chose can meet itself if nobody listens there.
            (Ok(peer), Ok(local)) if peer == local => Err(io::ErrorKind::ConnectionRefused.into()),
            (Ok(_), _) => {
                self.sending = Sending::Open;
                Ok(true)
            }
            (Err(_), _) => Ok(false),
        }
    }

    /// Sends a first block of `bytes`, and keeps the others for [`send_rest`](Self::send_rest).
    pub fn send(&mut self, bytes: &[u8]) -> Sent {
        let taken = if self.rest.is_empty() { self.write(bytes) } else { 0 };
        if self.sending != Sending::Broken {
            self.rest.keep(&bytes[taken..]);
        }
        self.sent(taken)
    }

    /// Sends a block of the rest.
    pub fn send_rest(&mut self) -> Sent {
        let rest = std::mem::take(&mut self.rest);
        let taken = self.write(rest.left());
        self.rest = rest;
        self.rest.took(taken);
        self.sent(taken)
    }

    /// Whether bytes wait for the kernel.
    pub fn has_rest(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Moves a block of the received bytes to `out`, which must have room.
    pub fn receive(&mut self, out: &mut [u8]) -> Received {
        if self.receiving == Receiving::Ended {
            return Received::Nothing;
        }
        match self.stream.read(out) {
            Ok(0) => {
                self.receiving = Receiving::Ended;
                // The kernel reports its error once, and the end after that.
                if self.sending == Sending::Broken { Received::Failed } else { Received::Finished }
            }
            Ok(len) => Received::Bytes(len),
            Err(error) if is_temporary(&error) => Received::Nothing,
            Err(_) => {
                (self.receiving, self.sending) = (Receiving::Ended, Sending::Broken);
                Received::Failed
            }
        }
    }

    /// Copies the first received bytes into `out`, and leaves them to be received. Returns their number, 0 at the end of
    /// the connection; `None` if nothing has arrived.
    pub fn peek(&self, out: &mut [u8]) -> Option<usize> {
        match self.stream.peek(out) {
            Ok(len) => Some(len),
            Err(error) if is_temporary(&error) => None,
            Err(_) => Some(0),
        }
    }

    /// Gives the connection away, with everything that is to be received. It does not block.
    ///
    /// # Errors
    /// The system has no descriptor for it.
    pub fn into_stream(mut self) -> io::Result<TcpStream> {
        let stream = self.stream.try_clone()?;
        // The drop must not reset it.
        self.sending = Sending::Finished;
        Ok(stream)
    }

    /// Ends the sending direction after everything sent.
    pub fn finish(&mut self) {
        match self.sending {
            Sending::Open => self.sending = Sending::Finishing,
            Sending::Connecting => self.sending = Sending::Broken,
            Sending::Finishing | Sending::Finished | Sending::Broken => {}
        }
        self.end_if_all_sent();
    }

    /// Whether the kernel has everything of this side, its end included, and the peer has not ended yet.
    pub fn waits_for_peers_end(&self) -> bool {
        self.sending == Sending::Finished && self.receiving == Receiving::Open
    }

    /// Whether both directions have ended.
    pub fn is_over(&self) -> bool {
        self.receiving == Receiving::Ended && matches!(self.sending, Sending::Finished | Sending::Broken)
    }

    /// Whether the peer's direction has ended.
    pub fn peer_ended(&self) -> bool {
        self.receiving == Receiving::Ended
    }

    /// The events to wait for.
    pub fn interest(&self) -> Option<Interest> {
        let writes = match self.sending {
            Sending::Connecting => return Some(Interest::Writable),
            Sending::Open | Sending::Finishing => !self.rest.is_empty(),
            Sending::Finished | Sending::Broken => false,
        };
        match (self.receiving, writes) {
            (Receiving::Open, true) => Some(Interest::Both),
            (Receiving::Open, false) => Some(Interest::Readable),
            (Receiving::Ended, true) => Some(Interest::Writable),
            (Receiving::Ended, false) => None,
        }
    }

    /// Hands a block to the kernel. Returns the number of bytes that it took.
    fn write(&mut self, bytes: &[u8]) -> usize {
        if bytes.is_empty() || !matches!(self.sending, Sending::Open | Sending::Finishing) {
            return 0;
        }
        match self.stream.write(&bytes[..bytes.len().min(BLOCK)]) {
            Ok(taken) => taken,
            Err(error) if is_temporary(&error) => 0,
            Err(_) => {
                self.sending = Sending::Broken;
                0
            }
        }
    }

    fn sent(&mut self, taken: usize) -> Sent {
        self.end_if_all_sent();
        match self.sending {
            Sending::Broken => {
                // Nobody takes it any more. Kept, it would hold back what is still to be received.
                self.rest = Rest::default();
                Sent::Broken
            }
            _ if self.rest.is_empty() => Sent::All,
            _ if taken == BLOCK => Sent::Part,
            _ => Sent::Blocked,
        }
    }

    fn end_if_all_sent(&mut self) {
        if self.sending == Sending::Finishing && self.rest.is_empty() {
            let ended = self.stream.shutdown(Shutdown::Write);
            self.sending = if ended.is_ok() { Sending::Finished } else { Sending::Broken };
        }
    }
}

impl Drop for TcpChannel {
    fn drop(&mut self) {
        if self.sending != Sending::Finished {
            // Without this, the peer would take the close for an end in order. If it fails, the peer's own dialogue
            // must tell.
            let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}

impl AsFd for TcpChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Rest {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn left(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn took(&mut self, bytes: usize) {
        self.taken += bytes;
        if self.taken == self.bytes.len() {
            self.taken = 0;
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;
    use crate::wait::{Token, Waiter};

    const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    /// An established channel and its peer.
    fn pair() -> (TcpChannel, TcpStream) {
        let listener = TcpListener::bind(LOCAL).unwrap();
        let mut channel = TcpChannel::connect(LOCAL, listener.local_addr().unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        await_event(&channel);
        assert!(channel.establish().unwrap());
        (channel, peer)
    }

    /// Waits for an event of the channel's interest.
    fn await_event(channel: &TcpChannel) {
        let mut waiter = Waiter::new().unwrap();
        waiter.watch(channel, Token(1), channel.interest().expect("it waits for something")).unwrap();
        assert!(!waiter.wait(None).unwrap().is_empty());
    }

    #[test]
    fn a_port_without_a_listener_refuses() {
        let address = TcpListener::bind(LOCAL).unwrap().local_addr().unwrap();
        let end = TcpChannel::connect(LOCAL, address).map(|mut channel| {
            await_event(&channel);
            channel.establish()
        });
        let refused = end.and_then(|established| established).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_connection_with_itself_counts_as_refused() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None).unwrap();
        socket.bind(&LOCAL.into()).unwrap();
        let _ = socket.connect(&socket.local_addr().unwrap());
        let mut channel = TcpChannel::new(socket.into(), Sending::Connecting).unwrap();
        await_event(&channel);
        assert_eq!(channel.establish().unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn the_end_follows_every_byte_that_the_kernel_refused_at_first() {
        let (mut channel, mut peer) = pair();
        let bytes: Vec<u8> = (0..8 << 20).map(|at: u32| (at / 1_000) as u8).collect();
        let mut state = channel.send(&bytes);
        while state == Sent::Part {
            state = channel.send_rest();
        }
        assert_eq!(state, Sent::Blocked, "the kernel's buffers are smaller");
        channel.finish();
        assert!(!channel.waits_for_peers_end());
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut all = Vec::new();
                peer.read_to_end(&mut all).map(|_| all)
            });
            while channel.send_rest() != Sent::All {
                await_event(&channel);
            }
            assert!(channel.waits_for_peers_end());
            assert!(reader.join().unwrap().unwrap() == bytes);
        });
        drop(peer);
        await_event(&channel);
        assert_eq!(channel.receive(&mut [0; 8]), Received::Finished);
        assert!(channel.is_over() && channel.interest().is_none());
    }

    #[test]
    fn bytes_that_arrived_before_a_break_are_received_before_it_is_reported() {
        let (mut channel, mut peer) = pair();
        peer.write_all(b"last words").unwrap();
        await_event(&channel);
        SockRef::from(&peer).set_linger(Some(Duration::ZERO)).unwrap();
        drop(peer);
        while channel.send(b"x") != Sent::Broken {}
        assert!(!channel.has_rest(), "nothing waits for a kernel that takes no more");
        assert_eq!((channel.send(b"more"), channel.has_rest()), (Sent::Broken, false));
        let mut out = [0; 64];
        assert_eq!(channel.receive(&mut out), Received::Bytes(10));
        assert_eq!(channel.receive(&mut out), Received::Failed);
        assert_eq!(channel.interest(), None);
    }

    #[test]
    fn a_dropped_channel_is_no_end_in_order() {
        let (channel, mut peer) = pair();
        drop(channel);
        assert_eq!(peer.read(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn a_side_whose_peer_ended_can_still_send() {
        let (mut channel, mut peer) = pair();
        peer.shutdown(Shutdown::Write).unwrap();
        await_event(&channel);
        assert_eq!(channel.receive(&mut [0; 8]), Received::Finished);
        assert_eq!((channel.interest(), channel.peer_ended()), (None, true));
        assert_eq!(channel.send(b"answer"), Sent::All);
        channel.finish();
        assert!(channel.is_over());
        let mut answer = Vec::new();
        peer.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"answer");
    }
}
