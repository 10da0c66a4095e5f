//! The first frame of each side: version and request.
//!
//! The connecting side sends OPEN and continues at once with the data of its request. The accepting side answers ACCEPT
//! or ABORT.
//!
//! Data after OPEN is in the version that OPEN names. OPEN also names the oldest version that the connecting side
//! supports. So an answer to a too new caller can name a version to try.

use std::sync::Arc;

use crate::bench::spec::BenchSpec;
use crate::bond::{BONDING, Bonding, Join};
use crate::command::CommandRequest;
use crate::error::{Abort, AbortCode, SessionError};
use crate::failure::{clipped, received_text};
use crate::field::{Fields, Malformed};
use crate::frame_kind::{FrameKind, MAX_CONTROL};
use crate::framing::{Decoder, HEADER_LEN, Piece, put_frame};
use crate::name_list::NameList;
use crate::path_rules::{Component, RelPath};
use crate::pattern::Pattern;
use crate::rules::Rules;
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
/// Longest refusal in bytes.
pub const MAX_REFUSAL: usize = HEADER_LEN + FrameKind::Abort.limit();
/// Room for paths in an OPEN frame: the limit of its body less the fixed fields, rounded down.
const MAX_PATH_LIST: usize = MAX_CONTROL - 128;
/// Flags of a pull.
const RECURSIVE: u8 = 1;
const PATTERNS: u8 = 2;
const SINGLE: u8 = 4;
/// The verb of a pull whose names follow. It is one of its own because a sender that does not know of lists would send everything.
const PULL_BY_NAMES: u8 = 8;

/// Optional features that a side offers. A session uses those that both sides offer. Unknown bits are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// No optional feature.
    pub const NONE: Self = Self(0);
    /// Owners in answers of the file service.
    pub const OWNERS: Self = Self(1);
    /// Times of change there.
    pub const CHANGE_TIMES: Self = Self(8);
    /// As many puts at a time as [`MAX_PUTS`](crate::MAX_PUTS) says.
    pub const MANY_PUTS: Self = Self(16);
    /// In the answer of a sender: it cannot give way to other traffic, or cap its rate, as it was asked.
    pub(crate) const NO_BACKGROUND: Self = Self(2);
    pub(crate) const NO_RATE: Self = Self(4);

    /// These and `other`.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are among these.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The request of the connecting side.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// It sends files to this side.
    Push(Push),
    /// It requests files from this side.
    Pull(Pull),
    /// It requests a measurement.
    Bench(BenchSpec),
    /// It requests that a command runs here, which the accepting side knows.
    Command(CommandRequest),
    /// It makes numbered requests about files: list, read, write, remove and others.
    Files,
    /// A further flow of a stream that another connection has begun.
    Join(Join),
    /// A stream of bytes alone, with further flows.
    Stream,
}

/// Files from the connecting side to the accepting side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Push {
    /// The target below the accepting side's root.
    pub target: RelPath,
    /// Whether the target is a directory in any case (`host:dir/`, or several sources). If not and no such directory
    /// exists, the target is the new name of a single file or tree.
    pub target_is_directory: bool,
    /// The rules of the copy.
    pub rules: Rules,
}

/// Files from the accepting side to the connecting side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pull {
    /// The requested paths below the accepting side's root. Each arrives under its last component. A root path requests
    /// the content of the root.
    pub paths: Vec<RelPath>,
    /// Whether directories are requested. If not, the sender skips them with
    /// [`IsDirectory`](crate::FailCode::IsDirectory), and sending one is a violation.
    pub recursive: bool,
    /// Whether a path that does not exist may be a [`Pattern`](crate::Pattern), name by name.
    pub patterns: bool,
    /// Whether a pattern must match one entry alone, because the target is no directory.
    pub single: bool,
    /// The rules of the copy.
    pub rules: Rules,
    /// The names that a copy of the content of the only path is restricted to. They follow behind the request: on the accepting
    /// side the list is empty, and the sender passes it to its [`Source`](crate::Source). Older senders refuse such a request.
    pub names: Option<Arc<NameList>>,
    /// What the sender is asked to do meanwhile. It stands behind the request, where older senders look for nothing.
    pub sender: SenderSettings,
}

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
/// refuse, the driver writes a [`refusal`] and finishes the stream.
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
    /// The caller does not speak this protocol or this version. Write [`refusal_of`] that error and finish the stream.
    pub fn handle_received(&mut self, bytes: &[u8]) -> Result<(usize, Option<Open>), SessionError> {
        let mut rest = bytes;
        let piece = self.decoder.next(&mut rest).map_err(|_| SessionError::NotFarhaul)?;
        let open = match piece {
            None => None,
            Some(Piece::Frame(FrameKind::Open, body)) => Some(Open::decode(body)?),
            Some(_) => return Err(SessionError::NotFarhaul),
        };
        Ok((bytes.len() - rest.len(), open))
    }
}

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
        Ok(Some(Piece::Frame(FrameKind::Abort, body))) if rest.is_empty() => match received_abort(body) {
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

/// Why one session cannot serve a list of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The list has no path.
    #[error("no path is requested")]
    Nothing,
    /// The list does not fit in an opening frame. Request a directory, or use several sessions.
    #[error("the list of paths is longer than {MAX_PATH_LIST} bytes; request a directory, or use several copies")]
    TooLong,
    /// A list of names is for the content of one directory.
    #[error("a list of names needs one source, a directory")]
    SeveralWithNames,
    /// Two paths have the same last name and would arrive at the same place.
    #[error("two paths end in the same name; copy them into different directories")]
    SameName,
}

