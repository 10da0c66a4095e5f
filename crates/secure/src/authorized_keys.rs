//! The clients of a daemon: one key each, with its permissions.
//!
//! ```text
//! ssh-ed25519 AAAA… alice path=/data/in,write path=/data/out rate=2gbit expires=2027-06-30 from=10.0.0.0/8
//! ```
//!
//! | option | meaning | without it |
//! | --- | --- | --- |
//! | `path=DIR[,write][,delete]` | may read below the directory, and write or delete there; may stand several times | the daemon's roots, read only |
//! | `rate=R` | cap of all sessions together | none |
//! | `sessions=N` | sessions at a time | those of the daemon |
//! | `bytes=SIZE` | bytes of all sessions, as long as the daemon counts them | none |
//! | `files=N` | files and directories of all sessions, counted as bytes are | none |
//! | `expires=YYYY-MM-DD` | the last day, in UTC | never |
//! | `from=NET[,NET…]` | addresses from which the client may call | all |
//! | `allow=VERB[,VERB]` | beside its directories, it may call `farhaul bench` and `farhaul pipe` | with `path`, files alone |
//! | `links=munged` | its symbolic links are stored so that they lead nowhere | as they are |
//!
//! The words before the first option are the name of the client. They have letters, digits and `.-_@` alone. An unknown option,
//! a word that looks like an option without its `=`, or another word refuses the whole file, so that a misspelt limit never means
//! no limit.

use std::net::IpAddr;
use std::path::{Component, PathBuf};

use farhaul_units::{ByteSize, Network, Rate};

use crate::known_hosts::{LineError, LineFault};
use crate::public_key::PublicKey;

/// The content of a file of authorized keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizedKeys {
    grants: Vec<Grant>,
}

/// The permissions of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// The key.
    pub key: PublicKey,
    /// The name of its owner, for logs. May be empty.
    pub name: String,
    /// Directories. Empty for those of the daemon.
    pub paths: Vec<PathGrant>,
    /// Cap of the rate of all its sessions.
    pub rate: Option<Rate>,
    /// Sessions at a time.
    pub sessions: Option<u32>,
    /// Bytes of all its sessions.
    pub bytes: Option<u64>,
    /// Files and directories of all its sessions, empty ones included.
    pub files: Option<u64>,
    /// The last day on which the key is valid, as days since 1970-01-01 in UTC.
    pub expires: Option<u32>,
    /// Networks of its owner. Empty for all.
    pub from: Vec<Network>,
    /// The verbs without files that its owner may call beside its directories: `bench`, `pipe`.
    pub allow: Vec<&'static str>,
    /// Whether its symbolic links are stored so that they lead nowhere.
    pub munges_links: bool,
}

/// The verbs without files.
pub(crate) const VERBS: [&str; 2] = ["bench", "pipe"];

/// A directory that a client may use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathGrant {
    /// The directory.
    pub path: PathBuf,
    /// Whether the client may write there: make entries, and replace files.
    pub write: bool,
    /// Whether the client may delete there, and give entries names elsewhere.
    pub delete: bool,
}

/// Why a key is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// The key is not in the file.
    #[error("the key is unknown")]
    Unknown,
    /// Its last day is over.
    #[error("the key has expired")]
    Expired,
    /// It may not be used from this address.
    #[error("the key may not be used from this address")]
    Address,
}

impl AuthorizedKeys {
    /// Reads a file. Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// The first line that cannot be read, or has an unknown option.
    pub fn parse(text: &str) -> Result<Self, LineError> {
        let mut grants: Vec<(usize, Grant)> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at = |fault| LineError { line: number, fault };
            let grant = Grant::parse(line).map_err(at)?;
            if let Some((other, _)) = grants.iter().find(|(_, other)| other.key == grant.key) {
                return Err(at(LineFault::SameKey(*other)));
            }
            grants.push((number, grant));
        }
        Ok(Self { grants: grants.into_iter().map(|(_, grant)| grant).collect() })
    }

    /// The permissions of a key that calls from `from` on the day `today`, in days since 1970-01-01.
    ///
    /// # Errors
    /// The reason for which it is not admitted.
    pub fn admit(&self, key: PublicKey, from: IpAddr, today: u32) -> Result<&Grant, NotAdmitted> {
        let grant = self.grants.iter().find(|grant| grant.key == key).ok_or(NotAdmitted::Unknown)?;
        if grant.expires.is_some_and(|last| today > last) {
            return Err(NotAdmitted::Expired);
        }
        let near = grant.from.is_empty() || grant.from.iter().any(|network| network.contains(from));
        if near { Ok(grant) } else { Err(NotAdmitted::Address) }
    }

    /// All keys.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }
}

