//! `--protocol`: the wire protocol with its options, and with those of its original programs.

use std::ffi::OsStr;
use std::str::FromStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use farhaul::Protocol;
use farhaul::registry::protocols;

/// Option of Tsunami's original programs, which have a secret. It is none of the protocol, and no record has it.
pub(crate) const SECRET: (&str, &str) = ("tsunami", "secret");
/// The same secret in the environment, where other users do not see it.
const SECRET_VARIABLE: &str = "FARHAUL_TSUNAMI_SECRET";
/// Option of RBUDP that its original programs need as well.
const PAYLOAD: &str = "payload";

/// A protocol with all options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProtocolChoice {
    /// The protocol, and its own options.
    pub(crate) protocol: Protocol,
    /// The secret for original programs.
    secret: Option<String>,
    /// Payload of a datagram, if it is a number, for original programs.
    pub(crate) payload: Option<u16>,
}

impl ProtocolChoice {
    /// The secret for original programs of Tsunami: from the option, or from the environment.
    pub(crate) fn secret(&self) -> Option<String> {
        self.secret.clone().or_else(|| std::env::var(SECRET_VARIABLE).ok().filter(|secret| !secret.is_empty()))
    }
}

impl FromStr for ProtocolChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let value = |option: &str, key: &str| option.strip_prefix(key)?.strip_prefix('=').map(ToOwned::to_owned);
        let is_secret = |option: &&str| name == SECRET.0 && value(option, SECRET.1).is_some();
        let (secrets, own): (Vec<&str>, Vec<&str>) = options.split(',').partition(is_secret);
        let own = own.join(",");
        let protocol = if own.is_empty() { name.to_owned() } else { format!("{name}:{own}") };
        let payload = own.split(',').find_map(|option| value(option, PAYLOAD)).and_then(|number| number.parse().ok());
        Ok(Self {
            protocol: protocol.parse().map_err(|error| format!("{error}"))?,
            secret: secrets.last().and_then(|option| value(option, SECRET.1)),
            payload,
        })
    }
}

/// Reads a protocol with its options. Help and completions list the names of the registry.
#[derive(Clone)]
pub(super) struct ProtocolParser;

impl TypedValueParser for ProtocolParser {
    type Value = ProtocolChoice;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<ProtocolChoice, clap::Error> {
        StringValueParser::new().try_map(|text| text.parse::<ProtocolChoice>()).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(protocols().iter().map(|entry| PossibleValue::new(entry.name).help(entry.summary))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_no_option_of_the_protocol_and_stays_out_of_its_name() {
        let choice: ProtocolChoice = "tsunami:gaps=off,secret=kit=ten,exact=off".parse().unwrap();
        assert_eq!(choice.protocol.to_string(), "tsunami:gaps=off,exact=off");
        assert_eq!(choice.secret.as_deref(), Some("kit=ten"));
        let only: ProtocolChoice = "tsunami:secret=x".parse().unwrap();
        assert_eq!((only.protocol.to_string().as_str(), only.secret.as_deref()), ("tsunami", Some("x")));
        assert!("rbudp:secret=x".parse::<ProtocolChoice>().is_err());
    }

    #[test]
    fn the_payload_is_that_of_the_protocol_and_of_its_original_programs() {
        let choice: ProtocolChoice = "rbudp:payload=500".parse().unwrap();
        assert_eq!((choice.protocol.to_string().as_str(), choice.payload), ("rbudp:payload=500", Some(500)));
        assert_eq!("rbudp:payload=auto".parse::<ProtocolChoice>().unwrap().payload, None);
    }
}
