//! Datagrams through the SSH connection, where UDP is blocked.
//!
//! The connection itself stays the same, with its keys and its congestion control. It has no more underway than the tunnel holds,
//! since a tunnel that is full loses datagrams, and ssh loses none.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};
use std::thread;

use farhaul_udp::{Interest, MAX_TRAIN_BYTES, Options, RecvBatch, Token, UdpSocket, Waiter};

use super::messages::FromRemote;
use super::pieces::{Piece, Pieces, put};

/// Most bytes underway in a tunnel: what one channel of OpenSSH has underway (64 packets of 32 KiB). The pipes and buffers before
/// ssh hold as much, so that a tunnel whose ssh is slow loses nothing.
pub(crate) const WINDOW: u64 = 2 << 20;
/// Size of the pipes, bytes: the most that Linux permits every user (`fs.pipe-max-size`).
const PIPE: usize = 1 << 20;
/// Gathered datagrams that leave at once, bytes: a train, and a quarter of the usual pipe of a remote program.
const GATHERED: usize = 1 << 16;
/// Bytes per read.
const BLOCK: usize = 128 << 10;
/// Trains per receive call.
const TRAINS: usize = 8;

/// One end of a tunnel, for one port of this process. Other users of this host cannot use it: the kernel drops what comes from any other
/// port, and drops what the port gets from elsewhere unless the keys of its connection open it.
#[derive(Debug)]
pub(crate) struct Tunnel {
    entrance: Entrance,
}

/// The place where a port of this process enters a tunnel. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct Entrance {
    socket: Arc<UdpSocket>,
    /// That port, once it is known.
    local: Arc<OnceLock<SocketAddr>>,
}

impl Entrance {
    /// The address that stands for the other host.
    pub(crate) fn address(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    /// Opens the tunnel for this port, and for no other one ever.
    pub(crate) fn admit(&self, port: u16) -> io::Result<()> {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        // Datagrams of others may wait in the socket from before, so their source counts, too.
        self.socket.connect(at)?;
        self.local.set(at).map_err(|_| io::ErrorKind::AlreadyExists.into())
    }
}

impl Tunnel {
    /// An end that moves nothing before a port of this process is admitted.
    pub(crate) fn open() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0).into(), Options::default())?;
        Ok(Self { entrance: Entrance { socket: Arc::new(socket), local: Arc::default() } })
    }

    /// An end for this port.
    pub(crate) fn to(port: u16) -> io::Result<Self> {
        let tunnel = Self::open()?;
        tunnel.entrance.admit(port)?;
        Ok(tunnel)
    }

    /// Its place for a port.
    pub(crate) fn entrance(&self) -> Entrance {
        self.entrance.clone()
    }

    /// Moves datagrams in both directions, on threads of its own, until a pipe ends. `first` are bytes that were received
    /// already. `on_message` gets the messages between the datagrams. Each write to `to` consists of whole datagrams.
    pub(crate) fn run(
        self,
        (from, first): (impl Read + Send + 'static, Vec<u8>),
        to: impl Write + Send + 'static,
        on_message: impl FnMut(FromRemote) + Send + 'static,
        at_end: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let out = self.entrance();
        thread::Builder::new().name("tunnel out".into()).spawn(move || carry_out(&out, to))?;
        thread::Builder::new().name("tunnel in".into()).spawn(move || {
            carry_in(&self.entrance, (from, first), on_message);
            at_end();
        })?;
        Ok(())
    }
}

/// Makes a pipe hold more, so that its writer and its reader wake each other less often. What is no pipe stays as it is.
pub(crate) fn widen(pipe: impl AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
}