impl Grant {
    /// The permissions of a line that has the key and nothing else.
    pub const fn of(key: PublicKey) -> Self {
        Self {
            key,
            name: String::new(),
            paths: Vec::new(),
            rate: None,
            sessions: None,
            bytes: None,
            files: None,
            expires: None,
            from: Vec::new(),
            allow: Vec::new(),
            munges_links: false,
        }
    }

    /// Whether its owner may call a verb without files. A line with directories alone is for files alone.
    pub fn allows(&self, verb: &str) -> bool {
        self.paths.is_empty() || self.allow.contains(&verb)
    }

    fn parse(line: &str) -> Result<Self, LineFault> {
        let mut grant = Self::of(line.parse()?);
        let mut has_options = false;
        for word in line.split_ascii_whitespace().skip(2) {
            let Some((option, value)) = word.split_once('=') else {
                if looks_like_option(word) {
                    return Err(LineFault::OptionAsName(word.chars().take(40).collect()));
                }
                if has_options || !is_name(word) {
                    return Err(LineFault::UnknownOption(word.chars().take(40).collect()));
                }
                let space = if grant.name.is_empty() { "" } else { " " };
                grant.name.push_str(space);
                grant.name.push_str(word);
                continue;
            };
            has_options = true;
            grant.set(option, value)?;
        }
        Ok(grant)
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), LineFault> {
        let refused = |option, reason| LineFault::Value { option, value: value.to_owned(), reason };
        match option {
            "path" => {
                let (path, rights) = value.split_once(',').map_or((value, None), |(path, rights)| (path, Some(rights)));
                let (mut write, mut delete) = (false, false);
                for right in rights.into_iter().flat_map(|rights| rights.split(',')) {
                    let given = match right {
                        "write" => std::mem::replace(&mut write, true),
                        "delete" => std::mem::replace(&mut delete, true),
                        // It may be a misspelt right, and is never taken for a part of the name.
                        _ => true,
                    };
                    if given {
                        let form = "a directory without commas, and ,write or ,delete behind it to permit that";
                        return Err(refused("path", form));
                    }
                }
                let path = PathBuf::from(path);
                // What lies above depends on links, and rights are compared name by name.
                if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
                    return Err(refused("path", "it must begin with / and have no .."));
                }
                self.paths.push(PathGrant { path, write, delete });
                Ok(())
            }
            "rate" => once(&mut self.rate, "rate", value.parse().map_err(|_| refused("rate", "a rate such as 2gbit"))?),
            "sessions" => {
                let most = value.parse().ok().filter(|&most| most > 0);
                once(&mut self.sessions, "sessions", most.ok_or_else(|| refused("sessions", "a number above zero"))?)
            }
            "bytes" => {
                let ByteSize(bytes) = value.parse().map_err(|_| refused("bytes", "a size such as 10GB"))?;
                once(&mut self.bytes, "bytes", bytes)
            }
            "files" => {
                let most = value.parse().map_err(|_| refused("files", "a number such as 10000"))?;
                once(&mut self.files, "files", most)
            }
            "expires" => {
                let day = day(value).ok_or_else(|| refused("expires", "a day such as 2027-06-30"))?;
                once(&mut self.expires, "expires", day)
            }
            "from" => {
                if !self.from.is_empty() {
                    return Err(LineFault::Twice("from"));
                }
                let networks = value.split(',').map(str::parse).collect::<Result<_, _>>();
                self.from = networks.map_err(|_| refused("from", "addresses such as 10.0.0.0/8, with commas"))?;
                Ok(())
            }
            "allow" => {
                if !self.allow.is_empty() {
                    return Err(LineFault::Twice("allow"));
                }
                let known = |verb| VERBS.into_iter().find(|known| *known == verb);
                let verbs = value.split(',').map(known).collect::<Option<_>>();
                self.allow = verbs.ok_or_else(|| refused("allow", "bench, pipe, or both with a comma"))?;
                Ok(())
            }
            "links" if value != "munged" => Err(refused("links", "munged is the only value")),
            "links" if std::mem::replace(&mut self.munges_links, true) => Err(LineFault::Twice("links")),
            "links" => Ok(()),
            other => Err(LineFault::UnknownOption(other.chars().take(40).collect())),
        }
    }
}

