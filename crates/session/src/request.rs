//! What a connecting side requests: the body of its OPEN frame.

pub(crate) mod flows;
pub(crate) mod measurement;

use std::sync::Arc;

use crate::field::{Fields, Malformed};
use crate::frame_kind::MAX_CONTROL;
use crate::name_list::NameList;
use crate::path_rules::{Component, RelPath};
use crate::pattern::Pattern;
use crate::rules::Rules;
use crate::sender_request::SenderSettings;
use flows::Join;
use measurement::BenchSpec;

/// Room for paths in an OPEN frame: the limit of its body less the fixed fields, rounded down.
const MAX_PATH_LIST: usize = MAX_CONTROL - 128;
/// Flags of a pull.
const RECURSIVE: u8 = 1;
const PATTERNS: u8 = 2;
const SINGLE: u8 = 4;
/// The verb of a pull whose names follow. It is one of its own because a sender that does not know of lists would send everything.
const PULL_BY_NAMES: u8 = 8;

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

impl From<CopyScope> for Request {
    fn from(scope: CopyScope) -> Self {
        Self::Pull(scope.into())
    }
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
    /// What the connecting side wants.
    pub scope: CopyScope,
    /// What the sender is asked to do meanwhile. It stands behind the request, where older senders look for nothing.
    pub sender: SenderSettings,
}

impl From<CopyScope> for Pull {
    fn from(scope: CopyScope) -> Self {
        Self { scope, sender: SenderSettings::default() }
    }
}

/// What a copy brings: what a pull requests, and what the receiver of a push takes if a third side says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyScope {
    /// The paths below the sender's root. Each arrives under its last component. A root path stands for the content of the root.
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
}

/// The request to run a command. Which one, the accepting side knows from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandRequest {
    /// The version that the connecting side speaks.
    pub version: u8,
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

impl CopyScope {
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
        let (recursive, patterns, single) = (has(RECURSIVE), has(PATTERNS), has(SINGLE));
        Ok(Self { paths, recursive, patterns, single, names: None, rules })
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

impl Request {
    pub(crate) const fn verb(&self) -> u8 {
        match self {
            Self::Push(_) => 1,
            Self::Pull(pull) if pull.scope.names.is_none() => 2,
            Self::Pull(_) => PULL_BY_NAMES,
            Self::Bench(_) => 3,
            Self::Command(_) => 5,
            Self::Files => 4,
            Self::Join(_) => 6,
            Self::Stream => 7,
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Push(push) => push.encode(out),
            Self::Pull(pull) => pull.scope.encode(out),
            Self::Bench(spec) => spec.encode(out),
            Self::Command(request) => request.encode(out),
            Self::Files => {}
            Self::Join(join) => join.encode(out),
            Self::Stream => {}
        }
    }

    /// `None` for a verb of later versions. Bytes of [`Files`](Self::Files) belong to later versions, too.
    pub(crate) fn decode(verb: u8, body: &[u8]) -> Option<Result<Self, Malformed>> {
        Some(match verb {
            1 => Push::decode(body).map(Self::Push),
            2 => CopyScope::decode(body).map(Self::from),
            3 => BenchSpec::decode(body).map(Self::Bench),
            4 => Ok(Self::Files),
            5 => CommandRequest::decode(body).map(Self::Command),
            6 => Join::decode(body).map(Self::Join),
            7 => Ok(Self::Stream),
            PULL_BY_NAMES => {
                let names = Some(Arc::default());
                CopyScope::decode(body).and_then(|scope| match scope.paths[..] {
                    [_] => Ok(CopyScope { names, ..scope }.into()),
                    _ => Err(Malformed::Value("number of paths")),
                })
            }
            _ => return None,
        })
    }
}

impl CommandRequest {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.push(self.version);
    }

    /// Ignores bytes after the version, which belong to later ones.
    pub(crate) fn decode(body: &[u8]) -> Result<Self, Malformed> {
        Ok(Self { version: Fields::new(body).u8()? })
    }
}
