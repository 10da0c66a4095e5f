//! Every protocol by name: summary, source, modes, options and constructor.
//!
//! The command line, the library, the scenarios of the lab and the table in the documentation are derived from this one.

use std::fmt;
use std::str::FromStr;

use farhaul_cc::options::{OptionDoc, OptionForm, Settings};
use farhaul_cc::{Row, Selection, Spec, SpecError};
use farhaul_wire::blast::TAG_LEN;
use farhaul_wire::udt4::HEADER_LEN;
use farhaul_wire::udt2004;

use crate::blast::rate::RateChoice;
use crate::config::{Config, Entropy, Mode};
use crate::numbering::Numbering;
use crate::shell::endpoint::Endpoint;
use crate::shell::protocol::Carried;
use crate::{fobs, hurricane, rbudp, sabul, secure, tsunami};

/// Makes a protocol for connections inside secure ones.
type MakeCarried = fn(&Config, Entropy) -> Box<dyn Carried>;

/// One protocol.
#[derive(Debug)]
#[non_exhaustive]
pub struct Entry {
    /// The name by which users select it.
    pub name: &'static str,
    /// A summary in one line.
    pub summary: &'static str,
    /// The sources of its rules and formats, keys of `docs/papers/papers.bib` with commas between them, or `none`.
    pub source: &'static str,
    /// The modes of its connections.
    pub modes: &'static [Mode],
    /// Whether it needs a reliable byte stream beside its datagrams.
    pub needs_control_channel: bool,
    /// Its default congestion controller; `None` if its own rules govern the rate.
    pub controller: Option<&'static str>,
    /// Bytes of its header in a data packet, behind those of IP and UDP.
    pub header_len: u32,
    /// Where its data packets carry their number.
    pub numbering: Numbering,
    /// Its options, in the order of printing.
    pub options: &'static [OptionDoc],
    /// Whether a sender with these settings finds its rate during the transfer.
    finds_rate: fn(&Config) -> bool,
    /// Puts the options into the protocol's part of the settings. Fails on unusable values.
    configure: fn(&Settings, &mut Config) -> Result<(), SpecError>,
    /// Makes an endpoint without connections.
    construct: fn(Config, Entropy) -> Endpoint,
    /// Makes it for connections inside secure ones; `None` if secure connections are its own.
    carried: Option<MakeCarried>,
}

