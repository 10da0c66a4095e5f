//! The commands of `ctl`, as lines of JSON.

use farhaul_units::Rate;
use serde_json::{Value, json};

use crate::values::some_rate;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Status,
    /// Cap the rate; `None` for no cap.
    Rate(Option<Rate>),
    Pause,
    Resume,
    Stop,
}

impl Request {
    /// Its line, without the end.
    pub(crate) fn line(self) -> String {
        let request = match self {
            Self::Status => json!({ "command": "status" }),
            Self::Rate(cap) => {
                let rate = cap.map_or_else(|| "off".to_owned(), |cap| format!("{}bit", cap.bits_per_second()));
                json!({ "command": "rate", "rate": rate })
            }
            Self::Pause => json!({ "command": "pause" }),
            Self::Resume => json!({ "command": "resume" }),
            Self::Stop => json!({ "command": "stop" }),
        };
        request.to_string()
    }

    /// Reads one.
    ///
    /// # Errors
    /// It is none, or one of a later version.
    pub(crate) fn read(line: &str) -> Result<Self, String> {
        let request: Value = serde_json::from_str(line).map_err(|error| format!("a request is an object: {error}"))?;
        match request["command"].as_str() {
            Some("status") => Ok(Self::Status),
            Some("rate") => match request["rate"].as_str() {
                Some("off") => Ok(Self::Rate(None)),
                Some(rate) => some_rate(rate).map(|rate| Self::Rate(Some(rate))),
                None => Err("rate needs a rate: \"50mbit\", or \"off\"".to_owned()),
            },
            Some("pause") => Ok(Self::Pause),
            Some("resume") => Ok(Self::Resume),
            Some("stop") => Ok(Self::Stop),
            _ => Err("unknown command; there are status, rate, pause, resume and stop".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_survives_its_way() {
        let some = Rate::from_megabits_per_second(50);
        for request in [
            Request::Status,
            Request::Rate(Some(some)),
            Request::Rate(None),
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
