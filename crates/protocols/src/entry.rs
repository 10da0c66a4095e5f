//! A row of the registry of protocols.

use farhaul_cc::SpecError;
use farhaul_cc::options::{OptionDoc, Settings};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, Numbering, secure};

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
    /// Reads the options. Fails on unusable values.
    pub(crate) read: fn(&Settings) -> Result<Box<dyn Configured>, SpecError>,
}

/// A protocol with its options.
pub(crate) trait Configured {
    /// Whether its senders find their rate during the transfer.
    fn finds_rate(&self) -> bool {
        false
    }

    /// An endpoint without connections.
    fn endpoint(&self, config: Config, entropy: Entropy) -> Endpoint;

    /// An endpoint whose connections are inside secure ones, without any.
    fn secure_endpoint(&self, config: Config, entropy: Entropy, provider: Box<dyn secure::Provider>) -> Endpoint;
}
