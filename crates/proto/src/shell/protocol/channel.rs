//! The traits of a protocol whose connections have control channels. Each phase of a connection holds its end of the
//! channel, and hands it to the next.

use core::net::SocketAddr;

use farhaul_units::Instant;

use super::{Conductor, Effect, Opening, Protocol, Setup, Step};
use crate::channel::ChannelEnd;
use crate::event::ConnectionId;
use crate::shell::endpoint::Shell;
use crate::shell::line::Request;

/// A protocol whose connections have channels.
pub(crate) trait WithChannels: Protocol<Opening: OpensOnChannel, Established: ConductsChannel> {
    /// A peer opened a channel from this address. Returns the id of its connection; `None` refuses it.
    fn accept_channel(shell: &mut Shell<Self>, now: Instant, from: SocketAddr) -> Option<ConnectionId>;
}

/// A phase of a connection that holds an end of a channel.
pub(crate) trait HoldsChannel {
    /// The host takes more bytes.
    fn channel_drained(&mut self);

    /// The peer ended the channel, or it failed. Nothing arrives after this.
    fn channel_ended(&mut self, now: Instant, end: ChannelEnd) -> Effect;

    /// The next request to the host.
    fn poll_channel(&mut self, now: Instant) -> Option<Request>;

    /// The bytes of the last [`Request::Send`].
    fn channel_bytes(&self) -> &[u8];
}

/// An opening that takes place on the channel.
pub(crate) trait OpensOnChannel: Opening + HoldsChannel {
    /// The host has opened the channel.
    fn channel_opened(&mut self, now: Instant);

    /// Takes bytes of the peer, in any division. An established connection holds those that followed the opening.
    fn on_channel(&mut self, bytes: &[u8], setup: Setup<'_>) -> Step<Box<Self::Established>>;
}

/// An established connection with a channel.
pub(crate) trait ConductsChannel: Conductor + HoldsChannel {
    /// Takes bytes of the peer, in any division, behind those that the opening left.
    fn on_channel(&mut self, bytes: &[u8], now: Instant) -> Effect;
}
