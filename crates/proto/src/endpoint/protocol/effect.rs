//! What the endpoint gives to a phase of a connection, and what that answers.

use farhaul_units::{Instant, Rng};

use crate::config::Config;
use crate::error::ConnectionLost;
use crate::transport::AddressPair;

/// The endpoint's contribution to a connection that becomes established.
pub struct Setup<'a> {
    /// The settings of its endpoint.
    pub config: &'a Config,
    /// The randomness of its endpoint.
    pub rng: &'a mut Rng,
    /// The time.
    pub now: Instant,
}

impl Setup<'_> {
    /// The same once more.
    pub const fn again(&mut self) -> Setup<'_> {
        Setup { config: self.config, rng: &mut *self.rng, now: self.now }
    }
}

/// The result of a packet for a connection that is being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// No change, or more packets are needed.
    Wait,
    /// No legitimate peer sends this datagram.
    Invalid,
    /// The connection is established. A last packet may be due.
    Done(T),
    /// It will never be established.
    Failed(ConnectionLost),
}

impl<T> Step<T> {
    /// The same, with another result of success.
    pub fn map<U>(self, done: impl FnOnce(T) -> U) -> Step<U> {
        match self {
            Self::Wait => Step::Wait,
            Self::Invalid => Step::Invalid,
            Self::Done(value) => Step::Done(done(value)),
            Self::Failed(reason) => Step::Failed(reason),
        }
    }
}

/// The meaning of a packet or a timer for the connection as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing changed for the connection.
    GoOn,
    /// No legitimate peer sends this datagram.
    Invalid,
    /// The packet has an unreliable datagram, which lies there in the opened packet.
    Datagram {
        /// Where it begins.
        start: usize,
        /// Where it ends.
        end: usize,
    },
    /// The peer closed.
    PeerClosed {
        /// All its data has arrived.
        complete: bool,
        /// It has all of this side's data.
        delivered: bool,
    },
    /// The peer, or a forger, reported an error.
    Complained(u32),
    /// The peer has proved that the path between these addresses leads to it now.
    Moved(AddressPair),
    /// It is over.
    Lost(ConnectionLost),
}

/// The source of a connection's next datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// One datagram was written into the scratch buffer.
    Scratch,
    /// The same for another path than the connection's. Without an address of this side, it leaves from the connection's.
    Detour(AddressPair),
    /// The same, and it must not travel in fragments.
    Probe,
    /// [`Established::emit`](super::Established::emit) gives a train of data packets.
    Data,
}
