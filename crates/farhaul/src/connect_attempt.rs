//! Why nobody answers a connection attempt, as far as the network reports it.
//!
//! The port's own socket ignores ICMP, because anybody can forge such messages, and established connections must not
//! react to them (attack B17). So a second socket probes, only while nobody answers. Its reports end an attempt at a closed
//! port early, and give its error the reason.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use farhaul_proto::{Channels, Config, ConnectionId, ConnectionLost, Streams};
use farhaul_units::Instant;

use crate::addresses::any_port_for;
use crate::driver::Core;
use crate::error::Error;

/// Time until a peer with other addresses is probed. Most live peers have answered by then, and users do not notice it.
const FIRST_LOOK: Duration = Duration::from_millis(20);
/// Time until a peer without other addresses is probed, or half of a shorter time-out. Few live peers have not answered by then,
/// and relays and NATs hold state for each prober.
const FIRST_LOOK_AT_LAST: Duration = Duration::from_secs(1);
/// Longest interval of probes.
const INTERVAL: Duration = Duration::from_millis(130);
/// Shortest interval of probes, whatever timers the port has.
const LEAST_INTERVAL: Duration = Duration::from_millis(30);
/// Time by which a probe precedes the attempt's own packets.
///
/// Linux sends a host one ICMP message per second (icmp(7), `icmp_ratelimit`), after a burst of six. The attempt's own packets, one
/// every 250 ms, use up that allowance for a socket that ignores the answers. In step with it, they would do so for ever.
const AHEAD: Duration = Duration::from_millis(5);
/// Earliest end of an attempt that was refused. A listener that starts at the same time as its caller is up by then.
const GRACE: Duration = Duration::from_secs(2);
/// Refusals that end an attempt. A single one may be from the moment before the listener started.
const ENOUGH: u32 = 2;
/// Age at which a report counts no more. Hosts that limit their reports send about one per second.
const STALE: Duration = Duration::from_secs(3);

/// How long an attempt continues although the network reports that nobody is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Until the first report, because the peer has other addresses.
    NextAddress,
    /// Until the host has refused repeatedly, at least [`GRACE`].
    Refusals,
    /// Until the time-out, because the listener may start meanwhile.
    Whole,
}

impl Patience {
    /// The patience of a caller with this time-out. A time-out above the default asks to wait for a listener.
    pub(crate) fn of(longest: Duration) -> Self {
        if longest > Config::default().connect_timeout { Self::Whole } else { Self::Refusals }
    }
}

/// A connection attempt in progress, in the view of its waiting caller.
#[derive(Debug)]
pub(crate) struct ConnectAttempt {
    peer: SocketAddr,
    begun: Instant,
    /// The next check without an event.
    next: Instant,
    probe: Option<Probe>,
    reports: Reports,
}

impl ConnectAttempt {
    /// An attempt that started at `now` and may take `longest`.
    pub(crate) fn begin(peer: SocketAddr, now: Instant, longest: Duration, patience: Patience) -> Self {
        let first = match patience {
            Patience::NextAddress => FIRST_LOOK,
            Patience::Refusals => FIRST_LOOK_AT_LAST.min(longest / 2),
            Patience::Whole => longest / 2,
        };
        let reports = Reports { begun: now, patience, refusals: 0, last: None };
        Self { peer, begun: now, next: now + first, probe: None, reports }
    }

