//! A connection until the hello of the peer has come.

use farhaul_units::{Duration, Instant};
use farhaul_wire::blast::{Hello, HelloError, Tag};

use super::duplex::{Duplex, Facts};
use super::engine::Protocol;
use super::established::BlastConnection;
use super::frame_channel::FrameChannel;
use farhaul_proto::channel::ChannelEnd;
use farhaul_proto::config::Config;
use farhaul_proto::endpoint::control_channel::{ControlChannel, Request};
use farhaul_proto::endpoint::protocol::{self, Effect, Setup, Step};
use farhaul_proto::error::{ConnectionLost, PeerIncompatible};

/// Smallest datagram that is worth sending. An IPv4 host takes packets of 576 bytes, headers included.
const MIN_DATAGRAM: u16 = 548;

/// A connection whose channel is being opened, or whose peer has sent no hello.
#[derive(Debug)]
pub(crate) struct BlastOpening<P: Protocol> {
    options: P::Options,
    /// Whether this side called.
    called: bool,
    /// The name of this side in the peer's datagrams.
    tag: Tag,
    /// Most bytes of a datagram that this side sends or takes, tag included.
    datagram: u16,
    opened: Instant,
    deadline: Instant,
    /// The RTT of the channel's opening, if this side opened it.
    round_trip: Option<Duration>,
    /// A datagram of the peer overtook the hello.
    heard: bool,
    channel: FrameChannel,
}

impl<P: Protocol> BlastOpening<P> {
    /// An opening on `line`. Datagrams to this side carry `tag`, and `datagram` is the most bytes of one.
    pub(super) fn new(
        options: &P::Options,
        (line, called): (ControlChannel, bool),
        (tag, datagram): (Tag, u16),
        config: &Config,
        now: Instant,
    ) -> Self {
        let mut hello = Vec::new();
        Hello { protocol: P::NAME, tag, datagram, options: &P::hello(options) }.encode(&mut hello);
        Self {
            options: options.clone(),
            called,
            tag,
            datagram,
            opened: now,
            deadline: now + config.connect_timeout,
            round_trip: None,
            heard: false,
            channel: FrameChannel::new(line, hello),
        }
    }

    /// Reads the peer's hello. Returns both streams, and the length of the hello; `None` if bytes are missing.
    fn on_hello(&self, bytes: &[u8], setup: Setup<'_>) -> Result<Option<(Duplex<P>, usize)>, ConnectionLost> {
        let hello = Hello::decode(bytes).map_err(|error| {
            ConnectionLost::PeerIncompatible(match error {
                HelloError::Version(version) => PeerIncompatible::ChannelVersion(version),
                _ => PeerIncompatible::NoFarhaul,
            })
        })?;
        let Some((hello, length)) = hello else { return Ok(None) };
        if hello.protocol != P::NAME {
            return Err(ConnectionLost::PeerIncompatible(PeerIncompatible::OtherProtocol));
        }
        let datagram = hello.datagram.min(self.datagram);
        if datagram < MIN_DATAGRAM {
            return Err(ConnectionLost::PeerIncompatible(PeerIncompatible::PacketSize(u32::from(hello.datagram))));
        }
        let facts = Facts {
            called: self.called,
            datagram: usize::from(datagram),
            round_trip: self.round_trip,
            tag: hello.tag,
            hello: hello.options,
        };
        let mut duplex = Duplex::new(&self.options, &facts, setup).map_err(ConnectionLost::PeerMisbehaved)?;
        if self.heard {
            duplex.path.on_datagram();
        }
        Ok(Some((duplex, length)))
    }
}

impl<P: Protocol> protocol::Opening for BlastOpening<P> {
    fn on_datagram(&mut self, _datagram: &mut [u8], _setup: Setup<'_>) -> Step<Box<dyn protocol::Established>> {
        // The data is lost, and the protocol repairs that.
        self.heard = true;
        Step::Wait
    }

    fn check(&self, now: Instant) -> Option<ConnectionLost> {
        (now >= self.deadline).then(|| ConnectionLost::ConnectTimeout(now - self.opened))
    }

    fn on_suspended(&mut self, gap: Duration) {
        self.deadline += gap;
    }

    fn poll(&mut self, _now: Instant, _out: &mut Vec<u8>) -> bool {
        false
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.deadline)
    }

    fn close(&mut self) {
        self.channel.reset();
    }

    fn is_gone(&self) -> bool {
        self.channel.is_gone()
    }

    // ---- the control channel ----

    fn channel_opened(&mut self, now: Instant) {
        self.channel.on_opened();
        self.round_trip = Some(now - self.opened);
    }

    fn on_channel(&mut self, bytes: &[u8], setup: Setup<'_>) -> Step<Box<dyn protocol::Established>> {
        let mut unread = std::mem::take(&mut self.channel.unread);
        let (mut setup, mut duplex) = (Some(setup), None);
        let read = unread.feed(bytes, |bytes| {
            let Some(setup) = setup.take() else { return Ok(0) };
            let Some((opened, length)) = self.on_hello(bytes, setup)? else { return Ok(0) };
            duplex = Some(opened);
            Ok(length)
        });
        self.channel.unread = unread;
        match (read, duplex) {
            (Err(reason), _) => Step::Failed(reason),
            (Ok(()), None) => Step::Wait,
            (Ok(()), Some(duplex)) => {
                let channel = std::mem::replace(&mut self.channel, FrameChannel::gone());
                Step::Done(Box::new(BlastConnection::new(self.tag, channel, duplex)))
            }
        }
    }

    fn channel_drained(&mut self) {
        self.channel.on_drained();
    }

    fn channel_ended(&mut self, _now: Instant, end: ChannelEnd) -> Effect {
        self.channel.on_ended(end);
        Effect::Lost(match end {
            ChannelEnd::Refused => ConnectionLost::ChannelRefused,
            ChannelEnd::Finished => ConnectionLost::Refused,
            ChannelEnd::Failed => ConnectionLost::ChannelBroken,
        })
    }

    fn poll_channel(&mut self, _now: Instant) -> Option<Request> {
        self.channel.poll(|_| ())
    }

    fn channel_bytes(&self) -> &[u8] {
        self.channel.bytes()
    }
}
