//! Places at servers of original programs: `tsunami://host/NAME`, `rbudp://host:port/NAME`.

use std::fmt;

use farhaul_session::escape;

use super::{HostPort, percent};

/// TCP port of `tsunamid` (tsunami-udp 1.1).
const TSUNAMI_PORT: u16 = 46_224;
/// TCP port of `sendfile` (QUANTA).
const RBUDP_PORT: u16 = 38_000;
/// The name that means all files, as in the original's `get *`. A file of that name is written `%2A`.
const ALL: &[u8] = b"*";

/// A file, or all files, of an original server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalPlace {
    /// Its protocol.
    pub scheme: Scheme,
    /// The server.
    pub server: HostPort,
    /// What is requested.
    pub what: What,
}

/// The request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Nothing yet, as for a list.
    Server,
    /// All files.
    All,
    /// The file with this name, in the server's words.
    File(Vec<u8>),
}

/// The protocol of an original server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `tsunamid` of tsunami-udp.
    Tsunami,
    /// `sendfile` of QUANTA.
    Rbudp,
}

impl Scheme {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tsunami => "tsunami",
            Self::Rbudp => "rbudp",
        }
    }

    const fn port(self) -> u16 {
        match self {
            Self::Tsunami => TSUNAMI_PORT,
            Self::Rbudp => RBUDP_PORT,
        }
    }
}

impl OriginalPlace {
    /// Reads a place; `None` if it has another scheme.
    pub(super) fn read(text: &[u8]) -> Option<Result<Self, String>> {
        [Scheme::Tsunami, Scheme::Rbudp].into_iter().find_map(|scheme| {
            let rest = text.strip_prefix(scheme.name().as_bytes())?.strip_prefix(b"://")?;
            Some(Self::of(scheme, rest))
        })
    }

    fn of(scheme: Scheme, rest: &[u8]) -> Result<Self, String> {
        let slash = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
        let (server, path) = (&rest[..slash], rest.get(slash + 1..).unwrap_or_default());
        let server = HostPort::with_default(&String::from_utf8_lossy(server), scheme.port())?;
        let what = match path {
            b"" => What::Server,
            ALL => What::All,
            path => What::File(
                percent::decoded(path).map_err(|why| format!("the name '{}' is refused: {why}", escape(path)))?,
            ),
        };
        Ok(Self { scheme, server, what })
    }
}

impl fmt::Display for OriginalPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}/", self.scheme.name(), self.server)?;
        match &self.what {
            What::Server => Ok(()),
            What::All => f.write_str("*"),
            What::File(name) if name == ALL => f.write_str("%2A"),
            What::File(name) => f.write_str(&percent::encoded(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<OriginalPlace, String> {
        OriginalPlace::read(text.as_bytes()).expect("the scheme is known")
    }

    #[test]
    fn a_place_has_the_originals_port_unless_it_names_another() {
        for (text, shown) in [
            ("tsunami://host/a", "tsunami://host:46224/a"),
            ("tsunami://[::1]/a", "tsunami://[::1]:46224/a"),
            ("tsunami://host:7/a/b", "tsunami://host:7/a/b"),
            ("rbudp://192.0.2.7//data/x", "rbudp://192.0.2.7:38000//data/x"),
            ("rbudp://host", "rbudp://host:38000/"),
        ] {
            assert_eq!(read(text).unwrap().to_string(), shown);
        }
        assert!(read("tsunami://host:70000/a").unwrap_err().contains("host:port"));
        assert!(OriginalPlace::read(b"udt://host:1/a").is_none());
    }

    #[test]
    fn a_star_means_all_files_and_an_escaped_one_a_name() {
        assert_eq!(read("tsunami://h/*").unwrap().what, What::All);
        let named = read("tsunami://h/%2A").unwrap();
        assert_eq!(named.what, What::File(b"*".to_vec()));
        assert_eq!(named.to_string(), "tsunami://h:46224/%2A");
        assert_eq!(read("tsunami://h/").unwrap().what, What::Server);
        assert!(read("tsunami://h/100%").unwrap_err().contains("%25"));
    }
}
