//! What the two programs of a copy over SSH say to each other, as JSON.

use std::net::{IpAddr, SocketAddr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use farhaul_session::{Bonding, Rules, Token};
use farhaul_units::Rate;
use serde::{Deserialize, Serialize};

use super::scope::{PathText, ScopeText};
use crate::error::{Code, Error};
use crate::report::Ledger;
use crate::throttle::Change;

/// Longest text of a remote program that is shown, characters: a path of 4096 bytes, and what is wrong with it.
const LONGEST_TEXT: usize = 8192;
/// Version of these messages. Programs of different versions refuse each other.
pub(crate) const VERSION: u32 = 7;

/// The local program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToRemote {
    /// The first message.
    Hello(Hello),
    /// The stream goes to the other remote program through the local one, since UDP is blocked.
    Through,
    /// Begin the copy to another remote program.
    Call(Call),
    /// Change what the user throttles, of a program that is [`Ready`] for it.
    Throttle(Throttled),
}

/// A change of the cap or of the pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Throttled {
    /// Bits per second on the wire; `None` for no cap.
    Rate(Option<u64>),
    /// The begin or the end of a pause.
    Paused(bool),
}

impl From<Change> for Throttled {
    fn from(change: Change) -> Self {
        match change {
            Change::Rate(cap) => Self::Rate(cap.map(Rate::bits_per_second)),
            Change::Paused(is_paused) => Self::Paused(is_paused),
        }
    }
}

impl From<Throttled> for Change {
    fn from(change: Throttled) -> Self {
        match change {
            Throttled::Rate(cap) => Self::Rate(cap.map(Rate::from_bits_per_second)),
            Throttled::Paused(is_paused) => Self::Paused(is_paused),
        }
    }
}

/// What the local program wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: u32,
    /// Version of the local program.
    pub(crate) program: String,
    /// The only key to admit, as OpenSSH writes it. Absent if the remote program calls.
    #[serde(default)]
    pub(crate) key: Option<String>,
    pub(crate) task: Task,
    /// Options of connections, as on a command line.
    #[serde(default)]
    pub(crate) options: Vec<String>,
    /// The range of UDP ports for the remote program.
    #[serde(default)]
    pub(crate) ports: Option<(u16, u16)>,
    /// Whether the copy goes on when ssh ends.
    #[serde(default)]
    pub(crate) detach: bool,
    /// Flows over UDP that may join the stream through ssh.
    #[serde(default)]
    pub(crate) flows: Option<Flowing>,
    /// The whole of a small stream, which stays with ssh, or the request of one that may move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) opening: Option<OpeningText>,
}

/// The first bytes of a stream, in base64. In an account whose start-up files replace the shell of a command with another one, that
/// shell reads this message as its input. So no content of a file may stand in it as it is: here it is one line, of characters that
/// no shell acts upon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct OpeningText(String);

impl OpeningText {
    /// These bytes; `None` for none.
    pub(crate) fn new(bytes: &[u8]) -> Option<Self> {
        (!bytes.is_empty()).then(|| Self(STANDARD.encode(bytes)))
    }

    /// The bytes. `None` if it is no base64.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.0).ok()
    }
}

/// The offer of flows of a stream through ssh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flowing {
    /// The most of them.
    count: u8,
    /// The token that they will say, in hexadecimal digits.
    token: String,
}

impl From<Bonding> for Flowing {
    fn from(bonding: Bonding) -> Self {
        Self { count: bonding.flows, token: format!("{:032x}", u128::from_be_bytes(bonding.token.0)) }
    }
}

impl Flowing {
    /// The same as in an opening. `None` if it is none.
    pub(crate) fn bonding(&self) -> Option<Bonding> {
        let token = u128::from_str_radix(&self.token, 16).ok()?;
        Some(Bonding { flows: self.count, token: Token(token.to_be_bytes()) })
    }
}

