//! TCP to the same host, for comparison: it tells a blocked UDP from a host that is down.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

/// The port of SSH, which most hosts answer on.
pub(super) const SSH: u16 = 22;
/// Longest wait for an answer.
const WAIT: Duration = Duration::from_millis(1_500);

/// What a TCP port says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It takes connections.
    Open,
    /// The host refuses them, so it is up.
    Refused,
    Silent,
}

/// The answers of a host by TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answers {
    /// On the port that was asked by UDP.
    pub(super) same: Answer,
    pub(super) ssh: Answer,
}

impl Answers {
    /// Whether the host answers at all.
    pub(super) fn is_up(self) -> bool {
        [self.same, self.ssh].into_iter().any(|answer| answer != Answer::Silent)
    }
}

/// Asks both ports at once.
pub(super) fn connect_to_both(peer: SocketAddr) -> Answers {
    thread::scope(|scope| {
        let same = scope.spawn(move || connect(peer));
        let ssh = connect(SocketAddr::new(peer.ip(), SSH));
        Answers { same: same.join().unwrap_or(Answer::Silent), ssh }
    })
}

/// Opens a connection, and closes it at once.
pub(super) fn connect(peer: SocketAddr) -> Answer {
    match TcpStream::connect_timeout(&peer, WAIT) {
        Ok(_) => Answer::Open,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Answer::Refused,
        Err(_) => Answer::Silent,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_open_and_a_closed_port_both_mean_that_the_host_is_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(connect(address), Answer::Open);
        drop(listener);
        assert_eq!(connect(address), Answer::Refused);
        let up = |same, ssh| Answers { same, ssh }.is_up();
        assert!(up(Answer::Refused, Answer::Silent) && up(Answer::Silent, Answer::Open));
        assert!(!up(Answer::Silent, Answer::Silent));
    }
}