    /// Whether the connection is established. An attempt for [`WaitPlace::Change`](crate::driver::WaitPlace::Change).
    pub(crate) fn look<T: Streams + Channels>(
        &mut self,
        core: &mut Core<T>,
        now: Instant,
        id: ConnectionId,
    ) -> Result<Option<()>, Error> {
        let status = core.status(id).ok_or(Error::Lost(ConnectionLost::ClosedLocally))?;
        match status.lost {
            _ if status.connected => return Ok(Some(())),
            Some(lost @ ConnectionLost::ConnectTimeout(time)) => {
                self.read(now);
                let last = self.reports.take(now);
                return Err(last.map_or(Error::Lost(lost), |source| self.unreachable(time, source)));
            }
            Some(lost) => return Err(lost.into()),
            None => {}
        }
        if now >= self.next {
            self.read(now);
            self.send_probes(now);
            if self.reports.are_enough(now)
                && let Some(source) = self.reports.take(now)
            {
                let time = Duration::from_millis((now - self.begun).as_millis() as u64);
                return Err(self.unreachable(time, source));
            }
            self.next = now + interval(core.transport.poll_timeout().map(|due| due - now));
        }
        core.look_again_at(self.next, id);
        Ok(None)
    }

    /// Notes the network's report about earlier probes.
    fn read(&mut self, now: Instant) {
        if let Some(error) = self.probe.as_mut().and_then(Probe::verdict) {
            self.reports.note(now, error);
        }
    }

    /// Sends a probe, and notes what the network reports at once.
    fn send_probes(&mut self, now: Instant) {
        match &mut self.probe {
            Some(probe) => probe.repeat(self.peer),
            None => self.probe = Some(Probe::send(self.peer)),
        }
        self.read(now);
    }

    fn unreachable(&self, time: Duration, source: io::Error) -> Error {
        Error::Unreachable { peer: self.peer, time, source }
    }
}

/// Time to the next probe of a port whose next own packet is due after `due`.
fn interval(due: Option<Duration>) -> Duration {
    let before = due.map(|due| due.saturating_sub(AHEAD));
    before.filter(|before| *before >= LEAST_INTERVAL).map_or(INTERVAL, |before| before.min(INTERVAL))
}

/// What the network has reported about an attempt.
#[derive(Debug)]
struct Reports {
    begun: Instant,
    patience: Patience,
    /// Reports that the port is closed.
    refusals: u32,
    last: Option<(Instant, io::Error)>,
}

impl Reports {
    fn note(&mut self, now: Instant, error: io::Error) {
        self.refusals += u32::from(error.kind() == io::ErrorKind::ConnectionRefused);
        self.last = Some((now, error));
    }

    /// Whether the attempt ends.
    fn are_enough(&self, now: Instant) -> bool {
        match self.patience {
            Patience::NextAddress => self.last.is_some(),
            Patience::Refusals => self.refusals >= ENOUGH && now - self.begun >= GRACE && self.is_fresh(now),
            Patience::Whole => false,
        }
    }

    /// Whether the last report is still true, as far as this side knows.
    fn is_fresh(&self, now: Instant) -> bool {
        self.last.as_ref().is_some_and(|(at, _)| now - *at < STALE)
    }

    /// The last report, if it is fresh.
    fn take(&mut self, now: Instant) -> Option<io::Error> {
        let is_fresh = self.is_fresh(now);
        self.last.take().filter(|_| is_fresh).map(|(_, error)| error)
    }
}

/// A datagram to a peer, and the response.
#[derive(Debug)]
pub(crate) struct Probe {
    /// `Err` if the system did not send it.
    socket: io::Result<UdpSocket>,
    /// A report that a repeated call received.
    late: Option<io::Error>,
}

impl Probe {
    /// Sends an empty datagram, which no UDT program answers.
    pub(crate) fn send(peer: SocketAddr) -> Self {
        let sent = || {
            let socket = UdpSocket::bind(any_port_for(peer))?;
            socket.set_nonblocking(true)?;
            // Connected, so that the system reports ICMP messages about this peer.
            socket.connect(peer)?;
            socket.send(&[])?;
            Ok(socket)
        };
        Self { socket: sent(), late: None }
    }

    /// Sends another datagram. Read the report about the last one before: the system passes only one.
    fn repeat(&mut self, peer: SocketAddr) {
        match &self.socket {
            Ok(socket) => {
                // The report about an earlier datagram may arrive between.
                if let Err(error) = socket.send(&[])
                    && error.kind() != io::ErrorKind::WouldBlock
                {
                    self.late = Some(error);
                }
            }
            Err(_) => *self = Self::send(peer),
        }
    }

