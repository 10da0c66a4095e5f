//! The best rates of paths that were profiled, kept between runs in `farhaul/paths.toml` below the user's cache folder.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use farhaul_proto::probe::Advice;
use farhaul_udp::Clock;
use farhaul_units::Rate;

use crate::path_facts::{self, Fact};

/// Plausible rates, bit/s.
const RATES: std::ops::RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// Plausible datagrams, bytes of UDP payload.
const DATAGRAMS: std::ops::RangeInclusive<u64> = 80..=65_507;
/// Longest plausible T_s, microseconds.
const LONGEST_SLEEP: u64 = 10_000_000;

/// The best rate of a path, as a profile found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CachedRate {
    /// The sending rate, UDP payload.
    pub rate: Rate,
    /// The goodput that it gave, UDP payload.
    pub goodput: Rate,
    /// W_c: datagrams per burst.
    pub window: u32,
    /// T_s: time between bursts.
    pub sleep: Duration,
    /// Bytes of a datagram, UDP payload.
    pub datagram: u16,
    /// When it was measured, since 1970.
    pub measured: Duration,
}

/// Bytes of IPv4 and UDP headers per datagram.
const HEADERS: u64 = 28;

impl CachedRate {
    /// What a profile found just now, with datagrams of this many bytes of UDP payload.
    pub fn of(found: &Advice, datagram: u16) -> Self {
        let Advice { window, sleep, rate, goodput, .. } = *found;
        Self { rate, goodput, window, sleep, datagram, measured: now() }
    }

    /// The rate on the wire, headers of IP and UDP included, for [`Builder::first_rate`](crate::Builder::first_rate).
    pub fn first_rate(&self) -> Rate {
        let datagram = u64::from(self.datagram);
        // Both factors are within the bounds of the file, so the product fits.
        Rate::from_bits_per_second(self.rate.bits_per_second().saturating_mul(datagram + HEADERS) / datagram.max(1))
    }
}

impl Fact for CachedRate {
    const FILE: &'static str = "paths.toml";
    const HEAD: &'static str = "# Best rates of paths, found by `farhaul profile`. Delete this file to forget them.";
    /// Routes and hosts change within months.
    const LONGEST_AGE: Duration = Duration::from_secs(30 * 86_400);

    fn from_fields(field: &dyn Fn(&str) -> Option<u64>) -> Option<Self> {
        let rate = |name: &str| field(name).filter(|rate| RATES.contains(rate)).map(Rate::from_bits_per_second);
        let window = field("window_datagrams").filter(|window| (1..=u64::from(u16::MAX)).contains(window))?;
        Some(Self {
            rate: rate("rate_bps")?,
            goodput: rate("goodput_bps")?,
            window: u32::try_from(window).ok()?,
            sleep: Duration::from_micros(field("sleep_us").filter(|sleep| *sleep <= LONGEST_SLEEP)?),
            datagram: u16::try_from(field("datagram_bytes").filter(|bytes| DATAGRAMS.contains(bytes))?).ok()?,
            measured: Duration::from_secs(field("measured_unix_seconds")?),
        })
    }

    fn fields(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("rate_bps", self.rate.bits_per_second()),
            ("goodput_bps", self.goodput.bits_per_second()),
            ("window_datagrams", self.window.into()),
            ("sleep_us", self.sleep.as_micros() as u64),
            ("datagram_bytes", self.datagram.into()),
            ("measured_unix_seconds", self.measured.as_secs()),
        ]
    }

    fn measured(&self) -> Duration {
        self.measured
    }
}

/// The rate that [`cache_rate`] stored for a path to `peer` in the last 30 days.
///
/// A profile of another port of the same host counts too, unless the address is a loopback one, whose ports may belong to
/// different relays. `None` as well if the file cannot be read.
pub fn cached_rate(peer: SocketAddr) -> Option<CachedRate> {
    path_facts::find(&path_facts::read(&path_facts::file::<CachedRate>()?), peer, now())
}

/// Stores the rate of the path to `peer`. Returns the file.
///
/// # Errors
/// There is no cache folder, or it cannot be written.
pub fn cache_rate(peer: SocketAddr, found: &CachedRate) -> io::Result<PathBuf> {
    let file = path_facts::file::<CachedRate>()
        .ok_or_else(|| io::Error::other("neither XDG_CACHE_HOME nor HOME names an absolute folder"))?;
    let paths = path_facts::with(path_facts::read(&file), peer, *found, now());
    path_facts::write(&file, &paths)?;
    Ok(file)
}

/// The date, since 1970.
pub fn now() -> Duration {
    let clock = Clock::start();
    clock.wall().time_of(clock.now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rate_of_a_transfer_counts_headers() {
        let rate = Rate::from_megabits_per_second(1_472);
        let found = CachedRate {
            rate,
            goodput: rate,
            window: 12,
            sleep: Duration::from_micros(150),
            datagram: 1_472,
            measured: Duration::ZERO,
        };
        assert_eq!(found.first_rate(), Rate::from_megabits_per_second(1_500));
    }
}
