//! The transport parameters that a handshake carries for the connection inside.

use farhaul_wire::secure::{DataForm, OVERHEAD, TransportParameters};

use super::client_id::ClientId;
use crate::config::Mode;
use crate::consts::IP_UDP_HEADER;
use crate::endpoint::handshake::{Agreed, MIN_MSS, Offer, ProtectionOverhead, mss_towards};
use crate::error::PeerIncompatible;

/// How data of a mode travel.
pub(crate) const fn data_form(mode: Mode) -> DataForm {
    match mode {
        Mode::Stream => DataForm::Stream,
        Mode::Message => DataForm::Messages,
    }
}

/// The packets of the protocol inside are so much smaller than those of the path.
pub(crate) const fn inner_mss(mss: u32, mode: Mode) -> u32 {
    mss.saturating_sub(data_form(mode).overhead() as u32)
}

/// The name of measured streams in the transport parameters of a caller that wants nothing else.
const MEASURED: &str = "measured";

/// The use of a side's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// A protocol that both sides name. A side that `stateless_replies` also serves callers for measured streams alone.
    Protocol { name: &'static str, answers: bool },
    /// Measured streams alone, at the calling side. The other side may have any protocol.
    Measured,
}

impl Service {
    /// Its name in this side's transport parameters.
    const fn name(self) -> &'static str {
        match self {
            Self::Protocol { name, .. } => name,
            Self::Measured => MEASURED,
        }
    }

    /// Whether a connection with a side that names `theirs` has measured streams alone.
    fn is_measured(self, theirs: &str) -> Result<bool, ParametersRefused> {
        match self {
            Self::Measured => Ok(true),
            Self::Protocol { name, .. } if name == theirs => Ok(false),
            Self::Protocol { answers: true, .. } if theirs == MEASURED => Ok(true),
            Self::Protocol { .. } => Err(ParametersRefused::Protocol(theirs.to_owned())),
        }
    }
}

/// This side's transport parameters for a connection. In a rendezvous they name this side's own `call`.
pub(crate) fn parameters(service: Service, offer: &Offer, call: Option<ClientId>) -> Vec<u8> {
    let parameters = TransportParameters {
        protocol: service.name(),
        messages: offer.mode == Mode::Message,
        mss: offer.mss,
        flow_window: offer.flow_window,
        first: offer.isn,
        options: &[],
        largest: offer.largest,
        call: call.as_ref().map(ClientId::bytes),
        half_close: offer.mode == Mode::Stream,
        receipts: offer.wants_receipts,
    };
    let mut out = Vec::new();
    parameters.encode(&mut out);
    out
}

/// The call of a peer in a rendezvous, by its transport parameters.
pub(super) fn peer_call(parameters: &[u8]) -> Option<ClientId> {
    ClientId::new(TransportParameters::decode(parameters).ok()?.call?)
}

/// The agreement with the peer's transport parameters, and whether the connection has measured streams alone.
///
/// # Errors
/// The reason for which both cannot work together.
pub(crate) fn agree(service: Service, offer: &Offer, parameters: &[u8]) -> Result<(Agreed, bool), ParametersRefused> {
    let theirs = TransportParameters::decode(parameters).map_err(ParametersRefused::Malformed)?;
    let is_measured = service.is_measured(theirs.protocol)?;
    if theirs.messages != (offer.mode == Mode::Message) {
        return Err(ParametersRefused::Mode);
    }
    let data = data_form(offer.mode).overhead();
    let least = mss_towards(offer.peer.ip(), MIN_MSS) - data as u32;
    if theirs.mss < least.max(IP_UDP_HEADER) {
        return Err(ParametersRefused::Incompatible(PeerIncompatible::PacketSize(theirs.mss)));
    }
    let agreed = Agreed {
        peer_id: offer.socket_id,
        mss: theirs.mss.min(offer.mss),
        largest: offer.largest_with(theirs.largest, theirs.mss),
        peer_mss: theirs.mss,
        flow_window: theirs.flow_window.clamp(2, offer.max_flow_window.max(2)),
        send_isn: offer.isn,
        recv_isn: theirs.first,
        round_trip: None,
        protection: ProtectionOverhead { data: data as u32, control_surplus: (OVERHEAD - data) as u32 },
        half_close: theirs.half_close && offer.mode == Mode::Stream,
        wants_receipts: theirs.receipts,
        sends_receipts: offer.wants_receipts,
        is_ours: true,
    };
    Ok((agreed, is_measured))
}

/// Why transport parameters were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParametersRefused {
    /// They cannot be read.
    Malformed(farhaul_wire::secure::ParametersError),
    /// The peer has another protocol inside.
    Protocol(String),
    /// One side carries messages, the other a stream.
    Mode,
    Incompatible(PeerIncompatible),
}
