//! Addresses and places: `host:port`, `[::1]:port`, `udt://host:port/path`, `host:path`, local paths.

mod original;
pub(crate) mod percent;
mod ssh;

use std::ffi::OsStr;
use std::fmt;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;

use farhaul_session::{Component, Pattern, RelPath, escape};

pub use original::{OriginalPlace, Scheme, What};
pub use ssh::SshPlace;

use crate::error::Error;

/// A host and a port, not resolved yet. An empty host means every address of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    host: String,
    port: u16,
}

impl HostPort {
    /// Reads `host:port`, or a host alone with this port.
    ///
    /// # Errors
    /// The problem in words.
    pub fn with_default(text: &str, port: u16) -> Result<Self, String> {
        Self::exactly(text).or_else(|wrong| Self::exactly(&format!("{text}:{port}")).map_err(|_| wrong))
    }

    /// The host without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// All addresses of the host; at least one.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, Error> {
        let host = if self.host.is_empty() { "0.0.0.0" } else { &self.host };
        let found: Vec<_> = match (host, self.port).to_socket_addrs() {
            Ok(addresses) => addresses.collect(),
            Err(error) => return Err(Error::unresolved(host, &error)),
        };
        if found.is_empty() {
            return Err(Error::unresolved(host, &std::io::ErrorKind::NotFound.into()));
        }
        let usable: Vec<_> = found.iter().copied().filter(|address| !lacks_zone(*address)).collect();
        match (usable.is_empty(), found[0].ip()) {
            (true, ip) => Err(Error::without_zone(ip, self.port)),
            _ => Ok(usable),
        }
    }

    /// The address to listen on. Without a host it covers all addresses of this machine, IPv6 included where available.
    pub fn listening(&self) -> Result<SocketAddr, Error> {
        let any = (Ipv6Addr::UNSPECIFIED, self.port).into();
        let has_ipv6 = || UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok();
        if self.host.is_empty() && has_ipv6() { Ok(any) } else { self.first() }
    }

    /// The first address of the host.
    pub fn first(&self) -> Result<SocketAddr, Error> {
        self.resolve().map(|addresses| addresses[0])
    }
}

/// Whether it is a link-local address without the interface in whose network it is meant: every interface has such a network.
fn lacks_zone(address: SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(address) if address.ip().is_unicast_link_local() && address.scope_id() == 0)
}

/// The port of servers, if an address names none.
const USUAL_PORT: u16 = 9000;

impl FromStr for HostPort {
    type Err = String;

    /// Reads `host:port`, or a host alone with the port 9000. A number alone may be meant as a port, and is refused.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.is_empty() || text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => Self::exactly(text),
            false => Self::with_default(text, USUAL_PORT),
        }
    }
}

impl HostPort {
    fn exactly(text: &str) -> Result<Self, String> {
        let wanted =
            || format!("'{text}' is no address: write host:port, for instance 192.0.2.7:9000 or [2001:db8::7]:9000");
        let (host, port) = text.rsplit_once(':').ok_or_else(wanted)?;
        let port = port.parse().map_err(|_| wanted())?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_address = bracketed.is_none_or(|address| address.contains(':'));
        if !is_address || bracketed.is_none() && host.contains([':', '[', ']', '/']) {
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
#[non_exhaustive]
pub enum Location {
    /// A path of this host.
    Local(PathBuf),
    /// A path below the root of a server.
    Remote(ServerPlace),
    /// A path on a host that ssh reaches.
    Ssh(SshPlace),
    /// A file of a server of another program.
    Original(OriginalPlace),
    /// `-`: stdin as a source, stdout as a target.
    Standard,
}

/// A path below the root of a running `serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPlace {
    /// The server.
    pub server: HostPort,
    /// The path below its root.
    pub path: RelPath,
    /// The same as a pattern, if a character of it is special. Escaped ones stand for themselves.
    pub pattern: Option<RelPath>,
    /// The path ends with a slash, or is the root.
    pub is_directory: bool,
}

impl FromStr for Location {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::read(text.as_ref()).map_err(Error::usage)
    }
}

impl Location {
    /// Parses a place. A local path may hold any bytes.
    ///
    /// # Errors
    /// The problem in words.
    pub fn read(text: &OsStr) -> Result<Self, String> {
        if let Some(rest) = text.as_bytes().strip_prefix(b"udt://") {
            return place(rest).map(Self::Remote);
        }
        if let Some(place) = OriginalPlace::read(text.as_bytes()) {
            return place.map(Self::Original);
        }
        let path = text;
        let text = &*text.to_string_lossy();
        if let Some((scheme, _)) = text.split_once("://") {
            return Err(format!(
                "{scheme}:// is not supported: the remote end is host:path over SSH, udt://host:port/path, served by `farhaul \
                 serve`, or a tsunami:// or rbudp:// of the original programs"
            ));
        }
        if text == "-" {
            return Ok(Self::Standard);
        }
        if let Some(place) = SshPlace::read(path.as_bytes()) {
            return place.map(Self::Ssh);
        }
        if text.is_empty() {
            return Err("a path cannot be empty; the current directory is .".into());
        }
        Ok(Self::Local(path.into()))
    }
}

/// Parses the rest after `udt://`.
fn place(rest: &[u8]) -> Result<ServerPlace, String> {
    let slash = rest.iter().position(|&byte| byte == b'/');
    let (server, path) = slash.map_or((rest, &[][..]), |slash| (&rest[..slash], &rest[slash + 1..]));
    let refused = |why: &dyn fmt::Display| format!("the path '{}' is refused: {why}", escape(path));
    let (mut parsed, mut pattern, mut is_pattern) = (RelPath::root(), Ok(RelPath::root()), false);
    // Split before decoding: an escaped slash is part of a name, which is refused.
    for name in path.strip_suffix(b"/").unwrap_or(path).split(|&byte| byte == b'/').filter(|_| !path.is_empty()) {
        is_pattern |= Component::new(name).is_ok_and(|name| Pattern::is_in(&name));
        let quoted = percent::decoded_pattern(name).map_err(|why| refused(&why))?;
        pattern = pattern.and_then(|pattern| pattern.join(Component::new(&quoted)?));
        let name = percent::decoded(name).map_err(|why| refused(&why))?;
        Component::new(&name).and_then(|name| parsed.push(name)).map_err(|error| refused(&error))?;
    }
    let pattern = is_pattern.then_some(pattern).transpose().map_err(|error| refused(&error))?;
    let server = String::from_utf8_lossy(server).parse()?;
    let is_directory = path.is_empty() || path.ends_with(b"/");
    Ok(ServerPlace { server, path: parsed, pattern, is_directory })
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => path.display().fmt(f),
            Self::Remote(place) => place.fmt(f),
            Self::Ssh(place) => place.fmt(f),
            Self::Original(place) => place.fmt(f),
            Self::Standard => f.write_str("-"),
        }
    }
}

