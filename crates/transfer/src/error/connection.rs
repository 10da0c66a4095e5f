//! Errors of connections and sessions: their code, the address, the reason, and the next step.

use std::fmt::Display;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use farhaul::security::SecurityFault;
use farhaul::{ConnectionLost, Error as ConnectionError};
use farhaul_session::{Abort, AbortCode, SessionError};
use rustix::io::Errno;

use super::{Code, Error};
use crate::text::{reason, time};

const UPDATE: &str = "update the older side";

impl Error {
    /// The failure of an attempt to connect to `peer`. With a `channel`, the protocol needs TCP beside UDP and opens it first.
    pub fn of_connect_attempt(error: &ConnectionError, peer: &dyn Display, channel: bool) -> Self {
        match error {
            ConnectionError::Lost(ConnectionLost::ConnectTimeout(after)) if channel => Self::new(
                Code::ConnectTimeout,
                format!(
                    "no answer from {peer} within {}: its host is down, or a firewall blocks TCP; this protocol needs TCP \
                     and UDP on this port number (‹connect-timeout› waits longer)",
                    time(*after)
                ),
            ),
            ConnectionError::Lost(ConnectionLost::ChannelBroken) if channel => Self::new(
                Code::PeerRefused,
                format!(
                    "the TCP connection to {peer}, which this protocol needs, failed: its host is unreachable, or a \
                     program of another kind has the port"
                ),
            )
            .remedy("check the address, and the ‹protocol› of both sides"),
            _ => Self::of_connection(error, peer),
        }
    }

    /// The failure of a call of the library that concerned `peer`.
    pub fn of_connection(error: &ConnectionError, peer: &dyn Display) -> Self {
        match error {
            ConnectionError::Lost(lost) => of_lost(*lost, peer),
            ConnectionError::Bind { address, source } => Self::of_bind(*address, source),
            ConnectionError::Resolve(source) => Self::unresolved(&peer.to_string(), source),
            ConnectionError::Connect(_) => Self::new(error.code(), format!("cannot connect to {peer}: {error}")),
            // What names its place, or an argument, and no peer.
            ConnectionError::Unreachable { .. }
            | ConnectionError::BindTcp { .. }
            | ConnectionError::InvalidOption { .. }
            | ConnectionError::Controller(_)
            | ConnectionError::WrongFamily { .. }
            | ConnectionError::MessageTooLong { .. }
            | ConnectionError::EndedEarly { .. }
            | ConnectionError::File { .. }
            | ConnectionError::FileTooShort { .. }
            | ConnectionError::TimedOut(_)
            | ConnectionError::ListenerClosed
            | ConnectionError::NoHalfClose
            | ConnectionError::FixedCap
            | ConnectionError::FixedController => Self::new(error.code(), error.to_string()),
            // The loss of ssh cancels calls, too. Whoever cancelled the work has the reason.
            ConnectionError::Cancelled => Self::new(Code::Failed, format!("{peer}: {error}")),
            _ => Self::new(error.code(), format!("{peer}: {error}")),
        }
    }

    /// A UDP port that could not be opened.
    pub fn of_bind(address: SocketAddr, source: &io::Error) -> Self {
        let failed = |code, why: &dyn Display| Self::new(code, format!("cannot open UDP port {address}: {why}"));
        match source.kind() {
            io::ErrorKind::AddrInUse => {
                let name = format!("`ss -ulpn 'sport = :{}'` names it, or choose another port", address.port());
                failed(Code::AddressInUse, &"another program has it").remedy(name)
            }
            io::ErrorKind::AddrNotAvailable => {
                failed(Code::AddressUnavailable, &"no interface of this machine has that address")
                    .remedy("`ip addr` lists them")
            }
            io::ErrorKind::PermissionDenied => {
                failed(Code::AddressUnavailable, &"not allowed").remedy("ports from 1024 on need no privileges")
            }
            _ => failed(Code::AddressUnavailable, source),
        }
    }

    /// A place on this host to which nothing can be copied.
    pub fn no_place(target: &dyn Display, error: &io::Error) -> Self {
        Self::new(Code::LocalIo, no_place(target, error))
    }

    /// A link-local address whose interface is not named.
    pub(crate) fn without_zone(ip: IpAddr, port: u16) -> Self {
        Self::new(
            Code::NoRoute,
            format!(
                "{ip} is a link-local address, and each interface of this machine may have another host of that address"
            ),
        )
        .remedy(format!("name the interface, for instance [{ip}%eth0]:{port}; `ip link` lists them"))
    }

    /// A host name without an address.
    pub fn unresolved(name: &str, source: &io::Error) -> Self {
        Self::new(Code::NameUnresolved, format!("cannot find the address of {name}: {source}"))
            .remedy("check the spelling, or give the number")
    }

