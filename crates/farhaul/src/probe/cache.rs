//! The best rates of paths that were profiled, kept between runs.
//!
//! One small file below the user's cache folder, `farhaul/paths.toml`, one line a path. Anything in it may be old or
//! forged, so each value is checked, and a line that does not fit is ignored. Deleting the file loses nothing else.

use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use farhaul_units::Rate;

use crate::clock::Clock;

/// Most paths in the file. The oldest ones make room.
const MOST_PATHS: usize = 64;
/// Bytes of the file that are read.
const MOST_BYTES: u64 = 64 << 10;
/// An older profile says little about the path of today: routes and hosts change within months.
const LONGEST_AGE: Duration = Duration::from_secs(30 * 86_400);
/// A date so far in the future is an error of a clock.
const CLOCK_ERROR: Duration = Duration::from_secs(86_400);
/// Plausible rates, bit/s.
const RATES: std::ops::RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// Plausible datagrams, bytes of UDP payload.
const DATAGRAMS: std::ops::RangeInclusive<u64> = 80..=65_507;
/// Longest plausible T_s, microseconds.
const LONGEST_SLEEP: u64 = 10_000_000;

const HEAD: &str = "# Best rates of paths, found by `farhaul profile`. Delete this file to forget them.\n";

/// The best rate of a path, as a profile found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The rate on the wire, headers of IP and UDP included, for [`Builder::first_rate`](crate::Builder::first_rate).
    pub fn first_rate(&self) -> Rate {
        let datagram = u64::from(self.datagram);
        // Both factors are within the bounds of the file, so the product fits.
        Rate::from_bits_per_second(self.rate.bits_per_second().saturating_mul(datagram + HEADERS) / datagram.max(1))
    }
}

/// The rate that [`cache_rate`] stored for a path to `peer` in the last 30 days.
///
/// A profile of another port of the same host counts too, unless the address is a loopback one, whose ports may belong to
/// different relays. `None` as well if the file cannot be read.
pub fn cached_rate(peer: SocketAddr) -> Option<CachedRate> {
    find(&read(&file()?), peer, now())
}

/// Stores the rate of the path to `peer`. Returns the file.
///
/// # Errors
/// There is no cache folder, or it cannot be written.
pub fn cache_rate(peer: SocketAddr, found: &CachedRate) -> io::Result<PathBuf> {
    let file = file().ok_or_else(|| io::Error::other("neither XDG_CACHE_HOME nor HOME names an absolute folder"))?;
    let paths = with(read(&file), peer, *found, now());
    write(&file, &paths)?;
    Ok(file)
}

/// The date, since 1970.
pub fn now() -> Duration {
    let clock = Clock::start();
    clock.wall().time_of(clock.now())
}

type Paths = Vec<(SocketAddr, CachedRate)>;

/// XDG Base Directory Specification: a relative folder is invalid.
fn file() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(cache.join("farhaul/paths.toml"))
}

fn read(file: &Path) -> Paths {
    let mut bytes = Vec::new();
    // Opening must not wait for a writer, should the name be a pipe.
    let opened = fs::OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32).open(file);
    if opened.and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes)).is_err() {
        return Paths::new();
    }
    String::from_utf8_lossy(&bytes).lines().filter_map(parse).take(MOST_PATHS).collect()
}

/// Reads a line such as `"192.0.2.7:9000" = { rate_bps = 940000000, … }`.
fn parse(line: &str) -> Option<(SocketAddr, CachedRate)> {
    let (peer, rest) = line.trim().strip_prefix('"')?.split_once("\" = {")?;
    let fields: Vec<(&str, u64)> = rest
        .strip_suffix('}')?
        .split(',')
        .map(|field| {
            let (name, value) = field.split_once('=')?;
            Some((name.trim(), value.trim().parse().ok()?))
        })
        .collect::<Option<_>>()?;
    let field = |name: &str| fields.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
    let rate = |name: &str| field(name).filter(|rate| RATES.contains(rate)).map(Rate::from_bits_per_second);
    let window = field("window_datagrams").filter(|window| (1..=u64::from(u16::MAX)).contains(window))?;
    let found = CachedRate {
        rate: rate("rate_bps")?,
        goodput: rate("goodput_bps")?,
        window: u32::try_from(window).ok()?,
        sleep: Duration::from_micros(field("sleep_us").filter(|sleep| *sleep <= LONGEST_SLEEP)?),
        datagram: u16::try_from(field("datagram_bytes").filter(|bytes| DATAGRAMS.contains(bytes))?).ok()?,
        measured: Duration::from_secs(field("measured_unix_seconds")?),
    };
    Some((peer.parse().ok()?, found))
}