/// The options of a line.
const OPTIONS: [&str; 9] = ["path", "rate", "sessions", "bytes", "files", "expires", "from", "allow", "links"];

/// Words that may be meant to limit a key, and that are no options.
const RIGHTS: [&str; 6] = ["read-only", "readonly", "no-write", "no-delete", "write", "delete"];

/// Whether a word can belong to a name.
fn is_name(word: &str) -> bool {
    word.chars().all(|letter| letter.is_alphanumeric() || ".-_@".contains(letter))
}

/// Whether a word without `=` is likely to be meant as an option: `expires`, `expires-2027-06-30`, `rate2gbit`, `read-only`.
/// `files-server` is a name.
fn looks_like_option(word: &str) -> bool {
    let word = word.to_ascii_lowercase().replace('_', "-");
    let has_value = |rest: &str| {
        let value = rest.trim_start_matches(['-', '.', ':', '@']);
        rest.is_empty() || value.starts_with(|first: char| first.is_ascii_digit() || first == '/')
    };
    RIGHTS.contains(&&*word) || OPTIONS.iter().any(|option| word.strip_prefix(option).is_some_and(has_value))
}

fn once<T>(place: &mut Option<T>, option: &'static str, value: T) -> Result<(), LineFault> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(LineFault::Twice(option)),
    }
}

