//! Statistics of the kernel's TCP sockets.

use std::io;
use std::os::fd::AsFd;

use farhaul_units::Duration;

use crate::sys;

/// State of a kernel TCP connection: part of Linux' `struct tcp_info` (`include/uapi/linux/tcp.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TcpInfo {
    /// Smoothed RTT.
    pub rtt: Duration,
    /// Mean deviation of the RTT.
    pub rtt_var: Duration,
    /// Minimum RTT.
    pub min_rtt: Duration,
    /// Congestion window, in packets.
    pub window: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// Packets sent, with and without data.
    pub packets_sent: u64,
    /// Data packets sent, retransmissions included.
    pub data_packets_sent: u64,
    /// Data packets received.
    pub data_packets_received: u64,
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// Bytes that the peer has acknowledged.
    pub bytes_acknowledged: u64,
}

/// The state of a TCP socket's connection.
///
/// # Errors
/// The socket is not TCP.
pub fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    Ok(read(&sys::tcp_info(socket.as_fd())?))
}

/// Limits the window that a TCP socket, and sockets it accepts from now on, advertise to `bytes`.
///
/// # Errors
/// The socket is not TCP.
pub fn limit_tcp_window(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    sys::limit_tcp_window(socket.as_fd(), bytes)
}

/// Reads the structure by the offsets of its fields. Newer kernels append fields. Fields missing in older kernels stay
/// zero.
fn read(info: &[u8; sys::TCP_INFO]) -> TcpInfo {
    let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|byte| info[at + byte]));
    let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| info[at + byte]));
    let time = |at: usize| Duration::from_micros(word(at).into());
    TcpInfo {
        in_flight: word(24).saturating_sub(word(28)).saturating_sub(word(32)).saturating_add(word(36)),
        rtt: time(68),
        rtt_var: time(72),
        window: word(80),
        retransmitted: word(100).into(),
        bytes_acknowledged: long(120),
        packets_sent: word(136).into(),
        min_rtt: time(148),
        data_packets_received: word(152).into(),
        data_packets_sent: word(156).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn tcp_info_reports_sent_packets_and_the_rtt() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(&[7; 100_000]).unwrap();
        receiver.read_exact(&mut [0; 100_000]).unwrap();
        sender.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(receiver.read(&mut [0; 1]).unwrap(), 0);
        drop(receiver);
        // The end of the peer's stream acknowledges everything.
        assert_eq!(sender.read(&mut [0; 1]).unwrap(), 0);
        let info = tcp_info(&sender).unwrap();
        assert!((100_000..=100_002).contains(&info.bytes_acknowledged), "{info:?}");
        assert!(info.data_packets_sent >= 1 && info.packets_sent >= info.data_packets_sent, "{info:?}");
        assert!(info.rtt >= info.min_rtt && !info.rtt.is_zero() && info.window >= 1, "{info:?}");
        assert_eq!(info.retransmitted, 0);
    }

    #[test]
    fn other_sockets_have_no_tcp_info() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(tcp_info(&socket).is_err() && limit_tcp_window(&socket, 10_000).is_err());
    }
}
