//! The row of a blast protocol in the registry.

use farhaul_cc::SpecError;
use farhaul_cc::options::{OptionDoc, Settings};
use farhaul_proto::endpoint::protocol::Carried;
use farhaul_proto::{Config, Endpoint, Entropy, Mode, Numbering, secure};
use farhaul_wire::blast::TAG_LEN;

use super::engine::Protocol;
use super::rate::RateChoice;
use super::tags::Tags;
use crate::entry::{Configured, Entry};

/// A blast protocol that users select by its name.
pub(crate) trait Registered: Protocol {
    /// A summary in one line.
    const SUMMARY: &'static str;
    /// The sources of its rules and formats, keys of `docs/papers/papers.bib` with commas between them.
    const SOURCE: &'static str;
    /// Bytes of its header in a data packet, behind the tag.
    const HEADER_LEN: usize;
    /// Where its header carries the number of a packet.
    const NUMBERING: Numbering;
    /// Its options, in the order of printing.
    const OPTIONS: &'static [OptionDoc];

    /// Reads the options.
    ///
    /// # Errors
    /// A value cannot be used.
    fn read(settings: &Settings) -> Result<Self::Options, SpecError>;

    /// The option that sets the rate or has it found; `None` if the protocol has a law of its own.
    fn rate(options: &mut Self::Options) -> Option<&mut RateChoice>;

    /// Whether a sender with these options finds its rate during the transfer.
    fn finds_rate(options: &Self::Options) -> bool {
        matches!(Self::rate(&mut options.clone()), Some(RateChoice::Auto))
    }
}

/// The row of a blast protocol in the registry.
pub(crate) const fn row<P: Registered>() -> Entry {
    Entry {
        name: P::NAME,
        summary: P::SUMMARY,
        source: P::SOURCE,
        modes: &[Mode::Stream],
        needs_control_channel: true,
        controller: None,
        header_len: (TAG_LEN + P::HEADER_LEN) as u32,
        numbering: P::NUMBERING.behind(TAG_LEN),
        options: P::OPTIONS,
        read: |settings| Ok(Box::new(Blast::<P> { options: P::read(settings)? })),
    }
}

/// A blast protocol with its options.
struct Blast<P: Registered> {
    options: P::Options,
}

impl<P: Registered> Blast<P> {
    /// The options in effect. A cap of the rate is the rate that would be found otherwise.
    fn options_for(&self, config: &Config) -> P::Options {
        let mut options = self.options.clone();
        if let Some(rate) = P::rate(&mut options) {
            *rate = rate.or_fixed(config.max_rate);
        }
        options
    }
}

impl<P: Registered> Configured for Blast<P> {
    fn finds_rate(&self) -> bool {
        P::finds_rate(&self.options)
    }

    fn endpoint(&self, config: Config, entropy: Entropy) -> Endpoint {
        let options = self.options_for(&config);
        super::endpoint::<P>(config, options, entropy)
    }

    fn secure_endpoint(&self, config: Config, entropy: Entropy, provider: Box<dyn secure::Provider>) -> Endpoint {
        let options = self.options_for(&config);
        let carried = |entropy| -> Box<dyn Carried> { Box::new(Tags::<P>::new(options, entropy)) };
        secure::endpoint_around((P::NAME, carried), config, entropy, provider)
    }
}
