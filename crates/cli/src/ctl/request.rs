//! The commands of `ctl`, on its command line and as lines of JSON.

use std::str::FromStr;

use clap::Subcommand;
use farhaul_units::Rate;
use serde::{Deserialize, Serialize};

use crate::values::some_rate;

/// A command.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, Subcommand)]
#[serde(tag = "command", rename_all = "lowercase")]
pub(crate) enum Request {
    /// Print how far it is
    Status,
    /// Cap the rate of each connection from now on, headers and retransmissions included; `off` takes the cap away
    ///
    /// The other side keeps the cap as well where it sends. A server keeps its own if that is lower.
    Rate {
        /// 50mbit, or off
        #[arg(value_name = "RATE")]
        rate: Cap,
    },
    /// Move no more data until it resumes; connections stay open
    ///
    /// The other side gives it up after its own time: a server after --idle-timeout (15 min).
    Pause,
    /// Go on after a pause
    Resume,
    /// Stop it, as SIGTERM does
    Stop,
}

/// A cap on the rate; `None` for no cap.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Cap(pub(crate) Option<Rate>);

impl FromStr for Cap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" { Ok(Self(None)) } else { some_rate(text).map(|rate| Self(Some(rate))) }
    }
}

impl TryFrom<String> for Cap {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Cap> for String {
    fn from(Cap(cap): Cap) -> Self {
        cap.map_or_else(|| "off".to_owned(), |cap| format!("{}bit", cap.bits_per_second()))
    }
}

impl Request {
    /// Its line, without the end.
    pub(crate) fn line(self) -> String {
        serde_json::to_string(&self).expect("a command is an object of texts")
    }

    /// Reads one.
    ///
    /// # Errors
    /// It is none, or one of a later version.
    pub(crate) fn read(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| {
            format!("{error}; a request is an object with a command, and of rate with a rate: \"50mbit\", or \"off\"")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_reads_as_it_was_written() {
        let some = Rate::from_megabits_per_second(50);
        for request in [
            Request::Status,
            Request::Rate { rate: Cap(Some(some)) },
            Request::Rate { rate: Cap(None) },
            Request::Pause,
            Request::Resume,
            Request::Stop,
        ] {
            assert_eq!(Request::read(&request.line()), Ok(request));
        }
    }

    #[test]
    fn what_is_no_request_is_refused_in_words() {
        for (line, word) in [
            ("", "object"),
            ("{\"command\":\"dance\"}", "unknown"),
            ("{\"command\":\"rate\"}", "off"),
            ("{\"command\":\"rate\",\"rate\":\"0bit\"}", "zero"),
            ("{\"command\":\"rate\",\"rate\":\"5\"}", "5mbit"),
        ] {
            let error = Request::read(line).unwrap_err();
            assert!(error.contains(word), "{line}: {error}");
        }
    }
}
