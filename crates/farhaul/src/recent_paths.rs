//! Rates and RTTs of recent paths: in `farhaul/recent.toml` below the user's cache folder, or in memory alone.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use farhaul_cc::KnownPath;
use farhaul_proto::PathMemory;
use farhaul_units::Rate;

use crate::path_facts::{self, Fact, Paths};
use crate::probe::now;

/// Plausible rates, bit/s.
const RATES: std::ops::RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// Longest plausible RTT, µs: that of a path over several satellites.
const LONGEST_RTT: u64 = 10_000_000;

/// What the last connections over some paths have found, for the next ones.
///
/// A connection over a known path begins at half of the rate that the last one had (RFC 9959). It does so once its first RTT agrees
/// with the known one. Connections that congestion control held for less than a second or ten RTTs leave none. Entries older than an
/// hour do not count. See [`Builder::path_memory`](crate::Builder::path_memory).
#[derive(Debug)]
pub struct RecentPaths {
    file: Option<PathBuf>,
    paths: Mutex<Paths<Recent>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Recent {
    known: KnownPath,
    /// When the connection ended, since 1970, and for how long congestion control held it.
    measured: Duration,
    held: Duration,
    /// A connection of this program has taken it.
    is_taken: bool,
}

impl Fact for Recent {
    const FILE: &'static str = "recent.toml";
    const HEAD: &'static str =
        "# Rates of the last connections, where the next ones begin. Delete this file to forget them.";
    /// What others send over a path changes within hours. Linux forgets its own such figures after an hour as well
    /// (TCP_METRICS_TIMEOUT).
    const LONGEST_AGE: Duration = Duration::from_secs(3_600);

    fn from_fields(field: &dyn Fn(&str) -> Option<u64>) -> Option<Self> {
        let rate = field("rate_bps").filter(|rate| RATES.contains(rate)).map(Rate::from_bits_per_second)?;
        let rtt = field("rtt_us").filter(|rtt| (1..=LONGEST_RTT).contains(rtt)).map(Duration::from_micros)?;
        let measured = Duration::from_secs(field("measured_unix_seconds")?);
        // Files of earlier versions do not tell it.
        let held = Duration::from_millis(field("held_ms").unwrap_or_default());
        Some(Self { known: KnownPath { rate, rtt }, measured, held, is_taken: false })
    }

    fn fields(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("rate_bps", self.known.rate.bits_per_second()),
            ("rtt_us", self.known.rtt.as_micros() as u64),
            ("measured_unix_seconds", self.measured.as_secs()),
            ("held_ms", self.held.as_millis() as u64),
        ]
    }

    fn measured(&self) -> Duration {
        self.measured
    }
}

impl RecentPaths {
    /// Those of this user's earlier programs. Connections that end are added to the file; without a cache folder they are forgotten
    /// with the program.
    pub fn of_user() -> Self {
        let file = path_facts::file::<Recent>();
        let paths = file.as_deref().map_or_else(Paths::new, path_facts::read);
        Self { file, paths: Mutex::new(paths) }
    }

    /// None at first, and forgotten with the program.
    pub fn in_memory() -> Self {
        Self { file: None, paths: Mutex::new(Paths::new()) }
    }
}

impl PathMemory for RecentPaths {
    fn take(&self, peer: SocketAddr) -> Option<KnownPath> {
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        let found = path_facts::find(&paths, peer, now()).filter(|found| !found.is_taken)?;
        let of_host = paths.iter_mut().filter(|(other, _)| is_same(*other, peer));
        of_host.for_each(|(_, recent)| recent.is_taken = true);
        Some(found.known)
    }

    fn keep(&self, peer: SocketAddr, known: Option<KnownPath>, held: farhaul_units::Duration) {
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        // What a connection took and gives back has not become younger by that.
        let taken = paths.iter().find(|(other, recent)| is_same(*other, peer) && Some(recent.known) == known);
        let found = || (now(), Duration::from_secs_f64(held.as_secs_f64()));
        let (measured, held) = taken
            .filter(|(_, recent)| recent.is_taken)
            .map_or_else(found, |(_, recent)| (recent.measured, recent.held));
        let replace = |mut paths: Paths<Recent>| {
            paths.retain(|(other, _)| !is_same(*other, peer));
            match known {
                Some(known) => path_facts::with(paths, peer, Recent { known, measured, held, is_taken: false }, now()),
                None => paths,
            }
        };
        *paths = replace(std::mem::take(&mut paths));
        if let Some(file) = &self.file {
            // Programs that run beside this one have added theirs. A file that cannot be written is no loss but of time.
            let _ = path_facts::write(file, &replace(path_facts::read(file)));
        }
    }
}

/// Whether two addresses show the same path. Clients have another port for each connection.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    one == other || one.ip() == other.ip() && !one.ip().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(mbit: u64) -> KnownPath {
        KnownPath { rate: Rate::from_megabits_per_second(mbit), rtt: Duration::from_millis(40) }
    }

    const HELD: farhaul_units::Duration = farhaul_units::Duration::from_secs(4);

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_of_several_connections_gets_what_the_last_one_found() {
        let paths = RecentPaths::in_memory();
        paths.keep(address("192.0.2.7:9001"), Some(known(100)), HELD);
        paths.keep(address("192.0.2.7:9000"), Some(known(900)), HELD);
        let taken = [(); 2].map(|()| paths.take(address("192.0.2.7:4444")));
        assert_eq!(taken, [Some(known(900)), None]);
    }

    #[test]
    fn what_is_given_back_is_as_old_as_before_and_what_did_not_hold_is_forgotten() {
        let (peer, earlier) = (address("192.0.2.7:9000"), now() - Duration::from_secs(600));
        let recent = Recent { known: known(900), measured: earlier, held: Duration::from_secs(9), is_taken: false };
        let paths = RecentPaths { file: None, paths: Mutex::new(vec![(peer, recent)]) };
        paths.keep(peer, paths.take(peer), HELD);
        assert_eq!(*paths.paths.lock().unwrap(), [(peer, recent)]);
        assert_eq!(paths.take(peer), Some(known(900)));
        paths.keep(address("192.0.2.7:4444"), None, HELD);
        assert_eq!(*paths.paths.lock().unwrap(), []);
    }

    #[test]
    fn a_port_of_loopback_is_a_path_of_its_own() {
        let paths = RecentPaths::in_memory();
        paths.keep(address("127.0.0.1:9000"), Some(known(100)), HELD);
        assert_eq!(paths.take(address("127.0.0.1:9001")), None);
        assert_eq!(paths.take(address("127.0.0.1:9000")), Some(known(100)));
    }

    #[test]
    fn the_next_program_knows_what_this_one_has_found_for_an_hour() {
        let folder = std::env::temp_dir().join(format!("farhaul-recent-{}", std::process::id()));
        let file = folder.join(Recent::FILE);
        let open = || RecentPaths { file: Some(file.clone()), paths: Mutex::new(path_facts::read(&file)) };
        open().keep(address("192.0.2.7:9000"), Some(known(900)), HELD);
        assert_eq!(path_facts::read::<Recent>(&file)[0].1.held, Duration::from_secs(4));
        assert_eq!(open().take(address("192.0.2.7:9000")), Some(known(900)));
        let measured = now() - Duration::from_secs(3_700);
        let old = Recent { known: known(900), measured, held: Duration::from_secs(4), is_taken: false };
        path_facts::write(&file, &vec![(address("192.0.2.7:9000"), old)]).unwrap();
        assert_eq!(open().take(address("192.0.2.7:9000")), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
