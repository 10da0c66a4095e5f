//! The first frame of each side: version and request.
//!
//! The connecting side sends OPEN and continues at once with the data of its request. The accepting side answers ACCEPT
//! or ABORT.
//!
//! Data after OPEN is in the version that OPEN names. OPEN also names the oldest version that the connecting side
//! supports. So an answer to a too new caller can name a version to try.

use crate::capabilities::Capabilities;
use crate::error::SessionError;
use crate::field::{Fields, Malformed};
use crate::frame_kind::FrameKind;
use crate::framing::{Decoded, Decoder, put_frame};
use crate::refusal::received_abort;
use crate::request::Request;
use crate::request::flows::{BONDING, Bonding};
use crate::sender_request::{SenderRequest, SenderSettings};

#[cfg(test)]
mod tests;

/// The version of the session protocol in this crate.
pub const VERSION: u16 = 2;
/// The oldest version that this crate supports.
pub const OLDEST_VERSION: u16 = 2;
/// First bytes of every OPEN body.
const MAGIC: [u8; 8] = *b"FARHAUL\0";
/// Credit of a sender before the receiver's first grant, in bytes of DATA bodies. Both sides start with it, so
/// that data can accompany the opening frame.
pub(crate) const INITIAL_CREDIT: u64 = 1 << 20;

/// An opening frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The version that the connecting side continues with.
    pub version: u16,
    /// The oldest version that it supports.
    pub oldest_version: u16,
    /// Its optional features.
    pub capabilities: Capabilities,
    /// Bytes of DATA bodies that the accepting side may send at first. Grants start from it.
    pub credit: u64,
    /// Its request.
    pub request: Request,
    /// The further flows of the stream that it may open.
    pub bonding: Option<Bonding>,
}

/// The answer to an opening frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accept {
    pub(crate) version: u16,
    pub(crate) capabilities: Capabilities,
    pub(crate) credit: u64,
}

/// Reads the opening frame of an accepted connection, before its kind of session is known.
///
/// The driver passes bytes until it gets an [`Open`] and checks the request. Then it makes the session and passes the
/// unused bytes to it. The session is [`FileReceiver::answer`](crate::FileReceiver::answer) for a push,
/// [`FileSender::answer`](crate::FileSender::answer) for a pull, [`Bench::accept`](crate::Bench::accept),
/// [`CommandReader::accepting`](crate::CommandReader::accepting), or [`FileServer::answer`](crate::FileServer::answer). To
/// refuse, the driver writes a [`refusal`](crate::refusal) and finishes the stream.
#[derive(Debug, Default)]
pub struct Acceptor {
    decoder: Decoder,
}

impl Acceptor {
    /// An acceptor without input.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes. Returns how many were used, and the opening frame once it is complete.
    ///
    /// # Errors
    /// The caller does not speak this protocol or this version. Write [`refusal_of`](crate::refusal_of) that error and finish the stream.
    pub fn handle_received(&mut self, bytes: &[u8]) -> Result<(usize, Option<Open>), SessionError> {
        let mut rest = bytes;
        let decoded = self.decoder.next(&mut rest).map_err(|_| SessionError::NotFarhaul)?;
        let open = match decoded {
            None => None,
            Some(Decoded::Frame(FrameKind::Open, body)) => Some(Open::decode(body)?),
            Some(_) => return Err(SessionError::NotFarhaul),
        };
        Ok((bytes.len() - rest.len(), open))
    }
}

impl Open {
    /// The opening frame of this side.
    pub(crate) const fn new(request: Request, credit: u64) -> Self {
        let (version, oldest_version, capabilities) = (VERSION, OLDEST_VERSION, Capabilities::NONE);
        Self { version, oldest_version, capabilities, credit, request, bonding: None }
    }

    /// The same with these features.
    pub(crate) fn offering(self, capabilities: Capabilities) -> Self {
        Self { capabilities, ..self }
    }

    /// The same with an offer of further flows.
    pub(crate) fn bonded_by(self, bonding: Option<Bonding>) -> Self {
        Self { bonding, ..self }
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_frame(out, FrameKind::Open, |out| {
            out.extend_from_slice(&MAGIC);
            out.extend_from_slice(&self.version.to_be_bytes());
            out.extend_from_slice(&self.oldest_version.to_be_bytes());
            out.extend_from_slice(&self.capabilities.0.to_be_bytes());
            out.extend_from_slice(&self.credit.to_be_bytes());
            let (verb, mut body) = (self.request.verb(), Vec::new());
            self.request.encode(&mut body);
            out.push(verb);
            out.extend_from_slice(&u32::try_from(body.len()).expect("checked when it was made").to_be_bytes());
            out.extend_from_slice(&body);
            if let Request::Pull(pull) = &self.request {
                out.extend(pull.sender.requests().flat_map(SenderRequest::encode));
            }
            if let Some(bonding) = self.bonding {
                put_extension(out, BONDING, &bonding.to_bytes());
            }
        });
    }

