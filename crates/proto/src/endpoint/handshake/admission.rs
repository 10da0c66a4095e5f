//! Admission of callers: limits on callers that have proved only their address.

use core::net::IpAddr;

use farhaul_units::{Duration, Instant};

use crate::config::Config;
use crate::endpoint::handshake::{PrefixBudget, Room};

/// Largest number of accepted connections not heard from since (attack A6).
pub(crate) const MAX_HALF_OPEN: usize = 1024;
/// Callers of one network that may be accepted and not yet heard from.
///
/// A caller that speaks frees its place at once. So this bounds the calls of a network per RTT, not per second. A
/// thousand calls from one host need four RTTs or retries, and a retry comes every 250 ms.
const SILENT_PER_NETWORK: u32 = 256;
/// Time in which all those places become free by themselves: the lifetime of a connection that is never heard from. In
/// this time one network holds at most its places and the freed ones, half of [`MAX_HALF_OPEN`].
const SILENCE: Duration = Duration::from_secs(10);

/// The connections that an endpoint already holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// All connections, closing ones included.
    pub connections: usize,
    /// Accepted connections not heard from since.
    pub half_open: usize,
    /// Accepted connections that the application has not taken yet.
    pub unclaimed: usize,
}

/// Admits callers.
pub struct Admission {
    silent: PrefixBudget,
}

impl Admission {
    /// Without callers. `key` must be secret.
    pub fn new(key: [u8; 16]) -> Self {
        Self { silent: PrefixBudget::new(key, SILENT_PER_NETWORK, SILENCE) }
    }

    /// The room for a caller from `ip`.
    pub fn room(&self, ip: IpAddr, now: Instant, held: Held, config: &Config) -> Room {
        if held.connections >= config.max_connections
            || held.half_open >= MAX_HALF_OPEN
            || held.unclaimed >= config.backlog
        {
            Room::None
        } else if self.silent.has_left(ip, now) {
            Room::Free
        } else {
            Room::Later
        }
    }

    /// Counts an accepted caller from `ip`.
    pub fn on_accepted(&mut self, ip: IpAddr, now: Instant) {
        self.silent.take(ip, now);
    }

    /// The caller has spoken after the handshake, so it is no flood.
    pub fn on_heard(&mut self, ip: IpAddr) {
        self.silent.give_back(ip);
    }
}