impl Hello {
    /// This task, without anything else.
    pub(crate) fn of(task: Task) -> Self {
        Self {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            key: None,
            task,
            options: Vec::new(),
            ports: None,
            detach: false,
            flows: None,
            opening: None,
        }
    }
}

/// The part of the remote program. An unknown field is refused, since it may say what not to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Task {
    /// Store what is in this scope, and refuse everything else. Whether the target is a directory is the local program's word.
    Receive { target: PathText, is_directory: bool, scope: ScopeText },
    /// Send these paths. Which entries of them, the request of the session says: its other end is the local program.
    Send { paths: Vec<PathText> },
    /// Send what is in this scope to another remote program, which receives.
    Forward(ScopeText),
    /// Answer questions about the path, and copy nothing.
    Answer,
    /// Run this command, or this subsystem of sshd. Its bytes are in the form of a path.
    Run { command: PathText, is_subsystem: bool },
    /// Serve the files of the user.
    Files,
}

impl Task {
    /// The same for a copy under these rules, if the remote program learns them from its task.
    pub(crate) fn under_rules(self, rules: &Rules) -> Self {
        match self {
            Self::Receive { target, is_directory, scope } => {
                Self::Receive { target, is_directory, scope: scope.under_rules(rules) }
            }
            other => other,
        }
    }
}

/// Another remote program, which receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) key: String,
    pub(crate) addresses: Vec<SocketAddr>,
    /// Whether its target is a directory in any case.
    pub(crate) is_directory: bool,
    /// Whether its target takes one entry.
    pub(crate) takes_one: bool,
    /// Its name in messages.
    pub(crate) name: String,
}

/// The remote program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromRemote {
    /// It is ready.
    Ready(Ready),
    /// UDP does not reach the other remote program. The stream may go through the local one.
    Blocked(Failed),
    /// A record of the copy to another remote program.
    Record(serde_json::Value),
    /// What it has stored, at the end of the copy.
    Stored(Stored),
    /// It cannot go on.
    Failed(Failed),
}

/// A remote program that is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// Its key, as OpenSSH writes it.
    pub(crate) key: String,
    /// Its UDP port; zero if it calls.
    pub(crate) port: u16,
    /// The address under which ssh reached it.
    pub(crate) address: Option<IpAddr>,
    /// Whether its target takes one entry, because no such directory exists.
    #[serde(default)]
    pub(crate) takes_one: bool,
    /// Whether it knows [`ToRemote::Throttle`].
    #[serde(default)]
    pub(crate) throttles: bool,
}

/// The account of a remote program that receives. The local program compares it with that of the sender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) files: u64,
    pub(crate) directories: u64,
    pub(crate) bytes: u64,
    pub(crate) failed: u64,
    /// Why the copy failed there, or some files of it.
    pub(crate) failure: Option<Failed>,
    /// The digest over its verified files.
    pub(crate) ledger: Ledger,
}

/// A failure there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failed {
    /// The name of the code in records.
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Failed {
    /// The failure as an error of this side.
    pub(crate) fn error(&self, host: &str) -> Error {
        Error::new(code_there(&self.code), format!("{host}: {}", printable(&self.message)))
    }
}

impl From<&Error> for Failed {
    fn from(fault: &Error) -> Self {
        Self { code: fault.code.symbol().to_owned(), message: fault.to_string() }
    }
}

/// The code of a failure there, by its name. A signal to the program there has not stopped the one here: it has lost its peer.
pub(crate) fn code_there(symbol: &str) -> Code {
    match Code::from_symbol(symbol) {
        Some(Code::Interrupted | Code::HungUp | Code::Terminated) => Code::PeerLost,
        code => code.unwrap_or(Code::Failed),
    }
}

/// A text of the remote program without characters that move the cursor, and no longer than anybody reads.
pub(crate) fn printable(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => farhaul_session::escape(&text.as_bytes()[..end]) + " …",
        None => farhaul_session::escape(text.as_bytes()),
    }
}
