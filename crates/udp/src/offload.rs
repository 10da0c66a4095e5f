//! What happens when the kernel refuses to send: whose fault it is, and what becomes of the datagrams.
//!
//! Segmentation offload can fail at run time, long after it was found to be there: a route changes to a device that
//! cannot compute checksums, a tunnel appears. The kernel says so with an error per call. Then the same datagrams are
//! sent again one by one, and if that works the offload was at fault and stays off for this socket.

#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Most datagrams in one segmented send (Linux, `UDP_MAX_SEGMENTS`; newer kernels take 128, all take 64).
pub const MAX_TRAIN_SEGMENTS: usize = 64;

/// Most bytes in one send: what an IPv4 packet can hold behind 20 bytes of IP and 8 bytes of UDP header.
pub const MAX_TRAIN_BYTES: usize = 65_507;

/// What became of a train that was given to [`UdpSocket::send`](crate::UdpSocket::send).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what was not taken has to be sent again"]
pub struct Sent {
    /// Bytes that need not be offered again, from the front: handed to the network, or lost like in a network.
    pub taken: usize,
    /// Why it stopped there.
    pub status: SendStatus,
}

/// Why a send stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendStatus {
    /// Everything was taken.
    Complete,
    /// The send buffer is full (`WouldBlock`): wait until the socket is writable and offer the rest.
    Blocked,
    /// The next datagram is larger than the path takes (`EMSGSIZE`). Offering it again unchanged gives the same
    /// answer: lower the datagram size, or skip it.
    TooLarge,
}

/// What a socket has met while sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendCounters {
    /// Datagrams that the kernel refused for a passing reason (no route, no buffers, a firewall, an earlier ICMP
    /// message); they count as lost on the way.
    pub lost: u64,
    /// Segmented sends that failed and were repeated one datagram at a time.
    pub fallbacks: u64,
    /// Whether segmentation offload is in use.
    pub segmentation: bool,
}

/// The segmentation offload of one socket, with what it learnt about it.
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

    /// Sends `bytes` as datagrams of `segment_size` through `kernel`, which sends its first argument at once: as one
    /// datagram, or cut into datagrams of the given length.
    ///
    /// A failed segmented send is repeated singly. It is the offload's fault only if a datagram then passes: a
    /// destination that can never be sent to (such as port 0, which anybody can put into a forged datagram) fails both
    /// ways and must not slow the socket down for everybody.
    pub(crate) fn send(
        &self,
        bytes: &[u8],
        segment_size: usize,
        mut kernel: impl FnMut(&[u8], Option<usize>) -> io::Result<()>,
    ) -> io::Result<Sent> {
        let segment_size = segment_size.max(1);
        let longest = (MAX_TRAIN_BYTES / segment_size).clamp(1, MAX_TRAIN_SEGMENTS) * segment_size;
        let mut taken = 0;
        // Bytes before this offset failed as a train and go out singly.
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

/// What an error of a send call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// No room now.
    Blocked,
    /// Larger than the path takes.
    TooLarge,
    /// The way in which it was to be sent, or this destination at all.
    Unsupported,
    /// Over before long, or only for this destination.
    Passing,
    /// The socket cannot send at all.
    Fatal,
}

impl Refusal {
    /// Errors of `sendmsg` (man pages socket(7), ip(7), udp(7)). `ECONNREFUSED` and the unreachables come from ICMP
    /// messages, which anybody can forge: they never end anything here. A timer ends what stays unreachable.
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
