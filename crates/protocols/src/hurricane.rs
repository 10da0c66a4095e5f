//! Hurricane: bursts of datagrams with a sleep between them, for a channel that nobody else uses (paper:ornl §3.1).
//!
//! ```text
//! sender    W_c datagrams, sleep T_s, W_c datagrams, …      r = W_c / (T_s + W_c/BW)        (1)
//! receiver  in order ─▶ reader        otherwise ─▶ held      enough missing ─▶ scan ─▶ list over TCP
//! ```
//!
//! | rule | source |
//! | --- | --- |
//! | W_c and T_s stay fixed for a transfer with a given rate, by (1) | paper:ornl §3.1 |
//! | Missing datagrams go first into the next burst | paper:ornl §3.1 |
//! | Datagrams in order go to the reader at once, others are held | paper:ornl §3.1 |
//! | A control event scans the buffer. One list groups the missing numbers | paper:ornl §3.1 |
//! | A request waits until enough datagrams are missing within several RTTs | paper:ornl §3.1 |
//! | Lists are bounded, because a long one stalls the sender | paper:ornl §3.1; the bound is ours |
//! | W_c, T_s, trigger and its window by formula (`schedule.rs`, `trigger.rs`) | ours; the paper tuned by hand (departure D210) |
//! | A list that stays short leaves when the window ends | ours (departure D211) |
//! | The sender tells where it stopped, so the last datagrams can be missed | ours |
//! | Neither side repeats itself before the first time could have an effect (`recent.rs`) | ours |
//! | The sender catches up a late wake-up, within the bound of our pacer | ours |
//! | A fixed rate counts payload (see [`Options::rate`]) | our reading of paper:ornl Fig. 7 (departure D212) |
//!
//! The protocol yields to nobody. On a shared path it takes the whole bottleneck.

use farhaul_units::{Duration, Rate};
use farhaul_wire::hurricane::Terms;

use crate::blast::engine::{Protocol, Setup};
use crate::blast::partial::unreadable;
use crate::blast::rate::RateChoice;
use farhaul_proto::error::PeerMisbehaved;

mod receiver;
mod recent;
mod schedule;
mod sender;
mod settings;
mod trigger;

#[cfg(test)]
mod tests;

pub(crate) use receiver::Receiver;
pub(crate) use sender::Sender;

/// Settings of Hurricane. Each `None` is found automatically.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Options {
    /// The rate. A fixed one counts payload alone, since the paper's goodputs reach their targets within 1 %
    /// (paper:ornl Fig. 7).
    pub rate: RateChoice,
    /// W_c: datagrams of a burst, at least 1.
    pub window: Option<u32>,
    /// T_s: the sleep after a burst. With [`window`](Self::window) it determines the rate by (1), and
    /// [`rate`](Self::rate) has no effect.
    pub sleep: Option<Duration>,
    /// BW of (1): the speed at which this host's interface sends, headers of IP included. It bounds every rate. `None`
    /// means the speed that the host [knows](farhaul_proto::Config::interface_rate), for a rate or a W_c and T_s set by hand. A
    /// host that knows none sends without bound, and takes the paper's 1 Gbit/s where (1) needs it (departure D341).
    pub interface: Option<Rate>,
    /// Spreads the datagrams evenly over the sleep instead of sending them in bursts. The paper found no significant
    /// difference. Those of one [`burst_time`](farhaul_proto::Config::burst_time) still leave together.
    pub spaced: bool,
    /// Missing datagrams that cause a request, at least 1. A sender's value applies unless the receiver sets its own.
    pub trigger: Option<u32>,
    /// The time in which they are counted, in RTTs. A sender's value applies unless the receiver sets its own.
    pub trigger_window: Option<f64>,
}

impl Options {
    /// Whether the rate is found. W_c and T_s by hand set it by (1).
    pub(crate) fn finds_rate(&self) -> bool {
        self.rate == RateChoice::Auto && (self.window.is_none() || self.sleep.is_none())
    }
}

/// The protocol.
#[derive(Debug)]
pub(crate) struct Hurricane;

impl Protocol for Hurricane {
    type Options = Options;
    type Sender = Sender;
    type Receiver = Receiver;

    const NAME: &'static str = "hurricane";

    fn hello(options: &Options) -> Vec<u8> {
        let window = options.trigger_window.map_or(0.0, |round_trips| round_trips * 1e3);
        // A conversion of floats saturates.
        Terms { trigger: options.trigger.unwrap_or(0), window: window as u32 }.encode().to_vec()
    }

    fn sender(options: &Options, setup: Setup<'_>) -> Sender {
        Sender::new(options, &setup)
    }

    fn receiver(options: &Options, hello: &[u8], setup: Setup<'_>) -> Result<Receiver, PeerMisbehaved> {
        Ok(Receiver::new(options, Terms::decode(hello).map_err(unreadable)?, &setup))
    }
}