impl Pull {
    /// Checks that the request fits in one session.
    pub(crate) fn check(&self) -> Result<(), RequestError> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        let mut names: Vec<_> = self.paths.iter().map(|path| path.split_last().map(|(name, _)| name)).collect();
        names.sort_unstable();
        if names.is_empty() {
            Err(RequestError::Nothing)
        } else if self.names.is_some() && names.len() > 1 {
            Err(RequestError::SeveralWithNames)
        } else if bytes.len() > MAX_PATH_LIST {
            Err(RequestError::TooLong)
        } else if names.windows(2).any(|pair| pair[0] == pair[1] && !self.is_pattern(pair[0])) {
            Err(RequestError::SameName)
        } else {
            Ok(())
        }
    }

    /// Whether this last name of a path may stand for other names. The sender then finds those that are equal.
    fn is_pattern(&self, name: Option<&Component>) -> bool {
        self.patterns && name.is_some_and(Pattern::is_in)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let flags = [(RECURSIVE, self.recursive), (PATTERNS, self.patterns), (SINGLE, self.single)];
        out.push(flags.iter().filter(|(_, set)| *set).fold(0, |all, (flag, _)| all | flag));
        self.rules.encode(out);
        for path in &self.paths {
            path.encode(out);
        }
    }

    fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body);
        // Unknown flags belong to later versions.
        let flags = fields.u8()?;
        let has = |flag| flags & flag != 0;
        let rules = Rules::decode(&mut fields)?;
        let mut paths = Vec::new();
        while fields.end().is_err() {
            paths.push(fields.path()?);
        }
        let sender = SenderSettings::default();
        Ok(Self {
            paths,
            recursive: has(RECURSIVE),
            patterns: has(PATTERNS),
            single: has(SINGLE),
            names: None,
            rules,
            sender,
        })
    }
}

impl Push {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.target_is_directory));
        self.rules.encode(out);
        self.target.encode(out);
    }

    fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body);
        let target_is_directory = fields.u8()? & 1 != 0;
        let rules = Rules::decode(&mut fields)?;
        Ok(Self { target: fields.path()?, target_is_directory, rules })
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

impl Request {
    const fn verb(&self) -> u8 {
        match self {
            Self::Push(_) => 1,
            Self::Pull(Pull { names: None, .. }) => 2,
            Self::Pull(_) => PULL_BY_NAMES,
            Self::Bench(_) => 3,
            Self::Command(_) => 5,
            Self::Files => 4,
            Self::Join(_) => 6,
            Self::Stream => 7,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Push(push) => push.encode(out),
            Self::Pull(pull) => pull.encode(out),
            Self::Bench(spec) => spec.encode(out),
            Self::Command(request) => request.encode(out),
            Self::Files => {}
            Self::Join(join) => join.encode(out),
            Self::Stream => {}
        }
    }

    /// `None` for a verb of later versions. Bytes of [`Files`](Self::Files) belong to later versions, too.
    fn decode(verb: u8, body: &[u8]) -> Option<Result<Self, Malformed>> {
        Some(match verb {
            1 => Push::decode(body).map(Self::Push),
            2 => Pull::decode(body).map(Self::Pull),
            3 => BenchSpec::decode(body).map(Self::Bench),
            4 => Ok(Self::Files),
            5 => CommandRequest::decode(body).map(Self::Command),
            6 => Join::decode(body).map(Self::Join),
            7 => Ok(Self::Stream),
            PULL_BY_NAMES => {
                let names = Some(Arc::default());
                Pull::decode(body).and_then(|pull| match pull.paths[..] {
                    [_] => Ok(Self::Pull(Pull { names, ..pull })),
                    _ => Err(Malformed::Value("number of paths")),
                })
            }
            _ => return None,
        })
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

    /// Ignores bytes after the last field, which belong to later versions.
    pub(crate) fn decode(body: &[u8]) -> Result<Self, SessionError> {
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
