//! Datagrams through the SSH connection, where UDP is blocked.
//!
//! The connection itself stays the same, with its keys and its congestion control. A tunnel that is full loses datagrams, as a
//! path does, and the connection slows down.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::messages::FarSays;
use super::pieces::{Piece, Pieces, put};

/// Longest datagram, bytes.
const LONGEST: usize = 65_535;
/// Bytes per read.
const BLOCK: usize = 128 << 10;

/// One end of a tunnel.
#[derive(Debug)]
pub(crate) struct Tunnel {
    socket: Arc<UdpSocket>,
    /// The port of this host that talks through the tunnel.
    local: Arc<Mutex<Option<SocketAddr>>>,
}

impl Tunnel {
    /// An end whose local port is the first one that calls it.
    pub(crate) fn open() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        Ok(Self { socket: Arc::new(socket), local: Arc::default() })
    }

    /// An end that passes datagrams on to this port of this host.
    pub(crate) fn to(port: u16) -> io::Result<Self> {
        let tunnel = Self::open()?;
        *tunnel.local.lock().unwrap_or_else(PoisonError::into_inner) = Some((Ipv4Addr::LOCALHOST, port).into());
        Ok(tunnel)
    }

    /// The address that stands for the other host.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Moves datagrams in both directions, on threads of its own, until a pipe ends. `first` are bytes that were received
    /// already. `hear` gets the messages between the datagrams. Each write to `to` consists of whole datagrams.
    pub(crate) fn run(
        self,
        (from, first): (impl Read + Send + 'static, Vec<u8>),
        to: impl Write + Send + 'static,
        hear: impl FnMut(FarSays) + Send + 'static,
        at_end: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let (socket, local) = (Arc::clone(&self.socket), Arc::clone(&self.local));
        thread::Builder::new().name("tunnel out".into()).spawn(move || carry_out(&socket, &local, to))?;
        thread::Builder::new().name("tunnel in".into()).spawn(move || {
            carry_in(&self.socket, &self.local, (from, first), hear);
            at_end();
        })?;
        Ok(())
    }
}

/// Moves the datagrams of one tunnel into another one, on a thread of its own, until a pipe ends. `hear` gets the messages
/// between them.
pub(crate) fn pass_on(
    (from, first): (impl Read + Send + 'static, Vec<u8>),
    to: impl Write + Send + 'static,
    hear: impl FnMut(FarSays) + Send + 'static,
) -> io::Result<()> {
    thread::Builder::new().name("relay".into()).spawn(move || relay((from, first), to, hear))?;
    Ok(())
}

/// From the socket into the pipe.
fn carry_out(socket: &UdpSocket, local: &Mutex<Option<SocketAddr>>, mut to: impl Write) {
    let (mut gathered, mut datagram, mut waits) = (Vec::with_capacity(2 * LONGEST), vec![0; LONGEST], true);
    loop {
        let received = socket.recv_from(&mut datagram);
        match &received {
            Ok(_) if !waits => {}
            Ok(_) => waits = socket.set_nonblocking(true).is_err(),
            // What was gathered leaves when no more waits.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if hand_over(&mut gathered, &mut to).is_err() {
                    return;
                }
                waits = socket.set_nonblocking(false).is_ok();
            }
            Err(_) => {}
        }
        // The port may be closed for a moment.
        let Ok((len, from)) = received else { continue };
        let mut local = local.lock().unwrap_or_else(PoisonError::into_inner);
        let is_local = *local.get_or_insert(from) == from;
        drop(local);
        if is_local {
            put(&mut gathered, &datagram[..len]);
        }
        if gathered.len() >= LONGEST && hand_over(&mut gathered, &mut to).is_err() {
            return;
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
    socket: &UdpSocket,
    local: &Mutex<Option<SocketAddr>>,
    (mut from, first): (impl Read, Vec<u8>),
    mut hear: impl FnMut(FarSays),
) {
    let (mut pieces, mut block) = (Pieces::new(first), vec![0; BLOCK]);
    loop {
        loop {
            match pieces.next() {
                Ok(Some(Piece::Datagram(datagram))) => {
                    let to = *local.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(to) = to {
                        // A full buffer loses a datagram.
                        let _ = socket.send_to(datagram, to);
                    }
                }
                Ok(Some(Piece::Message(message))) => hear(message),
                Ok(None) => break,
                Err(_) => return,
            }
        }
        match from.read(&mut block) {
            Ok(0) | Err(_) => return,
            Ok(len) => pieces.extend(&block[..len]),
        }
    }
}

/// From one pipe into another one.
fn relay((mut from, first): (impl Read, Vec<u8>), mut to: impl Write, mut hear: impl FnMut(FarSays)) {
    let (mut pieces, mut block, mut gathered) = (Pieces::new(first), vec![0; BLOCK], Vec::with_capacity(BLOCK));
    loop {
        loop {
            match pieces.next() {
                Ok(Some(Piece::Datagram(datagram))) => put(&mut gathered, datagram),
                Ok(Some(Piece::Message(message))) => hear(message),
                Ok(None) => break,
                Err(_) => return,
            }
        }
        if hand_over(&mut gathered, &mut to).is_err() {
            return;
        }
        match from.read(&mut block) {
            Ok(0) | Err(_) => return,
            Ok(len) => pieces.extend(&block[..len]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::super::pieces::message;
    use super::*;

    #[test]
    fn datagrams_cross_both_ways_with_their_boundaries() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        for socket in [&far, &near] {
            socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        }
        let (one, other) = UnixStream::pair().unwrap();
        let (here, there) = (Tunnel::open().unwrap(), Tunnel::to(far.local_addr().unwrap().port()).unwrap());
        near.connect(here.address().unwrap()).unwrap();
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
    fn a_relay_passes_datagrams_on_and_keeps_messages() {
        let mut from = vec![0, 1, b'a'];
        from.extend(message(&FarSays::Tunneling));
        from.extend([0, 0, 0, 2, b'b', b'c', 0]);
        let (mut to, mut heard) = (Vec::new(), Vec::new());
        relay((&from[3..], from[..3].to_vec()), &mut to, |message| heard.push(message));
        assert_eq!((to.as_slice(), heard), (&[0, 1, b'a', 0, 0, 0, 2, b'b', b'c'][..], vec![FarSays::Tunneling]));
    }
}