/// Days from 1970-01-01 to a day in the form `2027-06-30`.
fn day(text: &str) -> Option<u32> {
    let mut parts = text.splitn(3, '-').map(|part| part.parse::<u32>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let leap = |year: u32| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let lengths = [31, 28 + u32::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *lengths.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    if !(1970..=9999).contains(&year) || !(1..=length).contains(&day) {
        return None;
    }
    let years: u32 = (1970..year).map(|year| 365 + u32::from(leap(year))).sum();
    let months: u32 = lengths.iter().take(month as usize - 1).sum();
    Some(years + months + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> PublicKey {
        PublicKey::from_bytes([byte; 32])
    }

    fn fault(options: &str) -> LineFault {
        AuthorizedKeys::parse(&format!("\n{} {options}", key(1))).unwrap_err().fault
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_line_has_a_key_a_name_and_options() {
        let text = format!(
            "# clients\n{} alice of physics path=/data/in,write path=/data/out rate=2gbit sessions=3 bytes=1GB \
             files=1000 expires=2027-06-30 from=10.0.0.0/8,2001:db8::/32 allow=bench links=munged\n{}\n",
            key(1),
            key(2),
        );
        let keys = AuthorizedKeys::parse(&text).unwrap();
        let [alice, plain] = keys.grants() else { panic!("{keys:?}") };
        assert_eq!((alice.key, &*alice.name), (key(1), "alice of physics"));
        let paths: Vec<_> = alice.paths.iter().map(|grant| (grant.path.to_str().unwrap(), grant.write)).collect();
        assert_eq!(paths, [("/data/in", true), ("/data/out", false)]);
        assert_eq!(alice.rate, Some(Rate::from_bits_per_second(2_000_000_000)));
        assert_eq!((alice.sessions, alice.bytes, alice.files), (Some(3), Some(1_000_000_000), Some(1_000)));
        assert!(alice.munges_links && !plain.munges_links);
        assert!(alice.allows("bench") && !alice.allows("pipe") && plain.allows("pipe"));
        for (text, write, delete) in
            [("/d,delete", false, true), ("/d,write,delete", true, true), ("/d,delete,write", true, true)]
        {
            let keys = AuthorizedKeys::parse(&format!("{} path={text}", key(1))).unwrap();
            assert_eq!(keys.grants()[0].paths, [PathGrant { path: "/d".into(), write, delete }]);
        }
        assert_eq!((plain.key, plain.rate, plain.from.len()), (key(2), None, 0));
    }

    #[test]
    fn a_key_is_admitted_until_its_last_day_and_from_its_networks() {
        let text = format!("{} expires=2027-06-30 from=10.0.0.0/8,2001:db8::/32,192.0.2.7", key(1));
        let keys = AuthorizedKeys::parse(&text).unwrap();
        let last = day("2027-06-30").unwrap();
        let admit = |from: &str, today| keys.admit(key(1), ip(from), today).map(|_| ());
        for near in ["10.255.0.1", "::ffff:10.1.2.3", "2001:db8:9::1", "192.0.2.7"] {
            assert_eq!(admit(near, last), Ok(()), "{near}");
        }
        for far in ["11.0.0.1", "2001:db9::1", "192.0.2.8"] {
            assert_eq!(admit(far, last), Err(NotAdmitted::Address), "{far}");
        }
        assert_eq!(admit("10.0.0.1", last + 1), Err(NotAdmitted::Expired));
        assert_eq!(keys.admit(key(2), ip("10.0.0.1"), last), Err(NotAdmitted::Unknown));
    }

    #[test]
    fn a_misspelt_or_impossible_option_refuses_the_file() {
        assert_eq!(fault("rat=2gbit"), LineFault::UnknownOption("rat".into()));
        for word in ["path=/data/in put,write", "rate=1gbit late", "alice!", "path:data"] {
            assert!(matches!(fault(word), LineFault::UnknownOption(_)), "{word}");
        }
        assert_eq!(fault("sessions=1 sessions=2"), LineFault::Twice("sessions"));
        for option in [
            "rate=fast",
            "sessions=0",
            "bytes=many",
            "files=few",
            "files=-1",
            "expires=2027-02-29",
            "expires=soon",
            "path=data",
            "path=/data/../secret",
            "path=/data,rw",
            "path=/data,write,write",
            "path=/data,delete,write,delete",
            "path=/data,",
            "path=/data,writ",
            "path=/data,write,x",
            "links=inside",
        ] {
            assert!(matches!(fault(option), LineFault::Value { .. }), "{option}");
        }
        for networks in ["from=10.0.0.0/33", "from=10.0.0.1/8", "from=host.example", "from="] {
            assert!(matches!(fault(networks), LineFault::Value { option: "from", .. }), "{networks}");
        }
        let twice = format!("{}\n{} again", key(1), key(1));
        assert_eq!(AuthorizedKeys::parse(&twice).unwrap_err().fault, LineFault::SameKey(1));
    }

    #[test]
    fn a_word_of_a_name_that_looks_like_an_option_refuses_the_file_and_says_what_to_write() {
        for word in [
            "read-only",
            "Read_Only",
            "readonly",
            "no-delete",
            "alice write",
            "expires",
            "expires 2027-06-30",
            "expires-2027-06-30",
            "Expires_2027-06-30",
            "expires:2027-06-30",
            "expires2027-06-30",
            "alice rate-2gbit",
            "rate=1gbit sessions-3",
            "bytes.10GB",
            "from:10.0.0.0/8",
            "from-10.0.0.0",
            "path:/data,write",
        ] {
            let fault = fault(word);
            assert!(matches!(fault, LineFault::OptionAsName(_)), "{word}: {fault}");
            assert!(fault.to_string().contains("expires=2027-06-30") && fault.to_string().contains("path=DIR,write"));
        }
        for name in
            ["files-server", "from-berlin", "pathfinder", "rates@bank", "bytes-and-bits", "deleter", "alice 2027"]
        {
            let keys = AuthorizedKeys::parse(&format!("{} {name} rate=1gbit", key(1))).unwrap();
            assert_eq!(keys.grants()[0].name, name);
        }
    }

    #[test]
    fn days_count_from_1970() {
        let days = [("1970-01-01", Some(0)), ("1972-03-01", Some(790)), ("2026-11-24", Some(20_781))];
        for (text, expected) in days {
            assert_eq!(day(text), expected, "{text}");
        }
        assert_eq!((day("2027-13-01"), day("1969-12-31"), day("2027-04-31")), (None, None, None));
        assert_eq!(day("2028-02-29").map(|leap| leap + 1), day("2028-03-01"));
    }
}
