//! The phases of a connection: its opening, then the established protocol. What happens goes to the present one.

use delegate::delegate;
use farhaul_units::{Duration, Instant};

use crate::channel::ChannelEnd;
use crate::endpoint::control_channel::Request;
use crate::endpoint::protocol::{Effect, Established, Opening, Setup, Step};

/// A phase of a connection.
pub(crate) enum Phase {
    Opening(Box<dyn Opening>),
    Established(Box<dyn Established>),
}

impl Phase {
    // ---- datagrams and time ----

    /// The next datagrams reached this computer at `arrived`.
    pub(crate) fn begin_batch(&mut self, arrived: Instant) {
        if let Self::Established(established) = self {
            established.begin_batch(arrived);
        }
    }

    /// A datagram of the peer. The one that completes the opening also goes to the established connection.
    #[inline]
    pub(crate) fn on_datagram(&mut self, datagram: &mut [u8], mut setup: Setup<'_>) -> Effect {
        if let Self::Opening(opening) = self {
            let step = opening.on_datagram(datagram, setup.again());
            if let Some(effect) = self.advance(step) {
                return effect;
            }
        }
        match self {
            Self::Opening(_) => Effect::GoOn,
            Self::Established(established) => established.on_datagram(datagram, setup),
        }
    }

    /// All datagrams of one receive call were handled.
    pub(crate) fn finish_batch(&mut self, setup: Setup<'_>) -> Effect {
        match self {
            Self::Opening(_) => Effect::GoOn,
            Self::Established(established) => established.finish_batch(setup),
        }
    }

    /// This computer was suspended for `gap`.
    pub(crate) fn on_suspended(&mut self, now: Instant, gap: Duration) {
        match self {
            Self::Opening(opening) => opening.on_suspended(gap),
            Self::Established(established) => established.on_suspended(now, gap),
        }
    }

    /// Fires due timers. `is_closed` is whether the connection is closed for its application.
    pub(crate) fn handle_timeout(&mut self, now: Instant, is_closed: bool) -> Effect {
        match self {
            Self::Opening(opening) => opening.check(now).map_or(Effect::GoOn, Effect::Lost),
            Self::Established(established) if !is_closed || !established.is_gone() => established.handle_timeout(now),
            Self::Established(_) => Effect::GoOn,
        }
    }

    /// When to call next.
    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        match self {
            Self::Opening(opening) => opening.deadline(),
            Self::Established(established) => established.deadline(now),
        }
    }

    /// Takes the step of an opening. Returns its effect; `None` if the connection is established now.
    fn advance(&mut self, step: Step<Box<dyn Established>>) -> Option<Effect> {
        match step {
            Step::Wait => Some(Effect::GoOn),
            Step::Invalid => Some(Effect::Invalid),
            Step::Failed(reason) => Some(Effect::Lost(reason)),
            Step::Done(established) => {
                *self = Self::Established(established);
                None
            }
        }
    }

    // ---- the control channel ----

    /// The host has opened the channel.
    pub(crate) fn channel_opened(&mut self, now: Instant) {
        if let Self::Opening(opening) = self {
            opening.channel_opened(now);
        }
    }

    /// Bytes came on the channel.
    pub(crate) fn on_channel(&mut self, bytes: &[u8], setup: Setup<'_>) -> Effect {
        let (now, mut rest) = (setup.now, bytes);
        if let Self::Opening(opening) = self {
            let step = opening.on_channel(bytes, setup);
            if let Some(effect) = self.advance(step) {
                return effect;
            }
            // It holds what followed the opening.
            rest = &[];
        }
        match self {
            Self::Opening(_) => Effect::GoOn,
            Self::Established(established) => established.on_channel(rest, now),
        }
    }

    delegate! {
        to match self { Self::Opening(opening) => opening, Self::Established(established) => established } {
            /// The host takes more bytes.
            pub(crate) fn channel_drained(&mut self);
            /// The channel ended.
            pub(crate) fn channel_ended(&mut self, now: Instant, end: ChannelEnd) -> Effect;
            /// The next request to the host.
            pub(crate) fn poll_channel(&mut self, now: Instant) -> Option<Request>;
            /// The bytes of the last [`Request::Send`].
            pub(crate) fn channel_bytes(&self) -> &[u8];
            /// The connection is closed for its application.
            pub(crate) fn close(&mut self);
            /// Whether nothing is left to do for the peer after that.
            pub(crate) fn is_gone(&self) -> bool;
        }
    }

    // ---- facts ----

    /// The established protocol; `None` before.
    pub(crate) fn established(&self) -> Option<&dyn Established> {
        match self {
            Self::Established(established) => Some(&**established),
            Self::Opening(_) => None,
        }
    }

    /// The same, mutable.
    pub(crate) fn established_mut(&mut self) -> Option<&mut dyn Established> {
        match self {
            Self::Established(established) => Some(&mut **established),
            Self::Opening(_) => None,
        }
    }
}
