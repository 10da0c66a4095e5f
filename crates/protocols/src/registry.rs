//! Every protocol by name: summary, source, modes, options and constructor.
//!
//! The command line, the library, the scenarios of the lab and the table in the documentation are derived from this one.

use std::fmt;
use std::str::FromStr;

use farhaul_cc::options::{OptionDoc, Settings};
use farhaul_cc::{Row, Selection, Spec, SpecError};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, Numbering, secure, udt};
use farhaul_wire::udt4::HEADER_LEN;

pub use crate::entry::Entry;

use crate::entry::Configured;
#[cfg(feature = "papers")]
use crate::{blast, fobs::Fobs, hurricane::Hurricane, rbudp::Rbudp, sabul::Sabul, tsunami::Tsunami, udt2004};

static PROTOCOLS: &[Entry] = &[
    UDT,
    #[cfg(feature = "papers")]
    udt2004::ROW,
    #[cfg(feature = "papers")]
    blast::row::<Rbudp>(),
    #[cfg(feature = "papers")]
    blast::row::<Tsunami>(),
    #[cfg(feature = "papers")]
    blast::row::<Sabul>(),
    #[cfg(feature = "papers")]
    blast::row::<Fobs>(),
    #[cfg(feature = "papers")]
    blast::row::<Hurricane>(),
];

/// The names of the protocols that the feature `papers` brings.
#[doc(hidden)]
pub const PAPERS: &[&str] = &["udt-2004", "rbudp", "tsunami", "sabul", "fobs", "hurricane"];

const UDT: Entry = Entry {
    name: udt::NAME,
    summary: "UDT4, compatible with libudt 4",
    source: "udt-draft, udt-2007",
    modes: &[Mode::Stream, Mode::Message],
    needs_control_channel: false,
    controller: Some("union"),
    header_len: HEADER_LEN as u32,
    numbering: Numbering::UDT4,
    options: &[],
    read: |_settings| Ok(Box::new(Udt)),
};

/// UDT, which has no options.
struct Udt;

impl Configured for Udt {
    fn endpoint(&self, config: Config, entropy: Entropy) -> Endpoint {
        udt::endpoint(config, entropy)
    }

    fn secure_endpoint(&self, config: Config, entropy: Entropy, provider: Box<dyn secure::Provider>) -> Endpoint {
        secure::endpoint(config, entropy, provider)
    }
}

/// Every protocol, the default one first.
pub fn protocols() -> &'static [Entry] {
    PROTOCOLS
}

impl Row for Entry {
    const KIND: &'static str = "protocol";

    fn all() -> Vec<&'static Self> {
        PROTOCOLS.iter().collect()
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn options(&self) -> &'static [OptionDoc] {
        self.options
    }

    fn check(&self, settings: &Settings) -> Result<(), SpecError> {
        (self.read)(settings).map(|_| ())
    }
}

/// A protocol and its options: `udt`, `udt-2004`, `udt-2004:delay-warnings=off`. Both sides of a connection must speak
/// the same protocol. Default: `udt`.
///
/// ```
/// let protocol: farhaul_protocols::Protocol = "udt-2004".parse()?;
/// assert_eq!(protocol.entry().controller, Some("udt-2004"));
/// let refused = "udt-2005".parse::<farhaul_protocols::Protocol>().unwrap_err();
/// assert!(refused.to_string().contains("udt-2004"), "it names the known ones");
/// # Ok::<(), farhaul_cc::SpecError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Protocol(Selection<Entry>);

impl Protocol {
    /// The protocol's row in the registry.
    pub fn entry(&self) -> &'static Entry {
        self.0.row()
    }

    /// Its default congestion controller; `None` if its own rules govern the rate.
    pub fn controller(&self) -> Option<Spec> {
        self.entry().controller.map(|name| name.parse().expect("a test parses the controller of each row"))
    }

    /// Whether its senders find their rate during the transfer, and so use a first rate
    /// ([`Config::first_rate`]).
    pub fn finds_rate(&self) -> bool {
        self.configured().finds_rate()
    }

    /// An endpoint without connections.
    pub fn endpoint(&self, config: Config, entropy: Entropy) -> Endpoint {
        self.configured().endpoint(config, entropy)
    }

    /// An endpoint whose connections are inside secure ones, without any. `provider` makes keys and handshakes.
    pub fn secure_endpoint(&self, config: Config, entropy: Entropy, provider: Box<dyn secure::Provider>) -> Endpoint {
        self.configured().secure_endpoint(config, entropy, provider)
    }

    fn configured(&self) -> Box<dyn Configured> {
        (self.entry().read)(self.0.settings()).expect("the same options were read when they were parsed")
    }
}

impl FromStr for Protocol {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        text.parse().map(Self).map_err(with_its_feature)
    }
}

/// The error of a name, which a program without the papers' protocols may know although it lacks the protocol.
fn with_its_feature(error: SpecError) -> SpecError {
    match error {
        SpecError::UnknownName { kind, name, .. } if PAPERS.contains(&name.as_str()) => {
            SpecError::NotBuilt { kind, name, feature: "papers" }
        }
        error => error,
    }
}

impl fmt::Display for Protocol {
    /// In the format that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protocol({self})")
    }
}

#[cfg(test)]
mod tests;
