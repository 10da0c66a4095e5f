//! A UDP socket that sends and receives trains.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket as StdSocket};
use std::os::fd::{AsFd, BorrowedFd};

use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};

use crate::batch::RecvBatch;
use crate::buffers::{BufferKind, BufferReport, RECV_BUFFER, SEND_BUFFER, request};
use crate::offload::{Offload, SendCounters, Sent};
use crate::sys;

/// How often a receive call is repeated over errors of earlier sends before it returns `WouldBlock`.
const MAX_STALE_ERRORS: usize = 16;

/// Options of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Requested receive buffer, in bytes.
    pub recv_buffer: usize,
    /// Requested send buffer, in bytes.
    pub send_buffer: usize,
    /// Whether to use segmentation and receive offload (GSO, GRO) if available.
    pub offload: bool,
    /// Whether received trains carry the time at which the kernel received them.
    pub timestamps: bool,
}

impl Default for Options {
    /// Large buffers, offloads, no timestamps.
    fn default() -> Self {
        Self { recv_buffer: RECV_BUFFER, send_buffer: SEND_BUFFER, offload: true, timestamps: false }
    }
}

/// A UDP socket: never blocks, sends and receives trains.
///
/// All methods take `&self`, so one thread may send while another receives.
#[derive(Debug)]
pub struct UdpSocket {
    socket: StdSocket,
    state: UdpSocketState,
    offload: Offload,
    local: SocketAddr,
    /// The socket is dual-stack: IPv4 and IPv6.
    takes_both: bool,
    buffers: [BufferReport; 2],
}

impl UdpSocket {
    /// A socket at `local`. Port 0 lets the system choose.
    ///
    /// A socket at `[::]` is dual-stack and reports and accepts IPv4 addresses like an IPv4 socket. One at another IPv6
    /// address handles IPv6 alone.
    ///
    /// # Errors
    /// The address is in use or not one of this machine, or the system has no more sockets.
    pub fn bind(local: SocketAddr, options: Options) -> io::Result<Self> {
        Self::adopt(Self::bound(local, options)?, options)
    }

