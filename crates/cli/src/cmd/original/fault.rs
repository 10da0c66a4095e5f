//! Faults of sessions with original programs.

use std::fmt::Display;

use farhaul_originals::Failure;
use farhaul_originals::rbudp::Fault as RbudpFault;
use farhaul_originals::sabul::SabulError;
use farhaul_originals::tsunami::Fault as TsunamiFault;
use farhaul_session::FailCode;

use crate::cmd::Context;
use crate::exit::{Code, Fault};

/// The next step when the secrets differ.
const GIVE_SECRET: &str = "give it as in `--protocol tsunami:secret=kitten`, or by FARHAUL_TSUNAMI_SECRET";
/// Why a peer may end the connection in the opening.
const NOT_ADMITTED: &str = "it may have been stopped, may have no place left, or may be another program";

/// The fault of a failed session with `peer`: a signal if one came, otherwise `failure`.
pub(super) fn of(context: &Context, failure: &Failure, peer: &dyn Display) -> Fault {
    context.interrupt.fault().unwrap_or_else(|| of_failure(failure, peer))
}

fn of_failure(failure: &Failure, peer: &dyn Display) -> Fault {
    let named = |code| Fault::new(code, format!("{peer}: {failure}"));
    match failure {
        Failure::Refused(_) => Fault::new(Code::PeerRefused, format!("{failure}; check the address, and that it runs")),
        Failure::NoAnswer { .. } => Fault::new(
            Code::ConnectTimeout,
            format!("{failure}: the host is down, or a firewall blocks TCP (--connect-timeout waits longer)"),
        ),
        Failure::Bind { transport: "UDP", address, source } => Fault::of_bind(*address, source),
        Failure::Bind { source, .. } => {
            let taken = source.kind() == std::io::ErrorKind::AddrInUse;
            Fault::new(if taken { Code::AddressInUse } else { Code::AddressUnavailable }, failure.to_string())
        }
        Failure::Tsunami(fault @ TsunamiFault::WrongSecret) => named(of_tsunami(fault)).and(GIVE_SECRET),
        Failure::Tsunami(fault @ TsunamiFault::EndedInOpening) => named(of_tsunami(fault)).and(NOT_ADMITTED),
        Failure::Tsunami(fault) => named(of_tsunami(fault)),
        Failure::Rbudp(fault) => named(of_rbudp(fault)),
        Failure::Sabul(error) => named(of_sabul(error)),
        Failure::NoFile(_) | Failure::Name { .. } => named(Code::FilesFailed),
        Failure::NoMemory(_) => named(Code::FilesFailed),
        Failure::Ended | Failure::Idle(_) => named(Code::PeerLost),
        Failure::Disk(failure) => {
            let (code, next) = match failure.code {
                code if code.is_out_of_space() => (Code::DiskFull, "make room and start again"),
                FailCode::SourceChanged | FailCode::NotFound => (Code::FilesFailed, "the client has no whole file"),
                FailCode::Exists | FailCode::NameRefused => (Code::FilesFailed, "choose another target"),
                _ => (Code::LocalIo, "nothing has the final name"),
            };
            Fault::new(code, format!("on this side, {failure}; {next}"))
        }
        Failure::Stream(error) => Fault::new(Code::LocalIo, error.to_string()),
        _ => Fault::new(Code::Failed, failure.to_string()),
    }
}

const fn of_tsunami(fault: &TsunamiFault) -> Code {
    match fault {
        TsunamiFault::WrongSecret => Code::AccessDenied,
        TsunamiFault::NoDatagrams(_) => Code::ConnectTimeout,
        TsunamiFault::Message(_)
        | TsunamiFault::Request(_)
        | TsunamiFault::OutOfTurn
        | TsunamiFault::BlockSize { .. } => Code::Protocol,
        TsunamiFault::ChannelEnded
        | TsunamiFault::EndedInOpening
        | TsunamiFault::EndedUnanswered
        | TsunamiFault::NoAnswer(_)
        | TsunamiFault::Silent(_) => Code::PeerLost,
        _ => Code::FilesFailed,
    }
}

const fn of_rbudp(fault: &RbudpFault) -> Code {
    match fault {
        RbudpFault::UdpBlocked(_) | RbudpFault::NothingArrived(_) => Code::ConnectTimeout,
        RbudpFault::NoAnswer | RbudpFault::TooLarge { .. } | RbudpFault::Name(_) => Code::FilesFailed,
        RbudpFault::ChannelBroke
        | RbudpFault::LeftUnanswered(_)
        | RbudpFault::NothingAsked
        | RbudpFault::Silent(_)
        | RbudpFault::NoProgress(_) => Code::PeerLost,
        RbudpFault::NegativeSize(_)
        | RbudpFault::OtherPayload { .. }
        | RbudpFault::PayloadsDiffer { .. }
        | RbudpFault::WantsFile
        | RbudpFault::OutOfTurn(_)
        | RbudpFault::PeerMisbehaved(_) => Code::Protocol,
        _ => Code::Failed,
    }
}

const fn of_sabul(error: &SabulError) -> Code {
    match error {
        SabulError::DatagramsBlocked => Code::ConnectTimeout,
        SabulError::PeerSilent(_)
        | SabulError::ReceiverLeft(_)
        | SabulError::ReceiverBroke
        | SabulError::ReceiverStays(_)
        | SabulError::SenderLeft(_)
        | SabulError::ChannelBroke
        | SabulError::Opening(_) => Code::PeerLost,
        _ => Code::Protocol,
    }
}
