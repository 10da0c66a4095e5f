//! Errors of connections and sessions as faults: exit code, address, reason, next step.

use std::fmt::Display;
use std::io;
use std::net::{IpAddr, SocketAddr};

use farhaul::security::SecurityFault;
use farhaul::{ConnectionLost, Error};
use farhaul_emu::EmulateError;
use farhaul_session::{Abort, AbortCode, SessionError};

use crate::exit::{Code, Fault};
use crate::output::human::{reason, time};

/// The fault of a failed attempt to connect to `peer`. With a `channel`, the protocol needs TCP beside UDP and opens it
/// first.
pub(crate) fn of_opening(error: &Error, peer: &dyn Display, channel: bool) -> Fault {
    match error {
        Error::Lost(ConnectionLost::ConnectTimeout(after)) if channel => Fault::new(
            Code::ConnectTimeout,
            format!(
                "no answer from {peer} within {}: its host is down, or a firewall blocks TCP; this protocol needs TCP \
                 and UDP on this port number (--connect-timeout waits longer)",
                time(*after)
            ),
        ),
        Error::Lost(ConnectionLost::ChannelBroken) if channel => Fault::new(
            Code::PeerRefused,
            format!(
                "the TCP connection to {peer}, which this protocol needs, failed: its host is unreachable, or a program \
                 of another kind has the port; check the address, and the --protocol of both sides"
            ),
        ),
        _ => of_connection(error, peer),
    }
}

/// The fault of a failed library call that concerned `peer`.
pub(crate) fn of_connection(error: &Error, peer: &dyn Display) -> Fault {
    match error {
        Error::Lost(lost) => of_lost(*lost, peer),
        Error::Unreachable { .. } => Fault::new(Code::ConnectTimeout, error.to_string()),
        Error::Bind { address, source } => of_bind(*address, source),
        Error::BindTcp { source, .. } => {
            let taken = source.kind() == io::ErrorKind::AddrInUse;
            Fault::new(if taken { Code::AddressInUse } else { Code::AddressUnavailable }, error.to_string())
        }
        Error::Resolve(source) => unresolved(&peer.to_string(), source),
        Error::InvalidOption { .. } | Error::Controller(_) => Fault::usage(error.to_string()),
        Error::Connect(_) => Fault::new(Code::Usage, format!("cannot connect to {peer}: {error}")),
        Error::Finished => Fault::new(Code::PeerLost, format!("{peer} closed the connection")),
        _ => Fault::new(Code::Failed, format!("{peer}: {error}")),
    }
}

fn of_lost(lost: ConnectionLost, peer: &dyn Display) -> Fault {
    let (code, message) = match lost {
        ConnectionLost::ConnectTimeout(after) => (
            Code::ConnectTimeout,
            format!(
                "no answer from {peer} within {}: nothing listens there, it speaks another protocol, only one side has \
                 --plain, or UDP is blocked on the way; check the address, --protocol and --plain of both sides, and let \
                 firewalls pass this UDP port",
                time(after)
            ),
        ),
        ConnectionLost::ChannelRefused => (
            Code::PeerRefused,
            format!(
                "{peer} refused the TCP connection that this protocol needs: nothing listens there with this --protocol; \
                 start the listening side with it first, and check the port"
            ),
        ),
        ConnectionLost::UdpBlocked(after) => (
            Code::UdpBlocked,
            format!(
                "TCP reaches {peer}, but UDP did not get through both ways within {}: let firewalls pass this UDP port",
                time(after)
            ),
        ),
        ConnectionLost::Insecure(fault) => of_security(fault, peer),
        ConnectionLost::Refused => (
            Code::PeerRefused,
            format!("{peer} refused the connection: it is full, or speaks another version; try again later"),
        ),
        ConnectionLost::PeerSilent(after) => (
            Code::PeerLost,
            format!(
                "nothing heard from {peer} for {}: it or the network is down (--timeout waits longer)",
                time(after)
            ),
        ),
        ConnectionLost::NoProgress(after) => {
            (Code::PeerLost, format!("{peer} lives but took no data for {}", time(after)))
        }
        ConnectionLost::TooSlow { bytes, time: period } => (
            Code::PeerLost,
            format!("{peer} lives but took only {bytes} bytes in {}, less than a server requires", time(period)),
        ),
        ConnectionLost::ClosedByPeer | ConnectionLost::Aborted => (
            Code::PeerLost,
            format!("{peer} closed the connection before everything was transferred; look there for why"),
        ),
        ConnectionLost::PeerError(_) => (Code::PeerLost, format!("{peer}: {lost}")),
        ConnectionLost::PeerIncompatible(_) | ConnectionLost::PeerMisbehaved(_) => {
            (Code::Protocol, format!("{peer}: {lost}"))
        }
        _ => (Code::PeerLost, format!("the connection to {peer} is lost: {lost}")),
    };
    Fault::new(code, message)
}