    /// Ignores extensions after the request that it does not know, which belong to later versions.
    fn decode(body: &[u8]) -> Result<Self, SessionError> {
        let mut fields = Fields::new(body);
        if fields.array() != Ok(MAGIC) {
            return Err(SessionError::NotFarhaul);
        }
        let bad = |reason: Malformed| SessionError::PeerMisbehaved(reason.in_frame(FrameKind::Open));
        let version = fields.u16().map_err(bad)?;
        let oldest_version = fields.u16().map_err(bad)?;
        // In another version, the following bytes may have another meaning.
        if !(OLDEST_VERSION..=VERSION).contains(&version) {
            return Err(SessionError::Version { wanted: version, oldest: OLDEST_VERSION, newest: VERSION });
        }
        let (capabilities, credit, verb, body) = (|| {
            let (capabilities, credit, verb) = (Capabilities(fields.u64()?), fields.u64()?, fields.u8()?);
            let length = usize::try_from(fields.u32()?).map_err(|_| Malformed::Short)?;
            Ok((capabilities, credit, verb, fields.bytes(length)?))
        })()
        .map_err(bad)?;
        let mut request = Request::decode(verb, body).ok_or(SessionError::UnknownRequest(verb))?.map_err(bad)?;
        let extensions = fields.rest();
        if let Request::Pull(pull) = &mut request {
            pull.sender = SenderSettings::decode(extensions);
        }
        let bonding = extension(extensions, BONDING).map(Bonding::decode).transpose().map_err(bad)?;
        Ok(Self { version, oldest_version, capabilities, credit, request, bonding })
    }
}

/// Appends an extension of an opening frame. It has the form of a frame: type, length, body.
fn put_extension(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&u32::try_from(body.len()).expect("extensions are short").to_be_bytes());
    out.extend_from_slice(body);
}

/// The body of the extension of this kind, if all before it can be read.
fn extension(extensions: &[u8], kind: u8) -> Option<&[u8]> {
    let mut fields = Fields::new(extensions);
    loop {
        let found = fields.u8().ok()?;
        let len = usize::try_from(fields.u32().ok()?).ok()?;
        let body = fields.bytes(len).ok()?;
        if found == kind {
            return Some(body);
        }
    }
}

impl Accept {
    pub(crate) const fn new(credit: u64) -> Self {
        Self { version: VERSION, capabilities: Capabilities::NONE, credit }
    }

    /// The same with these features.
    pub(crate) const fn offering(self, capabilities: Capabilities) -> Self {
        Self { capabilities, ..self }
    }

    pub(crate) fn put(self, out: &mut Vec<u8>) {
        put_frame(out, FrameKind::Accept, |out| {
            out.extend_from_slice(&self.version.to_be_bytes());
            out.extend_from_slice(&self.capabilities.0.to_be_bytes());
            out.extend_from_slice(&self.credit.to_be_bytes());
        });
    }

    /// The answer to this side's OPEN, which is the peer's first frame.
    ///
    /// # Errors
    /// The peer refuses the request, or speaks another protocol or version.
    pub(crate) fn awaited(kind: FrameKind, body: &[u8]) -> Result<Self, SessionError> {
        match kind {
            FrameKind::Accept => Self::decode(body),
            FrameKind::Abort => Err(received_abort(body)),
            _ => Err(SessionError::NotFarhaul),
        }
    }

    /// Ignores bytes after the last field, which belong to later versions.
    fn decode(body: &[u8]) -> Result<Self, SessionError> {
        let mut fields = Fields::new(body);
        let accept =
            (|| Ok(Self { version: fields.u16()?, capabilities: Capabilities(fields.u64()?), credit: fields.u64()? }))(
            )
            .map_err(|reason: Malformed| reason.in_frame(FrameKind::Accept))?;
        if accept.version != VERSION {
            return Err(SessionError::Version { wanted: accept.version, oldest: OLDEST_VERSION, newest: VERSION });
        }
        Ok(accept)
    }
}