/// In the form of the command line.
impl fmt::Display for ServerPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = match &self.pattern {
            Some(pattern) => percent::encoded_pattern(&pattern.to_bytes()),
            None => percent::encoded_pattern(&Pattern::quoted(&self.path.to_bytes())),
        };
        write!(f, "udt://{}/{path}", self.server)
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
        for (text, whole) in
            [("example.org", "example.org:9000"), ("[::1]", "[::1]:9000"), ("192.0.2.7", "192.0.2.7:9000")]
        {
            assert_eq!(text.parse::<HostPort>().unwrap().to_string(), whole);
        }
        for text in ["", "9000", "::1:9000", "host:70000", "host:", "::1"] {
            assert!(text.parse::<HostPort>().unwrap_err().contains("host:port"), "{text}");
        }
        assert_eq!(":9000".parse::<HostPort>().unwrap().first().unwrap(), "0.0.0.0:9000".parse().unwrap());
    }

    #[test]
    fn a_link_local_address_needs_its_interface() {
        let fault = "[fe80::7]:9000".parse::<HostPort>().unwrap().resolve().unwrap_err();
        assert!(fault.message.contains("fe80::7 is a link-local address"), "{fault}");
        assert!(fault.remedy.unwrap().contains("[fe80::7%eth0]:9000"), "the next step");
        let found = "[fe80::7%lo]:9000".parse::<HostPort>().unwrap().resolve().unwrap();
        assert!(matches!(found[..], [SocketAddr::V6(address)] if address.scope_id() > 0), "{found:?}");
    }

    fn read(text: impl AsRef<OsStr>) -> Result<Location, String> {
        Location::read(text.as_ref())
    }

    fn read_place(text: &[u8]) -> ServerPlace {
        let Ok(Location::Remote(place)) = read(OsStr::from_bytes(text)) else { panic!() };
        place
    }

    #[test]
    fn remote_places_have_a_path_below_the_root() {
        let place = read_place(b"udt://host:9000/data/x/");
        assert_eq!((place.path.to_string(), place.is_directory), ("data/x".into(), true));
        for root in [&b"udt://[::1]:9000"[..], b"udt://[::1]:9000/"] {
            let place = read_place(root);
            assert!(place.path.is_root() && place.is_directory);
            assert_eq!(place.to_string(), "udt://[::1]:9000/");
        }
        assert!(read("udt://host:1/../etc").unwrap_err().contains("not names"));
        for text in ["udt://host:1//etc", "udt://host:1/a//b", "udt://host:1//"] {
            assert!(read(text).unwrap_err().contains("empty"), "{text}");
        }
    }

    #[test]
    fn remote_names_of_any_bytes_are_written_with_percent_signs() {
        let place = read_place(b"udt://h:1/100%25/bad%FF%0a");
        assert_eq!(place.path.to_bytes(), b"100%/bad\xff\n");
        assert_eq!(place.to_string(), "udt://h:1/100%25/bad%FF%0A");
        assert_eq!(read_place(b"udt://h:1/bad\xff").to_string(), "udt://h:1/bad%FF", "unescaped bytes are taken too");
        assert!(read("udt://h:1/100%").unwrap_err().contains("%25"));
        for text in ["udt://h:1/*.gz", "udt://h:1/[a]/%2A?", "udt://h:1/%2A%3F%5B%5Cx]"] {
            assert_eq!(read_place(text.as_bytes()).to_string(), text);
        }
        assert_eq!(read_place(b"udt://h:1/\\*x").to_string(), "udt://h:1/%2Ax", "both mean the same");
        for text in ["udt://h:1/a%2Fb", "udt://h:1/a%00", "udt://h:1/%2e%2E/etc"] {
            assert!(read(text).unwrap_err().contains("is refused"), "{text}");
        }
    }

    #[test]
    fn local_names_may_have_any_bytes() {
        let name = OsStr::from_bytes(b"bad\xff");
        assert_eq!(read(name), Ok(Location::Local(name.into())));
    }

    #[test]
    fn unsupported_schemes_are_refused_by_name() {
        assert!(read("gridftp://host/f").unwrap_err().contains("gridftp"));
        assert_eq!(read("./a:b"), Ok(Location::Local("./a:b".into())));
        assert_eq!((read("-"), read("./-")), (Ok(Location::Standard), Ok(Location::Local("./-".into()))));
    }
}
