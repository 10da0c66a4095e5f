//! What the two programs of a copy over SSH say to each other, as JSON.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::exit::{Code, Fault};
use crate::values::percent;

/// Longest text of a far program that is shown, characters: a path of 4096 bytes, and what is wrong with it.
const LONGEST_TEXT: usize = 8192;
/// Version of these messages. Programs of different versions refuse each other.
pub(crate) const VERSION: u32 = 2;

/// Bytes of a path, which need not be UTF-8: with escapes as in a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PathText(String);

impl PathText {
    pub(crate) fn new(path: &[u8]) -> Self {
        Self(percent::encoded(path))
    }

    /// The bytes of the path.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, &'static str> {
        percent::decoded(self.0.as_bytes())
    }
}

/// The near program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Near {
    /// The first message.
    Hello(Hello),
    /// Datagrams follow in both directions, since UDP is blocked.
    Tunnel,
    /// Begin the copy to another far program.
    Call(Call),
}

/// What the near program wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: u32,
    /// Version of the near program.
    pub(crate) program: String,
    /// The only key to admit, as OpenSSH writes it. Absent if the far program calls.
    #[serde(default)]
    pub(crate) key: Option<String>,
    pub(crate) task: Task,
    /// Options of connections, as on a command line.
    #[serde(default)]
    pub(crate) options: Vec<String>,
    /// The range of UDP ports for the far program.
    #[serde(default)]
    pub(crate) ports: Option<(u16, u16)>,
    /// Whether the copy goes on when ssh ends.
    #[serde(default)]
    pub(crate) detach: bool,
}

/// The part of the far program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Task {
    /// Store what comes.
    Receive { target: PathText, is_directory: bool },
    /// Send these paths.
    Send { paths: Vec<PathText>, recursive: bool },
    /// Send these paths to another far program, which receives.
    Forward { paths: Vec<PathText>, recursive: bool },
    /// Answer questions about the path, and copy nothing.
    Answer,
}

/// Another far program, which receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) key: String,
    pub(crate) addresses: Vec<SocketAddr>,
    /// Whether its target is a directory in any case.
    pub(crate) is_directory: bool,
    /// Its name in messages.
    pub(crate) name: String,
}

/// The far program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FarSays {
    /// It is ready.
    Ready(Ready),
    /// Datagrams follow.
    Tunneling,
    /// UDP does not reach the other far program. Datagrams may go through the near one.
    Blocked(Failed),
    /// A record of the copy to another far program.
    Record(serde_json::Value),
    /// It cannot go on.
    Failed(Failed),
}

/// A far program that is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// Its key, as OpenSSH writes it.
    pub(crate) key: String,
    /// Its UDP port; zero if it calls.
    pub(crate) port: u16,
    /// The address under which ssh reached it.
    pub(crate) address: Option<IpAddr>,
}

/// A failure there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failed {
    /// The name of the code in records.
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Failed {
    /// The failure as a fault of this side.
    pub(crate) fn fault(&self, host: &str) -> Fault {
        Fault::new(code_there(&self.code), format!("{host}: {}", printable(&self.message)))
    }
}

impl From<&Fault> for Failed {
    fn from(fault: &Fault) -> Self {
        Self { code: fault.code.symbol().to_owned(), message: fault.message.clone() }
    }
}

/// The code of a failure there, by its name. A signal to the program there has not stopped the one here: it has lost its peer.
pub(crate) fn code_there(symbol: &str) -> Code {
    match Code::from_symbol(symbol) {
        Some(Code::Interrupted | Code::Terminated) => Code::PeerLost,
        code => code.unwrap_or(Code::Failed),
    }
}

/// A text of the far program without characters that move the cursor, and no longer than anybody reads.
pub(crate) fn printable(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => farhaul_session::escape(&text.as_bytes()[..end]) + " …",
        None => farhaul_session::escape(text.as_bytes()),
    }
}
