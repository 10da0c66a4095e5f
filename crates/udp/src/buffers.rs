//! Sizes of socket buffers: the request, the result, and advice if the kernel granted less.

use std::io;

use farhaul_units::ByteSize;
use rustix::net::sockopt;
use socket2::{Socket, Type};

/// Requested receive buffer: 64 ms at 1 Gbit/s, so that a thread delayed by the scheduler loses nothing. The kernel
/// charges only for its content.
pub const RECV_BUFFER: usize = 8 << 20;

/// Requested send buffer. Half of the other, since the sender controls its own timing.
pub const SEND_BUFFER: usize = 4 << 20;

/// Identifies one of a socket's two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferKind {
    /// Data received and not yet read.
    Recv,
    /// Data sent that has not left yet.
    Send,
}

/// Requested and granted size of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferReport {
    /// The buffer.
    pub kind: BufferKind,
    /// Bytes requested.
    pub asked: usize,
    /// Bytes granted, in the same measure. Linux reports twice that, because it includes its own bookkeeping.
    pub got: usize,
    /// Whether the system-wide limit was overridden, which needs the right to administer the network.
    pub forced: bool,
}

impl BufferReport {
    /// A line for display if the kernel granted less than requested. It names the command that raises the limit.
    pub fn warning(&self) -> Option<String> {
        let (name, key) = match self.kind {
            BufferKind::Recv => ("receive", "net.core.rmem_max"),
            BufferKind::Send => ("send", "net.core.wmem_max"),
        };
        (self.got < self.asked).then(|| {
            format!(
                "the {name} buffer of the socket is {} instead of {}, which reduces throughput: sysctl -w {key}={}",
                ByteSize(self.got as u64),
                ByteSize(self.asked as u64),
                self.asked
            )
        })
    }
}

/// Requests a buffer of `asked` bytes, beyond the system-wide limit if permitted, and reads back the granted size.
pub(crate) fn request(socket: &Socket, kind: BufferKind, asked: usize) -> io::Result<BufferReport> {
    let forced = match kind {
        BufferKind::Recv => sockopt::set_socket_recv_buffer_size_force(socket, asked),
        BufferKind::Send => sockopt::set_socket_send_buffer_size_force(socket, asked),
    }
    .is_ok();
    if !forced {
        raise(socket, kind, asked)?;
    }
    Ok(BufferReport { kind, asked, got: size(socket, kind)?, forced })
}

/// Requests a buffer within the system-wide limit. A service manager may have given the socket a buffer beyond the limit,
/// which a request would cut. So a spare socket asks first.
fn raise(socket: &Socket, kind: BufferKind, asked: usize) -> io::Result<()> {
    let set = |socket: &Socket| match kind {
        BufferKind::Recv => socket.set_recv_buffer_size(asked),
        BufferKind::Send => socket.set_send_buffer_size(asked),
    };
    let has = size(socket, kind)?;
    if has >= asked {
        return Ok(());
    }
    let spare = Socket::new(socket.domain()?, Type::DGRAM, None)?;
    set(&spare)?;
    if size(&spare, kind)? > has { set(socket) } else { Ok(()) }
}

fn size(socket: &Socket, kind: BufferKind) -> io::Result<usize> {
    let doubled = match kind {
        BufferKind::Recv => socket.recv_buffer_size()?,
        BufferKind::Send => socket.send_buffer_size()?,
    };
    Ok(doubled / 2)
}

#[cfg(test)]
mod tests {
    use socket2::Domain;

    use super::*;

    #[test]
    fn the_granted_size_is_read_back() {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        for kind in [BufferKind::Recv, BufferKind::Send] {
            let report = request(&socket, kind, 1 << 16).unwrap();
            // A user keeps a larger one, which a service manager may have given.
            let had = if report.forced {
                0
            } else {
                size(&Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap(), kind).unwrap()
            };
            assert_eq!(report.got, had.max(1 << 16), "below every system's limit");
            assert_eq!(report.warning(), None);
        }
    }

    #[test]
    fn a_buffer_beyond_the_limit_that_the_socket_has_already_is_not_cut() {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        // A machine for fast paths may have a high limit. Twice of twice it must be an int.
        let limit = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap().trim().parse().unwrap_or(0_usize);
        let given = (2 * limit).max(64 << 20);
        let forced = given <= 1 << 28 && sockopt::set_socket_recv_buffer_size_force(&socket, given).is_ok();
        if !forced {
            println!("skipped: nobody here may exceed the limit of {limit} bytes");
            return;
        }
        for asked in [given / 2, 2 * given] {
            raise(&socket, BufferKind::Recv, asked).unwrap();
            assert_eq!(size(&socket, BufferKind::Recv).unwrap(), given);
        }
    }

    #[test]
    fn a_clamped_buffer_names_the_command_that_helps() {
        let report = BufferReport { kind: BufferKind::Recv, asked: RECV_BUFFER, got: 212_992, forced: false };
        let warning = report.warning().unwrap();
        assert!(warning.contains("sysctl -w net.core.rmem_max=8388608"), "{warning}");
        assert!(!warning.contains('\n'));
        let report = BufferReport { kind: BufferKind::Send, ..report };
        assert!(report.warning().unwrap().contains("net.core.wmem_max"));
    }

    #[test]
    fn a_buffer_beyond_the_limit_is_a_warning_not_an_error() {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        // Linux doubles the size and stores it in an int, so no process gets the largest int.
        let asked = i32::MAX as usize;
        for kind in [BufferKind::Recv, BufferKind::Send] {
            let report = request(&socket, kind, asked).unwrap();
            assert!(0 < report.got && report.got < asked, "{report:?}");
            let (warning, got) = (report.warning().unwrap(), ByteSize(report.got as u64).to_string());
            assert!(warning.contains(&got) && warning.contains(&format!("={asked}")), "{warning}");
        }
    }
}