/// Moves the datagrams of one tunnel into another one, on a thread of its own, until a pipe ends. `on_message` gets the messages
/// between them.
pub(crate) fn pass_on(
    (from, first): (impl Read + Send + 'static, Vec<u8>),
    to: impl Write + Send + 'static,
    on_message: impl FnMut(FromRemote) + Send + 'static,
) -> io::Result<()> {
    thread::Builder::new().name("relay".into()).spawn(move || relay((from, first), to, on_message))?;
    Ok(())
}

/// From the socket into the pipe, until that ends.
fn carry_out(Entrance { socket, local }: &Entrance, mut to: impl Write) -> io::Result<()> {
    let mut waiter = Waiter::new()?;
    waiter.watch(socket, Token(0), Interest::Readable)?;
    let (mut gathered, mut batch) = (Vec::with_capacity(2 * GATHERED), RecvBatch::new(TRAINS));
    loop {
        if socket.recv(&mut batch).is_err() {
            // What was gathered leaves when no more waits.
            hand_over(&mut gathered, &mut to)?;
            waiter.wait(None)?;
            continue;
        }
        for train in batch.trains() {
            if local.get() == Some(&train.from) {
                train.datagrams().for_each(|datagram| put(&mut gathered, datagram));
            }
            if gathered.len() >= GATHERED {
                hand_over(&mut gathered, &mut to)?;
            }
        }
    }
}

/// Writes whole datagrams, and forgets them.
fn hand_over(gathered: &mut Vec<u8>, to: &mut impl Write) -> io::Result<()> {
    if gathered.is_empty() {
        return Ok(());
    }
    let written = to.write_all(gathered).and_then(|()| to.flush());
    gathered.clear();
    written
}

/// From the pipe into the socket.
fn carry_in(
    Entrance { socket, local }: &Entrance,
    (mut from, first): (impl Read, Vec<u8>),
    mut on_message: impl FnMut(FromRemote),
) {
    let (mut pieces, mut block, mut train) = (Pieces::new(first), vec![0; BLOCK], Train::default());
    loop {
        let to = local.get().copied();
        loop {
            match pieces.next() {
                Ok(Some(Piece::Datagram(datagram))) => train.add(datagram, socket, to),
                Ok(Some(Piece::Message(message))) => on_message(message),
                Ok(None) => break,
                Err(_) => return,
            }
        }
        train.leave(socket, to);
        match from.read(&mut block) {
            Ok(0) | Err(_) => return,
            Ok(len) => pieces.extend(&block[..len]),
        }
    }
}

/// Datagrams of one size, of which the last may be shorter. They leave in one call.
#[derive(Debug, Default)]
struct Train {
    bytes: Vec<u8>,
    segment: usize,
    is_complete: bool,
}

impl Train {
    /// Adds a datagram. If it does not fit, those before it leave first.
    fn add(&mut self, datagram: &[u8], socket: &UdpSocket, to: Option<SocketAddr>) {
        let fits = datagram.len() <= self.segment && self.bytes.len() + datagram.len() <= MAX_TRAIN_BYTES;
        if self.is_complete || datagram.is_empty() || !fits {
            self.leave(socket, to);
        }
        match to {
            // A train has no room for nothing.
            Some(to) if datagram.is_empty() => drop(socket.send_one(None, to, datagram)),
            _ if datagram.is_empty() => {}
            _ => {
                if self.bytes.is_empty() {
                    self.segment = datagram.len();
                }
                self.is_complete = datagram.len() < self.segment;
                self.bytes.extend_from_slice(datagram);
            }
        }
    }

    /// Sends the datagrams. A full buffer loses them, and so does a port that is not known yet.
    fn leave(&mut self, socket: &UdpSocket, to: Option<SocketAddr>) {
        if let Some(to) = to.filter(|_| !self.bytes.is_empty()) {
            let _ = socket.send(to, self.segment, &self.bytes);
        }
        self.bytes.clear();
        self.is_complete = false;
    }
}

/// From one pipe into another one. Messages are heard until the first one ends, though nobody may take the datagrams any more.
fn relay((mut from, first): (impl Read, Vec<u8>), mut to: impl Write, mut on_message: impl FnMut(FromRemote)) {
    let (mut pieces, mut block, mut gathered) = (Pieces::new(first), vec![0; BLOCK], Vec::with_capacity(BLOCK));
    let mut is_taken = true;
    loop {
        loop {
            match pieces.next() {
                Ok(Some(Piece::Datagram(datagram))) if is_taken => put(&mut gathered, datagram),
                Ok(Some(Piece::Datagram(_))) => {}
                Ok(Some(Piece::Message(message))) => on_message(message),
                Ok(None) => break,
                Err(_) => return,
            }
        }
        is_taken &= hand_over(&mut gathered, &mut to).is_ok();
        match from.read(&mut block) {
            Ok(0) | Err(_) => return,
            Ok(len) => pieces.extend(&block[..len]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::UdpSocket;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::super::messages::FromRemote;
    use super::super::pieces::message;
    use super::{Tunnel, relay};

    #[test]
    fn datagrams_cross_both_ways_with_their_boundaries() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        for socket in [&far, &near] {
            socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        }
        let (one, other) = UnixStream::pair().unwrap();
        let (here, there) = (Tunnel::open().unwrap(), Tunnel::to(far.local_addr().unwrap().port()).unwrap());
        near.connect(here.entrance().address()).unwrap();
        here.entrance().admit(near.local_addr().unwrap().port()).unwrap();
        here.run((one.try_clone().unwrap(), Vec::new()), one, |_| {}, || {}).unwrap();
        // The first datagram was received together with a message.
        there.run((other.try_clone().unwrap(), vec![0, 2, b'h', b'i']), other, |_| {}, || {}).unwrap();
        let mut block = [0; 100];
        let (len, stands_for_near) = far.recv_from(&mut block).unwrap();
        assert_eq!(&block[..len], b"hi");
        for words in [&b""[..], b"one", &[7; 90]] {
            near.send(words).unwrap();
            let (len, _) = far.recv_from(&mut block).unwrap();
            assert_eq!(&block[..len], words);
            far.send_to(words, stands_for_near).unwrap();
            let len = near.recv(&mut block).unwrap();
            assert_eq!(&block[..len], words);
        }
    }

    #[test]
    fn a_window_of_datagrams_crosses_without_a_loss_whatever_their_sizes() {
        let (far, near) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        far.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        let (here, there) = (Tunnel::open().unwrap(), Tunnel::to(far.local_addr().unwrap().port()).unwrap());
        near.connect(here.entrance().address()).unwrap();
        here.entrance().admit(near.local_addr().unwrap().port()).unwrap();
        here.run((one.try_clone().unwrap(), Vec::new()), one, |_| {}, || {}).unwrap();
        let sizes = [1_472, 1_472, 1_472, 9, 0, 1_472, 700, 700, 1_472, 30_000, 1];
        // They wait in the pipe, and arrive there in few reads.
        for (index, &size) in sizes.iter().enumerate() {
            near.send(&vec![u8::try_from(index).unwrap(); size]).unwrap();
        }
        there.run((other.try_clone().unwrap(), Vec::new()), other, |_| {}, || {}).unwrap();
        let mut block = [0; 40_000];
        for (index, &size) in sizes.iter().enumerate() {
            let (len, _) = far.recv_from(&mut block).unwrap();
            assert_eq!(len, size, "datagram {index}");
            assert!(block[..len].iter().all(|&byte| usize::from(byte) == index), "datagram {index}");
        }
    }

    #[test]
    fn the_entrance_of_a_tunnel_belongs_to_the_admitted_port_whoever_sends_first() {
        let (near, stranger) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let (one, mut other) = UnixStream::pair().unwrap();
        let here = Tunnel::open().unwrap();
        let entrance = here.entrance();
        for socket in [&stranger, &near] {
            socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            socket.connect(entrance.address()).unwrap();
        }
        // It waits in the socket when the tunnel begins, and others come later.
        stranger.send(b"mine").unwrap();
        entrance.admit(near.local_addr().unwrap().port()).unwrap();
        here.run((one.try_clone().unwrap(), Vec::new()), one, |_| {}, || {}).unwrap();
        let _ = stranger.send(b"mine again");
        near.send(b"ours").unwrap();
        let mut piece = [0; 6];
        other.read_exact(&mut piece).unwrap();
        assert_eq!(&piece, b"\0\x04ours");
        assert!(entrance.admit(stranger.local_addr().unwrap().port()).is_err(), "one port for ever");
        other.write_all(b"\0\x02hi").unwrap();
        let mut block = [0; 9];
        assert_eq!(near.recv(&mut block).unwrap(), 2, "and what comes through it goes to that port");
    }

    #[test]
    fn a_relay_passes_datagrams_on_and_keeps_messages() {
        let mut from = vec![0, 1, b'a'];
        from.extend(message(&FromRemote::Tunneling));
        from.extend([0, 0, 0, 2, b'b', b'c', 0]);
        let (mut to, mut heard) = (Vec::new(), Vec::new());
        relay((&from[3..], from[..3].to_vec()), &mut to, |message| heard.push(message));
        assert_eq!((to.as_slice(), heard), (&[0, 1, b'a', 0, 0, 0, 2, b'b', b'c'][..], vec![FromRemote::Tunneling]));
    }

    /// The last words of a remote program come when the other one may be gone.
    #[test]
    fn messages_are_heard_though_nobody_takes_the_datagrams_any_more() {
        let (gone, closed) = UnixStream::pair().unwrap();
        drop(closed);
        let (mut said, mut heard) = (Vec::new(), 0);
        for _ in 0..3 {
            super::put(&mut said, b"datagram");
            said.extend(message(&FromRemote::Tunneling));
        }
        relay((said.as_slice(), Vec::new()), gone, |_| heard += 1);
        assert_eq!(heard, 3);
    }
}
