//! What a controller may set.

use farhaul_units::{Duration, Instant, SendPeriod};

/// The settings of a connection that belong to its controller (UDT4's CCC setters and members).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Control {
    /// Congestion window in packets; `None` for a controller that has no window of its own, which then is limited by
    /// the receiver's flow window alone.
    pub cwnd: Option<f64>,
    /// Time from one packet to the next.
    pub send_period: SendPeriod,
    /// Until then no data packet leaves, neither a new one nor a repair (the freeze of UDT before its fourth generation);
    /// control packets do, and the time is not made up for afterwards. An instant that has passed holds nothing.
    pub freeze_until: Option<Instant>,
    /// How many times faster than its period a host that woke late makes up for it, above 1; `None`: all at once, as UDT does.
    pub catch_up_pace: Option<f64>,
    /// How many times faster than this side sent of late its packets may seem to arrive, from 1 to 2; what is reported beyond that is
    /// cut. `None`: twice (attack B9).
    pub arrival_bound: Option<f64>,
    /// How often full acknowledgements are sent at most: never above one SYN interval (10 ms), longer values are cut.
    pub ack_period: Option<Duration>,
    /// An acknowledgement after this many data packets, in place of UDT's light one after 64.
    pub ack_interval: Option<u32>,
    /// Replaces the expiration interval.
    pub rto: Option<Duration>,
}

impl Control {
    /// UDT4's initial window, packets. Source: libudt 4.11; also the initial flight of the 2007 paper.
    pub const INITIAL_CWND: f64 = 16.0;

    /// What a connection starts with: 16 packets, unpaced.
    pub const fn initial() -> Self {
        Self {
            cwnd: Some(Self::INITIAL_CWND),
            send_period: SendPeriod::UNPACED,
            freeze_until: None,
            catch_up_pace: None,
            arrival_bound: None,
            ack_period: None,
            ack_interval: None,
            rto: None,
        }
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::initial()
    }
}