static PROTOCOLS: &[Entry] = &[
    Entry {
        name: crate::udt::NAME,
        summary: "UDT4, compatible with libudt 4",
        source: "udt-draft, udt-2007",
        modes: &[Mode::Stream, Mode::Message],
        needs_control_channel: false,
        controller: Some("union"),
        header_len: HEADER_LEN as u32,
        numbering: Numbering::UDT4,
        options: &[],
        finds_rate: |_config| false,
        configure: |_settings, _config| Ok(()),
        construct: crate::udt::endpoint,
        carried: None,
    },
    Entry {
        name: "udt-2004",
        summary: "the protocol of the 2004 paper, for experiments; one connection between two ports",
        source: "udt-2004",
        modes: &[Mode::Stream],
        needs_control_channel: false,
        controller: Some("udt-2004"),
        header_len: udt2004::HEADER_LEN as u32,
        numbering: Numbering::UDT_2004,
        options: &[OptionDoc {
            name: "delay-warnings",
            meaning: "whether the receiver warns the sender of a growing RTT: on or off",
            form: OptionForm::Optional { default: "on" },
        }],
        finds_rate: |_config| false,
        configure: |settings, config| {
            if let Some(warns) = settings.switch("delay-warnings")? {
                config.udt2004.delay_warnings = warns;
            }
            Ok(())
        },
        construct: crate::udt2004::endpoint,
        carried: Some(crate::udt2004::carried),
    },
    Entry {
        name: "rbudp",
        summary: "blasts at a rate, repeated by bitmap until complete, for dedicated channels",
        source: "survey",
        modes: &[Mode::Stream],
        needs_control_channel: true,
        controller: None,
        header_len: (TAG_LEN + farhaul_wire::rbudp::HEADER_LEN) as u32,
        numbering: Numbering::numbered(1 << 31).behind(TAG_LEN).little_endian().in_blasts(),
        options: rbudp::settings::OPTIONS,
        finds_rate: |config| config.rbudp.rate == RateChoice::Auto,
        configure: |settings, config| {
            config.rbudp = rbudp::settings::read(settings)?;
            Ok(())
        },
        construct: rbudp::settings::endpoint,
        carried: Some(rbudp::settings::carried),
    },
    Entry {
        name: "tsunami",
        summary: "datagrams at a rate that the receiver's error rate slows down, for dedicated channels",
        source: "survey",
        modes: &[Mode::Stream],
        needs_control_channel: true,
        controller: None,
        header_len: (TAG_LEN + farhaul_wire::tsunami::HEADER_LEN) as u32,
        numbering: Numbering::numbered(1 << 31).behind(TAG_LEN),
        options: tsunami::settings::OPTIONS,
        finds_rate: |config| config.tsunami.rate == RateChoice::Auto,
        configure: |settings, config| {
            config.tsunami = tsunami::settings::read(settings)?;
            Ok(())
        },
        construct: tsunami::settings::endpoint,
        carried: Some(tsunami::settings::carried),
    },
    Entry {
        name: "sabul",
        summary: "data at a rate, reports by TCP: the predecessor of UDT",
        source: "sabul-tr-2002, sabul-rate-2002",
        modes: &[Mode::Stream],
        needs_control_channel: true,
        controller: None,
        header_len: (TAG_LEN + farhaul_wire::sabul::HEADER_LEN) as u32,
        numbering: Numbering::numbered(100_000_000).behind(TAG_LEN),
        options: sabul::settings::OPTIONS,
        finds_rate: |_config| false,
        configure: |settings, config| {
            config.sabul = sabul::settings::read(settings)?;
            Ok(())
        },
        construct: sabul::settings::endpoint,
        carried: Some(sabul::settings::carried),
    },
    Entry {
        name: "fobs",
        summary: "objects of 100 MB in segments, each answered by a bitmap, for comparison",
        source: "ornl",
        modes: &[Mode::Stream],
        needs_control_channel: true,
        controller: None,
        header_len: (TAG_LEN + farhaul_wire::fobs::HEADER_LEN) as u32,
        numbering: Numbering::numbered(1 << 31).behind(TAG_LEN),
        options: fobs::settings::OPTIONS,
        finds_rate: |config| config.fobs.rate == RateChoice::Auto,
        configure: |settings, config| {
            config.fobs = fobs::settings::read(settings)?;
            Ok(())
        },
        construct: fobs::settings::endpoint,
        carried: Some(fobs::settings::carried),
    },
    Entry {
        name: "hurricane",
        summary: "bursts at a fixed rate that yield to nobody, for dedicated channels",
        source: "ornl",
        modes: &[Mode::Stream],
        needs_control_channel: true,
        controller: None,
        header_len: (TAG_LEN + farhaul_wire::hurricane::HEADER_LEN) as u32,
        numbering: Numbering::numbered(1 << 31).behind(TAG_LEN),
        options: hurricane::settings::OPTIONS,
        finds_rate: |config| config.hurricane.finds_rate(),
        configure: |settings, config| {
            config.hurricane = hurricane::settings::read(settings)?;
            Ok(())
        },
        construct: hurricane::settings::endpoint,
        carried: Some(hurricane::settings::carried),
    },
];

/// Every protocol, the default one first.
pub fn protocols() -> &'static [Entry] {
    PROTOCOLS
}

impl Row for Entry {
    const KIND: &'static str = "protocol";

    fn all() -> &'static [Self] {
        PROTOCOLS
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn options(&self) -> &'static [OptionDoc] {
        self.options
    }

    fn check(&self, settings: &Settings) -> Result<(), SpecError> {
        (self.configure)(settings, &mut Config::default())
    }
}

/// A protocol and its options: `udt`, `udt-2004`, `udt-2004:delay-warnings=off`. Both sides of a connection must speak
/// the same protocol. Default: `udt`.
///
/// ```
/// let protocol: farhaul_proto::Protocol = "udt-2004".parse()?;
/// assert_eq!(protocol.entry().controller, Some("udt-2004"));
/// let refused = "udt-2005".parse::<farhaul_proto::Protocol>().unwrap_err();
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
    /// ([`Config::first_rate`](crate::Config::first_rate)).
    pub fn finds_rate(&self) -> bool {
        let mut config = Config::default();
        self.configure(&mut config);
        (self.entry().finds_rate)(&config)
    }

    /// An endpoint without connections. The options of this protocol win over `config`.
    pub fn endpoint(&self, mut config: Config, entropy: Entropy) -> Endpoint {
        self.configure(&mut config);
        (self.entry().construct)(config, entropy)
    }

    /// An endpoint whose connections are inside secure ones, without any others. `provider` makes keys and handshakes.
    pub fn secure_endpoint(
        &self,
        mut config: Config,
        entropy: Entropy,
        provider: Box<dyn secure::Provider>,
    ) -> Endpoint {
        self.configure(&mut config);
        match self.entry().carried {
            None => secure::endpoint(config, entropy, provider),
            Some(carried) => secure::endpoint_around((self.entry().name, carried), config, entropy, provider),
        }
    }

    fn configure(&self, config: &mut Config) {
        (self.entry().configure)(self.0.settings(), config).expect("they were used when they were parsed");
    }
}

impl FromStr for Protocol {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        text.parse().map(Self)
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
