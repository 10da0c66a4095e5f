//! A host with a file service, and a path there.

use std::fmt;
use std::str::FromStr;

use farhaul_session::ServicePath;

use crate::error::Error;
use crate::location::{HostPort, Location, percent};

/// A host whose files can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteHost {
    /// A running server.
    Server(HostPort),
    /// A host as ssh takes it: a name of its configuration, perhaps with a user.
    Ssh(String),
}

/// A path on such a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemotePlace {
    /// The host.
    pub host: RemoteHost,
    /// The path in bytes: below the root of a server, or as the user of a host of ssh writes it.
    pub path: Vec<u8>,
}

impl RemotePlace {
    /// The place of a location.
    ///
    /// # Errors
    /// It is not on another host, or on one with an original program.
    pub fn of(location: &Location) -> Result<Self, Error> {
        match location {
            Location::Remote(place) => {
                let path = place.path.to_bytes();
                Ok(Self { host: RemoteHost::Server(place.server.clone()), path })
            }
            Location::Ssh(place) => Ok(Self { host: RemoteHost::Ssh(place.host.clone()), path: place.path.clone() }),
            Location::Local(path) => {
                let path = path.display();
                Err(Error::usage(format!("{path} is on this machine")).remedy(
                    "name a place on another one: host:path over SSH, or udt://host:port/path below the root of a server",
                ))
            }
            Location::Standard => Err(Error::usage("- is no place on another machine")),
            Location::Original(place) => {
                Err(Error::usage(format!("{place} is served by an original program, which only gives files to `copy`")))
            }
        }
    }
}

impl RemoteHost {
    /// The name of a place there, for messages.
    pub(super) fn named(&self, place: &ServicePath) -> String {
        self.shown(place.as_bytes())
    }

    /// A path there in the form of the command line, printable.
    pub fn shown(&self, path: &[u8]) -> String {
        match self {
            Self::Server(server) => format!("udt://{server}/{}", percent::encoded(path)),
            Self::Ssh(host) => format!("{host}:{}", farhaul_session::escape(path)),
        }
    }
}

impl fmt::Display for RemotePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host.shown(&self.path))
    }
}

impl fmt::Display for RemoteHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(server) => server.fmt(f),
            Self::Ssh(host) => f.write_str(host),
        }
    }
}

/// Reads `udt://host:port` or a `host:` of ssh. A path behind it is ignored.
impl FromStr for RemoteHost {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        RemotePlace::of(&text.parse()?).map(|place| place.host)
    }
}
