//! The host of the command line, with or without a port.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use super::tcp::SSH;
use crate::exit::{Code, Fault};
use crate::values::{HostPort, SshPlace};

/// Longest wait for the addresses of a name. The system's own limit is half a minute.
const RESOLVING: Duration = Duration::from_secs(2);

/// What the command line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Examinee {
    /// A host, perhaps with a port.
    Host(Target),
    /// A host that ssh reaches, as it was typed in front of the colon.
    OverSsh { host: String, shown: String },
}

impl FromStr for Examinee {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match SshPlace::read(text.as_bytes()).filter(|_| text.len() > 1 && text.ends_with(':')) {
            Some(place) => Ok(Self::OverSsh { host: place?.host, shown: text.to_owned() }),
            None => text.parse().map(Self::Host),
        }
    }
}

impl fmt::Display for Examinee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(target) => target.fmt(f),
            Self::OverSsh { shown, .. } => f.write_str(shown),
        }
    }
}

/// A host to examine the path to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// With the port of SSH if none was given.
    at: HostPort,
    pub(super) has_port: bool,
}

impl Target {
    /// All addresses of the host; at least one.
    pub(super) fn resolve(&self) -> Result<Vec<SocketAddr>, Fault> {
        let (sender, receiver) = sync_channel(1);
        let at = self.at.clone();
        // The thread may outlive this call: a lookup cannot be ended.
        thread::Builder::new().name("lookup".into()).spawn(move || drop(sender.send(at.resolve())))?;
        receiver.recv_timeout(RESOLVING).unwrap_or_else(|_| {
            let message = format!("no name server has answered for {} within {} s", self.at, RESOLVING.as_secs());
            Err(Fault::new(Code::NameUnresolved, message))
        })
    }

    /// The host alone.
    pub(super) fn host(&self) -> &str {
        self.at.host()
    }

    /// Whether the host is a name, and no number.
    pub(super) fn is_name(&self) -> bool {
        self.host().parse::<IpAddr>().is_err()
    }

    /// The name under which a server is known: `host:port`.
    pub(super) fn name(&self) -> String {
        self.at.to_string()
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        let (without_zone, _) = bare.split_once('%').unwrap_or((bare, ""));
        let alone = if without_zone.parse::<Ipv6Addr>().is_ok() {
            Some(format!("[{bare}]:{SSH}"))
        } else {
            (!text.is_empty() && !text.contains([':', '[', ']', '/'])).then(|| format!("{text}:{SSH}"))
        };
        let at = alone.as_deref().unwrap_or(text).parse::<HostPort>()?;
        if at.host().is_empty() || at.to_string().ends_with(":0") {
            return Err(format!("'{text}' is no address of a host: write host:port, for instance far.example:9000"));
        }
        Ok(Self { at, has_port: alone.is_none() })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        let shown = if self.has_port { Some(name.as_str()) } else { name.strip_suffix(&format!(":{SSH}")) };
        f.write_str(shown.unwrap_or(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_optional_and_ipv6_needs_brackets_only_with_one() {
        for (text, name, has_port, shown) in [
            ("far.example:9000", "far.example:9000", true, "far.example:9000"),
            ("far.example", "far.example:22", false, "far.example"),
            ("192.0.2.7", "192.0.2.7:22", false, "192.0.2.7"),
            ("[::1]:9000", "[::1]:9000", true, "[::1]:9000"),
            ("::1", "[::1]:22", false, "[::1]"),
            ("[::1]", "[::1]:22", false, "[::1]"),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!((target.name().as_str(), target.has_port), (name, has_port), "{text}");
            assert_eq!((target.to_string().as_str(), target.is_name()), (shown, text.starts_with("far")));
        }
    }

    #[test]
    fn a_colon_at_the_end_names_a_host_of_ssh() {
        let ssh = |text: &str| match text.parse() {
            Ok(Examinee::OverSsh { host, shown }) => Some((host, shown)),
            _ => None,
        };
        for (text, host) in [("far:", "far"), ("me@far.example:", "me@far.example"), ("[::1]:", "::1")] {
            assert_eq!(ssh(text), Some((host.to_owned(), text.to_owned())));
        }
        assert!(["far", "far:22", "::1", "-oProxyCommand=x:", ":"].iter().all(|text| ssh(text).is_none()));
        assert!("-oProxyCommand=x:".parse::<Examinee>().is_err());
    }

    #[test]
    fn what_names_no_host_is_refused() {
        for text in ["", ":9000", "far:0", "far:", "far:70000", "udt://far:9000/", "[far]"] {
            assert!(text.parse::<Target>().unwrap_err().contains("host:port"), "{text}");
        }
    }
}
