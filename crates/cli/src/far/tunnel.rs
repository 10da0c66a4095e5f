//! Datagrams through the SSH connection, where UDP is blocked: each behind its length, 16 bits in network byte order.
//!
//! The connection itself stays the same, with its keys and its congestion control. A tunnel that is full loses datagrams, as a
//! path does, and the connection slows down.

use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Longest datagram, bytes.
const LONGEST: usize = 65_535;

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
    /// already.
    pub(crate) fn run(
        self,
        from: impl Read + Send + 'static,
        first: Vec<u8>,
        to: impl Write + Send + 'static,
        at_end: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let (socket, local) = (Arc::clone(&self.socket), Arc::clone(&self.local));
        thread::Builder::new().name("tunnel out".into()).spawn(move || carry_out(&socket, &local, to))?;
        thread::Builder::new().name("tunnel in".into()).spawn(move || {
            carry_in(&self.socket, &self.local, io::Cursor::new(first).chain(from));
            at_end();
        })?;
        Ok(())
    }
}

/// From the socket into the pipe.
fn carry_out(socket: &UdpSocket, local: &Mutex<Option<SocketAddr>>, to: impl Write) {
    let (mut to, mut datagram, mut waits) = (BufWriter::with_capacity(2 * LONGEST, to), vec![0; LONGEST], true);
    loop {
        let received = socket.recv_from(&mut datagram);
        match &received {
            Ok(_) if !waits => {}
            Ok(_) => waits = socket.set_nonblocking(true).is_err(),
            // What was gathered leaves when no more waits.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if to.flush().is_err() {
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
        let head = u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes();
        if is_local && to.write_all(&head).and_then(|()| to.write_all(&datagram[..len])).is_err() {
            return;
        }
    }
}

/// From the pipe into the socket.
fn carry_in(socket: &UdpSocket, local: &Mutex<Option<SocketAddr>>, mut from: impl Read) {
    let (mut head, mut datagram) = ([0; 2], vec![0; LONGEST]);
    while from.read_exact(&mut head).is_ok() {
        let len = usize::from(u16::from_be_bytes(head));
        if from.read_exact(&mut datagram[..len]).is_err() {
            return;
        }
        let to = *local.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(to) = to {
            // A full buffer loses a datagram.
            let _ = socket.send_to(&datagram[..len], to);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

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
        here.run(one.try_clone().unwrap(), Vec::new(), one, || {}).unwrap();
        // The first datagram was received together with a message.
        there.run(other.try_clone().unwrap(), vec![0, 2, b'h', b'i'], other, || {}).unwrap();
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
}
