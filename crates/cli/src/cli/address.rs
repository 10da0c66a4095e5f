//! Addresses and places as they are typed: `host:port`, `[::1]:port`, `udt://host:port/path`, local paths.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use farhaul_session::RelPath;

use crate::exit::Fault;
use crate::fault;

/// A host and a port, not looked up yet. An empty host means every address of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort {
    host: String,
    port: u16,
}

impl HostPort {
    /// Its addresses; at least one.
    pub(crate) fn resolve(&self) -> Result<Vec<SocketAddr>, Fault> {
        let host = if self.host.is_empty() { "0.0.0.0" } else { &self.host };
        let found: Vec<_> = match (host, self.port).to_socket_addrs() {
            Ok(addresses) => addresses.collect(),
            Err(error) => return Err(fault::unresolved(host, &error)),
        };
        if found.is_empty() {
            return Err(fault::unresolved(host, &std::io::ErrorKind::NotFound.into()));
        }
        Ok(found)
    }

    /// Its first address.
    pub(crate) fn first(&self) -> Result<SocketAddr, Fault> {
        self.resolve().map(|addresses| addresses[0])
    }
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted =
            || format!("'{text}' is no address: write host:port, for instance 192.0.2.7:9000 or [2001:db8::7]:9000");
        let (host, port) = text.rsplit_once(':').ok_or_else(wanted)?;
        let port = port.parse().map_err(|_| wanted())?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if bracketed.is_none() && host.contains([':', '[', ']', '/']) {
            return Err(wanted());
        }
        Ok(Self { host: bracketed.unwrap_or(host).to_owned(), port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// One end of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Local(PathBuf),
    Remote(Place),
    /// `-`: stdin as a source, stdout as a target.
    Standard,
}

/// A path below the root of a running `serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) server: HostPort,
    pub(crate) path: RelPath,
    /// It was written with a slash at its end, or is the root itself.
    pub(crate) is_directory: bool,
}

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix("udt://") {
            return place(rest).map(Self::Remote);
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return Err(format!(
                "{scheme}:// is not there yet: the far end is udt://host:port/path, served by `farhaul serve`"
            ));
        }
        if text == "-" {
            return Ok(Self::Standard);
        }
        // As scp has it: a colon before the first slash makes it a host.
        let before_slash = text.split('/').next().unwrap_or_default();
        if before_slash.contains(':') {
            return Err(format!(
                "copying over SSH is not there yet: start `farhaul serve` there and write udt://host:port/path (a local file \
                 of that name is ./{text})"
            ));
        }
        if text.is_empty() {
            return Err("a path cannot be empty; the current directory is .".into());
        }
        Ok(Self::Local(text.into()))
    }
}

fn place(rest: &str) -> Result<Place, String> {
    let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
    let parsed =
        RelPath::parse(path.as_bytes()).map_err(|error| format!("the path '{path}' cannot be asked for: {error}"))?;
    Ok(Place { server: server.parse()?, path: parsed, is_directory: path.is_empty() || path.ends_with('/') })
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => path.display().fmt(f),
            Self::Remote(place) => place.fmt(f),
            Self::Standard => f.write_str("-"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "udt://{}/", self.server)?;
        if self.path.is_root() { Ok(()) } else { self.path.fmt(f) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port_and_ipv6_has_brackets() {
        for text in ["192.0.2.7:9000", "[::1]:1", "example.org:65535"] {
            assert_eq!(text.parse::<HostPort>().unwrap().to_string(), text);
        }
        for text in ["", "9000", "host", "::1:9000", "host:70000", "host:"] {
            assert!(text.parse::<HostPort>().unwrap_err().contains("host:port"), "{text}");
        }
        assert_eq!(":9000".parse::<HostPort>().unwrap().first().unwrap(), "0.0.0.0:9000".parse().unwrap());
    }

    #[test]
    fn remote_places_have_a_path_below_the_root() {
        let Location::Remote(place) = "udt://host:9000/data/x/".parse().unwrap() else { panic!() };
        assert_eq!((place.path.to_string(), place.is_directory), ("data/x".into(), true));
        let Location::Remote(place) = "udt://[::1]:9000".parse().unwrap() else { panic!() };
        assert!(place.path.is_root() && place.is_directory);
        assert!("udt://host:1/../etc".parse::<Location>().unwrap_err().contains("not names"));
    }

    #[test]
    fn what_is_not_there_yet_says_so() {
        for (text, word) in [("user@host:file", "SSH"), ("tsunami://host/f", "tsunami")] {
            assert!(text.parse::<Location>().unwrap_err().contains(word), "{text}");
        }
        assert_eq!("./a:b".parse(), Ok(Location::Local("./a:b".into())));
        assert_eq!(("-".parse(), "./-".parse()), (Ok(Location::Standard), Ok(Location::Local("./-".into()))));
    }
}
