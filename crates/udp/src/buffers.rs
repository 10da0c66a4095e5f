//! How large socket buffers are: asked for, read back, and the advice when the kernel gave less.

use std::io;

use farhaul_units::ByteSize;
use rustix::net::sockopt;
use socket2::Socket;

/// Receive buffer that is asked for: 64 ms of a gigabit, so that a thread that was not scheduled for a while loses
/// nothing. The kernel only charges for what is in it.
pub const RECV_BUFFER: usize = 8 << 20;

/// Send buffer that is asked for: half of it, since the sender decides itself when it sends.
pub const SEND_BUFFER: usize = 4 << 20;

/// Which of a socket's two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferKind {
    /// What arrived and was not read yet.
    Recv,
    /// What was sent and has not left yet.
    Send,
}

/// How a buffer was asked for and what the kernel gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferReport {
    /// Which buffer.
    pub kind: BufferKind,
    /// Bytes asked for.
    pub asked: usize,
    /// Bytes given, in the same measure as asked (Linux reports twice that, to count its own bookkeeping).
    pub got: usize,
    /// Whether the system-wide limit was overridden, which takes the right to administer the network.
    pub forced: bool,
}

impl BufferReport {
    /// One line for people, naming the command that helps, if the kernel gave less than was asked for.
    pub fn warning(&self) -> Option<String> {
        let (name, key) = match self.kind {
            BufferKind::Recv => ("receive", "net.core.rmem_max"),
            BufferKind::Send => ("send", "net.core.wmem_max"),
        };
        (self.got < self.asked).then(|| {
            format!(
                "the {name} buffer of the socket is {} instead of {}, which costs speed: sysctl -w {key}={}",
                ByteSize(self.got as u64),
                ByteSize(self.asked as u64),
                self.asked
            )
        })
    }
}

/// Asks for a buffer of `asked` bytes, past the system-wide limit if this process may, and reads back what it got.
pub(crate) fn request(socket: &Socket, kind: BufferKind, asked: usize) -> io::Result<BufferReport> {
    let forced = match kind {
        BufferKind::Recv => sockopt::set_socket_recv_buffer_size_force(socket, asked),
        BufferKind::Send => sockopt::set_socket_send_buffer_size_force(socket, asked),
    }
    .is_ok();
    if !forced {
        match kind {
            BufferKind::Recv => socket.set_recv_buffer_size(asked)?,
            BufferKind::Send => socket.set_send_buffer_size(asked)?,
        }
    }
    let doubled = match kind {
        BufferKind::Recv => socket.recv_buffer_size()?,
        BufferKind::Send => socket.send_buffer_size()?,
    };
    Ok(BufferReport { kind, asked, got: doubled / 2, forced })
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Type};

    use super::*;

    #[test]
    fn what_was_given_is_read_back() {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        for kind in [BufferKind::Recv, BufferKind::Send] {
            let report = request(&socket, kind, 1 << 16).unwrap();
            assert_eq!(report.got, 1 << 16, "below every system's limit");
            assert_eq!(report.warning(), None);
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
    fn a_buffer_that_cannot_be_had_is_a_warning_and_no_error() {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        // Linux counts a buffer twice, in an int, so nobody gets as much as an int can say, by right or by force.
        let asked = i32::MAX as usize;
        for kind in [BufferKind::Recv, BufferKind::Send] {
            let report = request(&socket, kind, asked).unwrap();
            assert!(0 < report.got && report.got < asked, "{report:?}");
            let (warning, got) = (report.warning().unwrap(), ByteSize(report.got as u64).to_string());
            assert!(warning.contains(&got) && warning.contains(&format!("={asked}")), "{warning}");
        }
    }
}
