//! The contract of a dialogue with an original program of RBUDP, Tsunami or SABUL, so that one loop hosts all of them.
//!
//! | dialogue | datagrams | the application's side, beyond this trait |
//! | --- | --- | --- |
//! | [`rbudp::SendingSession`](crate::rbudp::SendingSession) | out | answers names, writes the file |
//! | [`rbudp::ReceivingSession`](crate::rbudp::ReceivingSession) | in | reads the file in order |
//! | [`tsunami::Client`](crate::tsunami::Client) | in | makes requests, takes events and blocks |
//! | [`tsunami::Server`](crate::tsunami::Server) | out | takes events, answers them, provides content |
//! | [`sabul::Sender`](crate::sabul::Sender) | out | writes the stream |
//! | [`sabul::Receiver`](crate::sabul::Receiver) | in | reads the stream in order |
//!
//! The application's sides stay apart for a reason. RBUDP and SABUL hold data and move it in order. Tsunami holds none, and
//! reads and writes blocks anywhere in a file. Names, sizes and lists have a meaning in one dialogue alone.

use core::net::{IpAddr, SocketAddr};

use farhaul_proto::channel::ChannelEnd;
use farhaul_units::Instant;

/// One dialogue over one reliable channel, and datagrams in one direction. It does no IO and reads no clock.
///
/// In each turn, the host hands in what arrived: bytes of the channel, then datagrams, then the end of the channel. The
/// order matters, because bytes of the channel say which transfer a datagram belongs to, and datagrams that arrived before
/// the end of the channel still count. Then it fires the timers, does the application's side, and takes bytes for the
/// channel. Those leave before the datagrams. The last datagram of a transfer may cause bytes for the channel again.
///
/// The host reads no more from the channel while bytes for it wait.
///
/// A fault ends the session. The application's side may still have what came before it. The host sends what
/// [`poll_channel`](Self::poll_channel) still gives, then ends the channel. Nothing else has an effect.
pub trait OriginalSession {
    /// Why the session failed.
    type Fault;

    // ---- the channel ----

    /// Takes bytes that arrived on the channel, in any division.
    ///
    /// # Errors
    /// The peer sent what its program never sends, or what ends the dialogue.
    fn handle_channel(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Self::Fault>;

    /// The peer ended the channel, or it broke.
    ///
    /// # Errors
    /// Something was not finished.
    fn channel_ended(&mut self, now: Instant, end: ChannelEnd) -> Result<(), Self::Fault>;

    /// Appends bytes for the channel.
    fn poll_channel(&mut self, now: Instant, out: &mut Vec<u8>);

    // ---- datagrams ----

    /// The peer's UDP port, at the address of the channel's other end. Datagrams go there and nowhere else (attack C1).
    /// `None` if none go out at present, or if the peer may send from any port.
    fn peer_port(&self) -> Option<u16>;

    /// Whether a datagram `from` there is that of the peer at the other end of the channel. Others must not reach
    /// [`handle_datagram`](Self::handle_datagram) (attack C2).
    fn is_from_peer(&self, peer: IpAddr, from: SocketAddr) -> bool {
        from.ip().to_canonical() == peer.to_canonical() && self.peer_port().is_none_or(|port| port == from.port())
    }

    /// Whether this side receives datagrams now.
    fn receives(&self) -> bool {
        false
    }

    /// Takes one datagram that [is from the peer](Self::is_from_peer).
    fn handle_datagram<'d>(&mut self, _now: Instant, _from_port: u16, _datagram: &'d [u8]) -> DatagramOutcome<'d> {
        DatagramOutcome::Foreign
    }

    /// All datagrams of one receive call were handled.
    fn end_batch(&mut self, _now: Instant) {}

    /// Datagrams that leave now, back to back, and the length of each but the last. They count as sent. Their bytes lie in
    /// `scratch` or in the session. A session that holds no data gets a part of the present file by `content`, which
    /// fills a slice with the bytes at an offset.
    ///
    /// # Errors
    /// That of `content`.
    fn poll_datagrams<'a, E>(
        &'a mut self,
        _now: Instant,
        _content: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
        _scratch: &'a mut Vec<u8>,
    ) -> Result<Option<(usize, &'a [u8])>, E> {
        Ok(None)
    }

    // ---- time ----

    /// Fires the timers that are due.
    ///
    /// # Errors
    /// The peer was silent for too long, or its datagrams do not arrive.
    fn handle_timeout(&mut self, now: Instant) -> Result<(), Self::Fault>;

    /// When to call [`handle_timeout`](Self::handle_timeout) or [`poll_datagrams`](Self::poll_datagrams) next; `None` if
    /// only input can cause output.
    fn deadline(&self) -> Option<Instant>;
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramOutcome<'d> {
    /// The peer's program does not send it, or not now. It changed nothing.
    Foreign,
    /// It is the peer's. If its data is new, the session has it.
    Taken,
    /// It is the peer's, and the host must store this new block.
    Block(Placed<'d>),
}

/// A block and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed<'d> {
    /// Where the block begins in the file.
    pub offset: u64,
    /// Its bytes. The last block of a file has only those that belong to the file.
    pub bytes: &'d [u8],
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
