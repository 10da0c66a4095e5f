//! The parameters of Hurricane by hand, as options of their own. They are those of `--protocol hurricane:…`.

use clap::Args;
use farhaul::Protocol;

use crate::exit::Fault;

/// The protocol that has these parameters.
const PROTOCOL: &str = "hurricane";

/// Parameters of `--protocol hurricane`. The protocol itself checks their values.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Hurricane by hand")]
pub(crate) struct ByHand {
    /// Datagrams of a burst, `W_c` [default: found]
    #[arg(long, value_name = "N")]
    window: Option<String>,
    /// Time after a burst, `T_s`: 10ms [default: found]
    #[arg(long, value_name = "TIME")]
    sleep: Option<String>,
    /// Spread the datagrams of a burst evenly over the sleep
    #[arg(long)]
    spaced: bool,
    /// Missing datagrams that cause a request [default: found]
    #[arg(long, value_name = "N")]
    trigger: Option<String>,
    /// Time in which they are counted, in RTTs [default: found]
    #[arg(long, value_name = "K")]
    trigger_window: Option<String>,
}

impl ByHand {
    /// `protocol` with these parameters.
    ///
    /// # Errors
    /// It is another protocol, or one of its parameters cannot be used.
    pub(super) fn applied_to(&self, protocol: &Protocol) -> Result<Protocol, Fault> {
        let given = self.given();
        let Some(first) = given.first() else { return Ok(protocol.clone()) };
        if protocol.entry().name != PROTOCOL {
            let option = first.split('=').next().unwrap_or(first);
            return Err(Fault::usage(format!("--{option} is a parameter of --protocol {PROTOCOL}")));
        }
        let protocol = protocol.to_string();
        let separator = if protocol == PROTOCOL { ':' } else { ',' };
        format!("{protocol}{separator}{}", given.join(",")).parse().map_err(|error| Fault::usage(format!("{error}")))
    }

    /// The parameters in the words of the protocol's options.
    fn given(&self) -> Vec<String> {
        let value = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}={value}"));
        [
            value("window", &self.window),
            value("sleep", &self.sleep),
            self.spaced.then(|| "spaced".to_owned()),
            value("trigger", &self.trigger),
            value("trigger-window", &self.trigger_window),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_hand() -> ByHand {
        ByHand { window: Some("40".into()), spaced: true, trigger: Some("16".into()), ..ByHand::default() }
    }

    fn applied(protocol: &str) -> Result<String, String> {
        let protocol = by_hand().applied_to(&protocol.parse().unwrap());
        protocol.map(|protocol| protocol.to_string()).map_err(|fault| fault.message)
    }

    #[test]
    fn parameters_join_the_options_of_the_protocol() {
        assert_eq!(applied("hurricane").unwrap(), "hurricane:window=40,spaced,trigger=16");
        assert_eq!(applied("hurricane:sleep=1ms").unwrap(), "hurricane:window=40,sleep=1ms,spaced,trigger=16");
        let none = ByHand::default().applied_to(&Protocol::default()).unwrap();
        assert_eq!(none, Protocol::default());
    }

    #[test]
    fn parameters_of_another_protocol_or_beyond_their_range_are_refused() {
        assert!(applied("rbudp").unwrap_err().contains("--window is a parameter of --protocol hurricane"));
        let wide = ByHand { window: Some("70000".into()), ..ByHand::default() };
        let refused = wide.applied_to(&"hurricane".parse().unwrap()).unwrap_err();
        assert!(refused.message.contains("from 1 to 65535"), "{}", refused.message);
    }
}