fn of_security(fault: SecurityFault, peer: &dyn Display) -> (Code, String) {
    match fault {
        SecurityFault::UnknownKey => (Code::HostKeyUnknown, format!("{peer} has a key that is not known here")),
        SecurityFault::NotAdmitted => (
            Code::NotAdmitted,
            format!(
                "{peer} does not admit the key of this side; have the line that `farhaul key show` prints added to its \
                 authorized_keys"
            ),
        ),
        SecurityFault::Version => (Code::Protocol, format!("{peer}: {fault}; update the older side")),
        SecurityFault::Handshake => (
            Code::Handshake,
            format!(
                "the encrypted handshake with {peer} failed: both sides need a --cipher in common, or somebody interferes"
            ),
        ),
        _ => (Code::Protocol, format!("{peer}: {fault}; connect again")),
    }
}

/// The reason why nothing can be copied to `target`, and the next step. The reader is on the machine of `target`.
pub(crate) fn no_place(target: &dyn Display, error: &io::Error) -> String {
    const IN_THE_WAY: &str = "a part of its path is not a directory; choose another target";
    let why = match error.kind() {
        io::ErrorKind::NotFound => "its directory does not exist; create it, or choose another target",
        io::ErrorKind::NotADirectory => IN_THE_WAY,
        // Links are not followed here.
        _ if error.raw_os_error() == Some(libc::ELOOP) => IN_THE_WAY,
        io::ErrorKind::PermissionDenied => "its directory may not be written to; change that, or choose another target",
        _ => return format!("cannot copy to {target}: {}; choose another target", reason(error)),
    };
    format!("cannot copy to {target}: {why}")
}

/// The fault of a UDP port that could not be opened.
pub(crate) fn of_bind(address: SocketAddr, source: &io::Error) -> Fault {
    match source.kind() {
        io::ErrorKind::AddrInUse => Fault::new(
            Code::AddressInUse,
            format!(
                "cannot open UDP port {address}: another program has it; `ss -ulpn 'sport = :{}'` names it, or choose \
                 another port",
                address.port()
            ),
        ),
        io::ErrorKind::AddrNotAvailable => Fault::new(
            Code::AddressUnavailable,
            format!(
                "cannot open UDP port {address}: no interface of this machine has that address; `ip addr` lists them"
            ),
        ),
        io::ErrorKind::PermissionDenied => Fault::new(
            Code::AddressUnavailable,
            format!("cannot open UDP port {address}: not allowed; ports from 1024 on need no privileges"),
        ),
        _ => Fault::new(Code::AddressUnavailable, format!("cannot open UDP port {address}: {source}")),
    }
}

/// The fault of an emulation that failed, with `farhaul relay` as the way out.
pub(crate) fn of_emulation(error: &EmulateError) -> Fault {
    of_emulation_or(error, "`farhaul relay` needs neither and has the same path options, for UDP")
}

/// The fault of an emulation that failed, with `instead` as the way out.
pub(crate) fn of_emulation_or(error: &EmulateError, instead: &str) -> Fault {
    match error {
        EmulateError::NoPermission(_) => Fault::new(Code::NotPermitted, error.to_string()).and(instead),
        EmulateError::NoTun(source) if source.kind() == io::ErrorKind::PermissionDenied => {
            Fault::new(Code::NotPermitted, error.to_string()).and(instead)
        }
        EmulateError::NoTun(_) => Fault::new(Code::Unsupported, error.to_string()).and(instead),
        _ => Fault::new(Code::Failed, error.to_string()),
    }
}

/// A link-local address whose interface is not named.
pub(crate) fn without_zone(ip: IpAddr, port: u16) -> Fault {
    Fault::new(
        Code::NoRoute,
        format!(
            "{ip} is a link-local address, and each interface of this machine may have another host of that address: name the \
             interface, for instance [{ip}%eth0]:{port}; `ip link` lists them"
        ),
    )
}

