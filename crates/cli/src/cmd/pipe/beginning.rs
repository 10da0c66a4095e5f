//! The beginning of a pipe: bytes alone, or an offer of further flows.
//!
//! A pipe of bytes alone has no opening, so the listener tells both apart by the first bytes that come.

use farhaul::Listener;
use farhaul_session::{Beginning, Begun};
use farhaul_transfer::internal::bond::{BondedStream, Registry};
use farhaul_udp::Clock;

use crate::exit::Fault;

/// A listening side that has not heard what its caller wants.
pub(super) struct Undecided {
    beginning: Beginning,
    listener: Listener,
}

impl Undecided {
    pub(super) fn new(listener: Listener) -> Self {
        Self { beginning: Beginning::default(), listener }
    }

    /// Takes received bytes. Returns those of the stream itself, or nothing while too few have come. Flows may join from then on,
    /// if the caller offers some. Otherwise further callers are refused.
    pub(super) fn decide(self, stream: &BondedStream, clock: Clock, bytes: &[u8]) -> Result<Decided, Fault> {
        let Self { mut beginning, listener } = self;
        let before = beginning.clone();
        match beginning.handle_received(bytes) {
            (Begun::Unknown, _) => Ok(Decided::NotYet(Self { beginning, listener })),
            (Begun::Bytes, _) => Ok(Decided::Begun([&before.into_head(), bytes].concat())),
            (Begun::Bonded(bonding), used) => {
                let registry = Registry::default();
                if registry.offer(stream, bonding) {
                    registry.serve(listener, clock)?;
                }
                Ok(Decided::Begun(bytes[used..].to_vec()))
            }
        }
    }

    /// Bytes of a stream that ended before it was long enough to offer anything.
    pub(super) fn into_head(self) -> Vec<u8> {
        self.beginning.into_head()
    }
}

/// What the first bytes were.
pub(super) enum Decided {
    NotYet(Undecided),
    /// The stream has begun, with these bytes.
    Begun(Vec<u8>),
}