    /// A peer that is connected, and did not answer in this time. One that `is_ours` has proven to be a program of this kind.
    pub(crate) fn of_silence(after: Duration, is_ours: bool, peer: &dyn Display) -> Self {
        let silent = format!("{peer} is connected, and has not answered within {}", time(after));
        match is_ours {
            true => Self::new(Code::Busy, format!("{silent}: it is very busy"))
                .remedy("try again; ‹connect-timeout› waits longer"),
            false => Self::new(
                Code::IdleTimeout,
                format!("{silent}: it is very busy, or is no `farhaul serve` or `farhaul bench`"),
            )
            .remedy("check the address (plain streams: `farhaul pipe`)"),
        }
    }

    /// A session with `peer` that ended early.
    pub fn of_session(error: &SessionError, peer: &dyn Display) -> Self {
        match error {
            SessionError::NotFarhaul => {
                Self::new(Code::Protocol, format!("{peer} answers, but is no `farhaul serve` or `farhaul bench`"))
                    .remedy("check the address (plain streams: `farhaul pipe`)")
            }
            SessionError::Version { .. } => Self::new(Code::Protocol, format!("{peer}: {error}")).remedy(UPDATE),
            SessionError::PeerMisbehaved(_) => Self::new(Code::Protocol, format!("{peer}: {error}"))
                .remedy("check that it is a `farhaul serve` or `farhaul bench` of this version"),
            SessionError::PeerLeft => Self::new(Code::PeerLost, format!("{peer} left before everything was done")),
            SessionError::Store(failure) if failure.code.is_out_of_space() => {
                Self::new(Code::DiskFull, format!("on this side, {failure}")).remedy("make room and start again")
            }
            SessionError::Store(failure) => Self::new(Code::LocalIo, format!("on this side, {failure}")),
            SessionError::Cancelled(abort) => Self::new(Code::Failed, abort.message.clone()),
            SessionError::PeerAborted(abort) => of_abort(abort, peer),
            _ => Self::new(Code::Failed, format!("{peer}: {error}")),
        }
    }
}

fn of_lost(lost: ConnectionLost, peer: &dyn Display) -> Error {
    let told = |message: String| Error::new(ConnectionError::Lost(lost).code(), message);
    match lost {
        ConnectionLost::ConnectTimeout(after) => told(format!(
            "no answer from {peer} within {}: nothing listens there, it speaks another protocol, only one side has ‹plain›, it answers \
             from another address, or UDP is blocked on the way",
            time(after)
        ))
        .remedy("check the address, ‹protocol› and ‹plain› of both sides, and let firewalls pass this UDP port"),
        ConnectionLost::HandshakeTimeout(after) => told(format!(
            "{peer} answered, and did not complete the handshake within {}: it is very busy, or most packets are lost",
            time(after)
        ))
        .remedy("try again; ‹connect-timeout› waits longer"),
        ConnectionLost::ChannelRefused => told(format!(
            "{peer} refused the TCP connection that this protocol needs: nothing listens there with this ‹protocol›"
        ))
        .remedy("start the listening side with it first, and check the port"),
        ConnectionLost::UdpBlocked(after) => {
            told(format!("TCP reaches {peer}, but UDP did not get through both ways within {}", time(after)))
                .remedy("let firewalls pass this UDP port")
        }
        ConnectionLost::Insecure(fault) => of_security(fault, told, peer),
        ConnectionLost::Refused => {
            told(format!("{peer} refused the connection: it is full, or speaks another version")).remedy("try again later")
        }
        ConnectionLost::PeerSilent(after) => told(format!(
            "nothing heard from {peer} for {}: it or the network is down (‹timeout› waits longer)",
            time(after)
        )),
        ConnectionLost::NoProgress(after) => told(format!("{peer} lives but took no data for {}", time(after))),
        ConnectionLost::TooSlow { bytes, time: period } => told(format!(
            "{peer} lives but took only {bytes} bytes in {}, less than a server requires",
            time(period)
        )),
        ConnectionLost::ClosedByPeer | ConnectionLost::Aborted => {
            told(format!("{peer} closed the connection before everything was transferred")).remedy("look there for why")
        }
        ConnectionLost::ControllerFailed(failure) => {
            let mut error = told(format!("the connection to {peer} was ended: {failure}"))
                .remedy("choose another one by ‹controller›, or mend it");
            error.controller = Some(failure.controller.as_str().to_owned());
            error
        }
        ConnectionLost::PeerError(_) | ConnectionLost::PeerIncompatible(_) | ConnectionLost::PeerMisbehaved(_) => {
            told(format!("{peer}: {lost}"))
        }
        _ => told(format!("the connection to {peer} is lost: {lost}")),
    }
}

