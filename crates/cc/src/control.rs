//! Settings that a controller controls.

use farhaul_units::{Duration, Instant, SendPeriod};

/// Length of a burst, unless a controller bounds it further. At 1 Gbit/s this is 20 packets, a tenth of a small switch's queue.
pub const BURST_TIME: Duration = Duration::from_micros(250);
/// Most packets of a burst, unless a controller bounds it further: one train of full-size packets, which the kernel takes in one call.
pub const MAX_BURST: u32 = 44;

/// The settings of a connection that belong to its controller (the setters and members of UDT4's CCC).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Control {
    /// Congestion window in packets. `None` for a controller without a window, which only the receiver's flow window
    /// limits.
    pub cwnd: Option<f64>,
    /// Whether the window limits [`Path::outstanding`](crate::Path::outstanding), so that retransmissions and new packets
    /// leave as others arrive or are found to be lost. Otherwise it limits new packets only, by all behind the first gap.
    pub window_of_outstanding: bool,
    /// Time from one packet to the next.
    pub send_period: SendPeriod,
    /// Whether the period only spreads a window that limits by itself. Simulated TCP then ignores it: acknowledgements clock its packets,
    /// as those of a kernel that does not pace.
    pub period_of_window: bool,
    /// No data packet leaves before this instant, neither new nor retransmitted (the freeze before UDT's fourth
    /// generation).
    ///
    /// Control packets do leave, and the sender does not catch up on the lost time. An instant in the past has no
    /// effect.
    pub freeze_until: Option<Instant>,
    /// How many times faster than its period a driver that wakes late catches up, above 1. `None`: all at once, as in
    /// UDT.
    pub catch_up_pace: Option<f64>,
    /// Most packets that leave together. A driver that wakes late sends at most twice as many at once, besides those of
    /// its usual lateness. `None`: those of [`BURST_TIME`], [`MAX_BURST`] at most.
    pub burst: Option<u32>,
    /// Fewest packets that leave together: a burst waits until so many are due. At most `burst`. `None`: one.
    pub least_burst: Option<u32>,
    /// Shortest interval between full acknowledgements. Values above one SYN interval (10 ms) are cut to it.
    pub ack_period: Option<Duration>,
    /// An acknowledgement after this many data packets, instead of UDT's light one after 64.
    pub ack_interval: Option<u32>,
    /// A full or medium acknowledgement after this many data packets, beside those by time (`setACKInterval` of libudt).
    /// Packets that arrive in one receive call have one acknowledgement. `None`: by time alone.
    pub full_ack_interval: Option<u32>,
    /// Replaces the expiration interval.
    pub rto: Option<Duration>,
}

impl Control {
    /// UDT4's initial window, packets. Source: libudt 4.11; also the initial flight of the 2007 paper.
    pub const INITIAL_CWND: f64 = 16.0;

    /// The settings at the start of a connection: 16 packets, unpaced.
    pub const fn initial() -> Self {
        Self {
            cwnd: Some(Self::INITIAL_CWND),
            window_of_outstanding: false,
            send_period: SendPeriod::UNPACED,
            period_of_window: false,
            freeze_until: None,
            catch_up_pace: None,
            burst: None,
            least_burst: None,
            ack_period: None,
            ack_interval: None,
            full_ack_interval: None,
            rto: None,
        }
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::initial()
    }
}
