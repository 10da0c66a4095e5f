//! What is known of paths, kept between runs: one small file of lines, one line a path.
//!
//! The files lie below the user's cache folder. Anything in them may be old or forged, so each value is checked, and a line that does
//! not fit is ignored. Deleting a file loses nothing else.

use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Most paths in a file. The oldest ones make room.
pub(crate) const MOST_PATHS: usize = 64;
/// Bytes of a file that are read.
const MOST_BYTES: u64 = 64 << 10;
/// A date so far in the future is an error of a clock.
const CLOCK_ERROR: Duration = Duration::from_secs(86_400);

/// What is known of a path.
pub(crate) trait Fact: Copy {
    /// The name of the file, below the cache folder.
    const FILE: &'static str;
    /// The first line of the file.
    const HEAD: &'static str;
    /// What is older says nothing about the path of today.
    const LONGEST_AGE: Duration;

    /// Reads it from its line; `None` if a value is missing or not plausible.
    fn from_fields(field: &dyn Fn(&str) -> Option<u64>) -> Option<Self>;

    /// The names and values of its line.
    fn fields(&self) -> Vec<(&'static str, u64)>;

    /// When it was measured, since 1970.
    fn measured(&self) -> Duration;

    /// Whether it counts at the date `now`.
    fn is_fresh(&self, now: Duration) -> bool {
        now.saturating_sub(self.measured()) <= Self::LONGEST_AGE && self.measured() <= now.saturating_add(CLOCK_ERROR)
    }
}

/// What is known of some paths, by the address of the peer.
pub(crate) type Paths<F> = Vec<(SocketAddr, F)>;

/// The file of these facts. XDG Base Directory Specification: a relative folder is invalid.
pub(crate) fn file<F: Fact>() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(cache.join("farhaul").join(F::FILE))
}

/// The facts in a file; none if it cannot be read.
pub(crate) fn read<F: Fact>(file: &Path) -> Paths<F> {
    let mut bytes = Vec::new();
    // Opening must not wait for a writer, should the name be a pipe.
    let opened = fs::OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32).open(file);
    if opened.and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes)).is_err() {
        return Paths::new();
    }
    String::from_utf8_lossy(&bytes).lines().filter_map(parse).take(MOST_PATHS).collect()
}

/// Reads a line such as `"192.0.2.7:9000" = { rate_bps = 940000000, … }`.
fn parse<F: Fact>(line: &str) -> Option<(SocketAddr, F)> {
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
    Some((peer.parse().ok()?, F::from_fields(&field)?))
}

fn line<F: Fact>((peer, fact): &(SocketAddr, F)) -> String {
    let fields: Vec<String> = fact.fields().iter().map(|(name, value)| format!("{name} = {value}")).collect();
    format!("\"{peer}\" = {{ {} }}\n", fields.join(", "))
}

/// What is known of the path to `peer`.
///
/// Another port of the same host counts too, unless the address is a loopback one, whose ports may belong to different relays.
pub(crate) fn find<F: Fact>(paths: &Paths<F>, peer: SocketAddr, now: Duration) -> Option<F> {
    let fresh = || paths.iter().filter(|(_, fact)| fact.is_fresh(now));
    let exact = fresh().find(|(other, _)| *other == peer);
    let of_host = || fresh().filter(|(other, _)| other.ip() == peer.ip() && !peer.ip().is_loopback());
    exact.or_else(|| of_host().max_by_key(|(_, fact)| fact.measured())).map(|(_, fact)| *fact)
}

/// The paths with one more, without those that are too old or too many. The latest comes first.
pub(crate) fn with<F: Fact>(mut paths: Paths<F>, peer: SocketAddr, fact: F, now: Duration) -> Paths<F> {
    paths.retain(|(other, old)| *other != peer && old.is_fresh(now));
    paths.sort_by_key(|(_, old)| std::cmp::Reverse(old.measured()));
    paths.insert(0, (peer, fact));
    paths.truncate(MOST_PATHS);
    paths
}

/// Writes of this program take turns, because they use one temporary name.
static WRITING: Mutex<()> = Mutex::new(());

/// Replaces the file at once, so that no reader sees half of it.
pub(crate) fn write<F: Fact>(file: &Path, paths: &Paths<F>) -> io::Result<()> {
    let _turn = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let partial = folder.join(format!(".{}-{}", F::FILE, std::process::id()));
    let _ = fs::remove_file(&partial);
    let mut options = fs::OpenOptions::new();
    let written = options.write(true).create_new(true).mode(0o600).open(&partial).and_then(|mut out| {
        writeln!(out, "{}", F::HEAD)?;
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
    use farhaul_units::Rate;

    use super::*;
    use crate::probe::CachedRate;

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
            assert_eq!(parse::<CachedRate>(line(&path).trim_end()), Some(path));
        }
        let first = line(&(address("192.0.2.7:9000"), found(940, 3)));
        assert!(first.starts_with("\"192.0.2.7:9000\" = { rate_bps = 940000000, "), "{first}");
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
            assert!(bad != good && parse::<CachedRate>(bad.trim_end()).is_none(), "{bad}");
        }
        assert!(["", CachedRate::HEAD, "\"a\" = {}"].iter().all(|line| parse::<CachedRate>(line).is_none()));
    }

    #[test]
    fn old_and_future_profiles_do_not_count() {
        let peer = address("192.0.2.7:9000");
        let of = |age_days: u64| find(&vec![(peer, found(940, age_days))], peer, NOW).is_some();
        assert_eq!([0, 29, 31].map(of), [true, true, false]);
        let forged = CachedRate { measured: Duration::from_secs(u64::MAX), ..found(940, 0) };
        assert_eq!(find(&vec![(peer, forged)], peer, NOW), None);
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
        let mut paths: Paths<CachedRate> = Paths::new();
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
        assert!(read::<CachedRate>(&file).is_empty());
        let paths: Paths<CachedRate> =
            vec![(address("192.0.2.7:9000"), found(940, 3)), (address("[::1]:1"), found(5, 0))];
        write(&file, &paths).unwrap();
        assert_eq!(read::<CachedRate>(&file), paths);
        let mut content = fs::read(&file).unwrap();
        content.splice(0..0, [0xFF, 0xFE, b'\n']);
        content.extend(vec![b'x'; 1 << 20]);
        fs::write(&file, content).unwrap();
        assert_eq!(read::<CachedRate>(&file), paths);
        assert_eq!(fs::read_dir(folder.join("farhaul")).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
