//! Accepts the TCP connections that peers open, without blocking and without a busy loop.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use farhaul_udp::{Interest, Waiter};
use farhaul_units::Instant;
use rustix::io::Errno;
use socket2::Socket;

use super::table::DOOR;

/// Pause after the system had no descriptor or memory for a connection. The kernel reports the waiting caller without a
/// pause, so that the driver thread would spin.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// The listening socket, while the endpoint listens.
#[derive(Debug, Default)]
pub(super) struct Acceptor {
    listener: Option<Arc<Socket>>,
    state: AcceptorState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AcceptorState {
    /// The kernel will report the next caller.
    #[default]
    Watched,
    /// A caller may wait.
    Ready,
    /// The system lacks a resource. The acceptor is still watched.
    Exhausted,
    /// Unwatched until this instant.
    Paused(Instant),
}

impl Acceptor {
    /// Notes that the kernel reported a caller.
    pub(super) fn note_caller(&mut self) {
        if self.state == AcceptorState::Watched {
            self.state = AcceptorState::Ready;
        }
    }

    /// Whether a caller may wait.
    pub(super) fn is_ready(&self) -> bool {
        self.state == AcceptorState::Ready
    }

    /// The next caller. `None` if there is none, or the system lacks a resource.
    pub(super) fn accept(&mut self) -> Option<(TcpStream, SocketAddr)> {
        let listener = self.listener.as_ref().filter(|_| self.state == AcceptorState::Ready)?;
        match listener.accept() {
            Ok((socket, from)) => Some((socket.into(), canonical(from.as_socket()?))),
            Err(error) => {
                self.state = if is_shortage(&error) { AcceptorState::Exhausted } else { AcceptorState::Watched };
                None
            }
        }
    }

    /// Watches `listener`, or nothing if it is `None`. Begins and ends pauses.
    pub(super) fn tend(&mut self, listener: Option<&Arc<Socket>>, now: Instant, waiter: &Waiter) {
        if self.listener.as_ref().map(Arc::as_ptr) != listener.map(Arc::as_ptr) {
            self.unwatch(waiter);
            self.listener = listener.cloned();
            self.watch(now, waiter);
        }
        match self.state {
            AcceptorState::Exhausted => {
                self.unwatch(waiter);
                self.state = AcceptorState::Paused(now + EXHAUSTED_PAUSE);
            }
            AcceptorState::Paused(until) if until <= now => self.watch(now, waiter),
            _ => {}
        }
    }

    /// When to [`tend`](Self::tend) it without another reason.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.state {
            AcceptorState::Paused(until) => Some(until),
            _ => None,
        }
    }

    fn watch(&mut self, now: Instant, waiter: &Waiter) {
        let watched = self.listener.as_ref().is_none_or(|it| waiter.watch(it, DOOR, Interest::Readable).is_ok());
        self.state = if watched { AcceptorState::Watched } else { AcceptorState::Paused(now + EXHAUSTED_PAUSE) };
    }

    fn unwatch(&self, waiter: &Waiter) {
        if !matches!(self.state, AcceptorState::Paused(_)) {
            // It fails only without a listener.
            let _ = self.listener.as_ref().map(|it| waiter.unwatch(it));
        }
    }
}

/// An IPv4 address that is mapped into IPv6 as plain IPv4, as UDP sockets report it.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip.is_ipv4() => (ip, address.port()).into(),
        _ => address,
    }
}

/// Whether an accept failed for want of descriptors or memory. All other errors concern one caller.
fn is_shortage(error: &io::Error) -> bool {
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    shortages.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::driver::channels::port::ChannelPort;

    fn second(at: u64) -> Instant {
        Instant::from_nanos(at * 1_000_000_000)
    }

    /// An acceptor that is tended for an open port.
    fn acceptor() -> (Acceptor, ChannelPort, Waiter) {
        let mut port = ChannelPort::at((Ipv4Addr::LOCALHOST, 0).into());
        port.open().unwrap();
        let (mut acceptor, waiter) = (Acceptor::default(), Waiter::new().unwrap());
        acceptor.tend(port.listener(), second(0), &waiter);
        (acceptor, port, waiter)
    }

    fn call(port: &ChannelPort) -> TcpStream {
        let address = port.listener().unwrap().local_addr().unwrap().as_socket().unwrap();
        TcpStream::connect(address).unwrap()
    }

    fn knocks(waiter: &mut Waiter) -> bool {
        waiter.wait(Some(Duration::ZERO)).unwrap().iter().any(|source| source.token == DOOR)
    }

    #[test]
    fn callers_are_accepted_one_by_one_while_the_port_is_open() {
        let (mut acceptor, mut port, mut waiter) = acceptor();
        let callers = [call(&port), call(&port)];
        assert!(acceptor.accept().is_none(), "the kernel has reported none");
        assert!(knocks(&mut waiter));
        acceptor.note_caller();
        for caller in &callers {
            assert_eq!(acceptor.accept().unwrap().1, caller.local_addr().unwrap());
        }
        assert!(acceptor.accept().is_none() && !acceptor.is_ready());
        port.close();
        acceptor.tend(port.listener(), second(1), &waiter);
        assert!(!knocks(&mut waiter), "a closed port ends no wait");
        port.open().unwrap();
        acceptor.tend(port.listener(), second(2), &waiter);
        let _caller = call(&port);
        assert!(knocks(&mut waiter));
    }

    #[test]
    fn a_caller_for_whom_the_system_lacks_a_descriptor_does_not_end_every_wait() {
        let (mut acceptor, port, mut waiter) = acceptor();
        let _caller = call(&port);
        acceptor.state = AcceptorState::Exhausted;
        acceptor.tend(port.listener(), second(1), &waiter);
        assert_eq!(acceptor.deadline(), Some(second(1) + EXHAUSTED_PAUSE));
        assert!(!knocks(&mut waiter));
        acceptor.tend(port.listener(), second(2), &waiter);
        assert!(knocks(&mut waiter));
        acceptor.note_caller();
        assert!(acceptor.accept().is_some());
        assert!(is_shortage(&Errno::MFILE.into()) && !is_shortage(&Errno::CONNABORTED.into()));
    }

    #[test]
    fn an_ipv4_caller_of_a_dual_stack_port_has_its_ipv4_address() {
        let mapped = SocketAddr::from((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), 7));
        assert_eq!(canonical(mapped), (Ipv4Addr::LOCALHOST, 7).into());
        assert_eq!(canonical((Ipv6Addr::LOCALHOST, 7).into()), (Ipv6Addr::LOCALHOST, 7).into());
    }
}