    /// A bound socket with its buffers, to be [adopted](Self::adopt) later with fewer rights. One at `[::]` is dual-stack.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bound(local: SocketAddr, options: Options) -> io::Result<StdSocket> {
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
        if local.is_ipv6() {
            socket.set_only_v6(local.ip() != Ipv6Addr::UNSPECIFIED)?;
        }
        socket.bind(&local.into())?;
        request(&socket, BufferKind::Recv, options.recv_buffer)?;
        request(&socket, BufferKind::Send, options.send_buffer)?;
        Ok(socket.into())
    }

    /// A socket that somebody else has bound, for instance the service manager.
    ///
    /// # Errors
    /// It is no UDP socket, or the system refuses an option.
    pub fn adopt(socket: StdSocket, options: Options) -> io::Result<Self> {
        let socket = Socket::from(socket);
        if socket.r#type()? != Type::DGRAM {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket is none of UDP"));
        }
        let local = socket.local_addr()?.as_socket();
        let local = local.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the socket is none of UDP"))?;
        let takes_both = local.ip() == Ipv6Addr::UNSPECIFIED && !socket.only_v6()?;
        Self::set_up(socket, takes_both, options)
    }

    fn set_up(socket: Socket, takes_both: bool, options: Options) -> io::Result<Self> {
        let buffers = [
            request(&socket, BufferKind::Recv, options.recv_buffer)?,
            request(&socket, BufferKind::Send, options.send_buffer)?,
        ];
        let socket = StdSocket::from(socket);
        let local = socket.local_addr()?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // quinn-udp forbids fragments.
        sys::allow_fragments(&socket, local.is_ipv6())?;
        // A system that refuses it costs a little time for each packet.
        let _ = sys::leave_out_traffic_class(&socket, local.is_ipv6());
        if takes_both {
            sys::allow_fragments(&socket, false)?;
            let _ = sys::leave_out_traffic_class(&socket, false);
        }
        if !options.timestamps {
            // On by default in quinn-udp, and unused here unless requested.
            sys::set_timestamps(&socket, false)?;
        }
        if !local.ip().to_canonical().is_unspecified() {
            // The kernel need not tell the only address that datagrams can arrive at.
            sys::set_destinations(&socket, local.is_ipv6(), false)?;
        }
        if !options.offload && state.gro_segments() > 1 {
            sys::set_receive_offload(&socket, false)?;
        }
        let offload = Offload::new(options.offload && state.max_gso_segments() > 1);
        Ok(Self { socket, state, offload, local, takes_both, buffers })
    }

    /// Whether the socket can send to the address family of `peer`.
    pub fn is_of_family(&self, peer: SocketAddr) -> bool {
        self.takes_both || self.local.is_ipv4() == peer.is_ipv4()
    }

    /// The bound address, with the port chosen by the system.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Sets whether received trains tell the address of this host that they were sent to. At a wildcard address they do so by default.
    /// At another one they never do: there is one alone. The kernel spends time on it for each datagram.
    ///
    /// # Errors
    /// The system refuses the option.
    pub fn tell_destinations(&self, on: bool) -> io::Result<()> {
        match self.local.ip().to_canonical().is_unspecified() {
            true => sys::set_destinations(&self.socket, self.local.is_ipv6(), on),
            false => Ok(()),
        }
    }

    /// Takes datagrams of `peer` alone from now on: the kernel drops those of others. What has arrived before stays.
    ///
    /// # Errors
    /// The peer is of another address family, or this machine has no route to it.
    pub fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        self.socket.connect(peer)
    }

    /// Sends `bytes` to `to` as datagrams of `segment_size` bytes, of which the last may be shorter.
    ///
    /// They leave from `source`, an address of this machine. Without one, or once this machine has lost it, the system
    /// chooses by its routes.
    ///
    /// Trains longer than the kernel accepts are split. Datagrams refused for a temporary reason count as lost.
    /// [`Sent`] states how much was taken and why the send stopped there. An empty train sends nothing.
    ///
    /// # Errors
    /// The socket cannot send at all, for example to another address family. Never `WouldBlock`, which is
    /// [`SendStatus::Blocked`](crate::SendStatus::Blocked).
    pub fn send_from(
        &self,
        source: Option<IpAddr>,
        to: SocketAddr,
        segment_size: usize,
        bytes: &[u8],
    ) -> io::Result<Sent> {
        self.offload.send(bytes, segment_size, |piece, segment_size| self.send_piece(source, to, piece, segment_size))
    }

    /// The same from the address that the system chooses.
    ///
    /// # Errors
    /// As [`send_from`](Self::send_from).
    pub fn send(&self, to: SocketAddr, segment_size: usize, bytes: &[u8]) -> io::Result<Sent> {
        self.send_from(None, to, segment_size, bytes)
    }

    /// Sends one datagram from `source` that must not travel in fragments, because it probes the path. One that is too large
    /// for the interface is lost, as on a narrower link of the path.
    ///
    /// Datagrams that another thread sends meanwhile may not be fragmented either. They count as lost if they are too large.
    ///
    /// # Errors
    /// As [`send_from`](Self::send_from), and `WouldBlock` if the send buffer is full.
    pub fn send_whole(&self, source: Option<IpAddr>, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        let ipv6 = self.local.is_ipv6() && !to.ip().to_canonical().is_ipv4();
        sys::forbid_fragments(&self.socket, ipv6)?;
        let sent = self.send_piece(source, to, datagram, None);
        sys::allow_fragments(&self.socket, ipv6)?;
        match sent {
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => Ok(()),
            sent => sent,
        }
    }

    /// Sends `datagram` from `source` to `to`, even an empty one.
    ///
    /// # Errors
    /// As [`send_from`](Self::send_from), but returns every error of the system, `WouldBlock` included.
    pub fn send_one(&self, source: Option<IpAddr>, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        self.send_piece(source, to, datagram, None)
    }

    /// Receives as many trains as `batch` has room for, and returns their number.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is waiting; others if the socket failed. Errors of earlier sends, reported by ICMP
    /// messages, are skipped.
    pub fn recv(&self, batch: &mut RecvBatch) -> io::Result<usize> {
        for _ in 0..MAX_STALE_ERRORS {
            let result = batch.fill(|slices, metas| self.state.recv(UdpSockRef::from(&self.socket), slices, metas));
            match result {
                Err(error) if is_stale(&error) => {}
                result => return result,
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// The two buffers: receive, send.
    pub fn buffers(&self) -> &[BufferReport; 2] {
        &self.buffers
    }

    /// Whether the kernel may hand over received datagrams as trains (GRO).
    pub fn receives_trains(&self) -> bool {
        self.state.gro_segments() > 1
    }

    /// Counters of the sends.
    pub fn send_counters(&self) -> SendCounters {
        self.offload.counters()
    }

    /// Datagrams that the kernel dropped because this socket's receive buffer was full, since it exists (modulo 2^32).
    ///
    /// # Errors
    /// The system has no such counter (Linux before 4.12).
    pub fn recv_drops(&self) -> io::Result<u32> {
        sys::socket_drops(&self.socket)
    }

    #[cfg(test)]
    fn fragments_are_allowed(&self) -> bool {
        let value = |option| sys::value(&self.socket, option).unwrap();
        let is_v6 = self.local_addr().is_ipv6();
        value((libc::IPPROTO_IP, libc::IP_MTU_DISCOVER)) == libc::IP_PMTUDISC_DONT
            && (!is_v6 || value((libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG)) == 0)
    }

    fn send_piece(
        &self,
        source: Option<IpAddr>,
        to: SocketAddr,
        bytes: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        let destination = match to {
            // RFC 3493, section 3.7.
            SocketAddr::V4(to) if self.takes_both => (to.ip().to_ipv6_mapped(), to.port()).into(),
            _ => to,
        };
        let transmit = Transmit { destination, ecn: None, contents: bytes, segment_size, src_ip: source };
        match self.state.try_send(UdpSockRef::from(&self.socket), &transmit) {
            // The address is gone, or it is none to send from, such as that of a broadcast (man page ip(7)).
            Err(error) if source.is_some() && is_of_source(&error) => {
                self.state.try_send(UdpSockRef::from(&self.socket), &Transmit { src_ip: None, ..transmit })
            }
            sent => sent,
        }
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether a send may have failed because of its source address. For one that this machine lacks, Linux returns the first,
/// and newer versions the second. Without a route at all, the second attempt fails as well.
fn is_of_source(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENETUNREACH))
}

/// Whether a receive call returned the error of an earlier send.
fn is_stale(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ECONNREFUSED
                | libc::ECONNRESET
                | libc::ENETUNREACH
                | libc::EHOSTUNREACH
                | libc::EMSGSIZE
                | libc::EPROTO
                | libc::ENOPROTOOPT
                | libc::EACCES
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SendStatus;

    #[test]
    fn an_offload_that_the_kernel_refuses_at_run_time_is_switched_off_and_nothing_is_lost() {
        let local = "127.0.0.1:0".parse().unwrap();
        let (socket, receiver) =
            (UdpSocket::bind(local, Options::default()).unwrap(), UdpSocket::bind(local, Options::default()).unwrap());
        if !socket.send_counters().segmentation {
            return;
        }
        let bytes: Vec<u8> = (0..20).flat_map(|number| [number; 300]).collect();
        for (fallbacks, segmentation) in [(0, true), (1, false), (1, false)] {
            let sent = socket.send(receiver.local_addr(), 300, &bytes).unwrap();
            assert_eq!(sent, Sent { taken: bytes.len(), status: SendStatus::Complete });
            let counters = socket.send_counters();
            assert_eq!((counters.lost, counters.fallbacks, counters.segmentation), (0, fallbacks, segmentation));
            assert_eq!(everything(&receiver), bytes);
            sys::refuse_segmentation(&socket).unwrap();
        }
    }

    #[test]
    fn a_datagram_that_stays_whole_arrives_or_is_lost_and_those_behind_it_are_as_before() {
        let bind = |local: &str| UdpSocket::bind(local.parse().unwrap(), Options::default()).unwrap();
        let receiver = bind("127.0.0.1:0");
        for socket in [bind("127.0.0.1:0"), bind("[::]:0")] {
            let to = receiver.local_addr();
            socket.send_whole(None, to, &[7; 9_000]).unwrap();
            assert_eq!(everything(&receiver), [7; 9_000]);
            // Larger than any packet of UDP.
            socket.send_whole(None, to, &[7; 65_508]).unwrap();
            assert_eq!(everything(&receiver), [0; 0]);
            let sent = socket.send(to, 1_000, &[8; 2_000]).unwrap();
            assert_eq!((sent.taken, everything(&receiver).len()), (2_000, 2_000));
            assert!(socket.fragments_are_allowed());
        }
    }

    /// On the loopback interface sent data is available at once.
    fn everything(receiver: &UdpSocket) -> Vec<u8> {
        let (mut batch, mut received) = (RecvBatch::new(32), Vec::new());
        while receiver.recv(&mut batch).is_ok() {
            batch.trains().for_each(|train| received.extend_from_slice(train.bytes));
        }
        received
    }

    #[test]
    fn after_a_refused_offload_the_same_datagrams_arrive() {
        let local = "127.0.0.1:0".parse().unwrap();
        let (socket, receiver) =
            (UdpSocket::bind(local, Options::default()).unwrap(), UdpSocket::bind(local, Options::default()).unwrap());
        let to = receiver.local_addr();
        let bytes: Vec<u8> = (0..20).flat_map(|number| [number; 300]).collect();
        let mut refused = 0;
        let sent = socket.offload.send(&bytes, 300, |piece, segment_size| {
            if segment_size.is_some() {
                refused += 1;
                return Err(io::Error::from_raw_os_error(libc::EIO));
            }
            socket.send_piece(None, to, piece, None)
        });
        assert_eq!(sent.unwrap(), Sent { taken: bytes.len(), status: SendStatus::Complete });
        assert_eq!((refused, socket.send_counters().segmentation), (1, false));
        assert_eq!(everything(&receiver), bytes);
    }
}
