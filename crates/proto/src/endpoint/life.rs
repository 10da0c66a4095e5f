//! The state of a connection, and its transitions.
//!
//! ```text
//!  Connecting ──established──▶ Open ──finish──▶ Finishing ──flushed──▶ Closing ──close sent──▶ Closed
//!      │                        │ └─finish sending─▶ HalfClosed ─both ended─▶ ▲
//!      │                        │                   │  └─finish─▶ Finishing   │
//!      │                        └──────close────────┴────────close────────────┘
//!      └──close / lost──▶ Closed ◀──lost── (any)
//! ```

use crate::error::ConnectionLost;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// The handshake is under way.
    Connecting,
    /// Data flows both ways.
    Open,
    /// This side writes no more, and reads until the peer ends its direction as well.
    HalfClosed,
    /// This side writes no more and waits for the last acknowledgement.
    Finishing,
    /// This side sends its close packets to the peer.
    Closing,
    /// Nothing is sent or received any more.
    Closed,
}

/// The cause of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The handshake succeeded.
    Established,
    /// The application ended its writing side alone.
    FinishSending,
    /// The application ended its writing side, and with it the connection.
    Finish,
    /// Everything written was acknowledged. If this side ended its writing side alone, the peer has ended its own as well.
    Flushed,
    /// The application closed.
    Close,
    /// The last close packet was sent.
    CloseSent,
    /// The peer closed, fell silent or misbehaved, or the handshake failed.
    Lost,
}

impl Life {
    /// The next state; `None` if the cause changes nothing.
    pub(crate) const fn after(self, cause: Cause) -> Option<Self> {
        match (self, cause) {
            (Self::Connecting, Cause::Established) => Some(Self::Open),
            (Self::Open, Cause::FinishSending) => Some(Self::HalfClosed),
            (Self::Open | Self::HalfClosed, Cause::Finish) => Some(Self::Finishing),
            (Self::HalfClosed | Self::Finishing, Cause::Flushed) => Some(Self::Closing),
            (Self::Open | Self::HalfClosed | Self::Finishing, Cause::Close) => Some(Self::Closing),
            (Self::Connecting, Cause::Close) => Some(Self::Closed),
            (Self::Closing, Cause::CloseSent | Cause::Lost) => Some(Self::Closed),
            (Self::Connecting | Self::Open | Self::HalfClosed | Self::Finishing, Cause::Lost) => Some(Self::Closed),
            _ => None,
        }
    }

    /// Whether data may still arrive and be acknowledged.
    pub(crate) const fn is_alive(self) -> bool {
        matches!(self, Self::Open | Self::HalfClosed | Self::Finishing)
    }
}

/// The application's relation to a connection. It only moves forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// It was accepted, and the application has not taken it yet.
    Awaited,
    /// The application uses it.
    Held,
    /// The application released it.
    Released,
}

impl Interest {
    /// Marks it as used by the application.
    pub(crate) fn hold(&mut self) {
        if *self == Self::Awaited {
            *self = Self::Held;
        }
    }
}

/// How a connection ended for its application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) reason: ConnectionLost,
    /// All data that the peer sent before it closed has arrived, so the received stream is complete.
    pub(crate) complete: bool,
}

impl Ending {
    /// An end with data missing, or without knowledge of it.
    pub(crate) const fn early(reason: ConnectionLost) -> Self {
        Self { reason, complete: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transition_table_is_as_drawn() {
        let states = [Life::Connecting, Life::Open, Life::HalfClosed, Life::Finishing, Life::Closing, Life::Closed];
        let causes = [
            Cause::Established,
            Cause::FinishSending,
            Cause::Finish,
            Cause::Flushed,
            Cause::Close,
            Cause::CloseSent,
            Cause::Lost,
        ];
        let mut table = String::new();
        for state in states {
            for cause in causes {
                if let Some(next) = state.after(cause) {
                    table += &format!("{state:?} --{cause:?}--> {next:?}\n");
                }
            }
        }
        assert_eq!(
            table,
            "Connecting --Established--> Open\n\
             Connecting --Close--> Closed\n\
             Connecting --Lost--> Closed\n\
             Open --FinishSending--> HalfClosed\n\
             Open --Finish--> Finishing\n\
             Open --Close--> Closing\n\
             Open --Lost--> Closed\n\
             HalfClosed --Finish--> Finishing\n\
             HalfClosed --Flushed--> Closing\n\
             HalfClosed --Close--> Closing\n\
             HalfClosed --Lost--> Closed\n\
             Finishing --Flushed--> Closing\n\
             Finishing --Close--> Closing\n\
             Finishing --Lost--> Closed\n\
             Closing --CloseSent--> Closed\n\
             Closing --Lost--> Closed\n"
        );
    }
}
