//! ABORT frames: the last words of a side that ends a session, or refuses a request.

use crate::error::{Abort, AbortCode, SessionError};
use crate::failure::{clipped, received_text};
use crate::field::{Fields, Malformed};
use crate::frame_kind::FrameKind;
use crate::framing::{Decoded, Decoder, HEADER_LEN, put_frame};

/// Longest refusal in bytes.
pub const MAX_REFUSAL: usize = HEADER_LEN + FrameKind::Abort.limit();

/// The bytes that refuse a request. The stream is finished after them.
pub fn refusal(code: AbortCode, message: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_abort(&mut bytes, &Abort { code, message: message.to_owned() });
    bytes
}

/// The bytes that tell a peer why its opening was not understood.
pub fn refusal_of(error: &SessionError) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(abort) = error.abort() {
        put_abort(&mut bytes, &abort);
    }
    bytes
}

/// The refusal in `bytes`, if they are one and nothing else. Serves a caller of another protocol that a session peer
/// refused.
pub fn refusal_in(bytes: &[u8]) -> Option<Abort> {
    let (mut decoder, mut rest) = (Decoder::default(), bytes);
    match decoder.next(&mut rest) {
        Ok(Some(Decoded::Frame(FrameKind::Abort, body))) if rest.is_empty() => match received_abort(body) {
            SessionError::PeerAborted(abort) => Some(abort),
            _ => None,
        },
        _ => None,
    }
}

pub(crate) fn put_abort(out: &mut Vec<u8>, abort: &Abort) {
    put_frame(out, FrameKind::Abort, |out| {
        out.extend_from_slice(&abort.code.to_wire().to_be_bytes());
        out.extend_from_slice(clipped(&abort.message).as_bytes());
    });
}

/// The error for an ABORT frame of the peer.
pub(crate) fn received_abort(body: &[u8]) -> SessionError {
    let mut fields = Fields::new(body);
    let decoded = (|| {
        let code = AbortCode::from_wire(fields.u16()?);
        Ok(Abort { code, message: received_text(fields.rest())? })
    })();
    match decoded {
        Ok(abort) => SessionError::PeerAborted(abort),
        Err(reason) => SessionError::PeerMisbehaved(Malformed::in_frame(reason, FrameKind::Abort)),
    }
}