fn line((peer, found): &(SocketAddr, CachedRate)) -> String {
    format!(
        "\"{peer}\" = {{ rate_bps = {}, goodput_bps = {}, window_datagrams = {}, sleep_us = {}, datagram_bytes = {}, \
         measured_unix_seconds = {} }}\n",
        found.rate.bits_per_second(),
        found.goodput.bits_per_second(),
        found.window,
        found.sleep.as_micros(),
        found.datagram,
        found.measured.as_secs(),
    )
}

fn is_fresh(found: &CachedRate, now: Duration) -> bool {
    found.measured + LONGEST_AGE >= now && found.measured <= now + CLOCK_ERROR
}

fn find(paths: &Paths, peer: SocketAddr, now: Duration) -> Option<CachedRate> {
    let fresh = || paths.iter().filter(|(_, found)| is_fresh(found, now));
    let exact = fresh().find(|(other, _)| *other == peer);
    let of_host = || fresh().filter(|(other, _)| other.ip() == peer.ip() && !peer.ip().is_loopback());
    exact.or_else(|| of_host().max_by_key(|(_, found)| found.measured)).map(|(_, found)| *found)
}

/// The paths with one more, without those that are too old or too many. The latest comes first.
fn with(mut paths: Paths, peer: SocketAddr, found: CachedRate, now: Duration) -> Paths {
    paths.retain(|(other, old)| *other != peer && is_fresh(old, now));
    paths.sort_by_key(|(_, old)| std::cmp::Reverse(old.measured));
    paths.insert(0, (peer, found));
    paths.truncate(MOST_PATHS);
    paths
}