    /// The network's report until now; `None` without one.
    pub(crate) fn verdict(&mut self) -> Option<io::Error> {
        if let Some(error) = self.late.take() {
            return Some(error);
        }
        let error = match &mut self.socket {
            Ok(socket) => socket.recv(&mut [0]).err()?,
            Err(error) => std::mem::replace(error, io::ErrorKind::WouldBlock.into()),
        };
        (error.kind() != io::ErrorKind::WouldBlock).then_some(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_port_is_named_and_an_open_one_is_not() {
        let socket = UdpSocket::bind("127.0.0.78:0").unwrap();
        let address = socket.local_addr().unwrap();
        // On the loopback interface the answer has arrived when the send call returns.
        assert!(Probe::send(address).verdict().is_none());
        drop(socket);
        let error = Probe::send(address).verdict().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_send_that_the_system_refuses_is_named() {
        // Broadcasts need a socket option.
        let error = Probe::send(SocketAddr::from(([255, 255, 255, 255], 9))).verdict().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    fn refused() -> io::Error {
        io::ErrorKind::ConnectionRefused.into()
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn reports(patience: Patience) -> Reports {
        Reports { begun: Instant::ZERO, patience, refusals: 0, last: None }
    }

    #[test]
    fn two_refusals_end_an_attempt_after_two_seconds_and_one_does_not() {
        let mut reports = reports(Patience::of(Duration::from_secs(5)));
        reports.note(at(300), refused());
        assert!(!reports.are_enough(at(2_100)), "one");
        reports.note(at(1_300), refused());
        assert!(!reports.are_enough(at(1_900)), "the listener may be about to start");
        assert!(reports.are_enough(at(2_000)));
        assert_eq!(reports.take(at(2_000)).unwrap().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_caller_with_a_long_time_out_waits_for_the_listener() {
        let mut reports = reports(Patience::of(Duration::from_secs(6)));
        for millis in [300, 1_300, 4_900] {
            reports.note(at(millis), refused());
            assert!(!reports.are_enough(at(millis)));
        }
        assert!(reports.take(at(6_000)).is_some());
    }

    #[test]
    fn an_old_refusal_explains_nothing() {
        let mut reports = reports(Patience::Refusals);
        reports.note(at(100), refused());
        reports.note(at(200), refused());
        assert!(!reports.are_enough(at(3_300)));
        assert!(reports.take(at(5_000)).is_none(), "a program has taken the port since, and did not answer");
    }

    #[test]
    fn other_reports_name_the_reason_and_end_nothing_before_the_time_out() {
        let mut reports = reports(Patience::Refusals);
        for _ in 0..ENOUGH {
            reports.note(at(1_900), io::ErrorKind::NetworkUnreachable.into());
        }
        assert!(!reports.are_enough(at(2_500)) && reports.take(at(2_500)).is_some());
    }

    #[test]
    fn a_probe_precedes_each_packet_of_the_attempt() {
        let millis = Duration::from_millis;
        for (due, wait) in
            [(None, 130), (Some(250), 130), (Some(120), 115), (Some(50), 45), (Some(5), 130), (Some(0), 130)]
        {
            assert_eq!(interval(due.map(millis)), millis(wait), "{due:?}");
        }
    }

    #[test]
    fn a_repeated_probe_reports_again() {
        let address = UdpSocket::bind("127.0.0.78:0").unwrap().local_addr().unwrap();
        let mut probe = Probe::send(address);
        assert!(probe.verdict().is_some());
        probe.repeat(address);
        assert_eq!(probe.verdict().unwrap().kind(), io::ErrorKind::ConnectionRefused);
        assert!(probe.verdict().is_none());
    }
}
