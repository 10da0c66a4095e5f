//! Who may become a connection: the limits of what callers hold that have proved their address and nothing more.

use core::net::IpAddr;

use farhaul_units::{Duration, Instant};

use crate::config::Config;
use crate::udt::handshake::{PrefixBudget, Room};

/// Accepted connections that have not been heard since at most (attack A6).
const MAX_HALF_OPEN: usize = 1024;
/// Callers of one network that may be silent after they were accepted. A caller that speaks gives its place back at once, so
/// that this bounds the calls of a network per round trip, not per second: a thousand calls from one host need four
/// round trips or tries, and a try comes every 250 ms.
const SILENT_PER_NETWORK: u32 = 256;
/// Time in which those places come back by themselves: as long as a connection that is never heard lives. In that time
/// one network holds what it had and what came back, which is half of all places at most.
const SILENCE: Duration = Duration::from_secs(10);

/// What an endpoint holds already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// Connections, those on their way out included.
    pub(crate) connections: usize,
    /// Accepted connections that were not heard since.
    pub(crate) half_open: usize,
    /// Accepted connections that the application has not taken yet.
    pub(crate) unclaimed: usize,
}

/// Admits callers.
pub(crate) struct Admission {
    silent: PrefixBudget,
}

impl Admission {
    pub(crate) fn new(key: [u8; 16]) -> Self {
        Self { silent: PrefixBudget::new(key, SILENT_PER_NETWORK, SILENCE) }
    }

    /// What there is for a caller from `ip`.
    pub(crate) fn room(&self, ip: IpAddr, now: Instant, held: Held, config: &Config) -> Room {
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

    /// A caller from `ip` was accepted.
    pub(crate) fn on_accepted(&mut self, ip: IpAddr, now: Instant) {
        self.silent.take(ip, now);
    }

    /// It said something after the handshake, so it is no flood of calls.
    pub(crate) fn on_heard(&mut self, ip: IpAddr) {
        self.silent.give_back(ip);
    }
}
