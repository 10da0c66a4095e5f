//! Errors of a send: their cause, and the consequence for the datagrams.
//!
//! Segmentation offload can fail at run time, although it was available before. A route may change to a device that
//! cannot compute checksums, or a tunnel may appear. The kernel then returns an error per call. The same datagrams are
//! sent again one by one. If that works, the offload was the cause and stays off for this socket.

#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Most datagrams in one segmented send (Linux, `UDP_MAX_SEGMENTS`; newer kernels accept 128, all accept 64).
pub const MAX_TRAIN_SEGMENTS: usize = 64;

/// Most bytes in one send: the payload of the largest IPv4 packet behind 20 bytes of IP and 8 bytes of UDP header.
pub const MAX_TRAIN_BYTES: usize = 65_507;

/// The result of [`UdpSocket::send`](crate::UdpSocket::send).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the bytes not taken must be sent again"]
pub struct Sent {
    /// Bytes done, from the front: handed to the network, or lost as in a network.
    pub taken: usize,
    /// Why the send stopped there.
    pub status: SendStatus,
}

/// Why a send stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendStatus {
    /// All bytes were taken.
    Complete,
    /// The send buffer is full (`WouldBlock`). Wait until the socket is writable and send the rest.
    Blocked,
    /// The next datagram is larger than the path MTU (`EMSGSIZE`). Sending it unchanged fails again: lower the datagram
    /// size or skip it.
    TooLarge,
}

/// Counters of a socket's sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendCounters {
    /// Datagrams that the kernel refused for a temporary reason (no route, no buffers, a firewall, an earlier ICMP
    /// message). They count as lost in the network.
    pub lost: u64,
    /// Segmented sends that failed and were repeated one datagram at a time.
    pub fallbacks: u64,
    /// Whether segmentation offload is in use.
    pub segmentation: bool,
}

/// The segmentation offload of one socket, and whether it works.
#[derive(Debug)]
pub(crate) struct Offload {
    on: AtomicBool,
    lost: AtomicU64,
    fallbacks: AtomicU64,
}

impl Offload {
    pub(crate) fn new(on: bool) -> Self {
        Self { on: AtomicBool::new(on), lost: AtomicU64::new(0), fallbacks: AtomicU64::new(0) }
    }

    pub(crate) fn counters(&self) -> SendCounters {
        SendCounters {
            lost: self.lost.load(Ordering::Relaxed),
            fallbacks: self.fallbacks.load(Ordering::Relaxed),
            segmentation: self.on.load(Ordering::Relaxed),
        }
    }

    /// Sends `bytes` as datagrams of `segment_size`. `kernel` sends its first argument in one call: as one datagram, or
    /// segmented into datagrams of the given length.
    ///
    /// A failed segmented send is repeated one by one. The offload is at fault only if a datagram then passes. Some
    /// destinations always fail, such as port 0, which an attacker can put into a forged datagram. They must not cost
    /// other peers the offload.
    pub(crate) fn send(
        &self,
        bytes: &[u8],
        segment_size: usize,
        mut kernel: impl FnMut(&[u8], Option<usize>) -> io::Result<()>,
    ) -> io::Result<Sent> {
        let segment_size = segment_size.max(1);
        let longest = (MAX_TRAIN_BYTES / segment_size).clamp(1, MAX_TRAIN_SEGMENTS) * segment_size;
        let mut taken = 0;
        // Bytes before this offset failed as a train and are sent one by one.
        let mut singly_until = 0;
        let mut suspected = false;
        while taken < bytes.len() {
            let singly = taken < singly_until || !self.on.load(Ordering::Relaxed);
            let length = if singly { segment_size } else { longest };
            let piece = &bytes[taken..bytes.len().min(taken + length)];
            let segmented = piece.len() > segment_size;
            match kernel(piece, segmented.then_some(segment_size)) {
                Ok(()) => {
                    if suspected && !segmented {
                        self.on.store(false, Ordering::Relaxed);
                        suspected = false;
                    }
                    taken += piece.len();
                }
                Err(error) => match Refusal::of(&error) {
                    Refusal::Blocked => return Ok(Sent { taken, status: SendStatus::Blocked }),
                    Refusal::TooLarge | Refusal::Unsupported if segmented => {
                        self.fallbacks.fetch_add(1, Ordering::Relaxed);
                        suspected = true;
                        singly_until = taken + piece.len();
                    }
                    Refusal::TooLarge => return Ok(Sent { taken, status: SendStatus::TooLarge }),
                    Refusal::Unsupported | Refusal::Passing => {
                        self.lost.fetch_add(piece.len().div_ceil(segment_size) as u64, Ordering::Relaxed);
                        taken += piece.len();
                    }
                    Refusal::Fatal => return Err(error),
                },
            }
        }
        Ok(Sent { taken, status: SendStatus::Complete })
    }
}

/// The meaning of an error of a send call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// The send buffer is full.
    Blocked,
    /// Larger than the path MTU.
    TooLarge,
    /// The offload or the destination is not supported.
    Unsupported,
    /// Temporary, or only for this destination.
    Passing,
    /// The socket cannot send at all.
    Fatal,
}

impl Refusal {
    /// Classifies errors of `sendmsg` (man pages socket(7), ip(7), udp(7)).
    ///
    /// `ECONNREFUSED` and the unreachable errors come from ICMP messages, which anyone can forge, so they never end a
    /// connection here. A timer ends one whose peer stays unreachable.
    fn of(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::WouldBlock {
            return Self::Blocked;
        }
        match error.raw_os_error() {
            Some(libc::EMSGSIZE) => Self::TooLarge,
            Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP | libc::ENOPROTOOPT) => Self::Unsupported,
            Some(
                libc::ECONNREFUSED
                | libc::ECONNRESET
                | libc::ENETUNREACH
                | libc::EHOSTUNREACH
                | libc::EHOSTDOWN
                | libc::ENETDOWN
                | libc::ENETRESET
                | libc::ENONET
                | libc::ENODEV
                | libc::EPROTO
                | libc::EADDRNOTAVAIL
                | libc::EPERM
                | libc::EACCES
                | libc::ENOBUFS
                | libc::ENOMEM
                | libc::ETIMEDOUT,
            ) => Self::Passing,
            _ => Self::Fatal,
        }
    }
}