/// Replaces the file at once, so that no reader sees half of it.
fn write(file: &Path, paths: &Paths) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let partial = folder.join(format!(".paths-{}", std::process::id()));
    let _ = fs::remove_file(&partial);
    let mut options = fs::OpenOptions::new();
    let written = options.write(true).create_new(true).mode(0o600).open(&partial).and_then(|mut out| {
        out.write_all(HEAD.as_bytes())?;
        paths.iter().try_for_each(|path| out.write_all(line(path).as_bytes()))
    });
    let done = written.and_then(|()| fs::rename(&partial, file));
    if done.is_err() {
        let _ = fs::remove_file(&partial);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_800_000_000);

    fn found(mbit: u64, age_days: u64) -> CachedRate {
        CachedRate {
            rate: Rate::from_megabits_per_second(mbit),
            goodput: Rate::from_megabits_per_second(mbit),
            window: 12,
            sleep: Duration::from_micros(150),
            datagram: 1_472,
            measured: NOW - Duration::from_secs(age_days * 86_400),
        }
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_line_is_read_back_and_is_toml() {
        for peer in ["192.0.2.7:9000", "[2001:db8::1]:9000"] {
            let path = (address(peer), found(940, 3));
            assert_eq!(parse(line(&path).trim_end()), Some(path));
        }
        let first = line(&(address("192.0.2.7:9000"), found(940, 3)));
        assert!(first.starts_with("\"192.0.2.7:9000\" = { rate_bps = 940000000, "), "{first}");
    }

    #[test]
    fn the_first_rate_of_a_transfer_counts_headers() {
        let wire = found(1_472, 0).first_rate();
        assert_eq!(wire, Rate::from_megabits_per_second(1_500));
    }

    #[test]
    fn lines_that_do_not_fit_are_ignored() {
        let good = line(&(address("192.0.2.7:9000"), found(940, 3)));
        for (from, to) in [
            ("rate_bps = 940000000, goodput", "rate_bps = 1, goodput"),
            ("rate_bps = 940000000, goodput", "rate_bps = 9999999999999, goodput"),
            ("rate_bps = 940000000, goodput", "rate_bps = -5, goodput"),
            ("rate_bps = 940000000, goodput", "goodput"),
            ("window_datagrams = 12", "window_datagrams = 0"),
            ("window_datagrams = 12", "window_datagrams = 70000"),
            ("sleep_us = 150", "sleep_us = 10000001"),
            ("datagram_bytes = 1472", "datagram_bytes = 65508"),
            ("192.0.2.7:9000", "far.example:9000"),
            ("measured_unix_seconds = ", "measured_unix_seconds = x"),
            (" }", ""),
            ("\"", ""),
        ] {
            let bad = good.replace(from, to);
            assert!(bad != good && parse(bad.trim_end()).is_none(), "{bad}");
        }
        assert!(parse("").is_none() && parse(HEAD).is_none() && parse("\"a\" = {}").is_none());
    }

    #[test]
    fn old_and_future_profiles_do_not_count() {
        let peer = address("192.0.2.7:9000");
        let of = |age_days: u64| find(&vec![(peer, found(940, age_days))], peer, NOW).is_some();
        assert_eq!([0, 29, 31].map(of), [true, true, false]);
        let early = NOW - Duration::from_secs(2 * 86_400);
        assert_eq!(find(&vec![(peer, found(940, 0))], peer, early), None);
    }

    #[test]
    fn another_port_of_a_host_counts_but_not_of_this_one() {
        let paths = vec![
            (address("192.0.2.7:9000"), found(940, 3)),
            (address("192.0.2.7:9001"), found(800, 1)),
            (address("127.0.0.1:9000"), found(50, 1)),
        ];
        let at = |peer: &str| find(&paths, address(peer), NOW).map(|found| found.rate.bits_per_second() / 1_000_000);
        assert_eq!(at("192.0.2.7:9000"), Some(940));
        assert_eq!(at("192.0.2.7:4"), Some(800));
        assert_eq!((at("127.0.0.1:9000"), at("127.0.0.1:4"), at("192.0.2.8:9000")), (Some(50), None, None));
    }

    #[test]
    fn the_oldest_paths_make_room() {
        let mut paths = Paths::new();
        for port in 0..100_u16 {
            let peer = SocketAddr::from(([192, 0, 2, 1], port));
            let measured = CachedRate { measured: NOW + Duration::from_secs(port.into()), ..found(1, 0) };
            paths = with(paths, peer, measured, NOW);
        }
        assert_eq!((paths.len(), paths[0].0.port(), paths[MOST_PATHS - 1].0.port()), (MOST_PATHS, 99, 36));
        let again = with(paths, SocketAddr::from(([192, 0, 2, 1], 50)), found(7, 0), NOW);
        assert_eq!((again.len(), again[0].0.port()), (MOST_PATHS, 50));
    }

    #[test]
    fn the_file_survives_a_write_and_anything_else_in_it() {
        let folder = std::env::temp_dir().join(format!("farhaul-cache-{}", std::process::id()));
        let file = folder.join("farhaul/paths.toml");
        assert!(read(&file).is_empty());
        let paths: Paths = vec![(address("192.0.2.7:9000"), found(940, 3)), (address("[::1]:1"), found(5, 0))];
        write(&file, &paths).unwrap();
        assert_eq!(read(&file), paths);
        let mut content = fs::read(&file).unwrap();
        content.splice(0..0, [0xFF, 0xFE, b'\n']);
        content.extend(vec![b'x'; 1 << 20]);
        fs::write(&file, content).unwrap();
        assert_eq!(read(&file), paths);
        assert_eq!(fs::read_dir(folder.join("farhaul")).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
