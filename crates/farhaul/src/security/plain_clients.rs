//! Plain clients of a port that encrypts.

use farhaul_proto::secure::{Provider, endpoint_with_plain_callers};
use farhaul_proto::{Config, Endpoint, Entropy};
use farhaul_protocols::Protocol;
use farhaul_units::{Network, Rate};

use crate::error::Error;

/// Plain UDT4 clients beside the encrypted ones of a port. Everybody on the path can read and change what they send and
/// receive, and everybody in their networks is such a client.
///
/// A client of another network gets no answer. UDT4's handshake proves the address of a client, so its network cannot be forged
/// from elsewhere.
///
/// ```
/// use farhaul::security::PlainClients;
///
/// let clients = PlainClients::of(["10.0.0.0/8".parse()?, "2001:db8::/32".parse()?]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PlainClients {
    networks: Vec<Network>,
    max_rate: Rate,
}

impl PlainClients {
    /// Default cap of the send rate of one plain connection: 1 Gbit/s, so that nobody fills a fast path by oversight.
    pub const MAX_RATE: Rate = Rate::from_megabits_per_second(1_000);

    /// The clients of these networks. Without any, nobody is admitted until
    /// [`Endpoint::admit_plain`](crate::Endpoint::admit_plain) names some.
    #[must_use]
    pub fn of(networks: impl IntoIterator<Item = Network>) -> Self {
        Self { networks: networks.into_iter().collect(), max_rate: Self::MAX_RATE }
    }

    /// Cap of the send rate of each plain connection, headers and retransmissions included. Must exceed zero. Default
    /// [`MAX_RATE`](Self::MAX_RATE). A lower [`Builder::max_rate`](crate::Builder::max_rate) holds, too.
    #[must_use]
    pub const fn max_rate(mut self, rate: Rate) -> Self {
        self.max_rate = rate;
        self
    }

    /// An endpoint for both kinds of clients.
    pub(crate) fn endpoint(
        self,
        protocol: &Protocol,
        config: Config,
        entropy: Entropy,
        provider: Box<dyn Provider>,
    ) -> Result<Endpoint, Error> {
        if protocol.entry().name != Protocol::default().entry().name {
            return Err(Error::NoPlainClients);
        }
        if self.max_rate == Rate::ZERO {
            return Err(Error::InvalidOption { option: "PlainClients::max_rate", range: "above zero" });
        }
        let mut plain = config.clone();
        plain.max_rate = Some(config.max_rate.map_or(self.max_rate, |rate| rate.min(self.max_rate)));
        Ok(endpoint_with_plain_callers([config, plain], self.networks, entropy, provider))
    }
}
