//! Control channels: reliable byte streams beside the datagrams of a transport.
//!
//! SABUL, RBUDP, Tsunami, FOBS and Hurricane send data by UDP and everything else by TCP. The host of a transport owns
//! the TCP connections: the kernel's in a driver, simulated ones in the simulator. Each connection of the transport has
//! at most one channel, which bears its id.

use core::net::SocketAddr;

use farhaul_units::Instant;

pub use farhaul_wire::blast::begins_hello;

use crate::event::ConnectionId;

/// A transport whose connections need control channels. All methods have defaults for transports without channels.
///
/// **Contract.** The host drains [`poll_channel`](Channels::poll_channel) after any input or command, together with the
/// outputs of [`Transport`](crate::Transport). Channels preserve order and lose nothing until they end.
///
/// The transport ends each channel that it has, by [`ChannelOutput::Finish`] or [`ChannelOutput::Reset`]. It need not
/// after [`ChannelEnd::Refused`] and [`ChannelEnd::Failed`], which leave no channel.
pub trait Channels {
    /// Whether connections of this transport need channels. The host then also listens for channels on the port number
    /// of the datagrams.
    fn needs_channels(&self) -> bool {
        false
    }

    /// A peer opened a channel from this address. Returns the id of its connection; `None` refuses it.
    fn accept_channel(&mut self, _now: Instant, _from: SocketAddr) -> Option<ConnectionId> {
        None
    }

    /// The channel that [`ChannelOutput::Open`] asked for is open.
    fn channel_opened(&mut self, _now: Instant, _id: ConnectionId) {}

    /// Takes bytes that arrived on a channel, in any division. It takes all of them: what a peer may send is bounded by
    /// the protocol.
    fn handle_channel(&mut self, _now: Instant, _id: ConnectionId, _bytes: &[u8]) {}

    /// The host has handed the bytes of the last [`ChannelOutput::Send`] to the network and takes more.
    fn channel_drained(&mut self, _now: Instant, _id: ConnectionId) {}

    /// The peer ended the channel, or it failed. Nothing arrives after this.
    fn channel_ended(&mut self, _now: Instant, _id: ConnectionId, _end: ChannelEnd) {}

    /// The next request to the host, oldest first.
    fn poll_channel(&mut self, _now: Instant) -> Option<ChannelOutput<'_>> {
        None
    }
}

/// A request of a transport to its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelOutput<'a> {
    /// Open a channel to this address. [`Channels::channel_opened`] or [`Channels::channel_ended`] follows.
    Open(ConnectionId, SocketAddr),
    /// Send these bytes. No other follows for this channel before [`Channels::channel_drained`].
    Send(ConnectionId, &'a [u8]),
    /// End the channel in order after everything sent. The host forgets it.
    Finish(ConnectionId),
    /// End the channel at once. The host forgets it.
    Reset(ConnectionId),
}

/// How a channel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelEnd {
    /// The peer ended it in order: everything that it sent has arrived. This side may still send. The channel can fail
    /// after this.
    Finished,
    /// The peer's host refused it: no program listens there.
    Refused,
    /// It broke, or could not be opened.
    Failed,
}
