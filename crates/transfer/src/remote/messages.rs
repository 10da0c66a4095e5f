//! What the two programs of a copy over SSH say to each other, as JSON.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use farhaul_session::{Bonding, Listed, NameList, NameListBuilder, Pull, RelPath, Rules, Token};
use farhaul_units::Rate;
use serde::{Deserialize, Serialize};

use crate::error::{Code, Error};
use crate::location::percent;
use crate::report::Ledger;
use crate::throttle::Change;

/// Longest text of a remote program that is shown, characters: a path of 4096 bytes, and what is wrong with it.
const LONGEST_TEXT: usize = 8192;
/// Longest list of names, bytes: it shares a message with everything else.
const LONGEST_NAMES: usize = 3 << 20;
/// Version of these messages. Programs of different versions refuse each other.
pub(crate) const VERSION: u32 = 5;

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

/// A list of names: a blank before each of them, and escapes as in a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct NamesText(String);

impl NamesText {
    /// The list as a text. `None` if that is too long for a message.
    pub(crate) fn new(names: &NameList) -> Option<Self> {
        let mut text = String::new();
        if names.place_of(&RelPath::root(), true) == Listed::Itself {
            text.push(' ');
        }
        for name in names.names_within(&RelPath::root()) {
            text.push(' ');
            text.push_str(&percent::encoded(&name.to_bytes()));
        }
        (text.len() <= LONGEST_NAMES).then_some(Self(text))
    }

    /// The list.
    pub(crate) fn list(&self) -> Result<NameList, &'static str> {
        let mut list = NameListBuilder::default();
        for name in self.0.split(' ').skip(1) {
            let name = RelPath::parse(&percent::decoded(name.as_bytes())?).map_err(|_| "it is no name")?;
            list.push(&name).map_err(|_| "there are too many names")?;
        }
        Ok(list.build())
    }
}

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
    /// The rules of the copy, as they are sent in requests.
    #[serde(default)]
    pub(crate) rules: Option<PathText>,
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
    /// The rules of the copy.
    ///
    /// # Errors
    /// They are none of this version.
    pub(crate) fn rules(&self) -> Result<Rules, &'static str> {
        let Some(rules) = &self.rules else { return Ok(Rules::default()) };
        Rules::from_bytes(&rules.bytes()?).map_err(|_| "the rules of the copy are none")
    }
}

/// The part of the remote program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Task {
    /// Store what is wanted, and refuse everything else. Whether the target is a directory is the local program's word.
    Receive { target: PathText, is_directory: bool, wanted: Wanted },
    /// Send these paths.
    Send { paths: Vec<PathText>, recursive: bool },
    /// Send these paths to another remote program, which receives.
    Forward { paths: Vec<PathText>, recursive: bool },
    /// The same for these names in this directory. It is a task of its own because a program that skips an unknown field would send
    /// everything.
    ForwardNames { path: PathText, recursive: bool, names: NamesText },
    /// Answer questions about the path, and copy nothing.
    Answer,
    /// Run this command, or this subsystem of sshd. Its bytes are in the form of a path.
    Run { command: PathText, is_subsystem: bool },
    /// Serve the files of the user.
    Files,
}

/// What the local program's user asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    /// The names that arrive. The empty one stands for the content of a directory.
    names: Vec<PathText>,
    /// Whether they may be patterns.
    patterns: bool,
    recursive: bool,
    /// The only names that arrive of the content of a directory.
    #[serde(default)]
    listed: Option<NamesText>,
}

impl Wanted {
    /// What this request brings.
    pub(crate) fn by(request: &Pull) -> Self {
        let name = |path: &RelPath| PathText::new(path.split_last().map_or(&[][..], |(name, _)| name.as_bytes()));
        Self {
            names: request.paths.iter().map(name).collect(),
            patterns: request.patterns,
            recursive: request.recursive,
            listed: None,
        }
    }

    /// These names of the content of a directory.
    pub(crate) const fn listed(names: NamesText, recursive: bool) -> Self {
        Self { names: Vec::new(), patterns: false, recursive, listed: Some(names) }
    }

    /// The request that brings it. `single` is for a target that takes one entry.
    ///
    /// # Errors
    /// A name is none.
    pub(crate) fn request(&self, single: bool, rules: Rules) -> Result<Pull, &'static str> {
        let name = |name: &PathText| RelPath::parse(&name.bytes()?).map_err(|_| "it is no name");
        let (recursive, patterns) = (self.recursive, self.patterns);
        if let Some(listed) = &self.listed {
            let (paths, names) = (vec![RelPath::root()], Some(Arc::new(listed.list()?)));
            return Ok(Pull { paths, recursive, names, rules, ..Pull::default() });
        }
        let paths = self.names.iter().map(name).collect::<Result<_, _>>()?;
        Ok(Pull { paths, recursive, patterns, single, rules, ..Pull::default() })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&[u8]]) -> NameList {
        let mut list = NameListBuilder::default();
        names.iter().for_each(|name| list.push(&RelPath::parse(name).unwrap()).unwrap());
        list.build()
    }

    #[test]
    fn names_of_any_bytes_survive_their_way() {
        let odd: [&[u8]; 6] = [b"", b"a", b"a b", b"d/%20", b"odd\xff\nname", "日本".as_bytes()];
        for names in [&odd[..0], &odd[..1], &odd[..2], &odd[2..], &odd] {
            let sent = list(names);
            let text = NamesText::new(&sent).unwrap();
            assert_eq!(text.list().as_ref(), Ok(&sent), "{text:?}");
        }
        for text in [" ../a", " /a", " %zz", " a//b"] {
            assert!(NamesText(text.to_owned()).list().is_err(), "{text}");
        }
        let many: Vec<String> = (0..13_000).map(|index| format!("{}{index:05}", "n".repeat(250))).collect();
        let many: Vec<&[u8]> = many.iter().map(String::as_bytes).collect();
        assert_eq!(NamesText::new(&list(&many)), None);
    }
}