/// The fault of a host name without an address.
pub(crate) fn unresolved(name: &str, source: &io::Error) -> Fault {
    Fault::new(
        Code::NameUnresolved,
        format!("cannot find the address of {name}: {source}; check the spelling, or give the number"),
    )
}

/// The fault of a session that ended early.
pub(crate) fn of_session(error: &SessionError, peer: &dyn Display) -> Fault {
    match error {
        SessionError::NotFarhaul => Fault::new(
            Code::Protocol,
            format!(
                "{peer} answers, but is no `farhaul serve` or `farhaul bench`; check the address (plain streams: `farhaul pipe`)"
            ),
        ),
        SessionError::Version { .. } => Fault::new(Code::Protocol, format!("{peer}: {error}; update the older side")),
        SessionError::PeerMisbehaved(_) => Fault::new(
            Code::Protocol,
            format!("{peer}: {error}; check that it is a `farhaul serve` or `farhaul bench` of this version"),
        ),
        SessionError::PeerLeft => Fault::new(Code::PeerLost, format!("{peer} left before everything was done")),
        SessionError::Store(failure) if failure.code.is_out_of_space() => {
            Fault::new(Code::DiskFull, format!("on this side, {failure}; make room and start again"))
        }
        SessionError::Store(failure) => Fault::new(Code::LocalIo, format!("on this side, {failure}")),
        SessionError::Cancelled(abort) => Fault::new(Code::Failed, abort.message.clone()),
        SessionError::PeerAborted(Abort { code: AbortCode::NoSpace, message }) => Fault::new(
            Code::DiskFull,
            format!("on the other side ({peer}), {message}; make room there and start again"),
        ),
        SessionError::PeerAborted(Abort { code: AbortCode::Storage, message }) => {
            Fault::new(Code::LocalIo, format!("on the other side ({peer}), {message}"))
        }
        SessionError::PeerAborted(Abort { code: AbortCode::Cancelled, .. }) => Fault::new(
            Code::PeerLost,
            format!("{peer} was stopped before everything was transferred; start again when it is back"),
        ),
        SessionError::PeerAborted(abort) if abort.code == AbortCode::Version => {
            Fault::new(Code::Protocol, format!("{peer}: {}; update the older side", abort.message))
        }
        SessionError::PeerAborted(abort) => Fault::new(of_abort(abort.code), format!("{peer}: {}", abort.message)),
        _ => Fault::new(Code::Failed, format!("{peer}: {error}")),
    }
}

const fn of_abort(code: AbortCode) -> Code {
    match code {
        AbortCode::Version | AbortCode::Protocol | AbortCode::WrongService => Code::Protocol,
        AbortCode::Refused => Code::AccessDenied,
        AbortCode::Busy => Code::Busy,
        AbortCode::NoSpace => Code::DiskFull,
        AbortCode::Storage => Code::LocalIo,
        _ => Code::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: &str = "far:9000";

    #[test]
    fn a_protocol_with_a_control_channel_that_nobody_answers_is_told_of_tcp() {
        let silent = Error::Lost(ConnectionLost::ConnectTimeout(std::time::Duration::from_secs(5)));
        let [with, without] = [true, false].map(|channel| of_opening(&silent, &PEER, channel));
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
            let told = of_connection(&Error::Lost(ConnectionLost::Insecure(fault)), &PEER);
            assert_eq!(told.code, code);
            assert!([5, 9].contains(&told.code.exit()) && told.message.contains(PEER), "{told}");
        }
    }

    #[test]
    fn a_channel_that_cannot_be_opened_is_a_fault_of_the_network_and_a_broken_one_of_the_peer() {
        let broken = Error::Lost(ConnectionLost::ChannelBroken);
        let opening = of_opening(&broken, &PEER, true);
        assert!(opening.code == Code::PeerRefused && opening.message.contains("check the address"), "{opening:?}");
        assert_eq!(of_connection(&broken, &PEER).code, Code::PeerLost);
    }

    #[test]
    fn an_end_that_may_speak_another_protocol_is_said_with_the_next_step() {
        for lost in [ConnectionLost::ChannelRefused, ConnectionLost::ConnectTimeout(std::time::Duration::from_secs(5))]
        {
            let fault = of_lost(lost, &PEER);
            assert!(fault.code.exit() == 4 && fault.message.contains("--protocol"), "{fault:?}");
        }
    }
}