fn of_security(fault: SecurityFault, told: impl Fn(String) -> Error, peer: &dyn Display) -> Error {
    match fault {
        SecurityFault::UnknownKey => told(format!("{peer} has a key that is not known here")),
        SecurityFault::NotAdmitted => told(format!("{peer} does not admit the key of this side")).remedy(
            "have the line that `farhaul key show` prints added there by `farhaul key add`; if it was added, the log there says what \
             it lacks",
        ),
        SecurityFault::Version => told(format!("{peer}: {fault}")).remedy(UPDATE),
        SecurityFault::Handshake => told(format!(
            "the encrypted handshake with {peer} failed: both sides need a ‹cipher› in common, or somebody interferes"
        )),
        _ => told(format!("{peer}: {fault}")).remedy("connect again"),
    }
}

fn of_abort(abort: &Abort, peer: &dyn Display) -> Error {
    let message = &abort.message;
    let named = |code| Error::new(code, format!("{peer}: {message}"));
    match abort.code {
        AbortCode::NoSpace => Error::new(Code::DiskFull, format!("on the other side ({peer}), {message}"))
            .remedy("make room there and start again"),
        AbortCode::Storage => Error::new(Code::LocalIo, format!("on the other side ({peer}), {message}")),
        AbortCode::Cancelled => {
            Error::new(Code::PeerLost, format!("{peer} was stopped before everything was transferred"))
                .remedy("start again when it is back")
        }
        AbortCode::Version => named(Code::Protocol).remedy(UPDATE),
        AbortCode::Protocol | AbortCode::WrongService => named(Code::Protocol),
        AbortCode::Refused => named(Code::AccessDenied),
        AbortCode::Busy => named(Code::Busy),
        _ => named(Code::Failed),
    }
}

/// The reason why nothing can be copied to `target`, and the next step. The reader is on the machine of `target`.
pub(crate) fn no_place(target: &dyn Display, error: &io::Error) -> String {
    const IN_THE_WAY: &str = "a part of its path is not a directory; choose another target";
    let why = match error.kind() {
        io::ErrorKind::NotFound => "its directory does not exist; create it, or choose another target",
        io::ErrorKind::NotADirectory => IN_THE_WAY,
        // Links are not followed here.
        _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => IN_THE_WAY,
        io::ErrorKind::PermissionDenied => "its directory may not be written to; change that, or choose another target",
        _ => return format!("cannot copy to {target}: {}; choose another target", reason(error)),
    };
    format!("cannot copy to {target}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: &str = "far:9000";

    #[test]
    fn a_protocol_with_a_control_channel_that_nobody_answers_is_told_of_tcp() {
        let silent = ConnectionError::Lost(ConnectionLost::ConnectTimeout(std::time::Duration::from_secs(5)));
        let [with, without] = [true, false].map(|channel| Error::of_connect_attempt(&silent, &PEER, channel));
        assert!(with.message.contains("firewall blocks TCP"), "{}", with.message);
        assert!(without.message.contains("UDP is blocked") && !without.message.contains("TCP"), "{}", without.message);
        assert_eq!((with.code, without.code), (Code::ConnectTimeout, Code::ConnectTimeout));
    }

    #[test]
    fn every_failure_of_the_encryption_has_a_name_and_the_code_5_or_9() {
        for (fault, code) in [
            (SecurityFault::UnknownKey, Code::HostKeyUnknown),
            (SecurityFault::NotAdmitted, Code::NotAdmitted),
            (SecurityFault::Version, Code::Protocol),
            (SecurityFault::Handshake, Code::Handshake),
        ] {
            let told = Error::of_connection(&ConnectionError::Lost(ConnectionLost::Insecure(fault)), &PEER);
            assert_eq!(told.code, code);
            assert!([5, 9].contains(&told.code.exit()) && told.message.contains(PEER), "{told}");
        }
    }

    #[test]
    fn a_channel_that_cannot_be_opened_is_a_fault_of_the_network_and_a_broken_one_of_the_peer() {
        let broken = ConnectionError::Lost(ConnectionLost::ChannelBroken);
        let connect = Error::of_connect_attempt(&broken, &PEER, true);
        assert!(connect.code == Code::PeerRefused && connect.to_string().contains("check the address"), "{connect:?}");
        assert_eq!(Error::of_connection(&broken, &PEER).code, Code::PeerLost);
    }

    #[test]
    fn an_end_that_may_speak_another_protocol_is_said_with_the_next_step() {
        for lost in [ConnectionLost::ChannelRefused, ConnectionLost::ConnectTimeout(std::time::Duration::from_secs(5))]
        {
            let fault = of_lost(lost, &PEER);
            assert!(fault.code.exit() == 4 && fault.to_string().contains("‹protocol›"), "{fault:?}");
        }
    }
}
