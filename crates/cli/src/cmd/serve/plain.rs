//! The plain clients of a daemon: the section `[plain]` of its settings.
//!
//! ```toml
//! [plain]
//! allow = ["10.0.0.0/8", "2001:db8::/32"]
//! write = false
//! delete = false
//! rate = "1gbit"
//! ```

use std::fmt::Write;
use std::path::{Path, PathBuf};

use farhaul::security::{Network, PlainClients};
use farhaul::{Endpoint, Protocol};
use farhaul_transfer::internal::serve::{PlainAccess, PlainRules};
use serde_json::Value as Json;
use toml::{Table, Value};

use crate::config;
use crate::exit::Fault;
use crate::output::human;
use crate::values::some_rate;

/// Name of the section.
const SECTION: &str = "plain";

/// The plain clients of a file. Clones share what it says now.
#[derive(Clone, Debug)]
pub(super) struct Plain {
    file: PathBuf,
    pub(super) access: PlainAccess,
}

impl Plain {
    /// Reads the section. `None` if the file has none.
    ///
    /// # Errors
    /// The section has an unknown or malformed setting, or the protocol has no plain clients.
    pub(super) fn read(file: &Path, protocol: &Protocol) -> Result<Option<Self>, Fault> {
        let Some(rules) = read(file)? else { return Ok(None) };
        if protocol.entry().name != Protocol::default().entry().name {
            let name = protocol.entry().name;
            return Err(Fault::usage(format!(
                "{} [{SECTION}]: plain clients speak udt, and this daemon {name}; leave the section out, or run another daemon",
                file.display()
            )));
        }
        Ok(Some(Self { file: file.to_owned(), access: PlainAccess::by(rules) }))
    }

    /// The file that is read again.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Reads the section again. The port keeps its cap of single connections, so the rate stays. Returns what changed in words.
    ///
    /// # Errors
    /// The file cannot be read, or has a mistake. The section of before applies.
    pub(super) fn reload(&self, endpoint: &Endpoint) -> Result<String, Fault> {
        let rate = self.access.rules().rate;
        let read = read(&self.file)?.unwrap_or(PlainRules::of(Vec::new()).rate(rate));
        let later = if read.rate == rate { "" } else { "; the new rate applies from the next start" };
        let allow = read.allow.clone();
        self.access.replace(read.rate(rate));
        endpoint.admit_plain(allow).map_err(|error| Fault::usage(error.to_string()))?;
        Ok(format!("{}{later}", self.words()))
    }

    /// The plain clients in a few words.
    pub(super) fn words(&self) -> String {
        let PlainRules { allow, write, delete, rate, .. } = self.access.rules();
        if allow.is_empty() {
            return "no plain clients".to_owned();
        }
        let mut words = String::from("plain clients of ");
        for (index, network) in allow.iter().enumerate() {
            let _ = write!(words, "{}{network}", if index == 0 { "" } else { ", " });
        }
        let may = match (write, delete) {
            (false, false) => "read",
            (true, false) => "read and write",
            (false, true) => "read and delete",
            (true, true) => "read, write and delete",
        };
        let _ = write!(words, " may {may}, unencrypted, with {}", human::rate(Some(rate.bits_per_second())));
        words
    }

    /// The section in records.
    pub(super) fn record(&self) -> Json {
        let PlainRules { allow, write, delete, rate, .. } = self.access.rules();
        let allow: Vec<String> = allow.iter().map(Network::to_string).collect();
        serde_json::json!({ "allow": allow, "write": write, "delete": delete, "rate_bps": rate.bits_per_second() })
    }
}

fn read(file: &Path) -> Result<Option<PlainRules>, Fault> {
    let section = config::section_of_own(file, SECTION)?;
    section.map(|table| parse(&table).map_err(|why| refused(file, &why))).transpose()
}

fn parse(table: &Table) -> Result<PlainRules, String> {
    let (mut allow, mut write, mut delete, mut rate) = (None, false, false, PlainClients::MAX_RATE);
    for (key, value) in table {
        match (key.as_str(), value) {
            ("allow", Value::Array(networks)) => {
                allow = Some(networks.iter().map(network).collect::<Result<Vec<_>, _>>()?);
            }
            ("allow", _) => return Err("'allow' must be a list: [\"10.0.0.0/8\"]".to_owned()),
            ("write", Value::Boolean(may)) => write = *may,
            ("delete", Value::Boolean(may)) => delete = *may,
            ("write" | "delete", _) => return Err(format!("'{key}' must be true or false")),
            ("rate", Value::String(text)) => {
                rate = some_rate(text).map_err(|why| format!("'rate' is '{text}': {why}"))?;
            }
            ("rate", _) => return Err("'rate' must be a text in quotes: \"1gbit\"".to_owned()),
            (other, _) => return Err(format!("'{other}' is no setting here; there are allow, write, delete and rate")),
        }
    }
    let allow = allow.ok_or("it needs the networks of its clients: allow = [\"10.0.0.0/8\"]")?;
    Ok(PlainRules::of(allow).write(write).delete(delete).rate(rate))
}

fn network(value: &Value) -> Result<Network, String> {
    let text = value.as_str().ok_or("'allow' must have texts in quotes: [\"10.0.0.0/8\"]")?;
    text.parse().map_err(|why| format!("'allow' has '{text}': {why}"))
}

fn refused(file: &Path, why: &str) -> Fault {
    Fault::usage(format!("{} [{SECTION}]: {why}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PlainRules, String> {
        super::parse(&text.parse().unwrap())
    }

    #[test]
    fn plain_clients_read_at_1_gbit_unless_the_file_says_more() {
        let rules = parse("allow = ['10.0.0.0/8', '2001:db8::/32']").unwrap();
        assert_eq!((rules.allow.len(), rules.write, rules.rate.bits_per_second()), (2, false, 1_000_000_000));
        assert!(!rules.delete && parse("allow = []\ndelete = true").unwrap().delete);
        let rules = parse("allow = []\nwrite = true\nrate = '5gbit'").unwrap();
        assert_eq!((rules.allow.len(), rules.write, rules.rate.bits_per_second()), (0, true, 5_000_000_000));
    }

    #[test]
    fn a_setting_that_is_unknown_or_malformed_is_named() {
        for (text, word) in [
            ("", "allow"),
            ("allow = '10.0.0.0/8'", "list"),
            ("allow = [10]", "quotes"),
            ("allow = ['10.0.0.1/8']", "10.0.0.1/8"),
            ("allow = ['host.example']", "host.example"),
            ("allow = []\nwrite = 'yes'", "write"),
            ("allow = []\ndelete = 1", "delete"),
            ("allow = []\nrate = 5", "rate"),
            ("allow = []\nrate = '0bit'", "zero"),
            ("allow = []\nwrites = true", "writes"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(word), "{text}: {why}");
        }
    }
}
